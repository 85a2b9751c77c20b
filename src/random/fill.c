// Uniform numbers, coin flips and dropout masks.
#include <float.h>
#include <inttypes.h>
#include <math.h>

#include "core/element.h"
#include "core/error.h"
#include "core/layout.h"
#include "core/text.h"
#include "random/generator.h"

enum {
    FLOATS = 1 << ATTN_F32 | 1 << ATTN_F64,
    MASKS = 1 << ATTN_U8 | 1 << ATTN_BOOL,
};

static void fill_uniform(attn_generator *generator, double from, double to, const attn_tensor *out);
static void fill_bernoulli(attn_generator *generator, double p, const attn_tensor *out);

// ---- uniform ------------------------------------------------------------------------------------

attn_status attn_rand(attn_generator *generator, const attn_tensor *out, attn_error *error)
{
    const attn_status status = attn_check_fill("rand", generator, out, FLOATS, error);
    if (status == ATTN_OK) {
        fill_uniform(generator, 0, 1, out); // fma(x, 1, 0) is x
    }
    return status;
}

attn_status attn_uniform(attn_generator *generator, double from, double to, const attn_tensor *out,
                         attn_error *error)
{
    const attn_status status = attn_check_fill("uniform", generator, out, FLOATS, error);
    if (status != ATTN_OK) {
        return status;
    }
    const double limit = out->dtype == ATTN_F32 ? (double)FLT_MAX : DBL_MAX;
    if (!(from >= -limit && to <= limit && from <= to && to - from <= limit)) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "uniform: from (%g) must be <= to (%g), both and their difference finite "
                         "in %s",
                         from, to, attn_dtype_name(out->dtype));
    }
    fill_uniform(generator, from, to, out);
    return ATTN_OK;
}

attn_status attn_kaiming_uniform(attn_generator *generator, int64_t fan_in, const attn_tensor *out,
                                 attn_error *error)
{
    const attn_status status = attn_check_fill("kaiming_uniform", generator, out, FLOATS, error);
    if (status != ATTN_OK) {
        return status;
    }
    if (fan_in < 1) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "kaiming_uniform: fan_in (%" PRId64 ") must be >= 1", fan_in);
    }
    const double bound = 1 / sqrt((double)fan_in);
    fill_uniform(generator, -bound, bound, out);
    return ATTN_OK;
}

// The multiply-add is fused by name: its bits are those of torch's AVX2 build on every CPU.
static void fill_uniform(attn_generator *generator, double from, double to, const attn_tensor *out)
{
    const attn_elements elements = attn_elements_of(out);
    if (out->dtype == ATTN_F32) {
        const float low = (float)from, range = (float)to - low;
        for (int64_t i = 0; i < elements.count; i++) {
            const float x = attn_generator_uniform_f32(generator);
            *(float *)attn_element_at(&elements, i) = fmaf(x, range, low);
        }
    } else {
        const double range = to - from;
        for (int64_t i = 0; i < elements.count; i++) {
            const double x = attn_generator_uniform_f64(generator);
            *(double *)attn_element_at(&elements, i) = fma(x, range, from);
        }
    }
}

// ---- coin flips ---------------------------------------------------------------------------------

attn_status attn_bernoulli(attn_generator *generator, double p, const attn_tensor *out,
                           attn_error *error)
{
    const attn_status status = attn_check_fill("bernoulli", generator, out, FLOATS | MASKS, error);
    if (status != ATTN_OK) {
        return status;
    }
    if (!(p >= 0 && p <= 1)) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "bernoulli: p (%g) must be in [0, 1]",
                         p);
    }
    fill_bernoulli(generator, p, out);
    return ATTN_OK;
}

attn_status attn_dropout_mask(attn_generator *generator, double p, const attn_tensor *out,
                              attn_error *error)
{
    const attn_status status = attn_check_fill("dropout_mask", generator, out, MASKS, error);
    if (status != ATTN_OK) {
        return status;
    }
    if (!(p >= 0 && p < 1)) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "dropout_mask: p (%g) must be in [0, 1)",
                         p);
    }
    if (p == 0) {
        return attn_tensor_fill(out, 1, error);
    }
    fill_bernoulli(generator, 1 - p, out);
    return ATTN_OK;
}

// Two words per element, whatever its type.
static void fill_bernoulli(attn_generator *generator, double p, const attn_tensor *out)
{
    const attn_elements elements = attn_elements_of(out);
    for (int64_t i = 0; i < elements.count; i++) {
        const bool success = attn_generator_uniform_f64(generator) < p;
        attn_element_store(out->dtype, attn_element_at(&elements, i), success);
    }
}

// ---- what all fills share -----------------------------------------------------------------------

attn_status attn_check_fill(const char *name, const attn_generator *generator,
                            const attn_tensor *out, attn_dtype_set dtypes, attn_error *error)
{
    if (!generator) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "%s: generator is NULL", name);
    }
    const attn_status status = attn_tensor_check(out, name, error);
    if (status != ATTN_OK) {
        return status;
    }
    if (out->flags & ATTN_TENSOR_READ_ONLY) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "%s: the output is read-only", name);
    }
    if (!(dtypes >> out->dtype & 1)) {
        return attn_fail(error, ATTN_ERR_DTYPE, "%s: the output cannot be %s", name,
                         attn_dtype_name(out->dtype));
    }
    if (attn_overlaps_itself(out)) {
        return attn_fail(error, ATTN_ERR_OVERLAP,
                         "%s: the output of shape %s with stride %s overlaps itself", name,
                         attn_shape_text(out).text, attn_stride_text(out).text);
    }
    return ATTN_OK;
}

attn_elements attn_elements_of(const attn_tensor *tensor)
{
    return (attn_elements){
        .tensor = *tensor,
        .count = attn_tensor_count(tensor),
        .element_size = (int64_t)attn_dtype_size(tensor->dtype),
        .contiguous = attn_tensor_is_contiguous(tensor),
    };
}

void *attn_element_at(const attn_elements *elements, int64_t position)
{
    int64_t offset = position;
    if (!elements->contiguous) {
        offset = 0;
        for (int32_t d = elements->tensor.ndim - 1; d >= 0; d--) {
            const int64_t size = elements->tensor.shape[d];
            offset += position % size * elements->tensor.stride[d];
            position /= size;
        }
    }
    return (char *)elements->tensor.data + offset * elements->element_size;
}
