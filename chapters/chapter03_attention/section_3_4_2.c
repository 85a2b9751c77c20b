// 3.4.2 SelfAttentionV1 and SelfAttentionV2, exercise 3.1, and the two things called weights.
#include <math.h>

#include "attention.h"
#include "causal.h"
#include "print.h"
#include "sections.h"

enum { D_OUT = 2 };

// V1's forward: x W.
static attn_var v1_by_steps(demo *d, attn_module *sa_v1, attn_var x)
{
    const attn_var queries = attn_matmul(x, parameter(d, sa_v1, "W_query")); // (6, 2)
    const attn_var keys = attn_matmul(x, parameter(d, sa_v1, "W_key"));
    const attn_var values = attn_matmul(x, parameter(d, sa_v1, "W_value"));
    const attn_var attn_scores = attn_matmul(queries, attn_transpose(keys, 0, 1)); // (6, 6)
    const attn_var attn_weights = attn_softmax(attn_scale(attn_scores, 1 / sqrt(D_OUT)), -1);
    return attn_matmul(attn_weights, values); // (6, 2)
}

// V2's forward: x W^T, the weight stored as (d_out, d_in).
static attn_var v2_by_steps(demo *d, attn_module *sa_v2, attn_var x)
{
    const attn_var queries = attn_linear(x, parameter(d, sa_v2, "W_query.weight"), ATTN_NO_VAR);
    const attn_var keys = attn_linear(x, parameter(d, sa_v2, "W_key.weight"), ATTN_NO_VAR);
    const attn_var values = attn_linear(x, parameter(d, sa_v2, "W_value.weight"), ATTN_NO_VAR);
    const attn_var attn_scores = attn_matmul(queries, attn_transpose(keys, 0, 1)); // (6, 6)
    const attn_var attn_weights = attn_softmax(attn_scale(attn_scores, 1 / sqrt(D_OUT)), -1);
    return attn_matmul(attn_weights, values); // (6, 2)
}

// Exercise 3.1: W_query of V1 (3, 2) = W_query.weight of V2 (2, 3), transposed.
static void copy_transposed(attn_module *sa_v1, attn_module *sa_v2)
{
    static const char *const names[][2] = {
        {"W_query", "W_query.weight"}, {"W_key", "W_key.weight"}, {"W_value", "W_value.weight"}};
    for (int i = 0; i < 3; ++i) {
        attn_error error = {0};
        attn_parameter *to = attn_module_find_parameter(sa_v1, names[i][0]);
        attn_tensor transposed;
        must(attn_tensor_transpose(&attn_module_find_parameter(sa_v2, names[i][1])->value, 0, 1,
                                   &transposed, &error),
             &error);
        must(attn_tensor_copy(&transposed, &to->value, &error), &error);
        attn_parameter_touch(to);
    }
}

// Change one token of the input: the attention weights move, the parameters do not.
static void two_kinds_of_weights(demo *d, attn_module *sa_v2)
{
    step(d, T_342_TWO_WEIGHTS);
    const attn_var sentence = make_inputs(d);
    const float other_step[] = {0.90F, 0.10F, 0.20F};
    const attn_var changed = sentence_ending_in(d, other_step); // (6, 3)

    const attn_tensor *W_query = &attn_module_find_parameter(sa_v2, "W_query.weight")->value;
    const attn_var parameters_before = attn_input(d->tape, W_query, false);
    const attn_var weights_before = traced(d, sa_v2, sentence, "attn_weights");
    const attn_var weights_after = traced(d, sa_v2, changed, "attn_weights");
    const attn_var parameters_after = attn_input(d->tape, W_query, false);

    say(d, T_342_CHANGED_INPUT);
    show(d, "attn_weights[journey], before", attn_select(weights_before, 0, 1));
    show(d, "attn_weights[journey], after", attn_select(weights_after, 0, 1));
    claim(d, !same_bits(weights_before, weights_after), T_342_ATTENTION_MOVED);
    claim(d, same_bits(parameters_before, parameters_after), T_342_PARAMETERS_STAYED);
    say(d, T_342_TWO_WEIGHTS_TABLE);
}

void section_3_4_2(demo *d)
{
    heading(d, "3.4.2", T_342_TITLE, "section_3_4_2.c");
    fresh_tape(d);
    const attn_var inputs = make_inputs(d); // (6, 3)
    say(d, T_342_INTRO);

    step(d, T_342_STEP_V1);
    manual_seed(d, 123);
    attn_module *sa_v1 = self_attention_v1(d, EMBEDDING, D_OUT);
    const attn_var out_v1 = attn_module_apply(sa_v1, inputs); // (6, 2)
    show_tokens(d, "sa_v1", out_v1);
    claim(d, close_to(out_v1, v1_by_steps(d, sa_v1, inputs), 1e-6), T_STEPS_EQUAL_MODULE);

    step(d, T_342_STEP_V2);
    manual_seed(d, 789);
    attn_module *sa_v2 = self_attention_v2(d, EMBEDDING, D_OUT, false);
    show(d, "W_query.weight", parameter(d, sa_v2, "W_query.weight"));
    show(d, "W_key.weight", parameter(d, sa_v2, "W_key.weight"));
    show(d, "W_value.weight", parameter(d, sa_v2, "W_value.weight"));
    const attn_var out_v2 = attn_module_apply(sa_v2, inputs); // (6, 2)
    show_tokens(d, "sa_v2", out_v2);
    claim(d, close_to(out_v2, v2_by_steps(d, sa_v2, inputs), 1e-6), T_STEPS_EQUAL_MODULE);
    say(d, T_342_WHY_DIFFERENT);

    step(d, T_342_EXERCISE);
    copy_transposed(sa_v1, sa_v2);
    const attn_var out_equal = attn_module_apply(sa_v1, inputs);
    show_tokens(d, "sa_v1_with_v2_weights", out_equal);
    claim(d, same_bits(out_equal, out_v2), T_342_BIT_IDENTICAL);

    two_kinds_of_weights(d, sa_v2);
    must_tape(d);
    say(d, T_342_SUMMARY);
    fresh_tape(d);
    attn_module_destroy(sa_v1);
    attn_module_destroy(sa_v2);
}
