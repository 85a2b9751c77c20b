// check_kernels/bench_f32.c: the times of float32.
#define ATTN_REAL_BITS 32
#include "check_kernels/bench_text.h"
