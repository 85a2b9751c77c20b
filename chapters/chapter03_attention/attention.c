// attention.c: the chapter's constructors on the library's configuration.
#include "attention.h"

#include "demo.h"

typedef attn_status (*create_function)(const attn_context *, const attn_attention_config *,
                                       attn_generator *, attn_module **, attn_error *);

static attn_module *create(demo *d, create_function function, const attn_attention_config *config)
{
    attn_error error = {0};
    attn_module *module = NULL;
    must(function(d->context, config, d->generator, &module, &error), &error);
    return module;
}

static attn_attention_config sizes(int64_t d_in, int64_t d_out, bool qkv_bias)
{
    attn_attention_config config;
    attn_attention_config_init(&config);
    config.d_in = d_in;
    config.d_out = d_out;
    config.qkv_bias = qkv_bias;
    return config;
}

attn_module *self_attention_v1(demo *d, int64_t d_in, int64_t d_out)
{
    const attn_attention_config config = sizes(d_in, d_out, false);
    return create(d, attn_self_attention_v1_create, &config);
}

attn_module *self_attention_v2(demo *d, int64_t d_in, int64_t d_out, bool qkv_bias)
{
    const attn_attention_config config = sizes(d_in, d_out, qkv_bias);
    return create(d, attn_self_attention_v2_create, &config);
}

attn_module *causal_attention(demo *d, int64_t d_in, int64_t d_out, int64_t context_length,
                              double dropout, bool qkv_bias)
{
    attn_attention_config config = sizes(d_in, d_out, qkv_bias);
    config.context_length = context_length;
    config.dropout = dropout;
    return create(d, attn_causal_attention_create, &config);
}

attn_module *multi_head_attention_wrapper(demo *d, int64_t d_in, int64_t d_out,
                                          int64_t context_length, double dropout, int64_t num_heads,
                                          bool qkv_bias)
{
    attn_attention_config config = sizes(d_in, d_out, qkv_bias);
    config.context_length = context_length;
    config.dropout = dropout;
    config.num_heads = num_heads;
    return create(d, attn_multi_head_attention_wrapper_create, &config);
}

attn_module *multi_head_attention(demo *d, int64_t d_in, int64_t d_out, int64_t context_length,
                                  double dropout, int64_t num_heads, bool qkv_bias)
{
    attn_attention_config config = sizes(d_in, d_out, qkv_bias);
    config.context_length = context_length;
    config.dropout = dropout;
    config.num_heads = num_heads;
    return multi_head_attention_of(d, &config);
}

attn_module *multi_head_attention_of(demo *d, const attn_attention_config *config)
{
    return create(d, attn_multi_head_attention_create, config);
}
