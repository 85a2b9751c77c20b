// Attention out of ops: how second derivatives go through it. The order of the steps is that of
// attn/sdpa.h.
#include <math.h>

#include "core/element.h"
#include "tape/ops/attention.h"
#include "tape/ops/ops.h"
#include "tape/tape.h"

static const char op[] = "scaled_dot_product_attention";

static bool resolve(attn_tape *tape, const attn_var *inputs, const attn_sdpa_desc *desc,
                    struct attn_sdpa_problem *problem, attn_var *bias, attn_var *sinks);
static attn_var scores_of(const struct attn_sdpa_problem *problem,
                          const attn_attention_masks *masks, attn_var query, attn_var key,
                          attn_var bias);
static attn_var weighted_values(const struct attn_sdpa_problem *problem, attn_var weights,
                                attn_var value);
static bool row_maxima(attn_tape *tape, attn_var scores, attn_var sinks, attn_var *maxima,
                       attn_tensor *empty);
static attn_var push_constant(attn_tape *tape, const attn_tensor *value);
static attn_var convert(attn_tape *tape, const attn_tensor *source, attn_dtype dtype);

// query (B, Hq, Tq, D), key (B, Hkv, Tk, D), value (B, Hkv, Tk, Dv)
bool attn_tape_compose_attention(attn_tape *tape, const attn_var *inputs,
                                 const attn_sdpa_desc *desc, attn_var *output, attn_var *lse)
{
    struct attn_sdpa_problem problem;
    attn_attention_masks masks;
    attn_var bias, sinks, maxima;
    attn_tensor empty; // rows without a visible key or a sink
    if (!resolve(tape, inputs, desc, &problem, &bias, &sinks) ||
        !attn_tape_attention_masks(tape, &problem, &masks)) {
        return false;
    }
    // 1. What nobody may see is replaced before it can spread through a product.
    const attn_var query = attn_masked_fill(inputs[ATTN_ATTENTION_QUERY], &masks.blind_rows, 0);
    const attn_var key = attn_masked_fill(inputs[ATTN_ATTENTION_KEY], &masks.unseen_keys, 0);
    const attn_var value = attn_masked_fill(inputs[ATTN_ATTENTION_VALUE], &masks.unseen_keys, 0);

    // 2. Scores, masked. (B, Hq, Tq, Tk)
    const attn_var scores = scores_of(&problem, &masks, query, key, bias);

    // 3. Softmax with the sink in its denominator. A row's maximum is a constant here: it cancels.
    if (!row_maxima(tape, scores, sinks, &maxima, &empty)) {
        return false;
    }
    const attn_var raised = attn_exp(attn_subtract(scores, maxima));
    attn_var sum = attn_sum(raised, -1, true);
    if (sinks.tape) {
        const int64_t per_head[] = {problem.query_heads, 1, 1};
        const attn_var sink = attn_tape_reshape(sinks, 3, per_head);
        sum = attn_add(sum, attn_exp(attn_subtract(sink, maxima)));
    }
    sum = attn_masked_fill(sum, &empty, 1);
    attn_var weights = attn_divide(raised, sum);

    // 4. Dropout.
    if (masks.keep_bits.dtype != ATTN_DTYPE_NONE && attn_tape_healthy(tape)) {
        weights = attn_tape_keep_bits(weights, &masks.keep_bits, problem.dropout_scale);
    }

    // 5. Values, and the log of the sum.
    const attn_var all = weighted_values(&problem, weights, value);
    *output = attn_masked_fill(all, &masks.blind_rows, 0);
    const int64_t rows[] = {problem.batch, problem.query_heads, problem.queries};
    const attn_var log_sum = attn_add(maxima, attn_log(sum));
    *lse = attn_view(attn_masked_fill(log_sum, &empty, -INFINITY), 3, rows);
    return attn_tape_healthy(tape);
}

// Normalises the descriptor; bias and sinks come as vars or from the descriptor.
static bool resolve(attn_tape *tape, const attn_var *inputs, const attn_sdpa_desc *desc,
                    struct attn_sdpa_problem *problem, attn_var *bias, attn_var *sinks)
{
    attn_sdpa_forward_args args;
    attn_sdpa_forward_args_init(&args);
    args.query = attn_tape_value(inputs[ATTN_ATTENTION_QUERY]);
    args.key = attn_tape_value(inputs[ATTN_ATTENTION_KEY]);
    args.value = attn_tape_value(inputs[ATTN_ATTENTION_VALUE]);
    attn_error error;
    if (attn_sdpa_problem_of_forward(desc, &args, ATTN_SDPA_OWN_DTYPES, problem, &error) !=
        ATTN_OK) {
        attn_tape_pass_on(tape, &error);
        return false;
    }
    *bias = inputs[ATTN_ATTENTION_BIAS];
    *sinks = inputs[ATTN_ATTENTION_SINKS];
    if (!bias->tape && desc->bias) {
        *bias = convert(tape, desc->bias, args.query->dtype);
    }
    if (!sinks->tape && desc->sinks) {
        *sinks = convert(tape, desc->sinks, args.query->dtype);
    }
    return attn_tape_healthy(tape);
}

