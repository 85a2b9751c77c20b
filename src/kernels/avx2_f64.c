// kernels/avx2_f64.c: the float64 kernels on AVX2 with FMA.
#define ATTN_REAL_BITS 64
#define TIER_TABLE attn_kernels_f64_avx2
#include "kernels/vec_avx2.h"

#include "kernels/text_table.h"
