// The gradients as they are defined, one row at a time in float64. The steps are the forward's, taken
// from the last to the first.
#include "core/checked.h"
#include "core/context.h"
#include "core/error.h"
#include "sdpa/engine.h"
#include "sdpa/reference_score.h"

#include <math.h>

struct backward_call {
    const struct attn_sdpa_problem *problem;
    struct attn_reference_scratch scratch;
    double *sink_terms; // (B, Hq): each batch entry's share of grad_sinks
};

// A worker's arrays beside those of the row.
struct gradients {
    double *scores;      // (Tk): of the biased score, for the row at hand
    double *grad_output; // (Dv): of the row
    double *query;       // (D): of the row
    double *key;   // (Tk, D): of one key/value head, summed over rows and the heads that read it
    double *value; // (Tk, Dv), or NULL where it is not wanted
    double *bias;  // (Tk or 1): one row of grad_bias
};

static attn_status count_extra(const struct attn_sdpa_problem *problem, int64_t *extra,
                               attn_error *error);
static void backward_key_head(void *argument, int64_t index, int32_t worker);
static void backward_bias_row(void *argument, int64_t index, int32_t worker);
static void store_sinks(const struct backward_call *call);

attn_status attn_reference_backward(const attn_context *context,
                                    const struct attn_sdpa_problem *problem, attn_error *error)
{
    struct backward_call call = {.problem = problem};
    int64_t extra = 0;
    attn_status status = count_extra(problem, &extra, error);
    if (status != ATTN_OK) {
        return status;
    }
    status = attn_reference_scratch_create(context, problem, extra, &call.scratch, error);
    if (status != ATTN_OK) {
        return status;
    }
    const size_t sink_bytes = (size_t)(problem->batch * problem->query_heads) *
                              sizeof(*call.sink_terms);
    call.sink_terms = attn_allocate(context, sink_bytes);
    if (call.sink_terms == NULL && sink_bytes != 0) {
        attn_reference_scratch_destroy(context, &call.scratch);
        return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY, "sdpa: no memory for %zu bytes",
                         sink_bytes);
    }
    attn_parallel_for(context, problem->batch * problem->key_heads, backward_key_head, &call);
    store_sinks(&call);
    if (problem->grad_bias.data != NULL) {
        const int64_t *shape = problem->grad_bias_shape;
        attn_parallel_for(context, shape[0] * shape[1] * shape[2], backward_bias_row, &call);
    }
    attn_release(context, call.sink_terms, sink_bytes);
    attn_reference_scratch_destroy(context, &call.scratch);
    return ATTN_OK;
}

static attn_status count_extra(const struct attn_sdpa_problem *problem, int64_t *extra,
                               attn_error *error)
{
    const int64_t arrays[] = {problem->keys, problem->keys, 1, problem->value_dim,
                              problem->head_dim};
    int64_t keys, values;
    bool fits = attn_checked_mul(problem->keys, problem->head_dim, &keys) &&
                attn_checked_mul(problem->keys, problem->value_dim, &values) &&
                attn_checked_add(keys, values, extra);
    for (size_t n = 0; n < sizeof(arrays) / sizeof(arrays[0]); n++) {
        fits = fits && attn_checked_add(*extra, arrays[n], extra);
    }
    return fits ? ATTN_OK
                : attn_fail(error, ATTN_ERR_OVERFLOW,
                            "sdpa: the gradients of Tk = %lld keys have no size in 64 bits",
                            (long long)problem->keys);
}

static struct gradients gradients_of(const struct backward_call *call, int32_t worker,
                                     struct attn_reference_row *row)
{
    const struct attn_sdpa_problem *problem = call->problem;
    struct gradients grad;
    grad.scores = attn_reference_scratch_of(&call->scratch, problem, worker, row);
    grad.grad_output = grad.scores + problem->keys;
    grad.query = grad.grad_output + problem->value_dim;
    grad.bias = grad.query + problem->head_dim;
    grad.key = grad.bias + problem->keys + 1;
    grad.value = grad.key + problem->keys * problem->head_dim;
    return grad;
}

// ---- query, key, value, sinks -------------------------------------------------------------------

static double score_gradients(const struct attn_sdpa_problem *problem,
                              const struct attn_sdpa_sequence *sequence,
                              const struct attn_reference_row *row, struct gradients *grad);
static void operand_gradients(const struct attn_sdpa_problem *problem,
                              const struct attn_sdpa_sequence *sequence,
                              const struct attn_reference_row *row, struct gradients *grad);
