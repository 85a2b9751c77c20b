// kernels/lowered_f32.c: the float32 kernels on pairs of AVX2 vectors.
#define ATTN_REAL_BITS 32
#define TIER_TABLE attn_kernels_f32_lowered
#include "kernels/vec_lowered.h"

#include "kernels/text_table.h"
