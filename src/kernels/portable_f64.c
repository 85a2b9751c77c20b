// kernels/portable_f64.c: the float64 kernels in plain C.
#define ATTN_REAL_BITS 64
#define TIER_TABLE attn_kernels_f64_portable
#include "kernels/vec_portable.h"

#include "kernels/text_table.h"
