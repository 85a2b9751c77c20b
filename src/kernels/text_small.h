// kernels/text_small.h: the whole attention of a few rows over a few keys, of few dimensions each: so
// little arithmetic that the usual steps, each a call of its own, would cost more than it does.
//
// A row per lane throughout. Every number is the same chain as in the usual steps, so that it has the
// same bits.
#ifndef ATTN_KERNELS_TEXT_SMALL_H
#define ATTN_KERNELS_TEXT_SMALL_H

#include "kernels/kernels.h"
#include "kernels/text_rows.h"
#include "kernels/text_softmax.h"

typedef struct REAL_NAME(attn_small) small_call;

enum { SMALL_STRIP = (ATTN_SMALL_KEYS + 4) * V_LANES };

// query: (rows, D) -> (D, lanes); lanes of no row get zeros
INLINE void small_query(const small_call *t, int64_t rows, real *lanes)
{
    for (int64_t d = 0; d < t->head_dim; d++) {
        v_store(lanes + d * V_LANES, v_zero());
        for (int64_t r = 0; r < rows; r++) {
            lanes[d * V_LANES + r] = t->query[r * t->query_row + d] * t->query_factor;
        }
    }
}

// Scores of keys from the start of their group of four on, -inf where a lane does not see the key.
INLINE void small_scores(const small_call *t, int64_t keys, const real *query, real *score)
{
    const vreal none = v_set1((real)-INFINITY);
    const vreal begin = v_load(t->begin), end = v_load(t->end);
    for (int64_t k = 0; k < t->skipped; k++) {
        v_store(score + k * V_LANES, none);
    }
    for (int64_t k = 0; k < keys; k++) {
        const real *key = t->key + k * t->key_row;
        vreal sum = v_zero();
        for (int64_t d = 0; d < t->head_dim; d++) {
            sum = v_fma(v_set1(key[d]), v_load(query + d * V_LANES), sum);
        }
        const vreal at = v_set1((real)k);
        const vmask visible = v_both(v_le(begin, at), v_lt(at, end));
        v_store(score + (t->skipped + k) * V_LANES, v_select(visible, sum, none));
    }
}

// weights: (keys, lanes), value: (keys, Dv) -> output (rows, Dv). A masked weight, which is -0, adds
// nothing to a sum of finite values; only where one is not finite is it left out by a look at it.
INLINE void small_values(const small_call *t, int64_t rows, int64_t keys, const real *weights,
                         vreal share)
{
    const bool all_finite = finite(t->value, t->value_row, keys, t->value_dim);
    for (int64_t c = 0; c < t->value_dim; c++) {
        vreal sum = v_zero();
        for (int64_t k = 0; k < keys; k++) {
            const vreal weight = v_load(weights + k * V_LANES);
            const vreal value = v_set1(t->value[k * t->value_row + c]);
            sum = all_finite ? v_fma(weight, value, sum)
                             : v_fma_unless(v_hidden(weight), weight, value, sum);
        }
        real lanes[V_LANES];
        v_store(lanes, scaled(sum, share));
        for (int64_t r = 0; r < rows; r++) {
            t->output[r * t->output_row + c] = lanes[r];
        }
    }
}

static void small(const small_call *t, int64_t rows, int64_t keys)
{
    real query[ATTN_SMALL_DIM * V_LANES], score[SMALL_STRIP], factor[V_LANES];
    small_query(t, rows, query);
    small_scores(t, keys, query, score);
    v_store(t->max, v_set1((real)-INFINITY));
    v_store(t->sum, v_zero());
    const softmax_call strip = {.score = score,
                                .row = V_LANES,
                                .scale = t->scale,
                                .max = t->max,
                                .sum = t->sum,
                                .factor = factor,
                                .hidden = true};
    softmax(&strip, t->skipped + keys, V_LANES);
    const vreal sum = v_load(t->sum);
    const vreal share = v_select(v_eq(sum, v_zero()), v_zero(), v_div(v_set1(1), sum));
    small_values(t, rows, keys, score + t->skipped * V_LANES, share);
}

#endif
