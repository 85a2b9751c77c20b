// kernels/avx2_f32.c: the float32 kernels on AVX2 with FMA.
#define ATTN_REAL_BITS 32
#define TIER_TABLE attn_kernels_f32_avx2
#include "kernels/vec_avx2.h"

#include "kernels/text_table.h"
