#include "gradient_cases.h"

// ---- elementwise --------------------------------------------------------------------------------

static attn_var add(const attn_var *x)
{
    return attn_add(x[0], x[1]);
}

static attn_var subtract(const attn_var *x)
{
    return attn_subtract(x[0], x[1]);
}

static attn_var multiply(const attn_var *x)
{
    return attn_multiply(x[0], x[1]);
}

static attn_var divide(const attn_var *x)
{
    return attn_divide(x[0], attn_exp(x[1]));
}

static attn_var scale(const attn_var *x)
{
    return attn_scale(x[0], -0.7);
}

static attn_var exponential(const attn_var *x)
{
    return attn_exp(x[0]);
}

static attn_var logarithm(const attn_var *x)
{
    return attn_log(attn_add(attn_multiply(x[0], x[0]), attn_constant(x[0].tape, ATTN_F64, 1)));
}

static attn_var hyperbolic_tangent(const attn_var *x)
{
    return attn_tanh(x[0]);
}

static attn_var transposed_operands(const attn_var *x)
{
    return attn_multiply(attn_transpose(x[0], 0, 1), attn_tanh(attn_transpose(x[1], 0, -1)));
}

static attn_var used_three_times(const attn_var *x)
{
    return attn_multiply(attn_add(x[0], x[0]), attn_exp(x[0]));
}

// ---- shape --------------------------------------------------------------------------------------

static attn_var view(const attn_var *x)
{
    return attn_view(x[0], SHAPE(3, -1));
}

static attn_var view_back_of_transposed(const attn_var *x)
{
    return attn_transpose(attn_view(x[0], SHAPE(4, 6)), 0, 1);
}

static attn_var contiguous(const attn_var *x)
{
    return attn_view(attn_contiguous(attn_transpose(x[0], 0, 2)), SHAPE(24));
}

static attn_var expand(const attn_var *x)
{
    return attn_multiply(attn_expand(x[0], SHAPE(2, 3, 4)), attn_expand(x[0], SHAPE(2, 3, 4)));
}

static attn_var slice(const attn_var *x)
{
    return attn_slice(attn_slice(x[0], -1, 1, 3), 0, 0, 1);
}

static attn_var overlapping_slices(const attn_var *x)
{
    return attn_multiply(attn_slice(x[0], 2, 0, 3), attn_slice(x[0], 2, 1, 4));
}

static attn_var choose(const attn_var *x)
{
    return attn_multiply(attn_select(x[0], 1, 2), attn_select(x[0], -2, 0));
}

static attn_var cat(const attn_var *x)
{
    const attn_var parts[] = {x[0], attn_transpose(x[1], 0, 1), x[0]};
    return attn_cat(parts, 3, -1);
}

static attn_var stack(const attn_var *x)
{
    const attn_var parts[] = {x[0], x[1], x[0]};
    return attn_stack(parts, 3, 1);
}

// ---- masks --------------------------------------------------------------------------------------

static attn_var tril(const attn_var *x)
{
    return attn_tril(x[0], -1);
}

static attn_var triu(const attn_var *x)
{
    return attn_triu(attn_transpose(x[0], 1, 2), 1);
}

static attn_var masked_fill(const attn_var *x)
{
    uint8_t mask[] = {1, 0, 0, 1, 0, 1}; // gone when the gradient is asked for
    const attn_tensor tensor = attn_tensor_wrap(mask, ATTN_U8, SHAPE(2, 3, 1));
    const attn_var y = attn_masked_fill(x[0], &tensor, 0.25);
    mask[0] = 0;
    return y;
}

static attn_var masked_fill_repeated(const attn_var *x)
{
    const bool mask[] = {true, false, false, true};
    attn_tensor tensor = attn_tensor_wrap_const(mask, ATTN_BOOL, SHAPE(1, 3, 4));
    tensor.stride[1] = 0;
    return attn_masked_fill(x[0], &tensor, -2);
}

// ---- reductions ---------------------------------------------------------------------------------

static attn_var sum_first(const attn_var *x)
{
    return attn_sum(x[0], 0, false);
}

static attn_var sum_middle(const attn_var *x)
{
    return attn_sum(attn_transpose(x[0], 0, 2), 1, true);
}

static attn_var mean_last(const attn_var *x)
{
    return attn_mean(x[0], -1, false);
}

static attn_var mean_first(const attn_var *x)
{
    return attn_mean(x[0], 0, true);
}

static attn_var max_last(const attn_var *x)
{
    return attn_max(x[0], -1, false);
}

static attn_var max_middle(const attn_var *x)
{
    return attn_max(x[0], 1, true);
}

static attn_var sum_all(const attn_var *x)
{
    return attn_sum_all(attn_transpose(x[0], 0, 1));
}

