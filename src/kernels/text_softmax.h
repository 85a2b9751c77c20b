// kernels/text_softmax.h: what happens to a strip of scores between the two products.
//
// A strip holds keys x lanes scores, one query per lane: score[k*row + lane]. Largest score, weights
// and their sum are therefore vertical, lane by lane, and nothing is ever reduced across a vector.
#ifndef ATTN_KERNELS_TEXT_SOFTMAX_H
#define ATTN_KERNELS_TEXT_SOFTMAX_H

#include "kernels/kernels.h"
#include "kernels/text_math.h"

typedef struct REAL_NAME(attn_softmax) softmax_call;
typedef struct REAL_NAME(attn_join) join_call;
typedef struct REAL_NAME(attn_adjust) adjust_call;

// A weight is 2^t with t = fma(score, scale log2(e), -max log2(e)), max being the natural largest
// score so far. Rounding max log2(e) moves all of a row's weights by the same factor, which the row's
// sum takes back, until it is so large that this factor matters: then t = (scale score - max)
// log2(e), which is exact where it counts. Which of the two depends on the row's own max only.
#define LARGE_EXPONENT R(65536.0)

struct weight_terms {
    vreal scale, slope; // scale, scale log2(e)
    vreal max;          // natural; 0 where nothing was seen
    vreal shift;        // -max log2(e)
    vmask large;
};

INLINE struct weight_terms weight_terms(const softmax_call *t, vreal max)
{
    struct weight_terms w;
    w.scale = v_set1(t->scale);
    w.slope = v_set1(t->scale * LOG2_E);
    w.max = v_select(v_eq(max, v_set1((real)-INFINITY)), v_zero(), max);
    w.shift = v_mul(w.max, v_set1(-LOG2_E));
    w.large = v_le(v_set1(LARGE_EXPONENT), v_abs(w.shift));
    return w;
}

INLINE vreal weight_exponent(const struct weight_terms *w, vreal score, const bool any_large)
{
    const vreal t = v_fma(score, w->slope, w->shift);
    if (!any_large) {
        return t;
    }
    const vreal exact = v_mul(v_sub(v_mul(score, w->scale), w->max), v_set1(LOG2_E));
    return v_select(w->large, exact, t);
}

// What sums and accumulators of `old_max` are multiplied by to stand under the max of `w`.
INLINE vreal rescale_factor(const struct weight_terms *w, vreal old_max)
{
    const vreal old_shift = v_mul(old_max, v_set1(-LOG2_E));
    const vreal t = v_select(w->large, v_mul(v_sub(old_max, w->max), v_set1(LOG2_E)),
                             v_sub(w->shift, old_shift));
    // Equal infinities have no difference; nothing changed, so the factor is 1.
    return v_exp2(v_select(v_eq(w->max, old_max), v_zero(), t));
}

// Keys [begin, end) of a strip for one vector of lanes; begin is a multiple of 4 where there are any.
struct key_span {
    int64_t begin, end;
};

// [first, stop) is what each lane sees; a ragged span's other scores become -inf.
INLINE vreal seen_score(real *score, vreal key, vreal first, vreal stop)
{
    const vmask sees = v_both(v_le(first, key), v_lt(key, stop));
    const vreal s = v_select(sees, v_load(score), v_set1((real)-INFINITY));
    v_store(score, s);
    return s;
}

// Which zero is the largest of several must not depend on how many keys the call has, or on other rows: the
// key's place in its group of four decides, as it does for the sum, and then the first. So spans come in
// ascending order.
INLINE void find_largest(const struct key_span *span, real *score, int64_t row, const bool ragged,
                         vreal first, vreal stop, vreal largest[4])
{
    vreal key[4];
    UNROLL for (int i = 0; i < 4; i++)
    {
        key[i] = v_set1((real)(span->begin + i));
    }
    for (int64_t k = span->begin; k < span->end; k += 4) {
        UNROLL for (int i = 0; i < 4; i++)
        {
            real *const at = score + (k + i) * row;
            if (k + i < span->end) {
                const vreal s = ragged ? seen_score(at, key[i], first, stop) : v_load(at);
                largest[i] = v_max(s, largest[i]);
            }
            key[i] = v_add(key[i], v_set1(4));
        }
    }
}

INLINE vreal one_weight(const struct weight_terms *w, real *score, const bool hidden,
                        const bool any_large)
{
    const vreal s = v_load(score);
    vreal p = v_exp2(weight_exponent(w, s, any_large));
    if (hidden) {
        p = v_select(v_eq(s, v_set1((real)-INFINITY)), v_set1(R(-0.0)), p);
    }
    v_store(score, p);
    return p;
}

