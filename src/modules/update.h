// modules/update.h: the arithmetic of a training step on plain arrays, in float and double.
//
// Order and rounding are those of torch's vectorised CPU kernels: `alpha * x` added to something is
// one fused multiply-add, and a scalar is rounded to the element type before it is used. All
// functions work on elements [0, count) and every element by itself.
#ifndef ATTN_MODULES_UPDATE_H
#define ATTN_MODULES_UPDATE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

// The factors of one SGD step.
typedef struct attn_sgd_factors {
    double rate, weight_decay, momentum, dampening;
    bool nesterov;
    bool first; // the buffer holds nothing yet
} attn_sgd_factors;

// The factors of one AdamW step.
typedef struct attn_adamw_factors {
    double decay;           // 1 - rate * weight_decay
    double beta1, beta2;    //
    double step_size;       // rate / (1 - beta1^n)
    double root_correction; // sqrt(1 - beta2^n)
    double epsilon;
} attn_adamw_factors;

#define ATTN_REAL float
#define ATTN_NAME(name) name##_f32
#define ATTN_FMA fmaf
#define ATTN_SQRT sqrtf
#include "modules/update_real.h"
#undef ATTN_REAL
#undef ATTN_NAME
#undef ATTN_FMA
#undef ATTN_SQRT

#define ATTN_REAL double
#define ATTN_NAME(name) name##_f64
#define ATTN_FMA fma
#define ATTN_SQRT sqrt
#include "modules/update_real.h"
#undef ATTN_REAL
#undef ATTN_NAME
#undef ATTN_FMA
#undef ATTN_SQRT

#endif
