// 3.5.3 CausalAttention: mask, dropout and batches in one module.
#include <math.h>
#include <stdio.h>

#include "attention.h"
#include "causal.h"
#include "print.h"
#include "sections.h"

enum { D_OUT = 2 };

// CausalAttention's forward on a batch, with dropout 0.
static attn_var forward_by_steps(demo *d, attn_module *ca, attn_var x, const attn_tensor *mask)
{
    const attn_var queries = attn_linear(x, parameter(d, ca, "W_query.weight"), ATTN_NO_VAR);
    const attn_var keys = attn_linear(x, parameter(d, ca, "W_key.weight"), ATTN_NO_VAR);
    const attn_var values = attn_linear(x, parameter(d, ca, "W_value.weight"), ATTN_NO_VAR);
    const attn_var attn_scores = attn_matmul(queries, attn_transpose(keys, 1, 2));
    const attn_var masked = attn_masked_fill(attn_scores, mask, -INFINITY);
    const attn_var attn_weights = attn_softmax(attn_scale(masked, 1 / sqrt(D_OUT)), -1);
    const attn_var context_vecs = attn_matmul(attn_weights, values);

    show_shape(d, "batch", x);
    show_shape(d, "queries, keys, values", queries);
    show_shape(d, "keys.transpose(1, 2)", attn_transpose(keys, 1, 2));
    show_shape(d, "attn_scores", attn_scores);
    show_shape(d, "attn_weights", attn_weights);
    show_shape(d, "context_vecs", context_vecs);
    return context_vecs;
}

static void show_buffer(demo *d, attn_module *ca)
{
    step(d, T_353_BUFFER);
    attn_error error = {0};
    attn_tensor layout;
    char shape[SHAPE_TEXT];
    must(attn_module_buffer_shape(ca, "mask", &layout, &error), &error);
    for (int64_t i = 0; i < attn_module_parameter_count(ca); ++i) {
        attn_parameter *p = attn_module_parameter(ca, i);
        printf("  %-28s %s\n", p->name, shape_text(&p->value, shape));
    }
    printf("  %-28s %s\n", "mask", shape_text(&layout, shape));
    say(d, T_353_BUFFER_MEANING);
}

// Sequences shorter than context_length use the mask's top-left corner; a longer one is refused.
static void lengths(demo *d, attn_module *ca, attn_var batch)
{
    step(d, T_353_LENGTHS);
    const attn_var four = attn_slice(batch, 1, 0, 4); // (2, 4, 3)
    const attn_var short_out = attn_module_apply(ca, four);
    show_shape(d, "batch[:, :4]", four);
    show_shape(d, "context_vecs", short_out);
    const attn_var full = attn_module_apply(ca, batch);
    claim(d, same_bits(attn_slice(full, 1, 0, 4), short_out), T_353_SHORT_SAME);
    must_tape(d);

    const attn_var seven = attn_cat((attn_var[]){batch, attn_slice(batch, 1, 0, 1)}, 2, 1);
    show_shape(d, "batch of 7 tokens", seven);
    (void)attn_module_apply(ca, seven);
    claim(d, attn_tape_status(d->tape) != ATTN_OK, T_353_TOO_LONG, attn_tape_error(d->tape)->text);
    fresh_tape(d);
}

// What a composed forward cannot do: 0 * NaN is NaN, so a broken last token reaches every row.
static void not_a_number(demo *d, attn_module *ca)
{
    step(d, T_353_NAN);
    const float nan_token[EMBEDDING] = {NAN, NAN, NAN};
    const attn_var whole = attn_module_apply(ca, make_inputs(d));
    const attn_var broken = attn_module_apply(ca, sentence_ending_in(d, nan_token));
    const attn_var whole_start = attn_slice(whole, 0, 0, TOKENS - 1);
    const attn_var broken_start = attn_slice(broken, 0, 0, TOKENS - 1);
    show_tokens(d, "context_vecs", broken);
    claim(d, same_bits(whole_start, broken_start), T_353_NAN_SAME);
}

void section_3_5_3(demo *d)
{
    heading(d, "3.5.3", T_353_TITLE, "section_3_5_3.c");
    fresh_tape(d);
    say(d, T_353_INTRO);
    const attn_var batch = make_batch(d); // (2, 6, 3)
    manual_seed(d, 123);
    attn_module *ca = causal_attention(d, EMBEDDING, D_OUT, TOKENS, 0.0, false);

    step(d, T_353_STEP_SHAPES);
    bool mask_memory[TOKENS][TOKENS];
    const attn_tensor mask = causal_mask(mask_memory);
    const attn_var by_steps = forward_by_steps(d, ca, batch, &mask);

    step(d, T_353_STEP_MODULE);
    const attn_var context_vecs = attn_module_apply(ca, batch); // (2, 6, 2)
    show(d, "context_vecs", context_vecs);
    claim(d, close_to(context_vecs, by_steps, 1e-6), T_STEPS_EQUAL_MODULE);
    claim(d, same_bits(attn_select(context_vecs, 0, 0), attn_select(context_vecs, 0, 1)),
          T_353_BATCH_ENTRIES);

    show_buffer(d, ca);
    lengths(d, ca, make_batch(d));
    not_a_number(d, ca);
    must_tape(d);
    say(d, T_353_SUMMARY);
    fresh_tape(d);
    attn_module_destroy(ca);
}
