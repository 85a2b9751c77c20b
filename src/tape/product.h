// tape/product.h: the one matrix product behind matmul, linear and their gradients.
#ifndef ATTN_TAPE_PRODUCT_H
#define ATTN_TAPE_PRODUCT_H

#include <stdbool.h>

#include "attn/tensor.h"
#include "gemm/gemm.h"
#include "tape/tape.h"

// out = a b, plus `bias` (N) in every row unless it is NULL, for a (..., M, K), b (..., K, N) and
// out (..., M, N) of one dtype with the same leading dims (broadcast ones with stride 0). Every
// element is one chain of fused multiply-adds over K ascending, from the bias or 0: its bits depend
// on its row and column only. `packed` is b once more as the gemm layer likes it best, or NULL. Scratch
// comes from the arena. False after failing the tape.
bool attn_tape_product(attn_tape *tape, const char *op, const attn_tensor *a, const attn_tensor *b,
                       const struct attn_packed_weight *packed, const attn_tensor *bias,
                       const attn_tensor *out);

#endif
