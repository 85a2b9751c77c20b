// kernels/avx512_f64.c: the float64 kernels on AVX-512.
#define ATTN_REAL_BITS 64
#define TIER_TABLE attn_kernels_f64_avx512
#include "kernels/vec_avx512.h"

#include "kernels/text_table.h"
