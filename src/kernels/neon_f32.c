// kernels/neon_f32.c: the float32 kernels on AArch64.
#define ATTN_REAL_BITS 32
#define TIER_TABLE attn_kernels_f32_neon
#include "kernels/vec_neon.h"

#include "kernels/text_table.h"