static void store_key_gradients(const struct attn_sdpa_problem *problem,
                                const struct attn_sdpa_view *view, int64_t b, int64_t key_head,
                                int64_t size, const double *sums);

// All rows of all query heads that read one key/value head of one batch entry.
static void backward_key_head(void *argument, int64_t index, int32_t worker)
{
    const struct backward_call *call = argument;
    const struct attn_sdpa_problem *problem = call->problem;
    const int64_t b = index / problem->key_heads, key_head = index % problem->key_heads;
    struct attn_reference_row row;
    struct gradients grad = gradients_of(call, worker, &row);

    for (int64_t n = 0; n < problem->keys * problem->head_dim; n++) {
        grad.key[n] = 0.0;
    }
    for (int64_t n = 0; n < problem->keys * problem->value_dim; n++) {
        grad.value[n] = 0.0;
    }
    const int64_t first = problem->query_heads == 0 ? 0 : key_head * problem->group;
    const int64_t last = problem->query_heads == 0 ? 0 : first + problem->group;
    for (int64_t head = first; head < last; head++) {
        double sink_term = 0.0;
        for (int64_t n = 0; n < attn_reference_sequence_count(problem); n++) {
            const struct attn_sdpa_sequence sequence = attn_reference_sequence(problem, b, n);
            for (int64_t i = 0; i < sequence.query_len; i++) {
                attn_reference_row_make(problem, &sequence, head, i, &row);
                sink_term += score_gradients(problem, &sequence, &row, &grad);
                operand_gradients(problem, &sequence, &row, &grad);
                attn_reference_store(&problem->grad_query,
                                     attn_reference_row_at(&problem->grad_query, &sequence, &row),
                                     3, problem->head_dim, grad.query);
            }
        }
        call->sink_terms[b * problem->query_heads + head] = sink_term;
    }
    store_key_gradients(problem, &problem->grad_key, b, key_head, problem->head_dim, grad.key);
    store_key_gradients(problem, &problem->grad_value, b, key_head, problem->value_dim, grad.value);
}

// Steps 7 to 3 of one row: from grad_output to grad->scores, defined over [begin, end) of a live row.
// Adds to grad->value where that is wanted. Returns the row's share of the sink's gradient.
static double score_gradients(const struct attn_sdpa_problem *problem,
                              const struct attn_sdpa_sequence *sequence,
                              const struct attn_reference_row *row, struct gradients *grad)
{
    if (row->sum == 0.0) {
        return 0.0; // nothing to see and no sink: lse is -inf, grad_lse is not looked at
    }
    double grad_lse = 0.0;
    if (problem->grad_lse.data != NULL) {
        attn_reference_load(&problem->grad_lse,
                            attn_reference_row_at(&problem->grad_lse, sequence, row), 3, 1,
                            &grad_lse);
    }
    if (!row->live) {
        return row->sink_weight * grad_lse; // lse is the sink itself, the output is 0
    }
    attn_reference_load(&problem->grad_output,
                        attn_reference_row_at(&problem->grad_output, sequence, row), 3,
                        problem->value_dim, grad->grad_output);
    double delta = 0.0; // sum of weight * grad_weight
    for (int64_t j = row->begin; j < row->end; j++) {
        if (row->scores[j] == -(double)INFINITY) {
            continue;
        }
        // 7. context = sum of weight * value
        attn_reference_load_key(problem, &problem->value, sequence, row, j, problem->value_dim,
                                row->value);
        double grad_dropped_weight = 0.0;
        for (int64_t d = 0; d < problem->value_dim; d++) {
            grad_dropped_weight += grad->grad_output[d] * row->value[d];
        }
        if (grad->value != NULL) {
            double *grad_value = grad->value + (sequence->key_start + j) * problem->value_dim;
            const double dropped_weight = row->survival[j] * row->weights[j];
            for (int64_t d = 0; d < problem->value_dim; d++) {
                grad_value[d] += dropped_weight * grad->grad_output[d];
            }
        }
        // 6. dropout
        grad->scores[j] = row->survival[j] * grad_dropped_weight; // of the weight, so far
        delta += row->weights[j] * grad->scores[j];
    }
    for (int64_t j = row->begin; j < row->end; j++) {
        // 5. softmax and lse;  4. mask;  3. the bias and ALiBi are added: nothing changes
        const bool masked = row->scores[j] == -(double)INFINITY;
        grad->scores[j] = masked ? 0.0 : row->weights[j] * (grad->scores[j] - delta + grad_lse);
    }
    return problem->sinks.data != NULL ? row->sink_weight * (grad_lse - delta) : 0.0;
}