// The sum over keys k uses four lanes of its own, k mod 4, each ascending, added (0 + 1) + (2 + 3).
// A hidden weight is -0, which adds nothing, not even a sign.
INLINE void add_weights(const struct weight_terms *w, const struct key_span *span, real *score,
                        int64_t row, const bool hidden, const bool any_large, vreal sum[4])
{
    int64_t k = span->begin;
    for (; k + 4 <= span->end; k += 4) {
        UNROLL for (int i = 0; i < 4; i++)
        {
            sum[i] = v_add(sum[i], one_weight(w, score + (k + i) * row, hidden, any_large));
        }
    }
    UNROLL for (int i = 0; i < 3; i++)
    {
        if (k + i < span->end) {
            sum[i] = v_add(sum[i], one_weight(w, score + (k + i) * row, hidden, any_large));
        }
    }
}

INLINE void add_any_weights(const struct weight_terms *w, const struct key_span *span, real *score,
                            int64_t row, bool hidden, bool any_large, vreal sum[4])
{
    if (any_large) {
        add_weights(w, span, score, row, true, true, sum);
    } else if (hidden) {
        add_weights(w, span, score, row, true, false, sum);
    } else {
        add_weights(w, span, score, row, false, false, sum);
    }
}

// A vector's keys: spans[0] and spans[2] are ragged, all lanes see spans[1]. What none of them sees, at
// either end, is in no span.
INLINE void cut_spans(const softmax_call *t, int64_t keys, vreal first, vreal stop,
                      struct key_span spans[3])
{
    int64_t visible_begin = (t->visible_begin + 3) / 4 * 4;
    int64_t visible_end = t->visible_end == keys ? keys : t->visible_end / 4 * 4;
    const bool any = visible_begin < visible_end;
    const int64_t before = any ? visible_begin : keys;
    int64_t begin = 0, end = keys;
    while (begin + 4 <= before && !v_any(v_lt(first, v_set1((real)(begin + 4))))) {
        begin += 4;
    }
    const int64_t after = any ? visible_end : begin;
    for (int64_t k = (end - 1) / 4 * 4; after < end && !v_any(v_lt(v_set1((real)k), stop));
         k -= 4) {
        end = k;
    }
    if (!any) {
        visible_begin = visible_end = end;
    }
    spans[0] = (struct key_span){begin, visible_begin};
    spans[1] = (struct key_span){visible_begin, visible_end};
    spans[2] = (struct key_span){visible_end, end};
}

static void hide_keys(real *score, int64_t row, int64_t begin, int64_t end)
{
    for (int64_t k = begin; k < end; k++) {
        v_store(score + k * row, v_set1(R(-0.0)));
    }
}

INLINE void softmax_lanes(const softmax_call *t, int64_t keys, int64_t lane, const bool ragged)
{
    real *score = t->score + lane;
    struct key_span spans[3] = {{0, 0}, {0, keys}, {keys, keys}};
    vreal m[4], s[4];
    UNROLL for (int i = 0; i < 4; i++)
    {
        m[i] = v_set1((real)-INFINITY);
        s[i] = v_zero();
    }
    const vreal first = ragged ? v_load(t->first + lane) : v_zero();
    const vreal stop = ragged ? v_load(t->stop + lane) : v_zero();
    if (ragged) {
        cut_spans(t, keys, first, stop, spans);
        find_largest(&spans[0], score, t->row, true, first, stop, m);
    }
    find_largest(&spans[1], score, t->row, false, first, stop, m);
    if (ragged) {
        find_largest(&spans[2], score, t->row, true, first, stop, m);
    }
    const vreal largest = v_max(v_max(m[0], m[1]), v_max(m[2], m[3]));
    const vreal old_max = v_load(t->max + lane);
    const vreal max = v_max(v_mul(largest, v_set1(t->scale)), old_max);
    const struct weight_terms w = weight_terms(t, max);
    const vreal factor = rescale_factor(&w, old_max);
    const bool any_large = v_any(w.large);
    if (ragged) {
        hide_keys(score, t->row, 0, spans[0].begin);
        add_any_weights(&w, &spans[0], score, t->row, true, any_large, s);
    }
    add_any_weights(&w, &spans[1], score, t->row, t->hidden, any_large, s);
    if (ragged) {
        add_any_weights(&w, &spans[2], score, t->row, true, any_large, s);
        hide_keys(score, t->row, spans[2].end, keys);
    }
    const vreal sum = v_add(v_add(s[0], s[1]), v_add(s[2], s[3]));
    v_store(t->max + lane, max);
    v_store(t->factor + lane, factor);
    v_store(t->sum + lane, v_fma(v_load(t->sum + lane), factor, sum));
}