static attn_var mean_all(const attn_var *x)
{
    return attn_mean_all(x[0]);
}

static attn_var softmax_first(const attn_var *x)
{
    return attn_softmax(x[0], 0);
}

static attn_var softmax_last(const attn_var *x)
{
    return attn_softmax(attn_transpose(x[0], 1, 2), -1);
}

static attn_var log_softmax(const attn_var *x)
{
    return attn_log_softmax(x[0], 1);
}

// ---- products -----------------------------------------------------------------------------------

static attn_var matmul(const attn_var *x)
{
    return attn_matmul(x[0], x[1]);
}

static attn_var matmul_transposed(const attn_var *x)
{
    return attn_matmul(attn_transpose(x[0], -2, -1), attn_transpose(x[1], -1, -2));
}

static attn_var linear(const attn_var *x)
{
    return attn_linear(x[0], x[1], x[2]);
}

static attn_var linear_without_bias(const attn_var *x)
{
    return attn_linear(x[0], x[1], ATTN_NO_VAR);
}

static attn_var linear_of_transposed(const attn_var *x)
{
    return attn_linear(attn_transpose(x[0], 0, 1), x[1], x[2]);
}

// softmax(x x^T / 2) x: attention in its simplest form.
static attn_var attention_chain(const attn_var *x)
{
    const attn_var scores = attn_matmul(x[0], attn_transpose(x[0], -2, -1));
    return attn_matmul(attn_softmax(attn_scale(scores, 0.5), -1), x[0]);
}

// ---- training -----------------------------------------------------------------------------------

static attn_var dropout(const attn_var *x)
{
    attn_generator *generator;
    attn_error error;
    ASSERT_OK(attn_generator_create(attn_tape_context(x[0].tape), 5, &generator, &error));
    const attn_var y = attn_dropout(attn_transpose(x[0], 0, 1), 0.4, true, generator);
    attn_generator_destroy(generator);
    return y;
}

static attn_var embedding(const attn_var *x)
{
    const int64_t rows[] = {2, 0, 2, 3, 2, 0};
    const attn_tensor indices = attn_tensor_wrap_const(rows, ATTN_I64, SHAPE(2, 3));
    return attn_embedding(attn_transpose(x[0], 0, 1), &indices);
}

static attn_var cross_entropy(const attn_var *x)
{
    const int32_t classes[] = {3, 0, 1, 1, 2, 3};
    const attn_tensor targets = attn_tensor_wrap_const(classes, ATTN_I32, SHAPE(2, 3));
    return attn_cross_entropy(x[0], &targets);
}

static attn_var mse_loss(const attn_var *x)
{
    return attn_mse_loss(x[0], x[1]);
}

static attn_var attention(const attn_var *x)
{
    attn_sdpa_desc desc;
    attn_sdpa_desc_init(&desc);
    desc.causal = true;
    attn_var lse;
    const attn_var y =
        attn_scaled_dot_product_attention(x[0], x[1], x[2], ATTN_NO_VAR, ATTN_NO_VAR, &desc, &lse);
    return attn_add(attn_sum(y, -1, false), lse);
}

#define OF(n, ...)                          \
    {                                       \
        .ndim = n, .shape = { __VA_ARGS__ } \
    }

