// From a layer's description to a module that fits it.
#include <inttypes.h>
#include <string.h>

#include "attn/layout.h"
#include "core/error.h"

attn_status attn_layer_init(attn_layer *layer, attn_layout layout, const char *prefix,
                            attn_error *error)
{
    if (layer == NULL || prefix == NULL) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "layers: layer or prefix is NULL");
    }
    if (layout <= ATTN_LAYOUT_ANY || layout >= ATTN_LAYOUT_COUNT) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "layers: a layer needs one of the layouts attn, gpt2, torch, llama");
    }
    if (strlen(prefix) >= ATTN_LAYER_PREFIX_SIZE) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "layers: a prefix of %zu bytes; at most %d fit", strlen(prefix),
                         ATTN_LAYER_PREFIX_SIZE - 1);
    }
    *layer = (attn_layer){.layout = layout, .number = -1, .kind = "multi_head_attention"};
    memcpy(layer->prefix, prefix, strlen(prefix) + 1);
    attn_attention_config_init(&layer->config);
    return ATTN_OK;
}

attn_status attn_layer_set_heads(attn_layer *layer, int64_t num_heads, attn_error *error)
{
    const int64_t query_width = layer->query_width;
    const int64_t key_width = layer->key_width;
    if (num_heads <= 0) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "layers: num_heads (%" PRId64 ") must be positive", num_heads);
    }
    if (layer->knows_heads && num_heads != layer->config.num_heads) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "layers: the file holds %" PRId64 " heads, not %" PRId64,
                         layer->config.num_heads, num_heads);
    }
    if (strcmp(layer->kind == NULL ? "" : layer->kind, "multi_head_attention") != 0 &&
        layer->knows_heads) {
        return ATTN_OK;
    }
    if (query_width % num_heads != 0) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "layers: the query projection's %" PRId64
                         " rows do not divide into %" PRId64 " heads",
                         query_width, num_heads);
    }
    const int64_t head_dim = query_width / num_heads;
    const int64_t num_kv_heads = head_dim == 0 ? 0 : key_width / head_dim;
    if (num_kv_heads == 0 || num_kv_heads * head_dim != key_width ||
        num_heads % num_kv_heads != 0) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "layers: with %" PRId64 " query heads of %" PRId64
                         ", the key projection's %" PRId64
                         " rows are no number of heads that divides them",
                         num_heads, head_dim, key_width);
    }
    layer->config.num_heads = num_heads;
    layer->config.num_kv_heads = num_kv_heads == num_heads ? 0 : num_kv_heads;
    layer->config.head_dim = head_dim * num_heads == layer->config.d_out ? 0 : head_dim;
    layer->knows_heads = true;
    return ATTN_OK;
}

attn_status attn_layer_create_module(const attn_context *context, const attn_layer *layer,
                                     attn_module **module, attn_error *error)
{
    static const struct {
        const char *kind;
        attn_status (*create)(const attn_context *context, const attn_attention_config *config,
                              attn_generator *generator, attn_module **module, attn_error *error);
    } kinds[] = {
        {"self_attention_v1", attn_self_attention_v1_create},
        {"self_attention_v2", attn_self_attention_v2_create},
        {"causal_attention", attn_causal_attention_create},
        {"multi_head_attention_wrapper", attn_multi_head_attention_wrapper_create},
        {"multi_head_attention", attn_multi_head_attention_create},
    };
    for (size_t i = 0; layer != NULL && layer->kind != NULL && i < sizeof(kinds) / sizeof(*kinds);
         i++) {
        if (strcmp(layer->kind, kinds[i].kind) == 0) {
            return kinds[i].create(context, &layer->config, NULL, module, error);
        }
    }
    return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "layers: no module is named %s",
                     layer == NULL || layer->kind == NULL ? "NULL" : layer->kind);
}
