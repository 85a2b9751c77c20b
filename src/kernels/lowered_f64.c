// kernels/lowered_f64.c: the float64 kernels on pairs of AVX2 vectors.
#define ATTN_REAL_BITS 64
#define TIER_TABLE attn_kernels_f64_lowered
#include "kernels/vec_lowered.h"

#include "kernels/text_table.h"
