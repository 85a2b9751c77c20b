// tape/product.h: the one matrix product behind matmul, linear and their gradients.
#ifndef ATTN_TAPE_PRODUCT_H
#define ATTN_TAPE_PRODUCT_H

#include "attn/context.h"
#include "attn/tensor.h"

// out = a b for a (..., M, K), b (..., K, N) and out (..., M, N) of one dtype, float32 or float64,
// with the same leading dims (broadcast ones with stride 0) and any strides. Every element is one
// chain of fused multiply-adds over K ascending from +0, in the tensors' own precision: its bits
// depend on its row and its column only, not on layout, batch or threads.
void attn_tape_product(const attn_context *context, const attn_tensor *a, const attn_tensor *b,
                       const attn_tensor *out);

#endif