static attn_var split_heads(const struct attn_sdpa_problem *problem, attn_var a, int64_t rows,
                            int64_t columns)
{
    const int64_t shape[] = {problem->batch, problem->key_heads, problem->group, rows, columns};
    return attn_tape_reshape(a, 5, shape);
}

static attn_var merge_heads(const struct attn_sdpa_problem *problem, attn_var a, int64_t rows,
                            int64_t columns)
{
    const int64_t shape[] = {problem->batch, problem->query_heads, rows, columns};
    return attn_tape_reshape(a, 4, shape);
}

// softcap(scale * Q K^T) + bias + alibi, -inf where masked. A group of query heads shares its key
// head by broadcasting.
static attn_var scores_of(const struct attn_sdpa_problem *problem,
                          const attn_attention_masks *masks, attn_var query, attn_var key,
                          attn_var bias)
{
    const attn_var grouped = split_heads(problem, query, problem->queries, problem->head_dim);
    const attn_var keys = attn_transpose(attn_tape_insert_dim(key, 2), -2, -1);
    const attn_var products = attn_matmul(grouped, keys);
    attn_var scores = merge_heads(problem, products, problem->queries, problem->keys);
    scores = attn_scale(scores, problem->scale);
    if (problem->softcap > 0) {
        const attn_var bounded = attn_tanh(attn_scale(scores, 1 / problem->softcap));
        scores = attn_scale(bounded, problem->softcap);
    }
    if (bias.tape) {
        scores = attn_add(scores, bias);
    }
    if (masks->alibi.dtype != ATTN_DTYPE_NONE) {
        scores = attn_add(scores, push_constant(scores.tape, &masks->alibi));
    }
    return attn_masked_fill(scores, &masks->masked, -INFINITY);
}

static attn_var weighted_values(const struct attn_sdpa_problem *problem, attn_var weights,
                                attn_var value)
{
    const attn_var grouped = split_heads(problem, weights, problem->queries, problem->keys);
    const attn_var sums = attn_matmul(grouped, attn_tape_insert_dim(value, 2));
    return merge_heads(problem, sums, problem->queries, problem->value_dim);
}

// The largest score of each row, sink included, as a constant (B, Hq, Tq, 1); 0 where the row is
// empty, so that nothing of the form inf - inf arises there. NaN scores stay NaN.
static bool row_maxima(attn_tape *tape, attn_var scores, attn_var sinks, attn_var *maxima,
                       attn_tensor *empty)
{
    if (!attn_tape_healthy(tape)) {
        return false;
    }
    const attn_tensor *const x = attn_tape_value(scores);
    const int64_t shape[] = {x->shape[0], x->shape[1], x->shape[2], 1};
    attn_tensor values;
    if (!attn_tape_tensor(tape, op, x->dtype, 4, shape, &values) ||
        !attn_tape_tensor(tape, op, ATTN_BOOL, 4, shape, empty)) {
        return false;
    }
    const int64_t size = (int64_t)attn_dtype_size(x->dtype), keys = x->shape[3];
    const int64_t rows = attn_tensor_count(&values);
    for (int64_t row = 0; row < rows; row++) {
        double most = -INFINITY;
        if (sinks.tape) {
            const int64_t head = row / shape[2] % shape[1];
            most = attn_tensor_get(attn_tape_value(sinks), &head);
        }
        for (int64_t j = 0; j < keys && !isnan(most); j++) {
            const double score =
                attn_element_load(x->dtype, (const char *)x->data + (row * keys + j) * size);
            most = score > most || isnan(score) ? score : most;
        }
        const bool nothing = most == -INFINITY;
        ((bool *)empty->data)[row] = nothing;
        attn_element_store(x->dtype, (char *)values.data + row * size, nothing ? 0 : most);
    }
    *maxima = push_constant(tape, &values);
    return attn_tape_healthy(tape);
}

static attn_var push_constant(attn_tape *tape, const attn_tensor *value)
{
    return attn_tape_push(tape, NULL, NULL, 0, value, NULL, 0);
}

// A tensor of the descriptor as a constant of the operands' dtype.
static attn_var convert(attn_tape *tape, const attn_tensor *source, attn_dtype dtype)
{
    attn_tensor copy;
    attn_error error;
    if (!attn_tape_tensor(tape, op, dtype, source->ndim, source->shape, &copy)) {
        return attn_tape_failed(tape);
    }
    if (attn_tensor_copy(source, &copy, &error) != ATTN_OK) {
        return attn_tape_pass_on(tape, &error);
    }
    return push_constant(tape, &copy);
}
