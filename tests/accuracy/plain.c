#include "plain.h"

#include <math.h>
#include <stdlib.h>

#include "sdpa/problem.h"
#include "sdpa/reference_score.h"
#include "support/status.h"
#include "support/unit.h"

// The problem's elements as contiguous float32, and its sums.
struct plain {
    struct attn_sdpa_problem problem;
    struct test_pool pool;
    const float *query, *key, *value, *bias; // bias: (B, Hq, Tq, Tk), written out
    float *scores, *weights, *slopes, *survival, *grad_weights; // (Tk)
};

static const float *floats(struct plain *p, const attn_tensor *tensor)
{
    return test_tensor_as(&p->pool, ATTN_F32, tensor).data;
}

static float *row_of_floats(struct plain *p, int64_t count)
{
    return test_pool_take(&p->pool, (size_t)(count + 1) * sizeof(float));
}

static void plain_begin(struct plain *p, const struct attention *a)
{
    p->query = floats(p, &a->query);
    p->key = floats(p, &a->key);
    p->value = floats(p, &a->value);
    p->bias = NULL;
    if (a->desc.bias != NULL) {
        const struct attention_shape s = a->shape;
        attn_tensor expanded;
        attn_error error;
        ASSERT_OK(attn_tensor_expand(&a->bias, 4,
                                     (int64_t[]){s.batch, s.query_heads, s.queries, s.keys},
                                     &expanded, &error));
        p->bias = floats(p, &expanded);
    }
    float **const rows[] = {&p->scores, &p->weights, &p->slopes, &p->survival, &p->grad_weights};
    for (int n = 0; n < 5; n++) {
        *rows[n] = row_of_floats(p, a->shape.keys);
    }
}

// A row of a head: where its operands and results start.
struct place {
    const struct attn_sdpa_sequence *sequence;
    int64_t head, i;
    int64_t row;       // (b, head, row) counted in rows
    int64_t first_key; // (b, key head, key of the sequence) counted in keys
    int64_t begin, end;
};

static bool masked(const struct plain *p, const struct place *at, int64_t j)
{
    const struct attn_sdpa_view *keep = &p->problem.keep;
    if (keep->data == NULL) {
        return false;
    }
    const uint8_t *bytes = keep->data;
    return bytes[at->sequence->batch * keep->stride[0] + at->head * keep->stride[1] +
                 (at->sequence->query_start + at->i) * keep->stride[2] +
                 (at->sequence->key_start + j) * keep->stride[3]] == 0;
}

static bool kept(const struct plain *p, const struct place *at, const uint32_t head_key[2],
                 int64_t j)
{
    const struct attn_sdpa_problem *problem = &p->problem;
    if (problem->dropout == ATTN_DROPOUT_PHILOX) {
        return attn_philox_word(head_key, problem->dropout_row + at->i, j) <
               problem->dropout_threshold;
    }
    if (problem->dropout == ATTN_DROPOUT_KEEP) {
        const struct attn_sdpa_view *view = &problem->dropout_keep;
        const uint8_t *bytes = view->data;
        const int64_t key = at->sequence->key_start + j;
        return bytes[at->sequence->batch * view->stride[0] + at->head * view->stride[1] +
                     (at->sequence->query_start + at->i) * view->stride[2] +
                     key / 8 * view->stride[3]] >>
                   key % 8 &
               1;
    }
    return true;
}

// Scores of the row, -inf where masked, and what dropout does to it.
static void make_scores(struct plain *p, const struct place *at)
{
    const struct attn_sdpa_problem *problem = &p->problem;
    const int64_t dims = problem->head_dim;
    const float *query = p->query + at->row * dims;
    const float softcap = (float)problem->softcap;
    uint32_t head_key[2] = {0, 0};
    if (problem->dropout == ATTN_DROPOUT_PHILOX) {
        attn_sdpa_dropout_key(problem, at->sequence, at->head, head_key);
    }
    for (int64_t j = at->begin; j < at->end; j++) {
        const float *key = p->key + (at->first_key + j) * dims;
        float s = 0.0F;
        for (int64_t d = 0; d < dims; d++) {
            s += query[d] * key[d];
        }
        s *= (float)problem->scale;
        p->slopes[j] = 1.0F;
        if (softcap > 0.0F) {
            const float t = tanhf(s / softcap);
            s = softcap * t;
            p->slopes[j] = 1.0F - t * t;
        }
        if (p->bias != NULL) {
            s += p->bias[at->row * problem->keys + at->sequence->key_start + j];
        }
        if (problem->alibi_slopes.data != NULL) {
            s += (float)attn_sdpa_real(&problem->alibi_slopes, at->head) *
                 (float)(j - (at->i + at->sequence->offset));
        }
        p->scores[j] = masked(p, at, j) ? -INFINITY : s;
        p->survival[j] = kept(p, at, head_key, j) ? (float)problem->dropout_scale : 0.0F;
    }
}

