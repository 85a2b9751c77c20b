// gemm/block_f64.c: the blocked product in float64.
#include "gemm/block.h"

#include <string.h>

#define REAL double
#define FIELD f64
#define NAME(name) name##_f64
#define KERNELS attn_kernels_f64
#define TILE attn_tile_f64
#include "gemm/block_text.h"
