#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attn/tensor.h"
#include "core/element.h"
#include "core/rows.h"
#include "core/text.h"

enum { ELEMENT_TEXT_SIZE = 352, MAX_DIGITS = 17 }; // 309 digits, a point, MAX_DIGITS and the rest

static int format_element(const attn_tensor *tensor, const void *element, int digits, char *text);
static int widest_element(const attn_tensor *tensor, int digits);
static void format_dims(attn_writer *writer, const attn_tensor *tensor, int32_t dim,
                        const char *first, int digits, int width);

size_t attn_tensor_format_shape(const attn_tensor *tensor, char *buffer, size_t size)
{
    attn_writer writer = attn_writer_open(buffer, size);
    attn_write(&writer, "%s", attn_shape_text(tensor).text);
    return writer.length;
}

size_t attn_tensor_format_layout(const attn_tensor *tensor, char *buffer, size_t size)
{
    attn_writer writer = attn_writer_open(buffer, size);
    attn_write(&writer, "%s %s stride %s", attn_dtype_name(tensor->dtype),
               attn_shape_text(tensor).text, attn_stride_text(tensor).text);
    return writer.length;
}

// As torch: all elements in columns of one width, a blank line between matrices. Unlike torch, long
// rows are not broken and large tensors are not abridged.
size_t attn_tensor_format(const attn_tensor *tensor, int digits, char *buffer, size_t size)
{
    attn_writer writer = attn_writer_open(buffer, size);
    attn_error error;
    if (attn_tensor_check(tensor, "tensor", &error) != ATTN_OK) {
        attn_write(&writer, "%s", error.text);
    } else if (attn_tensor_count(tensor) == 0) {
        attn_write(&writer, "[]");
    } else {
        const int decimals = digits < 0 ? 0 : digits > MAX_DIGITS ? MAX_DIGITS : digits;
        format_dims(&writer, tensor, 0, tensor->data, decimals, widest_element(tensor, decimals));
    }
    return writer.length;
}

static void format_dims(attn_writer *writer, const attn_tensor *tensor, int32_t dim,
                        const char *first, int digits, int width)
{
    if (dim == tensor->ndim) {
        char text[ELEMENT_TEXT_SIZE];
        format_element(tensor, first, digits, text);
        attn_write(writer, "%*s", tensor->ndim ? width : 0, text);
        return;
    }
    const int32_t inner_dims = tensor->ndim - dim - 1;
    const int64_t step = tensor->stride[dim] * (int64_t)attn_dtype_size(tensor->dtype);
    attn_write(writer, "[");
    for (int64_t i = 0; i < tensor->shape[dim]; i++) {
        if (i > 0 && inner_dims == 0) {
            attn_write(writer, ", ");
        } else if (i > 0) {
            attn_write(writer, ",%.*s%*s", inner_dims, "\n\n\n\n\n\n\n\n", dim + 1, "");
        }
        format_dims(writer, tensor, dim + 1, first + i * step, digits, width);
    }
    attn_write(writer, "]");
}

static int widest_element(const attn_tensor *tensor, int digits)
{
    int widest = 0;
    const int64_t size = (int64_t)attn_dtype_size(tensor->dtype);
    for (attn_rows rows = attn_rows_of(tensor, NULL); rows.left > 0; attn_rows_next(&rows)) {
        for (int64_t i = 0; i < rows.count; i++) {
            char text[ELEMENT_TEXT_SIZE];
            const int64_t offset = (rows.offset[0] + i * rows.stride[0]) * size;
            const int width =
                format_element(tensor, (const char *)tensor->data + offset, digits, text);
            widest = width > widest ? width : widest;
        }
    }
    return widest;
}

static int format_element(const attn_tensor *tensor, const void *element, int digits, char *text)
{
    if (tensor->dtype == ATTN_BOOL) {
        const int64_t value = attn_element_load_integer(ATTN_BOOL, element);
        return snprintf(text, ELEMENT_TEXT_SIZE, "%s", value ? "True" : "False");
    }
    if (attn_is_integer(tensor->dtype)) {
        return snprintf(text, ELEMENT_TEXT_SIZE, "%" PRId64,
                        attn_element_load_integer(tensor->dtype, element));
    }
    const double value = attn_element_load(tensor->dtype, element);
    if (!isfinite(value)) {
        return snprintf(text, ELEMENT_TEXT_SIZE, "%s",
                        isnan(value) ? "nan"
                        : value > 0  ? "inf"
                                     : "-inf");
    }
    snprintf(text, ELEMENT_TEXT_SIZE, "%#.*f", digits, value); // '#': "1." with 0 digits, as torch
    attn_use_full_stop(text);
    return (int)strlen(text);
}
