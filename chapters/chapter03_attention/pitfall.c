// pitfall.c: the three slips of an efficient multi-head attention. The symptom comes first.
#include <math.h>
#include <string.h>

#include "attention.h"
#include "causal.h"
#include "print.h"
#include "sections.h"

enum { WIDTH = 4, HEADS = 2, HEAD_DIM = WIDTH / HEADS, BATCH = 2 };

static attn_var project_and_split(demo *d, attn_module *mha, attn_var x, const char *name)
{
    const attn_var projected = attn_linear(x, parameter(d, mha, name), ATTN_NO_VAR);
    const int64_t split[] = {BATCH, TOKENS, HEADS, HEAD_DIM};
    return attn_transpose(attn_view(projected, 4, split), 1, 2); // (b, H, T, d_h)
}

// The attention weights of all heads with the divisor sqrt(divided_by).
static attn_var weights_divided_by(demo *d, attn_module *mha, attn_var x, const attn_tensor *mask,
                                   double divided_by)
{
    const attn_var queries = project_and_split(d, mha, x, "W_query.weight");
    const attn_var keys = project_and_split(d, mha, x, "W_key.weight");
    const attn_var scores = attn_matmul(queries, attn_transpose(keys, 2, 3));
    const attn_var masked = attn_masked_fill(scores, mask, -INFINITY);
    return attn_softmax(attn_scale(masked, 1 / sqrt(divided_by)), -1); // (b, H, T, T)
}

// The context vectors of all heads, not yet merged: (b, H, T, d_h).
static attn_var contexts(demo *d, attn_module *mha, attn_var x, const attn_tensor *mask)
{
    const attn_var values = project_and_split(d, mha, x, "W_value.weight");
    return attn_matmul(weights_divided_by(d, mha, x, mask, HEAD_DIM), values);
}

static attn_var merge(attn_var per_head)
{
    return attn_view(attn_contiguous(attn_transpose(per_head, 1, 2)), 3,
                     (int64_t[]){BATCH, TOKENS, WIDTH});
}

static attn_var out_proj(demo *d, attn_module *mha, attn_var merged)
{
    return attn_linear(merged, parameter(d, mha, "out_proj.weight"),
                       parameter(d, mha, "out_proj.bias"));
}

// ---- 1: sqrt(d_out) where sqrt(head_dim) belongs ------------------------------------------------

// Scores as GPT-2's size gives them: head_dim 64, queries and keys of variance 1.
static void gpt2_sized(demo *d)
{
    step(d, T_PIT1_GPT2);
    manual_seed(d, 123);
    const attn_var query = randn_leaf(d, 2, (int64_t[]){1, 64});
    const attn_var keys = randn_leaf(d, 2, (int64_t[]){8, 64});
    const attn_var scores = attn_matmul(query, attn_transpose(keys, 0, 1)); // (1, 8)
    show(d, "weights, sqrt(768)",
         attn_select(attn_softmax(attn_scale(scores, 1 / sqrt(768)), -1), 0, 0));
    show(d, "weights, sqrt(64)",
         attn_select(attn_softmax(attn_scale(scores, 1 / sqrt(64)), -1), 0, 0));
}

static void wrong_divisor(demo *d, attn_module *mha, attn_var x, const attn_tensor *mask)
{
    step(d, T_PIT_SYMPTOM);
    const attn_var wrong = weights_divided_by(d, mha, x, mask, WIDTH);
    const attn_var right = weights_divided_by(d, mha, x, mask, HEAD_DIM);
    show_shape(d, "attn_weights", wrong);
    show(d, "head 0, row step", attn_select(attn_select(attn_select(wrong, 0, 0), 0, 0), 0, 5));
    say(d, T_PIT1_SYMPTOM);

    step(d, T_PIT_RIGHT);
    show(d, "head 0, row step", attn_select(attn_select(attn_select(right, 0, 0), 0, 0), 0, 5));
    claim(d, !close_to(right, wrong, 1e-4), T_PIT1_DIFFERENT);
    claim(d, close_to(right, traced(d, mha, x, "attn_weights"), 1e-6), T_PIT1_LIBRARY);
    gpt2_sized(d);
    say(d, T_PIT1_MEANING);
}

// ---- 2: view after transpose --------------------------------------------------------------------

