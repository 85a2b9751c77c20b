// trace.c: every intermediate of a module's forward, with its shape and strides.
#include <stdio.h>
#include <string.h>

#include "attention.h"
#include "print.h"
#include "sections.h"

typedef struct traced_kind {
    const char *name;
    uint64_t seed;
    int32_t batched; // V1 and V2 are shown on one sentence, the others on the batch of two
} traced_kind;

static const traced_kind kinds[] = {
    {"v1", 123, 0}, {"v2", 789, 0}, {"causal", 123, 1}, {"wrapper", 123, 1}, {"mha", 123, 1}};

static attn_module *create(demo *d, const char *name)
{
    if (strcmp(name, "v1") == 0) {
        return self_attention_v1(d, EMBEDDING, 2);
    }
    if (strcmp(name, "v2") == 0) {
        return self_attention_v2(d, EMBEDDING, 2, false);
    }
    if (strcmp(name, "causal") == 0) {
        return causal_attention(d, EMBEDDING, 2, TOKENS, 0.0, false);
    }
    if (strcmp(name, "wrapper") == 0) {
        return multi_head_attention_wrapper(d, EMBEDDING, 2, TOKENS, 0.0, 2, false);
    }
    return multi_head_attention(d, EMBEDDING, 2, TOKENS, 0.0, 2, false);
}

static void show_entries(demo *d, const attn_trace *traced_run)
{
    for (int64_t i = 0; i < attn_trace_count(traced_run); ++i) {
        const attn_named_tensor *entry = attn_trace_entry(traced_run, i);
        char layout[256];
        attn_tensor_format_layout(&entry->tensor, layout, sizeof layout);
        printf("\n  %-28s %s\n", entry->name, layout);
        show_rows(d, &entry->tensor, NULL);
    }
}

bool trace(demo *d, const char *name)
{
    const traced_kind *kind = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; ++i) {
        kind = strcmp(kinds[i].name, name) == 0 ? &kinds[i] : kind;
    }
    if (!kind) {
        return false;
    }
    heading(d, "--trace", T_TRACE_TITLE, "trace.c");
    fresh_tape(d);
    manual_seed(d, kind->seed);
    attn_module *module = create(d, name);
    say(d, T_TRACE_INTRO, attn_module_kind(module), (unsigned)kind->seed);

    attn_error error = {0};
    attn_trace *traced_run;
    must(attn_trace_create(d->context, &traced_run, &error), &error);
    attn_module_call call;
    attn_module_call_init(&call);
    call.input = kind->batched ? make_batch(d) : make_inputs(d);
    call.trace = traced_run;
    show_shape(d, "x", call.input);
    const attn_var output = attn_module_forward(module, &call);
    must_tape(d);
    show_entries(d, traced_run);
    putchar('\n');
    show(d, "output", output);
    say(d, T_TRACE_MEANING);
    attn_trace_destroy(traced_run);
    fresh_tape(d);
    attn_module_destroy(module);
    return true;
}
