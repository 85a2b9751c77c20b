// sdpa/backward_f32.c: the backward pass of float32.
#define ATTN_REAL_BITS 32
#include "sdpa/backward_text.h"

#include "sdpa/backward_bias_text.h"
