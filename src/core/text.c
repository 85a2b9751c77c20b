#include "core/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

attn_dims_text attn_dims_as_text(int32_t ndim, const int64_t *dims)
{
    attn_dims_text result;
    attn_writer writer = attn_writer_open(result.text, sizeof result.text);
    attn_write(&writer, "[");
    for (int32_t d = 0; d < ndim && d < ATTN_MAX_DIMS; d++) {
        attn_write(&writer, d ? ",%" PRId64 : "%" PRId64, dims[d]);
    }
    attn_write(&writer, "]");
    return result;
}

attn_dims_text attn_shape_text(const attn_tensor *tensor)
{
    return attn_dims_as_text(tensor->ndim, tensor->shape);
}

attn_dims_text attn_stride_text(const attn_tensor *tensor)
{
    return attn_dims_as_text(tensor->ndim, tensor->stride);
}

attn_writer attn_writer_open(char *buffer, size_t size)
{
    if (size) {
        buffer[0] = '\0';
    }
    return (attn_writer){.buffer = buffer, .size = size};
}

void attn_write(attn_writer *writer, const char *format, ...)
{
    const size_t used = writer->length < writer->size ? writer->length : writer->size;
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(writer->size ? writer->buffer + used : NULL, writer->size - used,
                                 format, arguments);
    va_end(arguments);
    writer->length += length > 0 ? (size_t)length : 0;
}

void attn_use_full_stop(char *text)
{
    char *point = text + strspn(text, "+-0123456789");
    const size_t length = strcspn(point, "0123456789");
    if (length > 1) {
        memmove(point + 1, point + length, strlen(point + length) + 1);
    }
    if (length > 0) {
        *point = '.';
    }
}
