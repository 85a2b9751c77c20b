// SelfAttentionV2: as V1 with Linear layers, which start better and may have biases.
#include "modules/attention.h"
#include "modules/module.h"
#include "modules/projection.h"

struct self_attention_v2 {
    attn_module module;
    attn_qkv qkv;
};

static attn_var forward(attn_module *module, const attn_module_call *call);

static const attn_module_class self_attention_v2_class = {
    .kind = "self_attention_v2",
    .size = sizeof(struct self_attention_v2),
    .fields = ATTN_FIELD_CONFIG | ATTN_FIELD_QKV_BIAS,
    .forward = forward,
};

attn_status attn_self_attention_v2_create(const attn_context *context,
                                          const attn_attention_config *config,
                                          attn_generator *generator, attn_module **module,
                                          attn_error *error)
{
    attn_status status = attn_attention_config_check(config, &self_attention_v2_class, error);
    attn_module *base;
    if (status == ATTN_OK) {
        status =
            attn_module_allocate(context, &self_attention_v2_class, config, 6, 0, &base, error);
    }
    if (status != ATTN_OK) {
        return status;
    }

    struct self_attention_v2 *self = (struct self_attention_v2 *)base;
    status = attn_register_qkv(base, "", attn_single_head_widths(config), &self->qkv, error);
    return attn_module_finish(base, status, generator, module, error);
}

// x: (T, d_in) or (B, T, d_in) -> (T, d_out) or (B, T, d_out)
static attn_var forward(attn_module *module, const attn_module_call *call)
{
    const struct self_attention_v2 *self = (const struct self_attention_v2 *)module;

    // 1. query, key and value projections
    const attn_qkv_vars projected = attn_project_qkv(&self->qkv, call->input, call->input);

    // 2. attention
    return attn_attend_single_head(module, call, "", 0, projected);
}
