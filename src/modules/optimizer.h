// modules/optimizer.h: what is inside an optimizer.
#ifndef ATTN_MODULES_OPTIMIZER_H
#define ATTN_MODULES_OPTIMIZER_H

#include <math.h>

#include "attn/optim.h"

enum { ATTN_MOST_MOMENTS = 2 };

// A tensor per parameter that the update rule carries from step to step.
typedef struct attn_moment {
    const char *name; // "exp_avg.W_query.weight"
    attn_tensor tensor;
} attn_moment;

typedef struct attn_optimizer_entry {
    const char *name;
    attn_parameter *parameter;
    attn_moment moments[ATTN_MOST_MOMENTS];
} attn_optimizer_entry;

struct attn_optimizer {
    const attn_context *context;
    attn_optimizer_config config;
    const char *const *moment_names; // of the kind, moment_count of them
    int32_t moment_count;
    int64_t steps;
    attn_optimizer_entry *entries;
    int64_t count, capacity;
};

// The value for a message: a NaN's sign means nothing and differs between machines.
static inline double attn_shown_value(double value)
{
    return isnan(value) ? fabs(value) : value;
}

#endif
