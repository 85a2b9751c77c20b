// kernels/portable_f32.c: the float32 kernels in plain C.
#define ATTN_REAL_BITS 32
#define TIER_TABLE attn_kernels_f32_portable
#include "kernels/vec_portable.h"

#include "kernels/text_table.h"
