#define ATTN_REAL_BITS 32
#include "gradient_kernels_text.h"
