// The forward pass as it is defined, one row at a time in float64.
#include "core/context.h"
#include "sdpa/engine.h"
#include "sdpa/reference_score.h"

#include <math.h>

struct forward_call {
    const struct attn_sdpa_problem *problem;
    struct attn_reference_scratch scratch;
};

static void forward_head(void *argument, int64_t index, int32_t worker);
static void forward_row(const struct attn_sdpa_problem *problem,
                        const struct attn_sdpa_sequence *sequence,
                        const struct attn_reference_row *row, double *context);
static void weights_of_head(void *argument, int64_t index, int32_t worker);

attn_status attn_reference_forward(const attn_context *context,
                                   const struct attn_sdpa_problem *problem, attn_error *error)
{
    struct forward_call call = {.problem = problem};
    const attn_status status = attn_reference_scratch_create(
        context, problem, problem->keys + problem->value_dim, &call.scratch, error);
    if (status != ATTN_OK) {
        return status;
    }
    attn_parallel_for(context, problem->batch * problem->query_heads, forward_head, &call);
    if (problem->weights.data != NULL) {
        attn_parallel_for(context, problem->batch * problem->weight_head_count, weights_of_head,
                          &call);
    }
    attn_reference_scratch_destroy(context, &call.scratch);
    return ATTN_OK;
}

// All rows of one query head of one batch entry, and the sums over its columns.
static void forward_head(void *argument, int64_t index, int32_t worker)
{
    const struct forward_call *call = argument;
    const struct attn_sdpa_problem *problem = call->problem;
    const int64_t b = index / problem->query_heads, head = index % problem->query_heads;
    struct attn_reference_row row;
    double *key_sums = attn_reference_scratch_of(&call->scratch, problem, worker, &row); // (Tk)
    double *context = key_sums + problem->keys;                                          // (Dv)

    for (int64_t j = 0; j < problem->keys; j++) {
        key_sums[j] = 0.0;
    }
    for (int64_t n = 0; n < attn_reference_sequence_count(problem); n++) {
        const struct attn_sdpa_sequence sequence = attn_reference_sequence(problem, b, n);
        for (int64_t i = 0; i < sequence.query_len; i++) {
            attn_reference_row_make(problem, &sequence, head, i, &row);
            forward_row(problem, &sequence, &row, context);
            for (int64_t j = row.begin; j < row.end; j++) {
                key_sums[sequence.key_start + j] += row.weights[j];
            }
        }
    }
    const struct attn_sdpa_view *view = &problem->key_sums;
    attn_reference_store(view, b * view->stride[0] + head * view->stride[1], 2, problem->keys,
                         key_sums);
}

// Steps 6 and 7 for a row whose weights are made; stores everything that belongs to the row.
static void forward_row(const struct attn_sdpa_problem *problem,
                        const struct attn_sdpa_sequence *sequence,
                        const struct attn_reference_row *row, double *context)
{
    for (int64_t d = 0; d < problem->value_dim; d++) {
        context[d] = 0.0;
    }
    for (int64_t j = row->begin; j < row->end && problem->output.data != NULL; j++) {
        if (row->scores[j] == -(double)INFINITY) {
            continue; // masked: its value is not looked at
        }
        // 6. dropout
        const double weight = row->survival[j] * row->weights[j];

        // 7. context = sum of weight * value
        attn_reference_load_key(problem, &problem->value, sequence, row, j, problem->value_dim,
                                row->value);
        for (int64_t d = 0; d < problem->value_dim; d++) {
            context[d] += weight * row->value[d];
        }
    }
    const double lse = row->sum == 0.0 ? -(double)INFINITY : row->max + log(row->sum);
    attn_reference_store(&problem->output, attn_reference_row_at(&problem->output, sequence, row),
                         3, problem->value_dim, context);
    attn_reference_store(&problem->row_max, attn_reference_row_at(&problem->row_max, sequence, row),
                         3, 1, &row->max);
    attn_reference_store(&problem->row_sum, attn_reference_row_at(&problem->row_sum, sequence, row),
                         3, 1, &row->sum);
    attn_reference_store(&problem->lse, attn_reference_row_at(&problem->lse, sequence, row), 3, 1,
                         &lse);
}

// ---- weights of chosen heads and rows -----------------------------------------------------------

static void weights_of_head(void *argument, int64_t index, int32_t worker)
{
    const struct forward_call *call = argument;
    const struct attn_sdpa_problem *problem = call->problem;
    const struct attn_sdpa_view *view = &problem->weights;
    const int64_t b = index / problem->weight_head_count, n = index % problem->weight_head_count;
    const int64_t head = problem->weight_heads.data ? attn_sdpa_integer(&problem->weight_heads, n)
                                                    : n;
    struct attn_reference_row row;
    double *weights = attn_reference_scratch_of(&call->scratch, problem, worker, &row); // (Tk)

    for (int64_t m = 0; m < problem->weight_row_count; m++) {
        const int64_t position =
            problem->weight_rows.data ? attn_sdpa_integer(&problem->weight_rows, m) : m;
        const struct attn_sdpa_sequence sequence =
            attn_reference_sequence_of_row(problem, b, position);
        attn_reference_row_make(problem, &sequence, head, position - sequence.query_start, &row);
        for (int64_t j = 0; j < problem->keys; j++) {
            weights[j] = 0.0;
        }
        for (int64_t j = row.begin; j < row.end; j++) {
            const bool masked = row.scores[j] == -(double)INFINITY;
            const double factor = problem->weights_dropped ? row.survival[j] : 1.0;
            weights[sequence.key_start + j] = masked ? 0.0 : factor * row.weights[j];
        }
        const int64_t at = b * view->stride[0] + n * view->stride[1] + m * view->stride[2];
        attn_reference_store(view, at, 3, problem->keys, weights);
    }
}
