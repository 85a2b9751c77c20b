// gpt2.c: a multi-head attention in GPT-2's size.
#include "gpt2.h"

#include <stdio.h>

#include "attention.h"

static attn_tensor first_numbers_of(attn_var output, int64_t token)
{
    const attn_var row = attn_select(attn_select(output, 0, 0), 0, token); // (width)
    return attn_value(attn_slice(row, 0, 0, GPT2_SHOWN));
}

gpt2_run gpt2_forward(demo *d, int64_t width, int64_t heads)
{
    manual_seed(d, 123);
    attn_module *mha = multi_head_attention(d, width, width, GPT2_CONTEXT, 0.0, heads, false);
    const attn_var x = randn_leaf(d, 3, (int64_t[]){GPT2_BATCH, GPT2_TOKENS, width});
    // Nothing is differentiated, and the module goes before the tape's reset: nothing is recorded.
    attn_tape_set_recording(d->tape, false);
    const attn_var output = attn_module_apply(mha, x); // (2, 8, width)
    attn_tape_set_recording(d->tape, true);

    gpt2_run run = {.output = attn_value(output),
                    .first = first_numbers_of(output, 0),
                    .last = first_numbers_of(output, GPT2_TOKENS - 1),
                    .values = attn_module_value_count(mha),
                    .parameters = attn_module_parameter_count(mha)};
    must_tape(d);
    for (int64_t i = 0; i < run.parameters && i < GPT2_PARAMETERS; ++i) {
        const attn_parameter *p = attn_module_parameter(mha, i);
        snprintf(run.names[i], sizeof run.names[i], "%s", p->name);
        run.shapes[i] = p->value;
        run.shapes[i].data = NULL;
    }
    attn_module_destroy(mha);
    return run;
}
