// check_kernels/check_f64.c: the checks of float64.
#define ATTN_REAL_BITS 64
#include <stdio.h>

#include "check_kernels/check_text.h"
