// Normal numbers by the transform of Box and Muller ("A note on the generation of random normal
// deviates", 1958), in torch's two forms: pairs in double, of which the second is kept for later;
// and, from 16 values on, blocks of 16 in the tensor's own precision.
//
// The blocks use libm's log, cos and sin (and the correctly rounded sqrt), as torch's scalar kernels
// do. What that promises is written at attn_randn in attn/random.h.
#include <math.h>

#include "core/element.h"
#include "random/generator.h"

enum {
    BLOCK = 16,
    HALF = BLOCK / 2,
};
static const double two_pi = 6.283185307179586;

static double draw_normal(attn_generator *generator);
static void fill_block_f32(attn_generator *generator, const attn_elements *elements, int64_t start);
static void fill_block_f64(attn_generator *generator, const attn_elements *elements, int64_t start);

attn_status attn_randn(attn_generator *generator, const attn_tensor *out, attn_error *error)
{
    const attn_dtype_set floats = 1 << ATTN_F32 | 1 << ATTN_F64;
    const attn_status status = attn_check_fill("randn", generator, out, floats, error);
    if (status != ATTN_OK) {
        return status;
    }
    const attn_elements elements = attn_elements_of(out);
    const bool single = out->dtype == ATTN_F32;
    if (elements.count < BLOCK) {
        for (int64_t i = 0; i < elements.count; i++) {
            const double value = draw_normal(generator);
            attn_element_store(out->dtype, attn_element_at(&elements, i), value);
        }
        return ATTN_OK;
    }
    void (*const fill_block)(attn_generator *, const attn_elements *, int64_t) =
        single ? fill_block_f32 : fill_block_f64;
    const int64_t rest = elements.count % BLOCK;
    for (int64_t start = 0; start < elements.count - rest; start += BLOCK) {
        fill_block(generator, &elements, start);
    }
    if (rest > 0) {
        // torch draws a uniform for each of the rest, then draws the last 16 values anew.
        for (int64_t i = 0; i < rest; i++) {
            if (single) {
                attn_generator_u32(generator);
            } else {
                attn_generator_u64(generator);
            }
        }
        fill_block(generator, &elements, elements.count - BLOCK);
    }
    return ATTN_OK;
}

static double draw_normal(attn_generator *generator)
{
    attn_generator_state *state = &generator->state;
    if (state->has_normal) {
        state->has_normal = 0;
        return state->normal;
    }
    const double u1 = attn_generator_uniform_f64(generator);
    const double u2 = attn_generator_uniform_f64(generator);
    const double radius = sqrt(-2 * log1p(-u2));
    const double theta = two_pi * u1;
    state->normal = radius * sin(theta);
    state->has_normal = 1;
    return radius * cos(theta);
}

// Adding zero turns -0 into 0, as torch's "* std + mean" does.
static void fill_block_f32(attn_generator *generator, const attn_elements *elements, int64_t start)
{
    float uniform[BLOCK];
    for (int i = 0; i < BLOCK; i++) {
        uniform[i] = attn_generator_uniform_f32(generator);
    }
    for (int i = 0; i < HALF; i++) {
        const float radius = sqrtf(-2 * logf(1 - uniform[i]));
        const float theta = (float)(two_pi * (double)uniform[i + HALF]);
        *(float *)attn_element_at(elements, start + i) = radius * cosf(theta) + 0.0f;
        *(float *)attn_element_at(elements, start + i + HALF) = radius * sinf(theta) + 0.0f;
    }
}

static void fill_block_f64(attn_generator *generator, const attn_elements *elements, int64_t start)
{
    double uniform[BLOCK];
    for (int i = 0; i < BLOCK; i++) {
        uniform[i] = attn_generator_uniform_f64(generator);
    }
    for (int i = 0; i < HALF; i++) {
        const double radius = sqrt(-2 * log(1 - uniform[i]));
        const double theta = two_pi * uniform[i + HALF];
        *(double *)attn_element_at(elements, start + i) = radius * cos(theta) + 0.0;
        *(double *)attn_element_at(elements, start + i + HALF) = radius * sin(theta) + 0.0;
    }
}
