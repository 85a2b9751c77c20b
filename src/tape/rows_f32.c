// tape/rows_f32.c: the rows of float32.
#define ATTN_REAL_BITS 32
#include "tape/text_rows.h"
