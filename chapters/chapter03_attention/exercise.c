// exercise.c: the chapter's four exercises, solved by running them.
#include <stdio.h>

#include "attention.h"
#include "gpt2.h"
#include "print.h"
#include "sections.h"

// ---- 1: 12, 8 and 16 heads on 768 numbers -------------------------------------------------------

static bool tensors_close(const attn_tensor *a, const attn_tensor *b, double tolerance)
{
    attn_error error = {0};
    attn_comparison comparison;
    must(attn_tensor_compare(a, b, tolerance, 0, &comparison, &error), &error);
    return comparison.differing == 0;
}

static void exercise_1(demo *d)
{
    static const int64_t heads[] = {12, 8, 16};
    say(d, T_EX1_INTRO);
    gpt2_run runs[3];
    for (int i = 0; i < 3; ++i) {
        runs[i] = gpt2_forward(d, 768, heads[i]);
        char shape[SHAPE_TEXT];
        char name[64];
        step(d, T_EX1_HEADS, (int)heads[i], (int)(768 / heads[i]));
        printf("  %-28s %s\n", "mha(x)", shape_text(&runs[i].output, shape));
        snprintf(name, sizeof name, "out[0, 0, :8], H = %d", (int)heads[i]);
        show_tensor(d, name, &runs[i].first, NULL);
        snprintf(name, sizeof name, "out[0, 7, :8], H = %d", (int)heads[i]);
        show_tensor(d, name, &runs[i].last, NULL);
    }
    step(d, T_EX1_RESULT);
    for (int i = 1; i < 3; ++i) {
        claim(d, tensors_close(&runs[i].first, &runs[0].first, 1e-6), T_EX1_FIRST_SAME,
              (int)heads[i]);
        claim(d, !tensors_close(&runs[i].last, &runs[0].last, 1e-3), T_EX1_LAST_DIFFERS,
              (int)heads[i]);
        claim(d, runs[i].values == runs[0].values, T_EX1_SAME_COUNT, (int)heads[i]);
    }
    say(d, T_EX1_MEANING);
}

// ---- 2: dropout 0.5, then eval ------------------------------------------------------------------

static attn_var forward_with_dropout(demo *d, attn_module *module, attn_var input)
{
    attn_module_call call;
    attn_module_call_init(&call);
    call.input = input;
    call.generator = d->generator;
    return attn_module_forward(module, &call);
}

static void exercise_2(demo *d)
{
    say(d, T_EX2_INTRO);
    const attn_var batch = make_batch(d); // (2, 6, 3)
    manual_seed(d, 123);
    attn_module *ca = causal_attention(d, EMBEDDING, 2, TOKENS, 0.5, false);

    step(d, T_EX2_TRAIN);
    const attn_var in_training = forward_with_dropout(d, ca, batch);
    show(d, "dropout0.5_train", in_training);
    claim(d, !same_bits(attn_select(in_training, 0, 0), attn_select(in_training, 0, 1)),
          T_EX2_ENTRIES_DIFFER);
    const attn_var again = forward_with_dropout(d, ca, batch);
    claim(d, !same_bits(in_training, again), T_EX2_AGAIN_DIFFERS);

    step(d, T_EX2_EVAL);
    attn_module_eval(ca);
    const attn_var in_eval = forward_with_dropout(d, ca, batch);
    show(d, "dropout0.5_eval", in_eval);
    claim(d, same_bits(in_eval, forward_with_dropout(d, ca, batch)), T_EX2_EVAL_REPEATS);
    manual_seed(d, 123);
    attn_module *no_dropout = causal_attention(d, EMBEDDING, 2, TOKENS, 0.0, false);
    claim(d, same_bits(in_eval, attn_module_apply(no_dropout, batch)), T_EX2_EVAL_IS_P0);
    must_tape(d);
    say(d, T_EX2_MEANING);
    fresh_tape(d);
    attn_module_destroy(ca);
    attn_module_destroy(no_dropout);
}

// ---- 3: why d_out = 1 and two heads give (2, 6, 2) ----------------------------------------------