// Steps 2 and 1 of one row: grad->query, and what it adds to grad->key.
static void operand_gradients(const struct attn_sdpa_problem *problem,
                              const struct attn_sdpa_sequence *sequence,
                              const struct attn_reference_row *row, struct gradients *grad)
{
    for (int64_t d = 0; d < problem->head_dim; d++) {
        grad->query[d] = 0.0;
    }
    for (int64_t j = row->begin; j < row->end; j++) {
        if (row->scores[j] == -(double)INFINITY) {
            continue;
        }
        // 2. softcap
        const double grad_capped = grad->scores[j] * row->cap_slopes[j];

        // 1. s = scale * q . k
        const double grad_product = problem->scale * grad_capped;
        attn_reference_load_key(problem, &problem->key, sequence, row, j, problem->head_dim,
                                row->key);
        double *grad_key = grad->key + (sequence->key_start + j) * problem->head_dim;
        for (int64_t d = 0; d < problem->head_dim; d++) {
            grad->query[d] += grad_product * row->key[d];
            grad_key[d] += grad_product * row->query[d];
        }
    }
}

// sums: (Tk, size)
static void store_key_gradients(const struct attn_sdpa_problem *problem,
                                const struct attn_sdpa_view *view, int64_t b, int64_t key_head,
                                int64_t size, const double *sums)
{
    for (int64_t j = 0; j < problem->keys; j++) {
        const int64_t at = b * view->stride[0] + key_head * view->stride[1] + j * view->stride[2];
        attn_reference_store(view, at, 3, size, sums + j * size);
    }
}

static void store_sinks(const struct backward_call *call)
{
    const struct attn_sdpa_problem *problem = call->problem;
    for (int64_t head = 0; head < problem->query_heads; head++) {
        double sum = 0.0;
        for (int64_t b = 0; b < problem->batch; b++) {
            sum += call->sink_terms[b * problem->query_heads + head];
        }
        attn_reference_store(&problem->grad_sinks, head * problem->grad_sinks.stride[0], 0, 1,
                             &sum);
    }
}

// ---- bias ---------------------------------------------------------------------------------------

// One row of grad_bias: the sum over all that reads that row of the bias, in ascending order of batch
// entry, head and row. The score gradients are made anew, so that no T x T memory is needed.
static void backward_bias_row(void *argument, int64_t index, int32_t worker)
{
    const struct backward_call *call = argument;
    const struct attn_sdpa_problem *problem = call->problem;
    const int64_t *shape = problem->grad_bias_shape;
    const int64_t readers[3] = {problem->batch, problem->query_heads, problem->queries};
    const int64_t place[3] = {index / shape[2] / shape[1], index / shape[2] % shape[1],
                              index % shape[2]};
    int64_t begin[3], end[3];
    for (int d = 0; d < 3; d++) {
        const bool shared = shape[d] == 1;
        begin[d] = shared ? 0 : place[d];
        end[d] = shared ? readers[d] : place[d] + 1;
    }
    struct attn_reference_row row;
    struct gradients grad = gradients_of(call, worker, &row);
    grad.value = NULL;
    for (int64_t j = 0; j < shape[3]; j++) {
        grad.bias[j] = 0.0;
    }
    for (int64_t b = begin[0]; b < end[0]; b++) {
        for (int64_t head = begin[1]; head < end[1]; head++) {
            for (int64_t position = begin[2]; position < end[2]; position++) {
                const struct attn_sdpa_sequence sequence =
                    attn_reference_sequence_of_row(problem, b, position);
                attn_reference_row_make(problem, &sequence, head, position - sequence.query_start,
                                        &row);
                score_gradients(problem, &sequence, &row, &grad);
                for (int64_t j = row.begin; j < row.end && row.live; j++) {
                    grad.bias[shape[3] == 1 ? 0 : sequence.key_start + j] += grad.scores[j];
                }
            }
        }
    }
    const struct attn_sdpa_view *view = &problem->grad_bias;
    const int64_t at = place[0] * view->stride[0] + place[1] * view->stride[1] +
                       place[2] * view->stride[2];
    attn_reference_store(view, at, 3, shape[3], grad.bias);
}
