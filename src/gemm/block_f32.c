// gemm/block_f32.c: the blocked product in float32.
#include "gemm/block.h"

#include <string.h>

#define REAL float
#define FIELD f32
#define NAME(name) name##_f32
#define KERNELS attn_kernels_f32
#define TILE attn_tile_f32
#include "gemm/block_text.h"
