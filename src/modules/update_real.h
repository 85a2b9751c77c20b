// modules/update_real.h: the functions of update.h for one element type; it includes this twice.

static inline void ATTN_NAME(attn_sgd)(const attn_sgd_factors *by, ATTN_REAL *value,
                                       const ATTN_REAL *grad, ATTN_REAL *buffer, int64_t count)
{
    const ATTN_REAL rate = (ATTN_REAL)-by->rate;
    const ATTN_REAL weight_decay = (ATTN_REAL)by->weight_decay;
    const ATTN_REAL momentum = (ATTN_REAL)by->momentum;
    const ATTN_REAL fresh = (ATTN_REAL)(1 - by->dampening);
    for (int64_t i = 0; i < count; i++) {
        ATTN_REAL g = grad[i];
        if (by->weight_decay != 0) {
            g = ATTN_FMA(weight_decay, value[i], g);
        }
        if (by->momentum != 0) {
            buffer[i] = by->first ? g : ATTN_FMA(fresh, g, buffer[i] * momentum);
            g = by->nesterov ? ATTN_FMA(momentum, buffer[i], g) : buffer[i];
        }
        value[i] = ATTN_FMA(rate, g, value[i]);
    }
}

static inline void ATTN_NAME(attn_adamw)(const attn_adamw_factors *by, ATTN_REAL *value,
                                         const ATTN_REAL *grad, ATTN_REAL *exp_avg,
                                         ATTN_REAL *exp_avg_sq, int64_t count)
{
    const ATTN_REAL decay = (ATTN_REAL)by->decay;
    const ATTN_REAL beta1 = (ATTN_REAL)by->beta1, rest1 = (ATTN_REAL)(1 - by->beta1);
    const ATTN_REAL beta2 = (ATTN_REAL)by->beta2, rest2 = (ATTN_REAL)(1 - by->beta2);
    const ATTN_REAL step_size = (ATTN_REAL)-by->step_size;
    const ATTN_REAL root_correction = (ATTN_REAL)by->root_correction;
    const ATTN_REAL epsilon = (ATTN_REAL)by->epsilon;
    for (int64_t i = 0; i < count; i++) {
        const ATTN_REAL g = grad[i];
        value[i] *= decay;
        exp_avg[i] = ATTN_FMA(rest1, g, exp_avg[i] * beta1);
        exp_avg_sq[i] = exp_avg_sq[i] * beta2 + rest2 * g * g;
        const ATTN_REAL denominator = ATTN_SQRT(exp_avg_sq[i]) / root_correction + epsilon;
        value[i] += step_size * exp_avg[i] / denominator;
    }
}

static inline void ATTN_NAME(attn_scale_by)(double factor, ATTN_REAL *values, int64_t count)
{
    const ATTN_REAL rounded = (ATTN_REAL)factor;
    for (int64_t i = 0; i < count; i++) {
        values[i] *= rounded;
    }
}
