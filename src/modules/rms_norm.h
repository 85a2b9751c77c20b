// modules/rms_norm.h: root-mean-square norm over the last dim.
#ifndef ATTN_MODULES_RMS_NORM_H
#define ATTN_MODULES_RMS_NORM_H

#include "attn/tape.h"

// x (..., D), weight (D): x / sqrt(mean(x^2) + epsilon) * weight. Zhang and Sennrich 2019; on query
// and key heads as in Qwen3.
attn_var attn_rms_norm(attn_var x, attn_var weight, double epsilon);

#endif
