// attention.h: the chapter's five modules, each one step beyond the one before.
//
// The constructors take what the chapter's classes take. They fill the library's configuration and
// create the module (attn/module.h) with parameters from the program's random stream, so that the
// same seed gives torch's numbers. A failure ends the program: here, no input can cause one.
#ifndef CHAPTER03_ATTENTION_H
#define CHAPTER03_ATTENTION_H

#include <stdbool.h>
#include <stdint.h>

#include <attn/module.h>

struct demo;

// 1. SelfAttentionV1 adds parameters to the plain dot-product attention of section 3.3. Three
// matrices (d_in, d_out) turn every token into a query, a key and a value, so that training can
// decide what counts as similar and what is handed on. The scores are divided by sqrt(d_out), which
// keeps the softmax away from the flat ends where gradients vanish.
attn_module *self_attention_v1(struct demo *d, int64_t d_in, int64_t d_out);

// 2. SelfAttentionV2 adds Linear layers in place of the bare matrices: the same formula, with the
// weight stored as (d_out, d_in), an optional bias, and a start (kaiming uniform) that is centred on
// zero and shrinks with the input size, where V1 starts from numbers between 0 and 1.
attn_module *self_attention_v2(struct demo *d, int64_t d_in, int64_t d_out, bool qkv_bias);

// 3. CausalAttention adds the rule of a language model: position i reads positions up to i and no
// later one. The scores of later positions become -inf before the softmax, so their weights are
// exactly 0. With it come dropout on the attention weights (in training only) and batches.
attn_module *causal_attention(struct demo *d, int64_t d_in, int64_t d_out, int64_t context_length,
                              double dropout, bool qkv_bias);

// 4. MultiHeadAttentionWrapper adds heads: num_heads causal attentions side by side, each with its
// own projections and so its own idea of what is relevant. Their outputs, d_out numbers each, are
// joined: the result has num_heads * d_out numbers.
attn_module *multi_head_attention_wrapper(struct demo *d, int64_t d_in, int64_t d_out,
                                          int64_t context_length, double dropout, int64_t num_heads,
                                          bool qkv_bias);

// 5. MultiHeadAttention adds the arrangement that GPT-2 uses: one projection of width d_out for all
// heads, split into num_heads heads of head_dim = d_out / num_heads, all of them multiplied in one
// batched product, merged back to d_out numbers, and mixed by out_proj, without which the heads
// would never meet. The divisor is sqrt(head_dim).
attn_module *multi_head_attention(struct demo *d, int64_t d_in, int64_t d_out,
                                  int64_t context_length, double dropout, int64_t num_heads,
                                  bool qkv_bias);

// The same from the library's configuration, for what the chapter's class does not take (no
// out_proj, no mask).
attn_module *multi_head_attention_of(struct demo *d, const attn_attention_config *config);

#endif
