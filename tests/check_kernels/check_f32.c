// check_kernels/check_f32.c: the checks of float32.
#define ATTN_REAL_BITS 32
#include <stdio.h>

#include "check_kernels/check_text.h"