static void softmax(const softmax_call *t, int64_t keys, int64_t lanes)
{
    for (int64_t lane = 0; lane < lanes; lane += V_LANES) {
        if (t->first) {
            softmax_lanes(t, keys, lane, true);
        } else {
            softmax_lanes(t, keys, lane, false);
        }
    }
}

static bool any_hidden(const real *weight, int64_t row, int64_t keys, int64_t lanes)
{
    const vreal one = v_set1(1);
    vreal found = v_zero();
    for (int64_t lane = 0; lane < lanes; lane += V_LANES) {
        for (int64_t k = 0; k < keys; k++) {
            found = v_select(v_hidden(v_load(weight + k * row + lane)), one, found);
        }
    }
    return v_any(v_eq(found, one));
}

// Two disjoint sets of keys as one. What has seen nothing (max -inf, sum 0) changes nothing.
static void join(const join_call *t, int64_t lanes)
{
    const softmax_call natural = {.scale = 1};
    for (int64_t lane = 0; lane < lanes; lane += V_LANES) {
        const vreal max_a = v_load(t->max + lane), max_b = v_load(t->part_max + lane);
        const vreal max = v_max(max_a, max_b);
        const struct weight_terms w = weight_terms(&natural, max);
        const vreal factor = rescale_factor(&w, max_a), part_factor = rescale_factor(&w, max_b);
        const vreal sum = v_mul(v_load(t->sum + lane), factor);
        v_store(t->max + lane, max);
        v_store(t->sum + lane, v_fma(v_load(t->part_sum + lane), part_factor, sum));
        v_store(t->factor + lane, factor);
        v_store(t->part_factor + lane, part_factor);
    }
}

// Weights under a max and a sum that are known: the second pass of the forward, and the backward. The
// max is the caller's there, and may be anything; 2^t is defined up to `top`.
static void weights(const softmax_call *t, int64_t keys, int64_t lanes)
{
    const vreal top = v_set1(EXP2_TURN);
    for (int64_t lane = 0; lane < lanes; lane += V_LANES) {
        real *score = t->score + lane;
        const struct weight_terms w = weight_terms(t, v_load(t->max + lane));
        const vreal sum = v_load(t->sum + lane);
        const vreal inverse = v_select(v_eq(sum, v_zero()), v_zero(), v_div(v_set1(1), sum));
        const bool any_large = v_any(w.large);
        for (int64_t k = 0; k < keys; k++) {
            const vreal s = v_load(score + k * t->row);
            vreal exponent = any_large ? weight_exponent(&w, s, true)
                                       : weight_exponent(&w, s, false);
            exponent = v_select(v_lt(top, exponent), top, exponent);
            const vreal e = v_exp2(exponent);
            const vmask none = v_eq(s, v_set1((real)-INFINITY));
            v_store(score + k * t->row, v_select(none, v_set1(R(-0.0)), v_mul(e, inverse)));
        }
    }
}

// ---- scores that are more than a product --------------------------------------------------------

static void adjust(const adjust_call *t, int64_t keys, int64_t lanes)
{
    const vreal none = v_set1((real)-INFINITY);
    for (int64_t lane = 0; lane < lanes; lane += V_LANES) {
        const vreal slope = t->slope ? v_load(t->slope + lane) : v_zero();
        const vreal distance = t->slope ? v_load(t->distance + lane) : v_zero();
        for (int64_t k = 0; k < keys; k++) {
            real *score = t->score + k * t->row + lane;
            vreal s = v_mul(v_load(score), v_set1(t->scale));
            if (t->softcap > 0) {
                const vreal cap = v_set1(t->softcap);
                s = v_mul(cap, v_tanh(v_div(s, cap)));
            }
            const vreal bias = t->bias ? v_load(t->bias + k * t->bias_row + lane) : v_zero();
            if (t->bias) {
                s = v_add(s, bias);
            }
            if (t->slope) {
                s = v_fma(slope, v_add(distance, v_set1((real)(t->first_key + k))), s);
            }
            v_store(score, v_select(v_eq(bias, none), none, s));
        }
    }
}

static void hide_outside(real *score, int64_t row, int64_t keys, int64_t lanes, const real *begin,
                         const real *end)
{
    const vreal none = v_set1((real)-INFINITY);
    for (int64_t lane = 0; lane < lanes; lane += V_LANES) {
        const vreal first = v_load(begin + lane), stop = v_load(end + lane);
        for (int64_t k = 0; k < keys; k++) {
            real *at = score + k * row + lane;
            const vreal key = v_set1((real)k);
            const vmask visible = v_both(v_le(first, key), v_lt(key, stop));
            v_store(at, v_select(visible, v_load(at), none));
        }
    }
}

#endif
