// sdpa/forward_f32.c: the forward pass of float32.
#define ATTN_REAL_BITS 32
#include "sdpa/forward_text.h"

#include "sdpa/segments_text.h"
#include "sdpa/weights_text.h"