static float sink_of(const struct plain *p, const struct place *at)
{
    return p->problem.sinks.data != NULL ? (float)attn_sdpa_real(&p->problem.sinks, at->head)
                                         : -INFINITY;
}

// ---- rows in order ------------------------------------------------------------------------------

typedef void (*row_function)(struct plain *p, const struct place *at, void *state);

static void for_each_row(struct plain *p, row_function function, void *state)
{
    const struct attn_sdpa_problem *problem = &p->problem;
    for (int64_t b = 0; b < problem->batch; b++) {
        for (int64_t head = 0; head < problem->query_heads; head++) {
            for (int64_t n = 0; n < attn_reference_sequence_count(problem); n++) {
                const struct attn_sdpa_sequence sequence = attn_reference_sequence(problem, b, n);
                for (int64_t i = 0; i < sequence.query_len; i++) {
                    struct place at = {.sequence = &sequence, .head = head, .i = i};
                    at.row = (b * problem->query_heads + head) * problem->queries +
                             sequence.query_start + i;
                    at.first_key = (b * problem->key_heads + head / problem->group) *
                                       problem->keys +
                                   sequence.key_start;
                    attn_sdpa_visible_keys(&sequence, i, &at.begin, &at.end);
                    make_scores(p, &at);
                    function(p, &at, state);
                }
            }
        }
    }
}

// ---- forward ------------------------------------------------------------------------------------

// All results as float32; stored in their own types at the end.
struct forward_sums {
    float *of[ATTENTION_FORWARD_COUNT];
};

static void forward_row(struct plain *p, const struct place *at, void *state)
{
    const struct forward_sums *sums = state;
    const struct attn_sdpa_problem *problem = &p->problem;
    float max = sink_of(p, at);
    for (int64_t j = at->begin; j < at->end; j++) {
        max = p->scores[j] > max ? p->scores[j] : max;
    }
    float sum = max == -INFINITY || problem->sinks.data == NULL ? 0.0F : expf(sink_of(p, at) - max);
    for (int64_t j = at->begin; j < at->end; j++) {
        p->weights[j] = p->scores[j] == -INFINITY ? 0.0F : expf(p->scores[j] - max);
        sum += p->weights[j];
    }
    float *output = sums->of[ATTENTION_OUTPUT] + at->row * problem->value_dim;
    float *weights = sums->of[ATTENTION_WEIGHTS] + at->row * problem->keys;
    float *key_sums = sums->of[ATTENTION_KEY_SUMS] +
                      (at->sequence->batch * problem->query_heads + at->head) * problem->keys;
    for (int64_t j = at->begin; j < at->end; j++) {
        const float weight = p->scores[j] == -INFINITY ? 0.0F : p->weights[j] / sum;
        const float *value = p->value + (at->first_key + j) * problem->value_dim;
        for (int64_t d = 0; d < problem->value_dim; d++) {
            output[d] += p->survival[j] * weight * value[d];
        }
        weights[at->sequence->key_start + j] = weight;
        key_sums[at->sequence->key_start + j] += weight;
    }
    sums->of[ATTENTION_ROW_MAX][at->row] = max;
    sums->of[ATTENTION_ROW_SUM][at->row] = sum;
    sums->of[ATTENTION_LSE][at->row] = max == -INFINITY ? max : max + logf(sum);
}

static void store(const float *values, const attn_tensor *target)
{
    attn_error error;
    const attn_tensor source =
        attn_tensor_wrap_const(values, ATTN_F32, target->ndim, target->shape);
    ASSERT_OK(attn_tensor_copy(&source, target, &error));
}

void plain_forward(const struct attention *a, struct attention_results *r)
{
    struct plain p = {.pool = {NULL}};
    attn_error error;
    const attn_sdpa_forward_args args = attention_forward_args(a, r);
    ASSERT_OK(
        attn_sdpa_problem_of_forward(&a->desc, &args, ATTN_SDPA_OWN_DTYPES, &p.problem, &error));
    plain_begin(&p, a);
    struct forward_sums sums;
    for (int n = 0; n < ATTENTION_FORWARD_COUNT; n++) {
        sums.of[n] = row_of_floats(&p, attn_tensor_count(&r->of[n]));
    }
    for_each_row(&p, forward_row, &sums);
    for (int n = 0; n < ATTENTION_FORWARD_COUNT; n++) {
        store(sums.of[n], &r->of[n]);
    }
    test_pool_end(&p.pool);
}

