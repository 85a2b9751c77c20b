// sdpa/forward_f64.c: the forward pass of float64.
#define ATTN_REAL_BITS 64
#include "sdpa/forward_text.h"

#include "sdpa/segments_text.h"
#include "sdpa/weights_text.h"
