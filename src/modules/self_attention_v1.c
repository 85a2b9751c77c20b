// SelfAttentionV1: three matrices of shape (d_in, d_out), and scaled dot-product attention.
#include "modules/attention.h"
#include "modules/module.h"

struct self_attention_v1 {
    attn_module module;
    attn_parameter *W_query, *W_key, *W_value; // (d_in, d_out)
};

static attn_var forward(attn_module *module, const attn_module_call *call);

static const attn_module_class self_attention_v1_class = {
    .kind = "self_attention_v1",
    .size = sizeof(struct self_attention_v1),
    .fields = ATTN_FIELD_CONFIG,
    .forward = forward,
};

attn_status attn_self_attention_v1_create(const attn_context *context,
                                          const attn_attention_config *config,
                                          attn_generator *generator, attn_module **module,
                                          attn_error *error)
{
    attn_status status = attn_attention_config_check(config, &self_attention_v1_class, error);
    attn_module *base;
    if (status == ATTN_OK) {
        status =
            attn_module_allocate(context, &self_attention_v1_class, config, 3, 0, &base, error);
    }
    if (status != ATTN_OK) {
        return status;
    }

    struct self_attention_v1 *self = (struct self_attention_v1 *)base;
    const struct {
        const char *name;
        attn_parameter **parameter;
    } matrices[] = {
        {"W_query", &self->W_query}, {"W_key", &self->W_key}, {"W_value", &self->W_value}};
    for (int i = 0; i < 3 && status == ATTN_OK; i++) {
        status = attn_register_parameter(base, "", matrices[i].name, "", 2,
                                         (int64_t[]){config->d_in, config->d_out},
                                         ATTN_INITIAL_UNIFORM, 0, matrices[i].parameter, error);
    }
    return attn_module_finish(base, status, generator, module, error);
}

// x: (T, d_in) or (B, T, d_in) -> (T, d_out) or (B, T, d_out)
static attn_var forward(attn_module *module, const attn_module_call *call)
{
    const struct self_attention_v1 *self = (const struct self_attention_v1 *)module;
    const attn_var x = call->input;

    // 1. query, key and value projections
    const attn_qkv_vars projected = {
        .queries = attn_matmul(x, attn_parameter_var(x.tape, self->W_query)),
        .keys = attn_matmul(x, attn_parameter_var(x.tape, self->W_key)),
        .values = attn_matmul(x, attn_parameter_var(x.tape, self->W_value))};

    // 2. attention
    return attn_attend_single_head(module, call, "", 0, projected);
}
