// kernels/portable_convert.c: storage formats in plain C.
#define TIER_CONVERT attn_kernels_convert_portable
#include "kernels/text_convert.h"
