// MultiHeadAttention: one projection split into heads, attention in all of them at once, the heads
// merged and mixed by out_proj.
#include "modules/attention.h"
#include "modules/module.h"
#include "modules/projection.h"
#include "modules/rms_norm.h"
#include "modules/rotary.h"
#include "modules/trace.h"
#include "tape/tape.h"

struct multi_head_attention {
    attn_module module;
    attn_qkv qkv;
    attn_projection out_proj;              // weight NULL: none
    attn_parameter *query_norm, *key_norm; // (head_dim); NULL: none
};

static attn_var forward(attn_module *module, const attn_module_call *call);
static attn_status register_parameters(struct multi_head_attention *self, attn_error *error);

static const attn_module_class multi_head_attention_class = {
    .kind = "multi_head_attention",
    .size = sizeof(struct multi_head_attention),
    .fields = ATTN_FIELD_CONFIG | ATTN_FIELD_QKV_BIAS | ATTN_FIELD_CAUSAL | ATTN_FIELD_NUM_HEADS |
              ATTN_FIELD_MULTI_HEAD,
    .forward = forward,
};

attn_status attn_multi_head_attention_create(const attn_context *context,
                                             const attn_attention_config *config,
                                             attn_generator *generator, attn_module **module,
                                             attn_error *error)
{
    attn_status status = attn_attention_config_check(config, &multi_head_attention_class, error);
    attn_module *base;
    if (status == ATTN_OK) {
        status =
            attn_module_allocate(context, &multi_head_attention_class, config, 10, 1, &base, error);
    }
    if (status != ATTN_OK) {
        return status;
    }

    status = register_parameters((struct multi_head_attention *)base, error);
    return attn_module_finish(base, status, generator, module, error);
}

static attn_status register_parameters(struct multi_head_attention *self, attn_error *error)
{
    attn_module *module = &self->module;
    const attn_attention_config *config = &module->config;
    const int64_t head_dim = attn_config_head_dim(config);
    const attn_qkv_widths widths = {.in = config->d_in,
                                    .in_context = attn_config_context_width(config),
                                    .out = config->num_heads * head_dim,
                                    .out_context = attn_config_kv_heads(config) * head_dim};
    attn_status status = attn_register_qkv(module, "", widths, &self->qkv, error);
    if (status == ATTN_OK && config->out_proj) {
        status = attn_register_projection(module, "", "out_proj", widths.out, config->d_out,
                                          config->out_bias, &self->out_proj, error);
    }
    if (status == ATTN_OK && config->qk_norm) {
        status = attn_register_parameter(module, "", "q_norm", ".weight", 1, &head_dim,
                                         ATTN_INITIAL_ONE, 0, &self->query_norm, error);
    }
    if (status == ATTN_OK && config->qk_norm) {
        status = attn_register_parameter(module, "", "k_norm", ".weight", 1, &head_dim,
                                         ATTN_INITIAL_ONE, 0, &self->key_norm, error);
    }
    if (status == ATTN_OK && config->causal) {
        status = attn_register_buffer(module, "", "mask", error);
    }
    return status;
}

static attn_var with_batch(attn_var x);
static attn_var without_batch(attn_var x);
static attn_var split_heads(attn_var x, int64_t heads);
static attn_var merge_heads(attn_var context);

// x: (T, d_in) or (B, T, d_in) -> (T, d_out) or (B, T, d_out)
static attn_var forward(attn_module *module, const attn_module_call *call)
{
    const struct multi_head_attention *self = (const struct multi_head_attention *)module;
    const attn_attention_config *config = &module->config;
    attn_trace *trace = call->trace;
    attn_tape *tape = call->input.tape;
    const attn_var x = with_batch(call->input);
    const attn_var source = call->context.tape ? with_batch(call->context) : x;

    // 1. query, key and value projections: (B, T, H * D)
    const attn_qkv_vars projected = attn_project_qkv(&self->qkv, x, source);
    attn_trace_record(trace, "", "queries", projected.queries);
    attn_trace_record(trace, "", "keys", projected.keys);
    attn_trace_record(trace, "", "values", projected.values);

    // 2. split into heads: (B, H, T, D)
    attn_var queries = split_heads(projected.queries, config->num_heads);
    attn_var keys = split_heads(projected.keys, attn_config_kv_heads(config));
    const attn_var values = split_heads(projected.values, attn_config_kv_heads(config));
    attn_trace_record(trace, "", "queries.heads", queries);
    attn_trace_record(trace, "", "keys.heads", keys);
    attn_trace_record(trace, "", "values.heads", values);

    // 3. norms and rotary positions, where configured
    if (config->qk_norm) {
        queries = attn_rms_norm(queries, attn_parameter_var(tape, self->query_norm),
                                config->qk_norm_epsilon);
        keys =
            attn_rms_norm(keys, attn_parameter_var(tape, self->key_norm), config->qk_norm_epsilon);
        attn_trace_record(trace, "", "queries.normed", queries);
        attn_trace_record(trace, "", "keys.normed", keys);
    }
    if (config->rotary != ATTN_ROTARY_NONE) {
        queries = attn_rotary(queries, config->rotary, config->rotary_base, call->position);
        keys = attn_rotary(keys, config->rotary, config->rotary_base, call->position);
        attn_trace_record(trace, "", "queries.rotated", queries);
        attn_trace_record(trace, "", "keys.rotated", keys);
    }

    // 4. attention in every head
    attn_sdpa_desc desc;
    attn_var context = attn_attend(module, call, 0, queries, keys, values, &desc);
    attn_trace_attention(trace, "", &desc, queries, keys, values);

    // 5. merge heads: (B, T, H * D)
    context = merge_heads(context);
    attn_trace_record(trace, "", "context.merged", context);

    // 6. out_proj: (B, T, d_out)
    if (config->out_proj) {
        context = attn_project(&self->out_proj, context);
    }

    return attn_value(call->input).ndim == 2 ? without_batch(context) : context;
}

// (T, C) -> (1, T, C)
static attn_var with_batch(attn_var x)
{
    const attn_tensor value = attn_value(x);
    return value.ndim == 2 ? attn_view(x, 3, (int64_t[]){1, value.shape[0], value.shape[1]}) : x;
}

// (1, T, C) -> (T, C)
static attn_var without_batch(attn_var x)
{
    const attn_tensor value = attn_value(x);
    return attn_view(x, 2, (int64_t[]){value.shape[1], value.shape[2]});
}

// (B, T, H * D) -> (B, T, H, D) -> (B, H, T, D)
static attn_var split_heads(attn_var x, int64_t heads)
{
    const attn_tensor value = attn_value(x);
    if (value.ndim != 3) { // the tape has failed
        return x;
    }
    const int64_t split[] = {value.shape[0], value.shape[1], heads, value.shape[2] / heads};
    return attn_transpose(attn_view(x, 4, split), 1, 2);
}

// (B, H, T, D) -> (B, T, H, D) -> (B, T, H * D)
static attn_var merge_heads(attn_var context)
{
    const attn_tensor value = attn_value(context);
    const int64_t merged[] = {value.shape[0], value.shape[2], value.shape[1] * value.shape[3]};
    return attn_view(attn_contiguous(attn_transpose(context, 1, 2)), 3, merged);
}
