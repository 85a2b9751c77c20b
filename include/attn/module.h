// attn/module.h: the chapter's five attention modules, and Linear, behind one interface.
//
//   SelfAttentionV1           parameters (d_in, d_out), uniform [0,1); x W
//   SelfAttentionV2           the same with Linear layers: (d_out, d_in), kaiming uniform
//   CausalAttention           adds the causal mask, dropout on the attention weights, batches
//   MultiHeadAttentionWrapper independent causal heads, outputs concatenated
//   MultiHeadAttention        one projection split into heads, merged, then out_proj
//
// Two words to keep apart: the modules' *parameters* are what training changes (W_query, ...);
// *attention weights* are what each forward computes from its input.
//
// A module owns its parameters (value, gradient, a version counter) and belongs to one thread at a
// time while it trains. Parameters are created in torch's order from the given generator, so the
// same seed gives the same bits as torch.
#ifndef ATTN_MODULE_H
#define ATTN_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attn/context.h"
#include "attn/export.h"
#include "attn/random.h"
#include "attn/status.h"
#include "attn/tape.h"
#include "attn/tensor.h"

ATTN_BEGIN_DECLS

typedef struct attn_module attn_module;

// ---- create -------------------------------------------------------------------------------------

typedef enum attn_dropout_source {
    ATTN_DROPOUT_FROM_GENERATOR = 0, // torch's element-wise stream: the same masks as torch
    ATTN_DROPOUT_FROM_PHILOX         // by position: no T x T memory
} attn_dropout_source;

typedef enum attn_rotary_style {
    ATTN_ROTARY_NONE = 0,
    ATTN_ROTARY_HALF_SPLIT, // pairs (d, d + head_dim/2): Llama, Qwen in Hugging Face's layout
    ATTN_ROTARY_INTERLEAVED // pairs (2d, 2d + 1): the paper's and Meta's layout
} attn_rotary_style;

// One config for all attention modules. A field that a variant does not have must keep its default
// there; anything else is an error that names it.
typedef struct attn_attention_config {
    size_t struct_size; // set by attn_attention_config_init
    attn_dtype dtype;   // float32 (default) or float64

    int64_t d_in; // size of an input vector
    // V1, V2, causal: size of an output vector; wrapper: of each head's; multi-head: of all heads'.
    int64_t d_out;
    bool qkv_bias; // V2 and later; default false

    // CausalAttention and later.
    int64_t context_length; // longest sequence; > 0 where the module is causal
    double dropout;         // probability in [0, 1), default 0
    attn_dropout_source dropout_source;
    uint64_t dropout_seed, dropout_stream; // Philox only

    // Wrapper and multi-head.
    int64_t num_heads; // default 1

    // MultiHeadAttention only.
    bool causal;          // default true
    bool out_proj;        // default true
    bool out_bias;        // default true
    int64_t num_kv_heads; // default 0 = num_heads
    int64_t head_dim;     // default 0 = d_out / num_heads
    int64_t d_context;    // width of the second input in cross-attention; default 0 = d_in
    attn_rotary_style rotary;
    double rotary_base;     // default 10000
    bool qk_norm;           // RMS norm of each query and key head (Qwen3's q_norm, k_norm)
    double qk_norm_epsilon; // default 1e-6

    uint64_t reserved[8]; // zero
} attn_attention_config;

ATTN_API void attn_attention_config_init(attn_attention_config *config);

// `generator` supplies the initial parameters (NULL: they are zero). It is borrowed for the call
// only; a failed call draws nothing from it. Norm weights are one at first. Errors: INVALID_ARGUMENT
// (the text names the field), OVERFLOW, OUT_OF_MEMORY.
ATTN_API attn_status attn_linear_create(const attn_context *context, int64_t in_features,
                                        int64_t out_features, bool bias, attn_dtype dtype,
                                        attn_generator *generator, attn_module **module,
                                        attn_error *error);
ATTN_API attn_status attn_self_attention_v1_create(const attn_context *context,
                                                   const attn_attention_config *config,
                                                   attn_generator *generator, attn_module **module,
                                                   attn_error *error);
