// kernels/avx512_f32.c: the float32 kernels on AVX-512.
#define ATTN_REAL_BITS 32
#define TIER_TABLE attn_kernels_f32_avx512
#include "kernels/vec_avx512.h"

#include "kernels/text_table.h"
