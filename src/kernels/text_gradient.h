// kernels/text_gradient.h: from the weights' gradients to the scores', on a strip.
#ifndef ATTN_KERNELS_TEXT_GRADIENT_H
#define ATTN_KERNELS_TEXT_GRADIENT_H

#include "kernels/kernels.h"

typedef struct REAL_NAME(attn_gradient) gradient_call;

// A dropped weight's own gradient is 0 times that of what became of it: NaN where that is not finite, as
// the output is. (A kept weight that is 0 takes the same path, and multiplies either by 0.)
INLINE vreal weight_gradient_of(const gradient_call *t, int64_t at)
{
    const vreal grad = v_load(t->gradient + at);
    if (!t->kept) {
        return grad;
    }
    return v_select(v_eq(v_load(t->kept + at), v_zero()), v_mul(grad, v_zero()), grad);
}

// The softmax's gradient: every score of a row gets weight * (gradient of its weight - delta), where
// delta is the row's sum of weight * gradient of the weight. Only a hidden one is -0.
INLINE vreal score_gradient_of(const gradient_call *t, int64_t at, vreal delta)
{
    const vreal weight = v_load(t->weight + at);
    vreal grad = v_mul(weight, v_sub(weight_gradient_of(t, at), delta));
    if (t->slope) {
        grad = v_mul(grad, v_load(t->slope + at));
    }
    return v_select(v_hidden(weight), weight, v_add(grad, v_zero()));
}

static void score_gradient(const gradient_call *t, int64_t keys, int64_t lanes)
{
    for (int64_t lane = 0; lane < lanes; lane += V_LANES) {
        const vreal delta = v_load(t->delta + lane);
        for (int64_t k = 0; k < keys; k++) {
            const int64_t at = k * t->row + lane;
            v_store(t->gradient + at, score_gradient_of(t, at, delta));
        }
    }
}

static void gradient_sums(const gradient_call *t, real *sums, int64_t keys, int64_t lanes)
{
    for (int64_t lane = 0; lane < lanes; lane += V_LANES) {
        vreal sum = v_load(sums + lane);
        for (int64_t k = 0; k < keys; k++) {
            const int64_t at = k * t->row + lane;
            const vreal weight = v_load(t->weight + at);
            const vreal longer = v_fma(weight, weight_gradient_of(t, at), sum);
            sum = v_select(v_hidden(weight), sum, longer);
        }
        v_store(sums + lane, sum);
    }
}

// How fast the capped score cap * tanh(s / cap) grows with s: 1 - (capped / cap)^2. In place.
static void cap_slope(real *capped, int64_t row, real cap, int64_t keys, int64_t lanes)
{
    const vreal one = v_set1(1), c = v_set1(cap);
    for (int64_t lane = 0; lane < lanes; lane += V_LANES) {
        for (int64_t k = 0; k < keys; k++) {
            const vreal t = v_div(v_load(capped + k * row + lane), c);
            v_store(capped + k * row + lane, v_mul(v_sub(one, t), v_add(one, t)));
        }
    }
}

static void lane_dots(const real *a, const real *b, int64_t row, int64_t count, real *dots,
                      int64_t lanes)
{
    for (int64_t lane = 0; lane < lanes; lane += V_LANES) {
        vreal sum = v_zero();
        for (int64_t i = 0; i < count; i++) {
            sum = v_fma(v_load(a + i * row + lane), v_load(b + i * row + lane), sum);
        }
        v_store(dots + lane, sum);
    }
}

#endif
