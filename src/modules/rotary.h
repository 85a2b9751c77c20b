// modules/rotary.h: rotary position embedding.
#ifndef ATTN_MODULES_ROTARY_H
#define ATTN_MODULES_ROTARY_H

#include "attn/module.h"

// x (..., T, D), D even. Row t stands at position p = position + t; its pair i of elements is rotated
// by the angle p * base^(-2 i / D):
//   a' = a cos - b sin,  b' = b cos + a sin
// where (a, b) are elements (i, i + D/2) or (2i, 2i + 1), as `style` says. Su et al. 2021.
attn_var attn_rotary(attn_var x, attn_rotary_style style, double base, int64_t position);

#endif
