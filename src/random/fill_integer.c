// Integers in a range, and permutations.
#include <inttypes.h>

#include "core/error.h"
#include "core/text.h"
#include "random/generator.h"

attn_status attn_randint(attn_generator *generator, int64_t low, int64_t high,
                         const attn_tensor *out, attn_error *error)
{
    const attn_dtype_set integers = 1 << ATTN_I64 | 1 << ATTN_I32;
    const attn_status status = attn_check_fill("randint", generator, out, integers, error);
    if (status != ATTN_OK) {
        return status;
    }
    const bool narrow = out->dtype == ATTN_I32;
    if (low >= high) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "randint: low (%" PRId64 ") must be < high (%" PRId64 ")", low, high);
    }
    if (narrow && (low < INT32_MIN || high - 1 > INT32_MAX)) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "randint: [%" PRId64 ", %" PRId64 ") does not fit in int32", low, high);
    }
    const uint64_t range = (uint64_t)high - (uint64_t)low;
    const bool wide = !narrow && range >= UINT64_C(1) << 32;
    const attn_elements elements = attn_elements_of(out);
    for (int64_t i = 0; i < elements.count; i++) {
        const uint64_t word = wide ? attn_generator_u64(generator) : attn_generator_u32(generator);
        const int64_t value = (int64_t)((uint64_t)low + word % range);
        if (narrow) {
            *(int32_t *)attn_element_at(&elements, i) = (int32_t)value;
        } else {
            *(int64_t *)attn_element_at(&elements, i) = value;
        }
    }
    return ATTN_OK;
}

// The shuffle of Fisher and Yates, from the front.
attn_status attn_randperm(attn_generator *generator, const attn_tensor *out, attn_error *error)
{
    const attn_status status = attn_check_fill("randperm", generator, out, 1 << ATTN_I64, error);
    if (status != ATTN_OK) {
        return status;
    }
    if (out->ndim != 1) {
        return attn_fail(error, ATTN_ERR_SHAPE,
                         "randperm: the output must have one dimension; its shape is %s",
                         attn_shape_text(out).text);
    }
    int64_t *values = out->data;
    const int64_t n = out->shape[0], step = out->stride[0];
    for (int64_t i = 0; i < n; i++) {
        values[i * step] = i;
    }
    for (int64_t i = 0; i < n - 1; i++) {
        const int64_t other = i + attn_generator_u32(generator) % (n - i);
        const int64_t value = values[i * step];
        values[i * step] = values[other * step];
        values[other * step] = value;
    }
    return ATTN_OK;
}
