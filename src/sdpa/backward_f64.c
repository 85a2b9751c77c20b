// sdpa/backward_f64.c: the backward pass of float64.
#define ATTN_REAL_BITS 64
#include "sdpa/backward_text.h"

#include "sdpa/backward_bias_text.h"
