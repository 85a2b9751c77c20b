#include "modules/projection.h"

#include "tape/ops/ops.h"

attn_status attn_register_projection(attn_module *module, const char *prefix, const char *name,
                                     int64_t in, int64_t out, bool bias,
                                     attn_projection *projection, attn_error *error)
{
    // The weight before the bias, both with the fan-in of the weight: torch's order and bounds.
    attn_status status = attn_register_parameter(
        module, prefix, name, name[0] ? ".weight" : "weight", 2, (int64_t[]){out, in},
        ATTN_INITIAL_KAIMING, in, &projection->weight, error);
    if (status == ATTN_OK) {
        module->parameters[module->parameter_count - 1]->projects = true;
    }
    if (status == ATTN_OK && bias) {
        status = attn_register_parameter(module, prefix, name, name[0] ? ".bias" : "bias", 1,
                                         (int64_t[]){out}, ATTN_INITIAL_KAIMING, in,
                                         &projection->bias, error);
    }
    return status;
}

attn_var attn_project(const attn_projection *projection, attn_var input)
{
    const attn_var weight = attn_parameter_var(input.tape, projection->weight);
    const attn_var bias = projection->bias ? attn_parameter_var(input.tape, projection->bias)
                                           : ATTN_NO_VAR;
    return attn_tape_linear(input, weight, bias, attn_packed_parameter(projection->weight));
}

attn_qkv_vars attn_project_qkv(const attn_qkv *qkv, attn_var input, attn_var source)
{
    return (attn_qkv_vars){.queries = attn_project(&qkv->query, input),
                           .keys = attn_project(&qkv->key, source),
                           .values = attn_project(&qkv->value, source)};
}

attn_status attn_register_qkv(attn_module *module, const char *prefix, attn_qkv_widths widths,
                              attn_qkv *qkv, attn_error *error)
{
    const bool bias = module->config.qkv_bias;
    attn_status status = attn_register_projection(module, prefix, "W_query", widths.in, widths.out,
                                                  bias, &qkv->query, error);
    if (status == ATTN_OK) {
        status = attn_register_projection(module, prefix, "W_key", widths.in_context,
                                          widths.out_context, bias, &qkv->key, error);
    }
    if (status == ATTN_OK) {
        status = attn_register_projection(module, prefix, "W_value", widths.in_context,
                                          widths.out_context, bias, &qkv->value, error);
    }
    return status;
}
