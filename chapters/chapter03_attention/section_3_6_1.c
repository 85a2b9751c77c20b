// 3.6.1 MultiHeadAttentionWrapper: independent causal heads side by side; exercise 3.2.
#include <stdio.h>

#include "attention.h"
#include "print.h"
#include "sections.h"

enum { HEADS = 2 };

// Runs one head alone: a CausalAttention with the wrapper's parameters "heads.<n>...".
static attn_var one_head(demo *d, attn_module *wrapper, attn_var x, int head)
{
    static const char *const names[] = {"W_query.weight", "W_key.weight", "W_value.weight"};
    attn_module *alone = causal_attention(d, EMBEDDING, 2, TOKENS, 0.0, false);
    attn_named_tensor state[3];
    for (int i = 0; i < 3; ++i) {
        char name[64];
        snprintf(name, sizeof name, "heads.%d.%s", head, names[i]);
        state[i].name = names[i];
        state[i].tensor = attn_module_find_parameter(wrapper, name)->value;
    }
    attn_error error = {0};
    must(attn_module_load_state(alone, state, 3, false, &error), &error);
    const attn_var out = attn_module_apply(alone, x); // (2, 6, 2)
    // A copy, since `out` goes back to parameters that end here.
    const attn_tensor value = attn_value(out);
    const attn_var kept = attn_input(d->tape, &value, false);
    attn_module_destroy(alone);
    return kept;
}

void section_3_6_1(demo *d)
{
    heading(d, "3.6.1", T_361_TITLE, "section_3_6_1.c");
    fresh_tape(d);
    say(d, T_361_INTRO);
    const attn_var batch = make_batch(d); // (2, 6, 3)
    manual_seed(d, 123);
    attn_module *wrapper = multi_head_attention_wrapper(d, EMBEDDING, 2, TOKENS, 0.0, HEADS, false);

    step(d, T_361_STEP_HEADS);
    attn_var heads[HEADS];
    for (int h = 0; h < HEADS; ++h) {
        char name[32];
        snprintf(name, sizeof name, "head %d", h);
        heads[h] = one_head(d, wrapper, batch, h); // (2, 6, 2)
        show(d, name, attn_select(heads[h], 0, 0));
    }
    say(d, T_361_HEAD_0);

    step(d, T_361_STEP_CAT);
    const attn_var joined = attn_cat(heads, HEADS, -1); // (2, 6, 4)
    const attn_var context_vecs = attn_module_apply(wrapper, batch);
    show(d, "context_vecs", context_vecs);
    claim(d, close_to(context_vecs, joined, 1e-6), T_361_HEADS_EQUAL);
    claim(d, attn_value(context_vecs).shape[2] == 4, T_361_SHAPE);

    step(d, T_361_EXERCISE);
    manual_seed(d, 123);
    attn_module *narrow = multi_head_attention_wrapper(d, EMBEDDING, 1, TOKENS, 0.0, HEADS, false);
    const attn_var ex32 = attn_module_apply(narrow, batch);
    show(d, "context_vecs, d_out = 1", ex32);
    say(d, T_361_EXERCISE_MEANING);
    must_tape(d);
    say(d, T_361_SUMMARY);
    fresh_tape(d);
    attn_module_destroy(wrapper);
    attn_module_destroy(narrow);
}
