// gemm/packed_weight.h: what a prepared weight holds.
#ifndef ATTN_GEMM_PACKED_WEIGHT_H
#define ATTN_GEMM_PACKED_WEIGHT_H

#include <stddef.h>
#include <stdint.h>

#include "attn/context.h"
#include "attn/tensor.h"

struct attn_packed_weight {
    const attn_context *context;
    attn_dtype dtype;
    int64_t in, out;
    void *panels; // see gemm/block.h
    size_t bytes;
};

#endif
