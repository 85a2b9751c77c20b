// 3.6.2 MultiHeadAttention: one projection, split into heads; exercise 3.3.
#include <math.h>
#include <stdio.h>

#include "attention.h"
#include "causal.h"
#include "gpt2.h"
#include "print.h"
#include "sections.h"

enum { D_OUT = 2, HEADS = 2, HEAD_DIM = D_OUT / HEADS, BATCH = 2 };

// The tensor of the book's example: (1, 2, 3, 4) = (batch, heads, tokens, head_dim).
static const float example[2][3][4] = {{{0.2745F, 0.6584F, 0.2775F, 0.8573F},
                                        {0.8993F, 0.0390F, 0.9268F, 0.7388F},
                                        {0.7179F, 0.7058F, 0.9156F, 0.4340F}},
                                       {{0.0772F, 0.3565F, 0.1479F, 0.5331F},
                                        {0.4066F, 0.2318F, 0.4545F, 0.9737F},
                                        {0.4606F, 0.5159F, 0.4220F, 0.5786F}}};

static void batched_product(demo *d)
{
    step(d, T_362_STEP_BATCHED);
    const attn_var a = leaf(d, example[0][0], 4, (int64_t[]){1, 2, 3, 4});
    const attn_var a_aT = attn_matmul(a, attn_transpose(a, 2, 3)); // (1, 2, 3, 3)
    show(d, "a", a);
    show_shape(d, "a.transpose(2, 3)", attn_transpose(a, 2, 3));
    show(d, "a_aT", a_aT);

    attn_var one_by_one[2];
    for (int h = 0; h < 2; ++h) {
        const attn_var head = attn_select(attn_select(a, 0, 0), 0, h); // (3, 4)
        one_by_one[h] = attn_matmul(head, attn_transpose(head, 0, 1)); // (3, 3)
    }
    const attn_var stacked = attn_view(attn_stack(one_by_one, 2, 0), 4, (int64_t[]){1, 2, 3, 3});
    claim(d, close_to(a_aT, stacked, 1e-6), T_362_BATCHED_EQUAL);
}

static attn_var split_heads(attn_var x)
{
    const int64_t split[] = {BATCH, TOKENS, HEADS, HEAD_DIM};
    return attn_transpose(attn_view(x, 4, split), 1, 2); // (b, T, H, d_h) -> (b, H, T, d_h)
}

static attn_var forward_by_steps(demo *d, attn_module *mha, attn_var x, const attn_tensor *mask)
{
    const attn_var projected = attn_linear(x, parameter(d, mha, "W_query.weight"), ATTN_NO_VAR);
    const attn_var queries = split_heads(projected);
    const attn_var keys =
        split_heads(attn_linear(x, parameter(d, mha, "W_key.weight"), ATTN_NO_VAR));
    const attn_var values =
        split_heads(attn_linear(x, parameter(d, mha, "W_value.weight"), ATTN_NO_VAR));
    const attn_var attn_scores = attn_matmul(queries, attn_transpose(keys, 2, 3));
    const attn_var masked = attn_masked_fill(attn_scores, mask, -INFINITY);
    const attn_var attn_weights = attn_softmax(attn_scale(masked, 1 / sqrt(HEAD_DIM)), -1);
    const attn_var per_head = attn_matmul(attn_weights, values);
    const attn_var merged = attn_view(attn_contiguous(attn_transpose(per_head, 1, 2)), 3,
                                      (int64_t[]){BATCH, TOKENS, D_OUT});
    const attn_var context_vecs = attn_linear(merged, parameter(d, mha, "out_proj.weight"),
                                              parameter(d, mha, "out_proj.bias"));

    say(d, T_362_CHAIN_HEADER);
    show_shape(d, "x", x);
    show_shape(d, "W_query(x)", projected);
    show_shape(d, ".view(b, T, H, head_dim)",
               attn_view(projected, 4, (int64_t[]){BATCH, TOKENS, HEADS, HEAD_DIM}));
    show_shape(d, ".transpose(1, 2) = queries", queries);
    show_shape(d, "keys.transpose(2, 3)", attn_transpose(keys, 2, 3));
    show_shape(d, "attn_scores", attn_scores);
    show_shape(d, "attn_weights", attn_weights);
    show_shape(d, "attn_weights @ values", per_head);
    show_shape(d, ".transpose(1, 2)", attn_transpose(per_head, 1, 2));
    show_shape(d, ".contiguous().view(b, T, 2)", merged);
    show_shape(d, "out_proj(...)", context_vecs);
    return context_vecs;
}