ATTN_API attn_status attn_self_attention_v2_create(const attn_context *context,
                                                   const attn_attention_config *config,
                                                   attn_generator *generator, attn_module **module,
                                                   attn_error *error);
ATTN_API attn_status attn_causal_attention_create(const attn_context *context,
                                                  const attn_attention_config *config,
                                                  attn_generator *generator, attn_module **module,
                                                  attn_error *error);
ATTN_API attn_status attn_multi_head_attention_wrapper_create(const attn_context *context,
                                                              const attn_attention_config *config,
                                                              attn_generator *generator,
                                                              attn_module **module,
                                                              attn_error *error);
ATTN_API attn_status attn_multi_head_attention_create(const attn_context *context,
                                                      const attn_attention_config *config,
                                                      attn_generator *generator,
                                                      attn_module **module, attn_error *error);
ATTN_API void attn_module_destroy(attn_module *module); // takes NULL

// "self_attention_v1", "multi_head_attention", ...; and the config it was made from (NULL for
// Linear).
ATTN_API const char *attn_module_kind(const attn_module *module);
ATTN_API const attn_attention_config *attn_module_config(const attn_module *module);

// The context it was created with.
ATTN_API const attn_context *attn_module_context(const attn_module *module);

// ---- forward ------------------------------------------------------------------------------------

typedef struct attn_trace attn_trace;

typedef struct attn_module_call {
    size_t struct_size; // set by attn_module_call_init
    attn_var input;     // (T, d_in) or (B, T, d_in)
    attn_var context;   // cross-attention: keys and values come from here, (B, Tk, d_context)
    const attn_tensor *key_lengths; // (B) int64: keys at or beyond are masked; NULL = all
    int64_t position;          // absolute position of row 0 (rotary, Philox dropout); default 0
    attn_generator *generator; // dropout masks (ATTN_DROPOUT_FROM_GENERATOR, training)
    attn_trace *trace;    // NULL, or receives every intermediate; never changes the output's bits
    uint64_t reserved[8]; // zero
} attn_module_call;

ATTN_API void attn_module_call_init(attn_module_call *call);

// Runs the module on the input's tape. The result has the input's rank. Errors are the tape's
// (sticky): SHAPE, DTYPE, INVALID_ARGUMENT (T > context_length names both), STATE, OVERFLOW,
// OUT_OF_MEMORY. A failed forward leaves the generator and the number of dropout calls as they were;
// a NULL module, a NULL call or an absent input gives ATTN_NO_VAR.
ATTN_API attn_var attn_module_forward(attn_module *module, const attn_module_call *call);

// The same for the common case: only an input.
ATTN_API attn_var attn_module_apply(attn_module *module, attn_var input);

// Modules start in training mode, as torch's do; both reach every sub-module. Dropout acts only in
// training.
//
// eval also prepares the weights of linear layers, a copy in the order in which products read them,
// when it is called for the first time or after they changed; attn_module_load_state does so in a
// module that is in eval mode. A forward in eval mode changes nothing in the module, so that several
// threads may run it at once, each on its own tape; and it reads the copy as long as the parameter's
// version says that it is current. Without memory for the copy it reads the weight: slower, with the
// same bits.
ATTN_API void attn_module_train(attn_module *module);
ATTN_API void attn_module_eval(attn_module *module);
ATTN_API bool attn_module_training(const attn_module *module);

// Number of forwards that drew Philox dropout; part of a checkpoint.
ATTN_API uint64_t attn_module_dropout_calls(const attn_module *module);
ATTN_API void attn_module_set_dropout_calls(attn_module *module, uint64_t calls);

// ---- parameters and buffers ---------------------------------------------------------------------

typedef struct attn_parameter {
    const char *name;  // "W_query.weight", "heads.0.W_key.weight", "out_proj.bias"; V1: "W_query"
    attn_tensor value; // owned by the module
    attn_tensor grad;  // owned by the module, the same shape; zero until a backward adds to it
    uint64_t version;  // changes when value does, through attn_parameter_touch
} attn_parameter;

