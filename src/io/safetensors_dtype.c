#include "io/safetensors.h"

#include <string.h>

static const char *const names[ATTN_DTYPE_COUNT] = {
    [ATTN_F32] = "F32", [ATTN_F64] = "F64",   [ATTN_F16] = "F16", [ATTN_BF16] = "BF16",
    [ATTN_I64] = "I64", [ATTN_I32] = "I32",   [ATTN_I16] = "I16", [ATTN_I8] = "I8",
    [ATTN_U8] = "U8",   [ATTN_BOOL] = "BOOL",
};

const char *attn_safetensors_dtype_name(attn_dtype dtype)
{
    return dtype > ATTN_DTYPE_NONE && dtype < ATTN_DTYPE_COUNT ? names[dtype] : NULL;
}

attn_dtype attn_safetensors_dtype(const char *name)
{
    for (int dtype = ATTN_DTYPE_NONE + 1; dtype < ATTN_DTYPE_COUNT; dtype++) {
        if (strcmp(names[dtype], name) == 0) {
            return (attn_dtype)dtype;
        }
    }
    return ATTN_DTYPE_NONE;
}
