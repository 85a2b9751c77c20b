// tape/rows_f64.c: the rows of float64.
#define ATTN_REAL_BITS 64
#include "tape/text_rows.h"
