// sdpa/strip_f64.c: strips of float64.
#define ATTN_REAL_BITS 64
#include "sdpa/strip_text.h"
