// attn/layout.h: the parameters of an attention layer under the names that others give them.
//
//   layout  names (after a prefix such as "transformer.h.0.attn.")           as they lie
//   attn    W_query.weight, W_key.weight, W_value.weight, out_proj.weight,   (out, in)
//           .bias; heads.0.W_query.weight ...; V1: W_query                    V1: (in, out)
//   gpt2    c_attn.weight, c_proj.weight, .bias (Hugging Face)               (in, out); c_attn holds
//                                                                            query, key, value
//   torch   in_proj_weight, in_proj_bias, out_proj.weight, out_proj.bias;    (out, in); in_proj holds
//           or q_proj_weight, k_proj_weight, v_proj_weight                   query, key, value
//   llama   q_proj.weight, k_proj.weight, v_proj.weight, o_proj.weight,      (out, in)
//           .bias; q_norm.weight, k_norm.weight (Llama, Qwen)
//
// attn is this library's and the book's. Buffers (attn's mask; gpt2's bias and masked_bias, which are
// masks; llama's rotary_emb.inv_freq) are skipped. torch's bias_k and bias_v are refused: no module
// here has them. llama's heads read rotary positions, so it fits only a module that is configured for
// them, and gpt2 and torch only one that is not. A bias that the module does not have may be absent
// or all zero; other parameters that it does not have are refused, not passed over. A fused projection and separate ones convert into each other through a module.
#ifndef ATTN_LAYOUT_H
#define ATTN_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/context.h"
#include "attn/export.h"
#include "attn/module.h"
#include "attn/status.h"
#include "attn/tensor.h"

ATTN_BEGIN_DECLS

typedef enum attn_layout {
    ATTN_LAYOUT_ANY = 0, // whichever is recognised; only where layers are looked for
    ATTN_LAYOUT_ATTN,
    ATTN_LAYOUT_GPT2,
    ATTN_LAYOUT_TORCH,
    ATTN_LAYOUT_LLAMA,
    ATTN_LAYOUT_COUNT
} attn_layout;

// "any", "attn", "gpt2", "torch", "llama"; "unknown" outside the enum. And back: false for no name.
ATTN_API const char *attn_layout_name(attn_layout layout);
ATTN_API bool attn_layout_from_name(const char *name, attn_layout *layout);

// ---- the layers of a file -----------------------------------------------------------------------

enum { ATTN_LAYER_PREFIX_SIZE = 256 };

// An attention layer: where its tensors are and what their shapes say.
typedef struct attn_layer {
    attn_layout layout;
    char prefix[ATTN_LAYER_PREFIX_SIZE]; // before the layout's own names: "h.0.attn.", or ""
    int64_t number;   // the last whole number in the prefix, which counts the layers; -1: none
    const char *kind; // the module that it fits, as attn_module_kind: "multi_head_attention", ...
    // d_in, d_out, d_context, the biases, out_proj, qk_norm, causal; for llama half-split rotary
    // positions. Where the names or norms tell, num_heads, num_kv_heads and head_dim as well;
    // otherwise num_heads is 1: see attn_layer_set_heads. context_length is a mask's size, or 0.
    attn_attention_config config;
    int64_t query_width; // num_heads * head_dim
    int64_t key_width;   // num_kv_heads * head_dim
    bool knows_heads;    // config has the number of heads
    int64_t values;      // numbers in its parameters
} attn_layer;

// Finds the layers among tensors, in the order in which they first appear. Writes the first
// `capacity` of them and the number of all to *found. Tensors that form no complete layer are passed
// over. `layers` may be NULL when capacity is 0. Errors: INVALID_ARGUMENT.
ATTN_API attn_status attn_layers_find(const attn_named_tensor *tensors, int64_t count,
                                      attn_layout layout, attn_layer *layers, int64_t capacity,
                                      int64_t *found, attn_error *error);

// Finds the one layer of this prefix (NULL: any) and number (-1: any). Errors: NOT_FOUND (none, or
// more than one; the text lists the layers that exist), INVALID_ARGUMENT.
ATTN_API attn_status attn_layer_find(const attn_named_tensor *tensors, int64_t count,
                                     attn_layout layout, const char *prefix, int64_t number,
                                     attn_layer *layer, attn_error *error);

// A layer named by the caller instead of recognised: only layout and prefix are set, which is all
// that attn_layer_load reads. Errors: INVALID_ARGUMENT (ANY, or a prefix that is too long).
ATTN_API attn_status attn_layer_init(attn_layer *layer, attn_layout layout, const char *prefix,
                                     attn_error *error);

// Completes layer->config: num_heads as given; head_dim and num_kv_heads follow from the widths.
// Errors: INVALID_ARGUMENT (the widths do not divide, or the file says otherwise).
ATTN_API attn_status attn_layer_set_heads(attn_layer *layer, int64_t num_heads, attn_error *error);

// Creates the module that the layer fits from layer->config (which the caller may have changed),
// with parameters that are zero. Errors: as the module's own create function.
ATTN_API attn_status attn_layer_create_module(const attn_context *context, const attn_layer *layer,
                                              attn_module **module, attn_error *error);

// ---- into a module and back ---------------------------------------------------------------------

// Copies a layer's parameters into a module; all or nothing. A fault is named by the file's own
// name, as in
//   h.0.attn.c_attn.weight: expected [768, 2304], got [2304, 768] (is it transposed?)
// a missing tensor with the nearest names and the layers that exist. Errors: NOT_FOUND, SHAPE, DTYPE,
// INVALID_ARGUMENT, NOT_SUPPORTED (what the module does not compute), OUT_OF_MEMORY.
ATTN_API attn_status attn_layer_load(attn_module *module, const attn_layer *layer,
                                     const attn_named_tensor *tensors, int64_t count,
                                     attn_error *error);

// Named tensors that own their names and data.
typedef struct attn_tensor_list attn_tensor_list;

ATTN_API int64_t attn_tensor_list_count(const attn_tensor_list *list);
ATTN_API const attn_named_tensor *attn_tensor_list_entries(const attn_tensor_list *list);
ATTN_API void attn_tensor_list_destroy(attn_tensor_list *list); // takes NULL

// The module's parameters as a layer of this layout: what attn_safetensors_save takes. gpt2 and torch
// have all biases or (torch) none: those that the module lacks are written as zeros where it has
// another. With `buffers` attn gets its masks. Errors: INVALID_ARGUMENT, NOT_SUPPORTED (what the
// layout cannot say: no out_proj, fewer key heads, rotary positions, norms), OUT_OF_MEMORY.
ATTN_API attn_status attn_layer_save(const attn_context *context, attn_module *module,
                                     attn_layout layout, const char *prefix, bool buffers,
                                     attn_tensor_list **list, attn_error *error);

ATTN_END_DECLS

#endif
