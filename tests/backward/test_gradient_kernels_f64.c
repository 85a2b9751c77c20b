#define ATTN_REAL_BITS 64
#include "gradient_kernels_text.h"
