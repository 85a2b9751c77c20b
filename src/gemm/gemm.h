// gemm/gemm.h: matrix products and linear layers on the kernels' tile.
//
// Every element of a product is one chain of fused multiply-adds over k ascending, from its start
// value (0, a bias, or what c holds): blocking, packing, threads and tiers never change its bits.
// Operands are views with any strides, so that a transposed matrix, or heads that lie interleaved in
// (B, T, H, D), are read and written where they are.
#ifndef ATTN_GEMM_GEMM_H
#define ATTN_GEMM_GEMM_H

#include <stdbool.h>
#include <stddef.h>

#include "attn/context.h"
#include "attn/status.h"
#include "attn/tensor.h"

struct attn_packed_weight;

// c = start + a b. All three have the same leading dims (an operand that is shared by them has
// stride 0 there), one dtype, float32 or float64, and c overlaps neither itself nor the others.
struct attn_product {
    const attn_tensor *a;    // (..., M, K)
    const attn_tensor *b;    // (..., K, N)
    const attn_tensor *c;    // (..., M, N)
    const attn_tensor *bias; // (N): every row starts from it; NULL: from 0
    bool accumulate;         // every element starts from what c holds; bias is NULL then
    const struct attn_packed_weight *packed; // b in packed form, made for this context; or NULL
};

// The scratch bytes that attn_product_run wants. 0 is common for small products.
size_t attn_product_workspace(const attn_context *context, const struct attn_product *product);

// Computes c. `workspace` is aligned to 64 bytes and has the size asked for; NULL: it comes from the
// context's allocator. Errors: INVALID_ARGUMENT, SHAPE, DTYPE, OUT_OF_MEMORY.
attn_status attn_product_run(const attn_context *context, const struct attn_product *product,
                             void *workspace, attn_error *error);

// ---- prepared weights -----------------------------------------------------------------------------

// A linear layer's weight in the order in which the tile reads it, so that small batches need not
// rearrange it each time. It is a copy: pack again when the weight has changed.
struct attn_packed_weight;

// weight: (out, in), float32 or float64, any strides; the product's b is its transpose (in, out).
// Errors: SHAPE, DTYPE, OVERFLOW, OUT_OF_MEMORY.
attn_status attn_packed_weight_create(const attn_context *context, const attn_tensor *weight,
                                      struct attn_packed_weight **packed, attn_error *error);
void attn_packed_weight_destroy(struct attn_packed_weight *packed); // takes NULL

// Packs another weight of the same shape and dtype into the same memory.
attn_status attn_packed_weight_refresh(struct attn_packed_weight *packed, const attn_tensor *weight,
                                       attn_error *error);

#endif
