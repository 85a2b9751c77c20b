// sdpa/reference_score.h: one row of the definition, in float64, as forward and backward share it.
#ifndef ATTN_SDPA_REFERENCE_SCORE_H
#define ATTN_SDPA_REFERENCE_SCORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attn/context.h"
#include "attn/status.h"
#include "sdpa/problem.h"

// A row of one head. Row and keys are counted from their sequence's first. The arrays over keys are
// defined for [begin, end) only.
struct attn_reference_row {
    int64_t head, i;
    int64_t begin, end; // keys visible by lengths, causality and window

    double *query;      // (D)
    double *key;        // (D): of the key at hand
    double *value;      // (Dv): of the key at hand
    double *scores;     // (Tk): scaled, capped and biased; -inf where masked, and only there
    double *cap_slopes; // (Tk): d softcap(s) / ds
    double *weights;    // (Tk): after softmax; 0 where masked
    double *survival;   // (Tk): what dropout multiplies the weight by, 0 or 1 / (1 - p)

    double max;         // largest score, sink included; -inf when there is nothing
    double sum;         // of exp(score - max), sink included; 0 when there is nothing
    double sink_weight; // the sink's share of the softmax; 0 without a sink
    bool live;          // some key is visible
};

// Steps 1 to 5 of the forward for row i of the sequence: score, cap, bias, mask, softmax; and the
// multipliers of step 6, dropout.
void attn_reference_row_make(const struct attn_sdpa_problem *problem,
                             const struct attn_sdpa_sequence *sequence, int64_t head, int64_t i,
                             struct attn_reference_row *row);

// The sequences that fill batch entry b: n in [0, count). The last is no real one: it holds the rows
// that lie beyond every length, and no keys.
int64_t attn_reference_sequence_count(const struct attn_sdpa_problem *problem);
struct attn_sdpa_sequence attn_reference_sequence(const struct attn_sdpa_problem *problem,
                                                  int64_t b, int64_t n);
// The one that owns row `position` of the tensors.
struct attn_sdpa_sequence attn_reference_sequence_of_row(const struct attn_sdpa_problem *problem,
                                                         int64_t b, int64_t position);

// ---- addresses ----------------------------------------------------------------------------------

// Element (b, head, row i, 0) of a tensor laid out by query rows.
static inline int64_t attn_reference_row_at(const struct attn_sdpa_view *view,
                                            const struct attn_sdpa_sequence *sequence,
                                            const struct attn_reference_row *row)
{
    return sequence->batch * view->stride[0] + row->head * view->stride[1] +
           (sequence->query_start + row->i) * view->stride[2];
}

// Element (b, head, row i, key j) of a tensor laid out as the scores are.
static inline int64_t attn_reference_pair_at(const struct attn_sdpa_view *view,
                                             const struct attn_sdpa_sequence *sequence,
                                             const struct attn_reference_row *row, int64_t j)
{
    return attn_reference_row_at(view, sequence, row) + (sequence->key_start + j) * view->stride[3];
}

// Loads key or value j of the key/value head that the row reads: `count` doubles.
void attn_reference_load_key(const struct attn_sdpa_problem *problem,
                             const struct attn_sdpa_view *view,
                             const struct attn_sdpa_sequence *sequence,
                             const struct attn_reference_row *row, int64_t j, int64_t count,
                             double *values);

// `count` elements from element `at`, along stride[dim]. Nothing is stored where the view is absent.
void attn_reference_load(const struct attn_sdpa_view *view, int64_t at, int dim, int64_t count,
                         double *values);
void attn_reference_store(const struct attn_sdpa_view *view, int64_t at, int dim, int64_t count,
                          const double *values);

// ---- memory -------------------------------------------------------------------------------------

// For every worker the arrays of a row and `extra` doubles more.
struct attn_reference_scratch {
    double *memory;
    size_t bytes;
    int64_t per_worker; // doubles
};

// Errors: OVERFLOW, OUT_OF_MEMORY.
attn_status attn_reference_scratch_create(const attn_context *context,
                                          const struct attn_sdpa_problem *problem, int64_t extra,
                                          struct attn_reference_scratch *scratch,
                                          attn_error *error);
void attn_reference_scratch_destroy(const attn_context *context,
                                    const struct attn_reference_scratch *scratch);

// Points the row at the worker's arrays; returns the extra doubles.
double *attn_reference_scratch_of(const struct attn_reference_scratch *scratch,
                                  const struct attn_sdpa_problem *problem, int32_t worker,
                                  struct attn_reference_row *row);

#endif