// Measured only when asked for: times differ from run to run.
static void compare_times(demo *d)
{
    if (!d->timing) {
        say(d, T_362_TIMES_OFF);
        return;
    }
    enum { WIDTH = 256, LENGTH = 64, COUNT = 8, ROUNDS = 20 };
    attn_module *wrapper =
        multi_head_attention_wrapper(d, WIDTH, WIDTH / COUNT, LENGTH, 0.0, COUNT, false);
    attn_module *mha = multi_head_attention(d, WIDTH, WIDTH, LENGTH, 0.0, COUNT, false);
    attn_module *const modules[] = {wrapper, mha};
    const attn_var x = randn_leaf(d, 3, (int64_t[]){1, LENGTH, WIDTH});
    double milliseconds[2];
    for (int i = 0; i < 2; ++i) {
        (void)attn_module_apply(modules[i], x); // warm up
        const double start = seconds_now();
        for (int round = 0; round < ROUNDS; ++round) {
            (void)attn_module_apply(modules[i], x);
        }
        milliseconds[i] = (seconds_now() - start) / ROUNDS * 1e3;
    }
    must_tape(d);
    say(d, T_362_TIMES, COUNT, LENGTH, WIDTH, milliseconds[0], milliseconds[1]);
    fresh_tape(d);
    attn_module_destroy(wrapper);
    attn_module_destroy(mha);
}

static void exercise_3_3(demo *d)
{
    step(d, T_362_EXERCISE);
    const gpt2_run run = gpt2_forward(d, 768, 12);
    printf("  %-28s (2, 8, 768)\n", "x");
    char shape[SHAPE_TEXT];
    printf("  %-28s %s\n", "mha(x)", shape_text(&run.output, shape));
    show_tensor(d, "out[0, 0, :8]", &run.first, NULL);
    for (int64_t i = 0; i < run.parameters; ++i) {
        printf("  %-28s %s\n", run.names[i], shape_text(&run.shapes[i], shape));
    }
    claim(d, run.parameters == 5 && run.values == 2360064, T_362_PARAMETERS);
    claim(d, run.output.shape[0] == 2 && run.output.shape[1] == 8 && run.output.shape[2] == 768,
          T_362_SAME_SHAPE);
    say(d, T_362_GPT2_SIZES);
}

void section_3_6_2(demo *d)
{
    heading(d, "3.6.2", T_362_TITLE, "section_3_6_2.c");
    fresh_tape(d);
    say(d, T_362_INTRO);
    batched_product(d);

    manual_seed(d, 123);
    attn_module *mha = multi_head_attention(d, EMBEDDING, D_OUT, TOKENS, 0.0, HEADS, false);
    step(d, T_362_STEP_PARAMETERS);
    for (int64_t i = 0; i < attn_module_parameter_count(mha); ++i) {
        attn_parameter *p = attn_module_parameter(mha, i);
        show_tensor(d, p->name, &p->value, NULL);
    }

    step(d, T_362_STEP_CHAIN);
    const attn_var batch = make_batch(d); // (2, 6, 3)
    bool mask_memory[TOKENS][TOKENS];
    const attn_tensor mask = causal_mask(mask_memory);
    const attn_var by_steps = forward_by_steps(d, mha, batch, &mask);

    step(d, T_362_STEP_MODULE);
    const attn_var context_vecs = attn_module_apply(mha, batch); // (2, 6, 2)
    show(d, "context_vecs", context_vecs);
    claim(d, close_to(context_vecs, by_steps, 1e-6), T_STEPS_EQUAL_MODULE);
    must_tape(d);
    fresh_tape(d);
    attn_module_destroy(mha);

    step(d, T_362_STEP_COMPARE);
    say(d, T_362_COMPARE_TABLE);
    compare_times(d);

    exercise_3_3(d);
    say(d, T_362_SUMMARY);
}
