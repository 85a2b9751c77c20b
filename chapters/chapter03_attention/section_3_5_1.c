// 3.5.1 The causal mask, in two ways: after the softmax, and before it.
#include <math.h>
#include <stdio.h>

#include "attention.h"
#include "causal.h"
#include "print.h"
#include "sections.h"

enum { D_OUT = 2 };

// True where column - row >= diagonal; `diagonal` is 1 for the right mask.
static attn_tensor upper_triangle(bool mask[TOKENS][TOKENS], int diagonal)
{
    for (int i = 0; i < TOKENS; ++i) {
        for (int j = 0; j < TOKENS; ++j) {
            mask[i][j] = j - i >= diagonal;
        }
    }
    return attn_tensor_wrap_const(mask[0], ATTN_BOOL, 2, (int64_t[]){TOKENS, TOKENS});
}

attn_tensor causal_mask(bool memory[TOKENS][TOKENS])
{
    return upper_triangle(memory, 1);
}

attn_var ones(demo *d)
{
    static const float one = 1;
    attn_tensor broadcast = attn_tensor_wrap_const(&one, ATTN_F32, 2, (int64_t[]){1, 1});
    attn_error error = {0};
    must(attn_tensor_expand(&broadcast, 2, (int64_t[]){TOKENS, TOKENS}, &broadcast, &error),
         &error);
    return attn_input(d->tape, &broadcast, false); // (6, 6)
}

// Way A: softmax over everything, clear the upper triangle, divide each row by what is left.
static attn_var weights_way_a(attn_var attn_scores)
{
    const attn_var attn_weights = attn_softmax(attn_scale(attn_scores, 1 / sqrt(D_OUT)), -1);
    const attn_var masked_simple = attn_tril(attn_weights, 0);
    return attn_divide(masked_simple, attn_sum(masked_simple, -1, true));
}

// Way B: -inf above the diagonal, then one softmax.
attn_var causal_weights(attn_var attn_scores, const attn_tensor *mask)
{
    const attn_var masked = attn_masked_fill(attn_scores, mask, -INFINITY);
    return attn_softmax(attn_scale(masked, 1 / sqrt(D_OUT)), -1);
}

attn_var causal_scores(demo *d, attn_module *sa_v2, attn_var x)
{
    const attn_var queries = attn_linear(x, parameter(d, sa_v2, "W_query.weight"), ATTN_NO_VAR);
    const attn_var keys = attn_linear(x, parameter(d, sa_v2, "W_key.weight"), ATTN_NO_VAR);
    return attn_matmul(queries, attn_transpose(keys, 0, 1)); // (6, 6)
}

attn_var sentence_ending_in(demo *d, const float last[EMBEDDING])
{
    const attn_var parts[] = {attn_slice(make_inputs(d), 0, 0, TOKENS - 1),
                              leaf(d, last, 2, (int64_t[]){1, EMBEDDING})};
    return attn_cat(parts, 2, 0); // (6, 3)
}

static attn_var earlier_rows(attn_var var)
{
    return attn_slice(var, 0, 0, TOKENS - 1);
}

static bool all_nan(attn_var var)
{
    const attn_tensor value = attn_value(var);
    bool nan = true;
    for (int64_t i = 0; i < value.shape[0]; ++i) {
        nan = nan && isnan(element(var, i, 0));
    }
    return nan;
}

static void way_a(demo *d, attn_var attn_weights)
{
    step(d, T_351_WAY_A);
    const attn_var mask_simple = attn_tril(ones(d), 0);
    const attn_var masked_simple = attn_multiply(attn_weights, mask_simple);
    const attn_var row_sums = attn_sum(masked_simple, -1, true); // (6, 1)
    const attn_var masked_simple_norm = attn_divide(masked_simple, row_sums);
    show(d, "mask_simple", mask_simple);
    show_tokens(d, "masked_simple", masked_simple);
    show_tokens(d, "masked_simple_norm", masked_simple_norm);
}