// ---- backward -----------------------------------------------------------------------------------

struct backward_sums {
    const float *output, *row_max, *row_sum, *grad_output, *grad_lse;
    float *query, *key, *value, *bias, *sinks;
};

static void backward_row(struct plain *p, const struct place *at, void *state)
{
    const struct backward_sums *sums = state;
    const struct attn_sdpa_problem *problem = &p->problem;
    const int64_t dims = problem->head_dim, value_dims = problem->value_dim;
    const float *grad_output = sums->grad_output + at->row * value_dims;
    const float max = sums->row_max[at->row], sum = sums->row_sum[at->row];
    if (sum == 0.0F) {
        return;
    }
    const float grad_lse = sums->grad_lse != NULL ? sums->grad_lse[at->row] : 0.0F;
    float delta = 0.0F;
    for (int64_t d = 0; d < value_dims; d++) {
        delta += grad_output[d] * sums->output[at->row * value_dims + d];
    }
    for (int64_t j = at->begin; j < at->end; j++) {
        if (p->scores[j] == -INFINITY) {
            continue;
        }
        const float weight = expf(p->scores[j] - max) / sum;
        const float *value = p->value + (at->first_key + j) * value_dims;
        float *grad_value = sums->value + (at->first_key + j) * value_dims;
        float grad_weight = 0.0F;
        for (int64_t d = 0; d < value_dims; d++) {
            grad_weight += grad_output[d] * value[d];
            grad_value[d] += p->survival[j] * weight * grad_output[d];
        }
        const float grad_score = weight * (p->survival[j] * grad_weight - delta + grad_lse);
        if (sums->bias != NULL) {
            const struct attn_sdpa_view *view = &problem->grad_bias;
            sums->bias[at->sequence->batch * view->stride[0] + at->head * view->stride[1] +
                       (at->sequence->query_start + at->i) * view->stride[2] +
                       (at->sequence->key_start + j) * view->stride[3]] += grad_score;
        }
        const float grad_product = (float)problem->scale * grad_score * p->slopes[j];
        const float *key = p->key + (at->first_key + j) * dims;
        float *grad_key = sums->key + (at->first_key + j) * dims;
        for (int64_t d = 0; d < dims; d++) {
            sums->query[at->row * dims + d] += grad_product * key[d];
            grad_key[d] += grad_product * p->query[at->row * dims + d];
        }
    }
    if (sums->sinks != NULL) {
        sums->sinks[at->head] += expf(sink_of(p, at) - max) / sum * (grad_lse - delta);
    }
}

void plain_backward(const struct attention *a, struct attention_results *r)
{
    struct plain p = {.pool = {NULL}};
    attn_error error;
    const attn_sdpa_backward_args args = attention_backward_args(a, r);
    ASSERT_OK(
        attn_sdpa_problem_of_backward(&a->desc, &args, ATTN_SDPA_OWN_DTYPES, &p.problem, &error));
    plain_begin(&p, a);
    float *gradients[ATTENTION_RESULT_COUNT] = {NULL};
    for (int n = ATTENTION_FORWARD_COUNT; n < ATTENTION_RESULT_COUNT; n++) {
        if (r->present[n]) {
            gradients[n] = row_of_floats(&p, attn_tensor_count(&r->of[n]));
        }
    }
    struct backward_sums sums = {
        .output = floats(&p, &r->of[ATTENTION_OUTPUT]),
        .row_max = floats(&p, &r->of[ATTENTION_ROW_MAX]),
        .row_sum = floats(&p, &r->of[ATTENTION_ROW_SUM]),
        .grad_output = floats(&p, &a->grad_output),
        .grad_lse = a->grad_lse.data != NULL ? floats(&p, &a->grad_lse) : NULL,
        .query = gradients[ATTENTION_GRAD_QUERY],
        .key = gradients[ATTENTION_GRAD_KEY],
        .value = gradients[ATTENTION_GRAD_VALUE],
        .bias = gradients[ATTENTION_GRAD_BIAS],
        .sinks = gradients[ATTENTION_GRAD_SINKS],
    };
    for_each_row(&p, backward_row, &sums);
    for (int n = ATTENTION_FORWARD_COUNT; n < ATTENTION_RESULT_COUNT; n++) {
        if (r->present[n]) {
            store(gradients[n], &r->of[n]);
        }
    }
    test_pool_end(&p.pool);
}