// In registration (torch's) order. The tensors of *parameter are views of the module's memory; after
// writing to value call attn_parameter_touch, or a forward may use a copy of the old one. Out of
// range: NULL.
ATTN_API int64_t attn_module_parameter_count(const attn_module *module);
ATTN_API attn_parameter *attn_module_parameter(attn_module *module, int64_t index);
ATTN_API attn_parameter *attn_module_find_parameter(attn_module *module, const char *name);
ATTN_API void attn_parameter_touch(attn_parameter *parameter);

// Total number of values in all parameters.
ATTN_API int64_t attn_module_value_count(const attn_module *module);

ATTN_API void attn_module_zero_grad(attn_module *module);

// Buffers: constants with a name that are saved with the module but not trained ("mask": float32
// (context_length, context_length), 1 above the diagonal). A buffer is materialised into `out` only
// when asked for. Errors: NOT_FOUND, SHAPE, DTYPE, OVERLAP, INVALID_ARGUMENT (read-only).
ATTN_API int64_t attn_module_buffer_count(const attn_module *module);
ATTN_API const char *attn_module_buffer_name(const attn_module *module, int64_t index);
ATTN_API attn_status attn_module_buffer_shape(const attn_module *module, const char *name,
                                              attn_tensor *layout, attn_error *error);
ATTN_API attn_status attn_module_buffer(const attn_module *module, const char *name,
                                        const attn_tensor *out, attn_error *error);

// ---- state dict: parameters by name ----------------------------------------------------------------

typedef struct attn_named_tensor {
    const char *name;
    attn_tensor tensor;
} attn_named_tensor;

// Copies `count` named tensors into the module's parameters (floating dtypes are converted). Strict:
// a missing, unknown, twice given or wrongly shaped name is an error that lists it, and nothing is
// written. Buffers of the module by their right shape are accepted and ignored. With
// ignore_unknown, unknown names are skipped. Errors: NOT_FOUND, SHAPE, DTYPE, INVALID_ARGUMENT, OVERLAP
// (a tensor in the memory of the module's parameters).
ATTN_API attn_status attn_module_load_state(attn_module *module, const attn_named_tensor *tensors,
                                            int64_t count, bool ignore_unknown, attn_error *error);

// Fills `tensors` (capacity attn_module_parameter_count) with views of the parameters.
ATTN_API void attn_module_state(attn_module *module, attn_named_tensor *tensors);

// ---- trace ----------------------------------------------------------------------------------------

// Every intermediate of a forward, in order. It is computed beside the output from the plain
// definition, one step after the other. Entries own copies, with the shape and strides that the step
// had; forwards append, attn_trace_clear starts anew. The names (the wrapper's begin with "heads.0."):
//   queries, keys, values           after the projections, (B, T, width)
//   queries.heads, ...              multi-head: split, (B, H, T, D)
//   queries.normed, keys.normed     with qk_norm
//   queries.rotated, keys.rotated   with rotary positions
//   attn_scores                     queries keys^T, not scaled
//   attn_scores.masked              causal or with key lengths: -inf where masked
//   attn_weights                    softmax(scores / sqrt(D)); 0 in rows that see nothing
//   attn_weights.dropped            when dropout acts
//   context                         weights times values
//   context.merged                  multi-head: (B, T, H * D), what out_proj gets; from the engine
ATTN_API attn_status attn_trace_create(const attn_context *context, attn_trace **trace,
                                       attn_error *error);
ATTN_API void attn_trace_destroy(attn_trace *trace); // takes NULL
ATTN_API void attn_trace_clear(attn_trace *trace);
ATTN_API int64_t attn_trace_count(const attn_trace *trace);
ATTN_API const attn_named_tensor *attn_trace_entry(const attn_trace *trace, int64_t index);
ATTN_API const attn_named_tensor *attn_trace_find(const attn_trace *trace, const char *name);

ATTN_END_DECLS

#endif