static void way_b(demo *d, attn_var attn_scores, const attn_tensor *mask)
{
    step(d, T_351_WAY_B);
    show_tensor(d, "mask", mask, NULL);
    const attn_var masked = attn_masked_fill(attn_scores, mask, -INFINITY);
    const attn_var attn_weights_inf = attn_softmax(attn_scale(masked, 1 / sqrt(D_OUT)), -1);
    show_tokens(d, "masked", masked);
    show_tokens(d, "attn_weights_inf", attn_weights_inf);
    show(d, "row_sums_inf", attn_sum(attn_weights_inf, -1, false));

    claim(d, close_to(attn_weights_inf, weights_way_a(attn_scores), 1e-6), T_351_WAYS_EQUAL);
    const attn_var above = attn_triu(attn_weights_inf, 1);
    claim(d, attn_item(attn_sum_all(above)) == 0, T_351_UPPER_ZERO);
    const attn_var scaled_first = attn_softmax(
        attn_masked_fill(attn_scale(attn_scores, 1 / sqrt(D_OUT)), mask, -INFINITY), -1);
    claim(d, same_bits(attn_weights_inf, scaled_first), T_351_SCALE_ORDER);
    say(d, T_351_CORRECTION);
}

static void wrong_diagonal(demo *d, attn_var attn_scores, bool mask_memory[TOKENS][TOKENS])
{
    step(d, T_351_WRONG_DIAGONAL);
    const attn_tensor mask = upper_triangle(mask_memory, 0);
    const attn_var wrong = causal_weights(attn_scores, &mask);
    show_tokens(d, "attn_weights, diagonal=0", wrong);
    say(d, T_351_WRONG_DIAGONAL_MEANING);
}

static void no_leak(demo *d, attn_module *sa_v2, const attn_tensor *mask)
{
    step(d, T_351_NO_LEAK);
    static const float other[EMBEDDING] = {0.90F, 0.10F, 0.20F};
    static const float huge[EMBEDDING] = {4000.0F, 0.0F, 0.0F};
    const attn_var scores = causal_scores(d, sa_v2, make_inputs(d));
    const attn_var scores_other = causal_scores(d, sa_v2, sentence_ending_in(d, other));
    const attn_var scores_huge = causal_scores(d, sa_v2, sentence_ending_in(d, huge));

    const attn_var a = earlier_rows(weights_way_a(scores));
    const attn_var b = earlier_rows(causal_weights(scores, mask));
    claim(d, close_to(a, earlier_rows(weights_way_a(scores_other)), 1e-6), T_351_A_ROUNDING);
    claim(d, same_bits(b, earlier_rows(causal_weights(scores_other, mask))), T_351_B_BITS);

    const attn_var a_huge = earlier_rows(weights_way_a(scores_huge));
    say(d, T_351_HUGE);
    show(d, "way A, row journey", attn_select(a_huge, 0, 1));
    show(d, "way B, row journey", attn_select(causal_weights(scores_huge, mask), 0, 1));
    claim(d, all_nan(a_huge), T_351_A_BREAKS);
    claim(d, same_bits(b, earlier_rows(causal_weights(scores_huge, mask))), T_351_B_HOLDS);
    say(d, T_351_NO_LEAK_MEANING);
}

static void next_token_targets(demo *d)
{
    step(d, T_351_TARGETS);
    for (int i = 0; i < TOKENS; ++i) {
        fputs("  ", stdout);
        for (int j = 0; j <= i; ++j) {
            printf("%s ", token_names[j]);
        }
        printf("-> %s\n", i + 1 < TOKENS ? token_names[i + 1] : "?");
    }
    say(d, T_351_TARGETS_MEANING);
}

void section_3_5_1(demo *d)
{
    heading(d, "3.5.1", T_351_TITLE, "section_3_5_1.c");
    fresh_tape(d);
    say(d, T_351_INTRO);
    manual_seed(d, 789);
    attn_module *sa_v2 = self_attention_v2(d, EMBEDDING, D_OUT, false);
    const attn_var attn_scores = causal_scores(d, sa_v2, make_inputs(d)); // (6, 6)
    const attn_var attn_weights = attn_softmax(attn_scale(attn_scores, 1 / sqrt(D_OUT)), -1);
    show_tokens(d, "attn_scores", attn_scores);
    show_tokens(d, "attn_weights", attn_weights);

    bool mask_memory[TOKENS][TOKENS];
    bool wrong_mask_memory[TOKENS][TOKENS];
    const attn_tensor mask = causal_mask(mask_memory);
    way_a(d, attn_weights);
    way_b(d, attn_scores, &mask);
    wrong_diagonal(d, attn_scores, wrong_mask_memory);
    no_leak(d, sa_v2, &mask);
    next_token_targets(d);
    must_tape(d);
    say(d, T_351_SUMMARY);
    fresh_tape(d);
    attn_module_destroy(sa_v2);
}