const struct gradient_case gradient_cases[] = {
    {"add", add, 2, {OF(2, 2, 3), OF(2, 2, 3)}},
    {"add, broadcast", add, 2, {OF(3, 2, 1, 3), OF(2, 4, 1)}},
    {"add, scalar", add, 2, {OF(2, 2, 3), OF(0, 0)}},
    {"subtract", subtract, 2, {OF(2, 2, 3), OF(1, 3)}},
    {"subtract, broadcast first", subtract, 2, {OF(1, 1), OF(2, 2, 3)}},
    {"multiply", multiply, 2, {OF(2, 2, 3), OF(2, 2, 3)}},
    {"multiply, broadcast", multiply, 2, {OF(2, 2, 1), OF(3, 2, 1, 3)}},
    {"divide", divide, 2, {OF(2, 2, 3), OF(2, 2, 3)}},
    {"divide, broadcast", divide, 2, {OF(1, 3), OF(2, 2, 1)}},
    {"scale", scale, 1, {OF(2, 2, 3)}},
    {"exp", exponential, 1, {OF(2, 2, 3)}},
    {"log", logarithm, 1, {OF(2, 2, 3)}},
    {"tanh", hyperbolic_tangent, 1, {OF(2, 2, 3)}},
    {"transposed operands", transposed_operands, 2, {OF(2, 3, 2), OF(2, 3, 2)}},
    {"used three times", used_three_times, 1, {OF(1, 4)}},
    {"view", view, 1, {OF(3, 2, 3, 4)}},
    {"view, then transpose", view_back_of_transposed, 1, {OF(3, 2, 3, 4)}},
    {"contiguous", contiguous, 1, {OF(3, 2, 3, 4)}},
    {"expand", expand, 1, {OF(3, 2, 1, 4)}},
    {"expand, new dims", expand, 1, {OF(1, 1)}},
    {"slice", slice, 1, {OF(2, 2, 4)}},
    {"overlapping slices", overlapping_slices, 1, {OF(3, 2, 3, 4)}},
    {"select", choose, 1, {OF(3, 2, 3, 4)}},
    {"cat", cat, 2, {OF(2, 2, 3), OF(2, 4, 2)}},
    {"stack", stack, 2, {OF(2, 2, 3), OF(2, 2, 3)}},
    {"tril", tril, 1, {OF(3, 2, 3, 4)}},
    {"triu", triu, 1, {OF(3, 2, 3, 4)}},
    {"masked_fill", masked_fill, 1, {OF(3, 2, 3, 4)}},
    {"masked_fill, repeated mask", masked_fill_repeated, 1, {OF(3, 2, 3, 4)}},
    {"sum, first dim", sum_first, 1, {OF(3, 2, 3, 4)}},
    {"sum, middle dim", sum_middle, 1, {OF(3, 2, 3, 4)}},
    {"mean, last dim", mean_last, 1, {OF(2, 3, 3)}},
    {"mean, first dim", mean_first, 1, {OF(2, 3, 2)}},
    {"max, last dim", max_last, 1, {OF(2, 3, 4)}},
    {"max, middle dim", max_middle, 1, {OF(3, 2, 3, 2)}},
    {"sum_all", sum_all, 1, {OF(2, 3, 4)}},
    {"mean_all", mean_all, 1, {OF(2, 3, 2)}},
    {"softmax, first dim", softmax_first, 1, {OF(2, 3, 2)}},
    {"softmax, last dim", softmax_last, 1, {OF(3, 2, 3, 2)}},
    {"log_softmax", log_softmax, 1, {OF(3, 2, 3, 2)}},
    {"matmul", matmul, 2, {OF(2, 2, 3), OF(2, 3, 4)}},
    {"matmul, batched", matmul, 2, {OF(3, 2, 2, 3), OF(3, 2, 3, 2)}},
    {"matmul, one matrix for all", matmul, 2, {OF(3, 2, 2, 3), OF(2, 3, 4)}},
    {"matmul, one matrix first", matmul, 2, {OF(2, 2, 3), OF(3, 2, 3, 2)}},
    {"matmul, broadcast", matmul, 2, {OF(4, 2, 1, 2, 3), OF(3, 3, 3, 2)}},
    {"matmul, transposed", matmul_transposed, 2, {OF(3, 2, 3, 2), OF(2, 4, 3)}},
    {"linear", linear, 3, {OF(3, 2, 2, 3), OF(2, 4, 3), OF(1, 4)}},
    {"linear, matrix", linear, 3, {OF(2, 2, 3), OF(2, 2, 3), OF(1, 2)}},
    {"linear, vector", linear, 3, {OF(1, 3), OF(2, 2, 3), OF(1, 2)}},
    {"linear, no bias", linear_without_bias, 2, {OF(2, 2, 3), OF(2, 4, 3)}},
    {"linear, transposed", linear_of_transposed, 3, {OF(3, 2, 3, 3), OF(2, 2, 3), OF(1, 2)}},
    {"attention chain", attention_chain, 1, {OF(3, 2, 3, 2)}},
    {"dropout", dropout, 1, {OF(2, 3, 10)}},
    {"embedding", embedding, 1, {OF(2, 3, 4)}},
    {"cross_entropy", cross_entropy, 1, {OF(3, 2, 3, 4)}},
    {"mse_loss", mse_loss, 2, {OF(2, 2, 3), OF(2, 2, 3)}},
    {"attention", attention, 3, {OF(4, 1, 2, 3, 2), OF(4, 1, 1, 3, 2), OF(4, 1, 1, 3, 2)}},
};

const int gradient_case_count = (int)(sizeof gradient_cases / sizeof gradient_cases[0]);

void for_each_gradient_case(struct fixture *f, attn_scalar_function function)
{
    for (int n = 0; n < gradient_case_count; n++) {
        struct gradient_case one = gradient_cases[n];
        attn_tensor inputs[3];
        for (int64_t k = 0; k < one.count; k++) {
            inputs[k] = test_tensor(&f->pool, ATTN_F64, one.inputs[k].ndim, one.inputs[k].shape);
            test_fill_normal(&inputs[k], 1, &f->random);
        }
        assert_gradients(f->context, one.name, function, &one, inputs, one.count);
    }
}
