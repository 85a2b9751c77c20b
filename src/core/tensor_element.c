#include <math.h>

#include "core/element.h"
#include "core/error.h"
#include "core/half.h"
#include "core/rows.h"

bool attn_is_floating(attn_dtype dtype)
{
    return dtype >= ATTN_F32 && dtype <= ATTN_BF16;
}

bool attn_is_integer(attn_dtype dtype)
{
    return dtype >= ATTN_I64 && dtype <= ATTN_BOOL;
}

bool attn_element_fits(attn_dtype dtype, double value)
{
    if (attn_is_floating(dtype)) {
        return true;
    }
    if (!(value == trunc(value))) { // also NaN
        return false;
    }
    switch (dtype) {
    case ATTN_I64: return value >= -0x1p63 && value < 0x1p63;
    case ATTN_I32: return value >= INT32_MIN && value <= INT32_MAX;
    case ATTN_I16: return value >= INT16_MIN && value <= INT16_MAX;
    case ATTN_I8: return value >= INT8_MIN && value <= INT8_MAX;
    case ATTN_U8: return value >= 0 && value <= UINT8_MAX;
    case ATTN_BOOL: return value == 0 || value == 1;
    default: return false;
    }
}

int64_t attn_element_load_integer(attn_dtype dtype, const void *element)
{
    switch (dtype) {
    case ATTN_I64: return *(const int64_t *)element;
    case ATTN_I32: return *(const int32_t *)element;
    case ATTN_I16: return *(const int16_t *)element;
    case ATTN_I8: return *(const int8_t *)element;
    case ATTN_U8: return *(const uint8_t *)element;
    case ATTN_BOOL: return *(const uint8_t *)element != 0;
    default: return 0;
    }
}

// load and store are inlined with a constant dtype into the row functions below, so that each dtype
// has its plain loop.
static inline __attribute__((always_inline)) double load(attn_dtype dtype, const void *element)
{
    switch (dtype) {
    case ATTN_F32: return (double)*(const float *)element;
    case ATTN_F64: return *(const double *)element;
    case ATTN_F16: return (double)attn_f16_to_f32(*(const uint16_t *)element);
    case ATTN_BF16: return (double)attn_bf16_to_f32(*(const uint16_t *)element);
    default: return (double)attn_element_load_integer(dtype, element);
    }
}

static inline __attribute__((always_inline)) void store(attn_dtype dtype, void *element,
                                                        double value)
{
    switch (dtype) {
    case ATTN_F32: *(float *)element = (float)value; break;
    case ATTN_F64: *(double *)element = value; break;
    case ATTN_F16: *(uint16_t *)element = attn_f64_to_f16(value); break;
    case ATTN_BF16: *(uint16_t *)element = attn_f64_to_bf16(value); break;
    case ATTN_I64: *(int64_t *)element = (int64_t)value; break;
    case ATTN_I32: *(int32_t *)element = (int32_t)value; break;
    case ATTN_I16: *(int16_t *)element = (int16_t)value; break;
    case ATTN_I8: *(int8_t *)element = (int8_t)value; break;
    default: *(uint8_t *)element = (uint8_t)value; break;
    }
}

double attn_element_load(attn_dtype dtype, const void *element)
{
    return load(dtype, element);
}

void attn_element_store(attn_dtype dtype, void *element, double value)
{
    store(dtype, element, value);
}

static inline __attribute__((always_inline)) void load_row(attn_dtype dtype, int64_t size,
                                                           const char *first, int64_t stride,
                                                           int64_t count, double *values)
{
    for (int64_t i = 0; i < count; i++) {
        values[i] = load(dtype, first + i * stride * size);
    }
}

static inline __attribute__((always_inline)) void store_row(attn_dtype dtype, int64_t size,
                                                            char *first, int64_t stride,
                                                            int64_t count, const double *values)
{
    for (int64_t i = 0; i < count; i++) {
        store(dtype, first + i * stride * size, values[i]);
    }
}

void attn_row_load(attn_dtype dtype, const void *first, int64_t stride, int64_t count,
                   double *values)
{
    switch (dtype) {
    case ATTN_F32: load_row(ATTN_F32, 4, first, stride, count, values); break;
    case ATTN_F64: load_row(ATTN_F64, 8, first, stride, count, values); break;
    case ATTN_F16: load_row(ATTN_F16, 2, first, stride, count, values); break;
    case ATTN_BF16: load_row(ATTN_BF16, 2, first, stride, count, values); break;
    default: load_row(dtype, (int64_t)attn_dtype_size(dtype), first, stride, count, values); break;
    }
}

void attn_row_store(attn_dtype dtype, void *first, int64_t stride, int64_t count,
                    const double *values)
{
    switch (dtype) {
    case ATTN_F32: store_row(ATTN_F32, 4, first, stride, count, values); break;
    case ATTN_F64: store_row(ATTN_F64, 8, first, stride, count, values); break;
    case ATTN_F16: store_row(ATTN_F16, 2, first, stride, count, values); break;
    case ATTN_BF16: store_row(ATTN_BF16, 2, first, stride, count, values); break;
    default: store_row(dtype, (int64_t)attn_dtype_size(dtype), first, stride, count, values); break;
    }
}

double attn_tensor_get(const attn_tensor *tensor, const int64_t *index)
{
    if (attn_tensor_check(tensor, "get", NULL) != ATTN_OK || (tensor->ndim > 0 && !index)) {
        return (double)NAN;
    }
    int64_t offset = 0;
    for (int32_t d = 0; d < tensor->ndim; d++) {
        if (index[d] < 0 || index[d] >= tensor->shape[d]) {
            return (double)NAN;
        }
        offset += index[d] * tensor->stride[d];
    }
    return load(tensor->dtype,
                (const char *)tensor->data + offset * (int64_t)attn_dtype_size(tensor->dtype));
}

attn_status attn_tensor_fill(const attn_tensor *tensor, double value, attn_error *error)
{
    const attn_status status = attn_tensor_check(tensor, "fill", error);
    if (status != ATTN_OK) {
        return status;
    }
    if (tensor->flags & ATTN_TENSOR_READ_ONLY) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "fill: the tensor is read-only");
    }
    if (!attn_element_fits(tensor->dtype, value)) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "fill: %g is no value of %s", value,
                         attn_dtype_name(tensor->dtype));
    }
    const int64_t size = (int64_t)attn_dtype_size(tensor->dtype);
    for (attn_rows rows = attn_rows_of(tensor, NULL); rows.left > 0; attn_rows_next(&rows)) {
        char *first = (char *)tensor->data + rows.offset[0] * size;
        for (int64_t i = 0; i < rows.count; i++) {
            store(tensor->dtype, first + i * rows.stride[0] * size, value);
        }
    }
    return ATTN_OK;
}
