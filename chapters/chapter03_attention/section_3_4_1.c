// 3.4.1 Trainable self-attention, step by step for one query.
#include <math.h>

#include "attention.h"
#include "print.h"
#include "sections.h"

enum { D_OUT = 2 };

void section_3_4_1(demo *d)
{
    heading(d, "3.4.1", T_341_TITLE, "section_3_4_1.c");
    fresh_tape(d);
    const attn_var inputs = make_inputs(d); // (6, 3)
    say(d, T_341_INTRO);

    step(d, T_341_STEP_PARAMETERS);
    manual_seed(d, 123);
    const int64_t shape[] = {EMBEDDING, D_OUT};
    const attn_var W_query = rand_leaf(d, 2, shape); // (3, 2)
    const attn_var W_key = rand_leaf(d, 2, shape);
    const attn_var W_value = rand_leaf(d, 2, shape);
    show(d, "W_query", W_query);
    show(d, "W_key", W_key);
    show(d, "W_value", W_value);

    step(d, T_341_STEP_PROJECT);
    const attn_var x_2 = attn_select(inputs, 0, 1); // (3)
    const attn_var x_2_row = attn_view(x_2, 2, (int64_t[]){1, EMBEDDING});
    const attn_var query_2 = attn_select(attn_matmul(x_2_row, W_query), 0, 0); // (2)
    const attn_var key_2 = attn_select(attn_matmul(x_2_row, W_key), 0, 0);
    const attn_var value_2 = attn_select(attn_matmul(x_2_row, W_value), 0, 0);
    show(d, "query_2", query_2);
    show(d, "key_2", key_2);
    show(d, "value_2", value_2);
    say(d, T_341_ROLES);

    step(d, T_341_STEP_ALL_KEYS);
    const attn_var keys = attn_matmul(inputs, W_key);     // (6, 2)
    const attn_var values = attn_matmul(inputs, W_value); // (6, 2)
    show_tokens(d, "keys", keys);
    show_tokens(d, "values", values);

    step(d, T_341_STEP_SCORES);
    const attn_var attn_score_22 = attn_sum_all(attn_multiply(query_2, key_2));
    show(d, "attn_score_22", attn_score_22);
    const attn_var query_row = attn_view(query_2, 2, (int64_t[]){1, D_OUT});
    const attn_var score_row = attn_matmul(query_row, attn_transpose(keys, 0, 1)); // (1, 6)
    const attn_var attn_scores_2 = attn_select(score_row, 0, 0);                   // (6)
    show(d, "attn_scores_2", attn_scores_2);

    step(d, T_341_STEP_WEIGHTS);
    const double d_k = D_OUT;
    const attn_var attn_weights_2 = attn_softmax(attn_scale(attn_scores_2, 1 / sqrt(d_k)), -1);
    show(d, "attn_weights_2", attn_weights_2);
    say(d, T_341_SCALE_MEANING);

    step(d, T_341_STEP_CONTEXT);
    const attn_var weight_row = attn_view(attn_weights_2, 2, (int64_t[]){1, TOKENS});
    const attn_var context_vec_2 = attn_select(attn_matmul(weight_row, values), 0, 0); // (2)
    show(d, "context_vec_2", context_vec_2);

    step(d, T_SAME_BY_LIBRARY);
    manual_seed(d, 123);
    attn_module *sa_v1 = self_attention_v1(d, EMBEDDING, D_OUT);
    const attn_var by_module = attn_select(attn_module_apply(sa_v1, inputs), 0, 1);
    claim(d, close_to(context_vec_2, by_module, 1e-6), T_341_LIBRARY);
    must_tape(d);
    say(d, T_341_SUMMARY);
    fresh_tape(d);
    attn_module_destroy(sa_v1);
}
