#include "sdpa/reference_score.h"

#include <math.h>

#include "core/checked.h"
#include "core/context.h"
#include "core/element.h"
#include "core/error.h"

static bool masked(const struct attn_sdpa_problem *problem,
                   const struct attn_sdpa_sequence *sequence, const struct attn_reference_row *row,
                   int64_t j);
static double score(const struct attn_sdpa_problem *problem,
                    const struct attn_sdpa_sequence *sequence, const struct attn_reference_row *row,
                    int64_t j);
static void softmax(const struct attn_sdpa_problem *problem, struct attn_reference_row *row);
static void dropout(const struct attn_sdpa_problem *problem,
                    const struct attn_sdpa_sequence *sequence,
                    const struct attn_reference_row *row);

void attn_reference_row_make(const struct attn_sdpa_problem *problem,
                             const struct attn_sdpa_sequence *sequence, int64_t head, int64_t i,
                             struct attn_reference_row *row)
{
    row->head = head;
    row->i = i;
    attn_sdpa_visible_keys(sequence, i, &row->begin, &row->end);
    if (row->begin < row->end) {
        attn_reference_load(&problem->query, attn_reference_row_at(&problem->query, sequence, row),
                            3, problem->head_dim, row->query);
    }
    // Steps 1 to 4. A masked pair is decided before its key is looked at.
    for (int64_t j = row->begin; j < row->end; j++) {
        row->scores[j] = masked(problem, sequence, row, j) ? -(double)INFINITY
                                                           : score(problem, sequence, row, j);
    }
    softmax(problem, row);           // step 5
    dropout(problem, sequence, row); // of step 6
}

// The pair's value of `bias`, 0 without one.
static double bias_of(const struct attn_sdpa_problem *problem,
                      const struct attn_sdpa_sequence *sequence,
                      const struct attn_reference_row *row, int64_t j)
{
    double bias = 0.0;
    if (problem->bias.data != NULL) {
        attn_reference_load(&problem->bias,
                            attn_reference_pair_at(&problem->bias, sequence, row, j), 3, 1, &bias);
    }
    return bias;
}

// Step 4: is the pair masked, apart from what attn_sdpa_visible_keys has cut off?
static bool masked(const struct attn_sdpa_problem *problem,
                   const struct attn_sdpa_sequence *sequence, const struct attn_reference_row *row,
                   int64_t j)
{
    if (problem->keep.data != NULL) {
        const uint8_t *keep = problem->keep.data;
        if (keep[attn_reference_pair_at(&problem->keep, sequence, row, j)] == 0) {
            return true;
        }
    }
    return bias_of(problem, sequence, row, j) == -(double)INFINITY;
}

// Steps 1 to 3 for one pair.
static double score(const struct attn_sdpa_problem *problem,
                    const struct attn_sdpa_sequence *sequence, const struct attn_reference_row *row,
                    int64_t j)
{
    // 1. s = scale * q . k
    attn_reference_load_key(problem, &problem->key, sequence, row, j, problem->head_dim, row->key);
    double s = 0.0;
    for (int64_t d = 0; d < problem->head_dim; d++) {
        s += row->query[d] * row->key[d];
    }
    s *= problem->scale;

    // 2. s = softcap * tanh(s / softcap)
    row->cap_slopes[j] = 1.0;
    if (problem->softcap > 0.0) {
        const double t = tanh(s / problem->softcap);
        s = problem->softcap * t;
        row->cap_slopes[j] = 1.0 - t * t;
    }

    // 3. s = s + bias + slope * (j - (i + off))
    if (problem->bias.data != NULL) {
        s += bias_of(problem, sequence, row, j);
    }
    if (problem->alibi_slopes.data != NULL) {
        const double slope = attn_sdpa_real(&problem->alibi_slopes, row->head);
        s += slope * (double)(j - (row->i + sequence->offset));
    }
    return s;
}

// Step 5: weights = exp(score - max) / sum. A NaN or +infinite score makes max, sum and all weights of
// its row NaN.
static void softmax(const struct attn_sdpa_problem *problem, struct attn_reference_row *row)
{
    const double sink = attn_sdpa_sink(problem, row->head);
    row->live = false;
    row->max = sink;
    for (int64_t j = row->begin; j < row->end; j++) {
        const double s = row->scores[j];
        row->live = row->live || s != -(double)INFINITY;
        row->max = s > row->max || isnan(s) ? s : row->max;
    }
    const bool nothing = row->max == -(double)INFINITY;
    const double sink_term = nothing ? 0.0 : exp(sink - row->max);
    row->sum = sink_term;
    for (int64_t j = row->begin; j < row->end; j++) {
        const bool hidden = row->scores[j] == -(double)INFINITY;
        row->weights[j] = hidden ? 0.0 : exp(row->scores[j] - row->max);
        row->sum += row->weights[j];
    }
    for (int64_t j = row->begin; j < row->end; j++) {
        const bool hidden = row->scores[j] == -(double)INFINITY;
        row->weights[j] = hidden ? 0.0 : row->weights[j] / row->sum;
    }
    row->max = isnan(row->sum) ? row->sum : row->max;
    row->sink_weight = sink_term == 0.0 ? 0.0 : sink_term / row->sum;
}

