// CausalAttention: V2 for batches, with the causal mask and dropout on the attention weights.
#include "modules/attention.h"
#include "modules/module.h"
#include "modules/projection.h"

struct causal_attention {
    attn_module module;
    attn_qkv qkv;
};

static attn_var forward(attn_module *module, const attn_module_call *call);

static const attn_module_class causal_attention_class = {
    .kind = "causal_attention",
    .size = sizeof(struct causal_attention),
    .fields = ATTN_FIELD_CONFIG | ATTN_FIELD_QKV_BIAS | ATTN_FIELD_CAUSAL,
    .forward = forward,
};

attn_status attn_causal_attention_create(const attn_context *context,
                                         const attn_attention_config *config,
                                         attn_generator *generator, attn_module **module,
                                         attn_error *error)
{
    attn_status status = attn_attention_config_check(config, &causal_attention_class, error);
    attn_module *base;
    if (status == ATTN_OK) {
        status = attn_module_allocate(context, &causal_attention_class, config, 6, 1, &base, error);
    }
    if (status != ATTN_OK) {
        return status;
    }

    struct causal_attention *self = (struct causal_attention *)base;
    status = attn_register_qkv(base, "", attn_single_head_widths(config), &self->qkv, error);
    if (status == ATTN_OK) {
        status = attn_register_buffer(base, "", "mask", error);
    }
    return attn_module_finish(base, status, generator, module, error);
}

// x: (T, d_in) or (B, T, d_in) -> (T, d_out) or (B, T, d_out)
static attn_var forward(attn_module *module, const attn_module_call *call)
{
    const struct causal_attention *self = (const struct causal_attention *)module;

    // 1. query, key and value projections
    const attn_qkv_vars projected = attn_project_qkv(&self->qkv, call->input, call->input);

    // 2. attention: masked, with dropout
    return attn_attend_single_head(module, call, "", 0, projected);
}
