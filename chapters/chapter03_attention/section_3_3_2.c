// 3.3.2 Simple self-attention for all queries: the loops become two matrix products.
#include "print.h"
#include "sections.h"

// The double loop that the matrix product replaces.
static attn_var scores_by_loops(demo *d)
{
    float scores[TOKENS][TOKENS];
    for (int i = 0; i < TOKENS; ++i) {
        for (int j = 0; j < TOKENS; ++j) {
            scores[i][j] = 0;
            for (int k = 0; k < EMBEDDING; ++k) {
                scores[i][j] += token_inputs[i][k] * token_inputs[j][k];
            }
        }
    }
    return leaf(d, scores[0], 2, (int64_t[]){TOKENS, TOKENS});
}

static void wrong_axis(demo *d, attn_var attn_scores)
{
    step(d, T_332_WRONG_AXIS);
    const attn_var wrong = attn_softmax(attn_scores, 0); // down the columns
    show_tokens(d, "softmax(attn_scores, 0)", wrong);
    show(d, "row sums", attn_sum(wrong, -1, false));
    show(d, "column sums", attn_sum(wrong, 0, false));
    say(d, T_332_WRONG_AXIS_MEANING);
}

// The library's attention with scale 1 on the inputs as query, key and value.
static attn_var by_library(attn_var inputs)
{
    const int64_t heads[] = {1, 1, TOKENS, EMBEDDING};
    const attn_var x = attn_view(inputs, 4, heads); // (1, 1, 6, 3)
    attn_sdpa_desc desc;
    attn_sdpa_desc_init(&desc);
    desc.scale_mode = ATTN_SCALE_GIVEN;
    desc.scale = 1;
    const attn_var context =
        attn_scaled_dot_product_attention(x, x, x, ATTN_NO_VAR, ATTN_NO_VAR, &desc, NULL);
    return attn_view(context, 2, heads + 2);
}

void section_3_3_2(demo *d)
{
    heading(d, "3.3.2", T_332_TITLE, "section_3_3_2.c");
    fresh_tape(d);
    const attn_var inputs = make_inputs(d); // (6, 3)
    say(d, T_332_INTRO);

    step(d, T_332_STEP_SCORES);
    const attn_var attn_scores = attn_matmul(inputs, attn_transpose(inputs, 0, 1)); // (6, 6)
    show_tokens(d, "attn_scores", attn_scores);
    claim(d, close_to(attn_scores, scores_by_loops(d), 1e-6), T_332_LOOPS_EQUAL);
    claim(d, same_bits(attn_scores, attn_transpose(attn_scores, 0, 1)), T_332_SYMMETRIC);

    step(d, T_332_STEP_WEIGHTS);
    const attn_var attn_weights = attn_softmax(attn_scores, -1); // (6, 6)
    show_tokens(d, "attn_weights", attn_weights);
    show(d, "row_sums", attn_sum(attn_weights, -1, false));
    say(d, T_332_WEIGHTS_MEANING);

    step(d, T_332_STEP_CONTEXT);
    const attn_var all_context_vecs = attn_matmul(attn_weights, inputs); // (6, 3)
    show_tokens(d, "all_context_vecs", all_context_vecs);
    say(d, T_332_CONTEXT_MEANING);

    wrong_axis(d, attn_scores);

    step(d, T_SAME_BY_LIBRARY);
    claim(d, close_to(all_context_vecs, by_library(inputs), 1e-6), T_332_LIBRARY);
    must_tape(d);
    say(d, T_332_SUMMARY);
}
