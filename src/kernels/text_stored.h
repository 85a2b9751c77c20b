// kernels/text_stored.h: vectors of operands that may lie in memory in 16 bits each.
#ifndef ATTN_KERNELS_TEXT_STORED_H
#define ATTN_KERNELS_TEXT_STORED_H

#include <string.h>

#include "kernels/kernels.h"

INLINE int64_t stored_size(const attn_storage storage)
{
    return storage == ATTN_STORED_REAL ? (int64_t)sizeof(real) : (int64_t)sizeof(uint16_t);
}

INLINE vreal stored_load(const void *data, const attn_storage storage)
{
#if ATTN_REAL_BITS == 32
    if (storage == ATTN_STORED_F16) {
        return v_load_f16(data);
    }
    if (storage == ATTN_STORED_BF16) {
        return v_load_bf16(data);
    }
#endif
    (void)storage;
    return v_load(data);
}

// The first `part` elements, and zeros.
INLINE vreal stored_load_part(const void *data, int64_t part, const attn_storage storage)
{
#if ATTN_REAL_BITS == 32
    if (storage != ATTN_STORED_REAL) {
        uint16_t lanes[V_LANES] = {0};
        memcpy(lanes, data, (size_t)part * sizeof *lanes);
        return storage == ATTN_STORED_F16 ? v_load_f16(lanes) : v_load_bf16(lanes);
    }
#endif
    (void)storage;
    return v_load_part(data, part);
}

#endif