static void exercise_3(demo *d)
{
    say(d, T_EX3_INTRO);
    attn_module *wrappers[2];
    for (int i = 0; i < 2; ++i) {
        const int d_out = i + 1;
        step(d, T_EX3_CASE, d_out);
        const attn_var batch = make_batch(d); // (2, 6, 3)
        manual_seed(d, 123);
        wrappers[i] = multi_head_attention_wrapper(d, EMBEDDING, d_out, TOKENS, 0.0, 2, false);
        const attn_var out = attn_module_apply(wrappers[i], batch);
        show_shape(d, "x", batch);
        show_shape(d, "heads.0.W_query.weight",
                   parameter(d, wrappers[i], "heads.0.W_query.weight"));
        show_shape(d, "heads[0](x)", attn_slice(out, 2, 0, d_out));
        show_shape(d, "heads[1](x)", attn_slice(out, 2, d_out, 2 * d_out));
        show_shape(d, "cat([...], dim=-1)", out);
        claim(d, attn_value(out).shape[2] == 2 * d_out, T_EX3_COLUMNS, d_out, 2 * d_out);
    }
    must_tape(d);
    say(d, T_EX3_MEANING);
    fresh_tape(d);
    attn_module_destroy(wrappers[0]);
    attn_module_destroy(wrappers[1]);
}

// ---- 4: without out_proj ------------------------------------------------------------------------

// MultiHeadAttention from seed 123 that ends at the merged heads.
static attn_module *without_out_proj(demo *d)
{
    attn_attention_config config;
    attn_attention_config_init(&config);
    config.d_in = EMBEDDING;
    config.d_out = 2;
    config.context_length = TOKENS;
    config.num_heads = 2;
    config.out_proj = false;
    config.out_bias = false;
    manual_seed(d, 123);
    return multi_head_attention_of(d, &config);
}

// Doubles W_value's second row: head 1's values.
static void disturb_head_1(attn_module *module)
{
    attn_error error = {0};
    attn_parameter *W_value = attn_module_find_parameter(module, "W_value.weight");
    attn_tensor row;
    must(attn_tensor_select(&W_value->value, 0, 1, &row, &error), &error);
    float *numbers = row.data;
    for (int64_t i = 0; i < EMBEDDING; ++i) {
        numbers[i] *= 2;
    }
    attn_parameter_touch(W_value);
}

static attn_var column(attn_var out, int64_t index)
{
    return attn_select(out, 2, index);
}

static void exercise_4(demo *d)
{
    say(d, T_EX4_INTRO);
    const attn_var batch = make_batch(d); // (2, 6, 3)
    attn_module *bare = without_out_proj(d);
    manual_seed(d, 123);
    attn_module *mha = multi_head_attention(d, EMBEDDING, 2, TOKENS, 0.0, 2, false);

    step(d, T_EX4_WEIGHTS);
    show(d, "attn_weights", traced(d, mha, batch, "attn_weights"));
    step(d, T_EX4_WITHOUT);
    const attn_var without = attn_module_apply(bare, batch);
    show(d, "without_out_proj", without);
    step(d, T_EX4_WITH);
    const attn_var with = attn_module_apply(mha, batch);
    show(d, "context_vecs", with);
    const attn_var mixed = attn_linear(without, parameter(d, mha, "out_proj.weight"),
                                       parameter(d, mha, "out_proj.bias"));
    claim(d, close_to(mixed, with, 1e-6), T_EX4_IS_LINEAR);
    show_number(d, "max |with - without|", largest_difference(with, without));

    step(d, T_EX4_MIXING);
    disturb_head_1(bare);
    disturb_head_1(mha);
    const attn_var without_disturbed = attn_module_apply(bare, batch);
    const attn_var with_disturbed = attn_module_apply(mha, batch);
    claim(d, same_bits(column(without, 0), column(without_disturbed, 0)), T_EX4_APART);
    claim(d, !same_bits(column(with, 0), column(with_disturbed, 0)), T_EX4_MIXED);
    must_tape(d);
    say(d, T_EX4_MEANING);
    fresh_tape(d);
    attn_module_destroy(bare);
    attn_module_destroy(mha);
}

void exercise(demo *d, int number)
{
    static void (*const run[])(demo *) = {exercise_1, exercise_2, exercise_3, exercise_4};
    static const char *const numbers[] = {"--exercise 1", "--exercise 2", "--exercise 3",
                                          "--exercise 4"};
    static const text_id titles[] = {T_EX1_TITLE, T_EX2_TITLE, T_EX3_TITLE, T_EX4_TITLE};
    heading(d, numbers[number - 1], titles[number - 1], "exercise.c");
    fresh_tape(d);
    run[number - 1](d);
}
