// sdpa/strip_f32.c: strips of float32.
#define ATTN_REAL_BITS 32
#include "sdpa/strip_text.h"
