// kernels/neon_f64.c: the float64 kernels on AArch64.
#define ATTN_REAL_BITS 64
#define TIER_TABLE attn_kernels_f64_neon
#include "kernels/vec_neon.h"

#include "kernels/text_table.h"
