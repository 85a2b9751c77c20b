#include "modules/attention.h"

#include "modules/dropout.h"
#include "modules/trace.h"
#include "tape/tape.h"

attn_var attn_attend(const attn_module *module, const attn_module_call *call, int64_t first_head,
                     attn_var query, attn_var key, attn_var value, attn_sdpa_desc *desc)
{
    // query: (B, Hq, Tq, D)  key, value: (B, Hkv, Tk, D)
    attn_sdpa_desc_init(desc);
    if (!attn_tape_healthy(query.tape)) {
        return attn_tape_failed(query.tape);
    }
    const attn_tensor q = attn_value(query);
    const attn_tensor k = attn_value(key);
    const attn_weights_shape weights = {q.shape[0], q.shape[1], q.shape[2], k.shape[2]};

    // The scale is 1 / sqrt(D), the descriptor's default.
    desc->causal = attn_module_is_causal(module);
    desc->key_lengths = call->key_lengths;
    if (!attn_describe_dropout(module, call, first_head, weights, desc)) {
        return attn_tape_failed(query.tape);
    }
    return attn_scaled_dot_product_attention(query, key, value, ATTN_NO_VAR, ATTN_NO_VAR, desc,
                                             NULL);
}

// (T, D) -> (1, 1, T, D); (B, T, D) -> (B, 1, T, D)
static attn_var with_head(attn_var x)
{
    const attn_tensor value = attn_value(x);
    if (value.ndim < 2) { // the tape has failed
        return x;
    }
    const int64_t *tail = value.shape + value.ndim - 2;
    const int64_t batch = value.ndim == 3 ? value.shape[0] : 1;
    return attn_view(x, 4, (int64_t[]){batch, 1, tail[0], tail[1]});
}

attn_var attn_attend_single_head(const attn_module *module, const attn_module_call *call,
                                 const char *prefix, int64_t head, attn_qkv_vars projected)
{
    // queries, keys, values: (T, D) or (B, T, D)
    const attn_var queries = projected.queries, keys = projected.keys, values = projected.values;
    attn_sdpa_desc desc;
    const attn_var context = attn_attend(module, call, head, with_head(queries), with_head(keys),
                                         with_head(values), &desc);
    attn_trace_record(call->trace, prefix, "queries", queries);
    attn_trace_record(call->trace, prefix, "keys", keys);
    attn_trace_record(call->trace, prefix, "values", values);
    attn_trace_attention(call->trace, prefix, &desc, queries, keys, values);

    const attn_tensor shape = attn_value(queries);
    return attn_view(context, shape.ndim, shape.shape);
}

attn_qkv_widths attn_single_head_widths(const attn_attention_config *config)
{
    return (attn_qkv_widths){.in = config->d_in,
                             .in_context = config->d_in,
                             .out = config->d_out,
                             .out_context = config->d_out};
}
