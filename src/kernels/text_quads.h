// kernels/text_quads.h: the softmax of up to four rows.
//
// A vector for each key would be mostly idle. Here 16 elements in a row are four keys of four rows each,
// and since the sums of keys k mod 4 are kept apart anyway, each of them has a place of its own: what
// text_softmax.h does with four vectors is done within one, in the same order.
#ifndef ATTN_KERNELS_TEXT_QUADS_H
#define ATTN_KERNELS_TEXT_QUADS_H

#if ATTN_REAL_BITS == 32
#include "kernels/text_softmax.h"

enum { QUAD_VECTORS = ATTN_FOUR_QUADS / V_LANES };
_Static_assert(ATTN_FOUR_QUADS % V_LANES == 0, "four quads are whole vectors");

// A value per row, repeated over the lanes.
INLINE vreal quad_rows(const real *rows)
{
    real lanes[V_LANES];
    for (int i = 0; i < V_LANES; i++) {
        lanes[i] = rows[i % ATTN_QUAD];
    }
    return v_load(lanes);
}

// The four keys of all vectors as rows: place[k mod 4].
INLINE void split_places(const vreal v[QUAD_VECTORS], vreal place[4])
{
    real elements[ATTN_FOUR_QUADS];
    UNROLL for (int i = 0; i < QUAD_VECTORS; i++)
    {
        v_store(elements + i * V_LANES, v[i]);
    }
    for (int i = 0; i < 4; i++) {
        place[i] = quad_rows(elements + i * ATTN_QUAD);
    }
}

// The largest score of each row; which of two zeros it is depends on the key's place as in find_largest.
INLINE vreal largest_of_quads(const real *score, int64_t keys)
{
    vreal m[QUAD_VECTORS];
    UNROLL for (int v = 0; v < QUAD_VECTORS; v++)
    {
        m[v] = v_set1((real)-INFINITY);
    }
    for (int64_t k = 0; k < keys; k += 4) {
        UNROLL for (int v = 0; v < QUAD_VECTORS; v++)
        {
            m[v] = v_max(v_load(score + k * ATTN_QUAD + v * V_LANES), m[v]);
        }
    }
    vreal place[4];
    split_places(m, place);
    return v_max(v_max(place[0], place[1]), v_max(place[2], place[3]));
}

// The sum of each row's weights.
INLINE vreal weights_of_quads(const struct weight_terms *w, real *score, int64_t keys,
                              const bool hidden, const bool any_large)
{
    vreal sum[QUAD_VECTORS];
    UNROLL for (int v = 0; v < QUAD_VECTORS; v++)
    {
        sum[v] = v_zero();
    }
    for (int64_t k = 0; k < keys; k += 4) {
        UNROLL for (int v = 0; v < QUAD_VECTORS; v++)
        {
            real *const at = score + k * ATTN_QUAD + v * V_LANES;
            sum[v] = v_add(sum[v], one_weight(w, at, hidden, any_large));
        }
    }
    vreal place[4];
    split_places(sum, place);
    return v_add(v_add(place[0], place[1]), v_add(place[2], place[3]));
}

static void softmax_quads(const softmax_call *t, int64_t keys)
{
    const vreal old_max = quad_rows(t->max), old_sum = quad_rows(t->sum);
    const vreal here = v_mul(largest_of_quads(t->score, keys), v_set1(t->scale));
    const vreal max = v_max(here, old_max);
    const struct weight_terms w = weight_terms(t, max);
    const vreal factor = rescale_factor(&w, old_max);
    vreal sum;
    if (v_any(w.large)) {
        sum = weights_of_quads(&w, t->score, keys, true, true);
    } else if (t->hidden) {
        sum = weights_of_quads(&w, t->score, keys, true, false);
    } else {
        sum = weights_of_quads(&w, t->score, keys, false, false);
    }
    v_store_part(t->max, max, ATTN_QUAD);
    v_store_part(t->factor, factor, ATTN_QUAD);
    v_store_part(t->sum, v_fma(old_sum, factor, sum), ATTN_QUAD);
}

static void to_quads(const real *scores, int64_t scores_row, int64_t rows, int64_t keys,
                     real *quads)
{
    for (int64_t k = 0; k < keys; k += V_LANES) {
        vreal row[ATTN_QUAD];
        UNROLL for (int r = 0; r < ATTN_QUAD; r++)
        {
            row[r] = r < rows ? v_load(scores + r * scores_row + k) : v_zero();
        }
        v_store_quads(quads + k * ATTN_QUAD, row);
    }
}
#endif

#endif
