// check_kernels/bench_f64.c: the times of float64.
#define ATTN_REAL_BITS 64
#include "check_kernels/bench_text.h"