static void view_after_transpose(demo *d, attn_module *mha, attn_var x, const attn_tensor *mask)
{
    const int64_t merged_shape[] = {BATCH, TOKENS, WIDTH};
    step(d, T_PIT_SYMPTOM);
    const attn_var per_head = contexts(d, mha, x, mask); // (b, H, T, d_h)
    const attn_var transposed = attn_transpose(per_head, 1, 2);
    show_shape(d, "context (b, H, T, d_h)", per_head);
    show_shape(d, ".transpose(1, 2)", transposed);
    must_tape(d);
    (void)attn_view(transposed, 3, merged_shape);
    claim(d, attn_tape_status(d->tape) == ATTN_ERR_NOT_CONTIGUOUS, T_PIT2_REFUSED,
          attn_tape_error(d->tape)->text);
    fresh_tape(d);
    say(d, T_PIT2_WHY);

    step(d, T_PIT2_WORSE);
    const attn_var again = contexts(d, mha, make_batch(d), mask);
    const attn_var scrambled = attn_view(again, 3, merged_shape);
    show_tokens(d, "context.view(b, T, 4)[0]", attn_select(scrambled, 0, 0));

    step(d, T_PIT_RIGHT);
    const attn_var merged = merge(again);
    show_tokens(d, "merged[0]", attn_select(merged, 0, 0));
    claim(d, !close_to(scrambled, merged, 1e-4), T_PIT2_SCRAMBLED);
    const attn_var by_module = attn_module_apply(mha, make_batch(d));
    claim(d, close_to(out_proj(d, mha, merged), by_module, 1e-6), T_STEPS_EQUAL_MODULE);
    say(d, T_PIT2_MEANING);
}

// ---- 3: out_proj forgotten ----------------------------------------------------------------------

static double gradient_norm(attn_module *module, const char *name)
{
    const attn_tensor grad = attn_module_find_parameter(module, name)->grad;
    double sum = 0;
    for (int64_t i = 0; i < grad.shape[0]; ++i) {
        for (int64_t j = 0; j < grad.shape[1]; ++j) {
            const double g = attn_tensor_get(&grad, (int64_t[ATTN_MAX_DIMS]){i, j});
            sum += g * g;
        }
    }
    return sqrt(sum);
}

static double out_proj_gradient(demo *d, attn_module *mha, attn_var output)
{
    attn_error error = {0};
    attn_module_zero_grad(mha);
    must_tape(d);
    must(attn_backward(attn_mean_all(attn_multiply(output, output)), &error), &error);
    return gradient_norm(mha, "out_proj.weight");
}

static void forgotten_out_proj(demo *d, attn_module *mha, attn_var x, const attn_tensor *mask)
{
    step(d, T_PIT_SYMPTOM);
    const attn_var merged = merge(contexts(d, mha, x, mask));
    show_shape(d, "context_vecs", merged);
    show_tokens(d, "context_vecs[0]", attn_select(merged, 0, 0));
    say(d, T_PIT3_SYMPTOM);
    const double without = out_proj_gradient(d, mha, merged);
    show_number(d, "|grad out_proj.weight|", without);
    claim(d, without == 0, T_PIT3_GRADIENT_ZERO);

    step(d, T_PIT_RIGHT);
    const attn_var right = out_proj(d, mha, merged);
    show_shape(d, "context_vecs", right);
    show_tokens(d, "context_vecs[0]", attn_select(right, 0, 0));
    claim(d, close_to(right, attn_module_apply(mha, x), 1e-6), T_STEPS_EQUAL_MODULE);
    const double with = out_proj_gradient(d, mha, right);
    show_number(d, "|grad out_proj.weight|", with);
    claim(d, with > 0, T_PIT3_GRADIENT_FLOWS);
    say(d, T_PIT3_MEANING);
}

void pitfall(demo *d, int number)
{
    static void (*const run[])(demo *, attn_module *, attn_var, const attn_tensor *) = {
        wrong_divisor, view_after_transpose, forgotten_out_proj};
    static const char *const numbers[] = {"--pitfall 1", "--pitfall 2", "--pitfall 3"};
    static const text_id titles[] = {T_PIT1_TITLE, T_PIT2_TITLE, T_PIT3_TITLE};
    heading(d, numbers[number - 1], titles[number - 1], "pitfall.c");
    fresh_tape(d);
    say(d, T_PIT_SETTING);
    manual_seed(d, 123);
    attn_module *mha = multi_head_attention(d, EMBEDDING, WIDTH, TOKENS, 0.0, HEADS, false);
    bool mask_memory[TOKENS][TOKENS];
    const attn_tensor mask = causal_mask(mask_memory);
    run[number - 1](d, mha, make_batch(d), &mask);
    must_tape(d);
    fresh_tape(d);
    attn_module_destroy(mha);
}
