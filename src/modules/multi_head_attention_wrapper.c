// MultiHeadAttentionWrapper: causal heads beside one another, their outputs concatenated.
#include <inttypes.h>
#include <stdio.h>

#include "core/context.h"
#include "core/error.h"
#include "modules/attention.h"
#include "modules/module.h"
#include "modules/projection.h"
#include "tape/tape.h"

struct multi_head_attention_wrapper {
    attn_module module;
    attn_qkv *heads; // num_heads of them
};

enum { PREFIX_SIZE = 32 }; // "heads.9223372036854775807."

static attn_var forward(attn_module *module, const attn_module_call *call);
static void release(attn_module *module);
static attn_status register_heads(struct multi_head_attention_wrapper *self, attn_error *error);

static const attn_module_class multi_head_attention_wrapper_class = {
    .kind = "multi_head_attention_wrapper",
    .size = sizeof(struct multi_head_attention_wrapper),
    .fields = ATTN_FIELD_CONFIG | ATTN_FIELD_QKV_BIAS | ATTN_FIELD_CAUSAL | ATTN_FIELD_NUM_HEADS,
    .forward = forward,
    .release = release,
};

attn_status attn_multi_head_attention_wrapper_create(const attn_context *context,
                                                     const attn_attention_config *config,
                                                     attn_generator *generator,
                                                     attn_module **module, attn_error *error)
{
    const attn_module_class *kind = &multi_head_attention_wrapper_class;
    attn_status status = attn_attention_config_check(config, kind, error);
    if (status == ATTN_OK && config->num_heads > INT64_MAX / 6 / (int64_t)sizeof(attn_qkv)) {
        status = attn_fail(error, ATTN_ERR_OVERFLOW, "%s: num_heads (%" PRId64 ") is too large",
                           kind->kind, config->num_heads);
    }
    attn_module *base;
    if (status == ATTN_OK) {
        status = attn_module_allocate(context, kind, config, 6 * config->num_heads,
                                      config->num_heads, &base, error);
    }
    if (status != ATTN_OK) {
        return status;
    }

    status = register_heads((struct multi_head_attention_wrapper *)base, error);
    return attn_module_finish(base, status, generator, module, error);
}

static void format_prefix(int64_t head, char *prefix)
{
    snprintf(prefix, PREFIX_SIZE, "heads.%" PRId64 ".", head);
}

static attn_status register_heads(struct multi_head_attention_wrapper *self, attn_error *error)
{
    attn_module *module = &self->module;
    const attn_attention_config *config = &module->config;
    self->heads = attn_allocate(module->context, (size_t)config->num_heads * sizeof(attn_qkv));
    if (!self->heads) {
        return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY, "%s: no memory for %" PRId64 " heads",
                         module->kind->kind, config->num_heads);
    }
    attn_status status = ATTN_OK;
    for (int64_t head = 0; head < config->num_heads && status == ATTN_OK; head++) {
        char prefix[PREFIX_SIZE];
        format_prefix(head, prefix);
        self->heads[head] = (attn_qkv){{NULL, NULL}, {NULL, NULL}, {NULL, NULL}};
        status = attn_register_qkv(module, prefix, attn_single_head_widths(config),
                                   &self->heads[head], error);
        if (status == ATTN_OK) {
            status = attn_register_buffer(module, prefix, "mask", error);
        }
    }
    return status;
}

static void release(attn_module *module)
{
    struct multi_head_attention_wrapper *self = (struct multi_head_attention_wrapper *)module;
    attn_release(module->context, self->heads, (size_t)module->config.num_heads * sizeof(attn_qkv));
}

// x: (T, d_in) or (B, T, d_in) -> (..., T, num_heads * d_out)
static attn_var forward(attn_module *module, const attn_module_call *call)
{
    const struct multi_head_attention_wrapper *self =
        (const struct multi_head_attention_wrapper *)module;
    const int64_t num_heads = module->config.num_heads;
    attn_tape *tape = call->input.tape;
    attn_var *contexts = attn_tape_allocate(tape, module->kind->kind, num_heads, sizeof *contexts);
    if (!contexts) {
        return attn_tape_failed(tape);
    }

    for (int64_t head = 0; head < num_heads; head++) {
        char prefix[PREFIX_SIZE];
        format_prefix(head, prefix);

        // 1. query, key and value projections of this head
        const attn_qkv_vars projected =
            attn_project_qkv(&self->heads[head], call->input, call->input);

        // 2. attention: masked, with dropout
        contexts[head] = attn_attend_single_head(module, call, prefix, head, projected);
    }

    // 3. concatenation
    return attn_cat(contexts, num_heads, -1);
}