static void dropout(const struct attn_sdpa_problem *problem,
                    const struct attn_sdpa_sequence *sequence, const struct attn_reference_row *row)
{
    uint32_t head_key[2] = {0, 0};
    if (problem->dropout == ATTN_DROPOUT_PHILOX) {
        attn_sdpa_dropout_key(problem, sequence, row->head, head_key);
    }
    for (int64_t j = row->begin; j < row->end; j++) {
        bool kept = true;
        if (problem->dropout == ATTN_DROPOUT_PHILOX) {
            kept = attn_philox_word(head_key, problem->dropout_row + row->i, j) <
                   problem->dropout_threshold;
        } else if (problem->dropout == ATTN_DROPOUT_KEEP) {
            const struct attn_sdpa_view *view = &problem->dropout_keep;
            const int64_t key = sequence->key_start + j;
            const uint8_t *bytes = view->data;
            const int64_t at = attn_reference_row_at(view, sequence, row);
            kept = (bytes[at + key / 8 * view->stride[3]] >> key % 8 & 1) != 0;
        }
        row->survival[j] = kept ? problem->dropout_scale : 0.0;
    }
}

// ---- sequences ----------------------------------------------------------------------------------

int64_t attn_reference_sequence_count(const struct attn_sdpa_problem *problem)
{
    return (problem->packed ? problem->sequences : 1) + 1;
}

struct attn_sdpa_sequence attn_reference_sequence(const struct attn_sdpa_problem *problem,
                                                  int64_t b, int64_t n)
{
    if (n + 1 < attn_reference_sequence_count(problem)) {
        return attn_sdpa_sequence_at(problem, problem->packed ? n : b);
    }
    const int64_t live = attn_sdpa_live_rows(problem, b);
    return (struct attn_sdpa_sequence){
        .batch = b, .query_start = live, .query_len = problem->queries - live};
}

struct attn_sdpa_sequence attn_reference_sequence_of_row(const struct attn_sdpa_problem *problem,
                                                         int64_t b, int64_t position)
{
    struct attn_sdpa_sequence sequence = attn_reference_sequence(problem, b, 0);
    for (int64_t n = 1; position >= sequence.query_start + sequence.query_len; n++) {
        sequence = attn_reference_sequence(problem, b, n);
    }
    return sequence;
}

// ---- elements -----------------------------------------------------------------------------------

static char *element(const struct attn_sdpa_view *view, int64_t at)
{
    return (char *)view->data + at * (int64_t)attn_dtype_size(view->dtype);
}

void attn_reference_load(const struct attn_sdpa_view *view, int64_t at, int dim, int64_t count,
                         double *values)
{
    if (count > 0) {
        attn_row_load(view->dtype, element(view, at), view->stride[dim], count, values);
    }
}

void attn_reference_store(const struct attn_sdpa_view *view, int64_t at, int dim, int64_t count,
                          const double *values)
{
    if (view->data != NULL && count > 0) {
        attn_row_store(view->dtype, element(view, at), view->stride[dim], count, values);
    }
}

void attn_reference_load_key(const struct attn_sdpa_problem *problem,
                             const struct attn_sdpa_view *view,
                             const struct attn_sdpa_sequence *sequence,
                             const struct attn_reference_row *row, int64_t j, int64_t count,
                             double *values)
{
    const int64_t at = sequence->batch * view->stride[0] +
                       row->head / problem->group * view->stride[1] +
                       (sequence->key_start + j) * view->stride[2];
    attn_reference_load(view, at, 3, count, values);
}

// ---- memory -------------------------------------------------------------------------------------

attn_status attn_reference_scratch_create(const attn_context *context,
                                          const struct attn_sdpa_problem *problem, int64_t extra,
                                          struct attn_reference_scratch *scratch, attn_error *error)
{
    const int64_t parts[] = {
        problem->head_dim, problem->head_dim, problem->value_dim, problem->keys,
        problem->keys,     problem->keys,     problem->keys,      extra};
    bool fits = true;
    scratch->per_worker = 1; // so that there is memory even where every array is empty
    for (size_t n = 0; n < sizeof(parts) / sizeof(parts[0]); n++) {
        fits = fits && attn_checked_add(scratch->per_worker, parts[n], &scratch->per_worker);
    }
    int64_t doubles;
    fits = fits && attn_checked_mul(scratch->per_worker, context->executor.workers, &doubles) &&
           attn_checked_mul_size((size_t)doubles, sizeof(double), &scratch->bytes);
    if (!fits) {
        return attn_fail(error, ATTN_ERR_OVERFLOW,
                         "sdpa: the reference's memory for Tk = %lld keys has no size in 64 bits",
                         (long long)problem->keys);
    }
    scratch->memory = attn_allocate(context, scratch->bytes);
    if (scratch->memory == NULL) {
        return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY,
                         "sdpa: no memory for the reference's %zu bytes", scratch->bytes);
    }
    return ATTN_OK;
}

void attn_reference_scratch_destroy(const attn_context *context,
                                    const struct attn_reference_scratch *scratch)
{
    attn_release(context, scratch->memory, scratch->bytes);
}

double *attn_reference_scratch_of(const struct attn_reference_scratch *scratch,
                                  const struct attn_sdpa_problem *problem, int32_t worker,
                                  struct attn_reference_row *row)
{
    double *next = scratch->memory + worker * scratch->per_worker;
    row->query = next;
    row->key = next += problem->head_dim;
    row->value = next += problem->head_dim;
    row->scores = next += problem->value_dim;
    row->cap_slopes = next += problem->keys;
    row->weights = next += problem->keys;
    row->survival = next += problem->keys;
    return next + problem->keys;
}
