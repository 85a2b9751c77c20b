// attn/optim.h: what turns gradients into learning.
//
// An optimizer holds pointers to parameters (of any number of modules, or the caller's own), the
// moments that its rule needs, and the number of steps taken. A step of training reads
//
//   attn_tape_reset(tape);
//   attn_var loss = attn_mse_loss(attn_module_apply(module, input), target);
//   attn_optimizer_zero_grad(optimizer);
//   status = attn_backward(loss, &error);
//   status = attn_optimizer_check_finite(optimizer, loss, &error);
//   status = attn_optimizer_clip_grad_norm(optimizer, 1.0, &norm, &error);
//   attn_optimizer_step(optimizer);
//
// The rules, their order of operations, their rounding (in the parameter's dtype, factors computed
// in double) and their defaults are torch's, so that loss curves can be laid beside a torch
// program's. All memory is taken when parameters are added: a step allocates nothing. Results have
// the same bits for any number of threads.
//
// Sources: Sutskever et al. 2013 (momentum as torch writes it); Loshchilov and Hutter 2019 (AdamW);
// Loshchilov and Hutter 2017 (cosine schedule); Pascanu et al. 2013 (clipping by global norm).
#ifndef ATTN_OPTIM_H
#define ATTN_OPTIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attn/context.h"
#include "attn/export.h"
#include "attn/module.h"
#include "attn/status.h"
#include "attn/tape.h"
#include "attn/tensor.h"

ATTN_BEGIN_DECLS

// ---- the learning rate over time ------------------------------------------------------------------

typedef enum attn_schedule_kind {
    ATTN_SCHEDULE_CONSTANT = 0, // after the warm-up: 1
    ATTN_SCHEDULE_COSINE        // after the warm-up: half a cosine from 1 to final_factor
} attn_schedule_kind;

// The factor of the learning rate at step s (0 is the first):
//   s < warmup_steps:  (s + 1) / warmup_steps
//   constant:          1
//   cosine:            final + (1 - final) * (1 + cos(pi * t)) / 2, where
//                      t = min(1, (s - warmup_steps) / (total_steps - warmup_steps))
typedef struct attn_schedule {
    attn_schedule_kind kind; // default CONSTANT
    int64_t warmup_steps;    // >= 0, default 0
    int64_t total_steps;     // COSINE: > warmup_steps; else 0
    double final_factor;     // COSINE: >= 0, default 0
} attn_schedule;

ATTN_API double attn_schedule_factor(const attn_schedule *schedule, int64_t step);

// ---- the optimizer --------------------------------------------------------------------------------

typedef struct attn_optimizer attn_optimizer;

typedef enum attn_optimizer_kind {
    // g = grad + weight_decay * value
    // first step: buffer = g; then buffer = momentum * buffer + (1 - dampening) * g
    // value -= rate * (nesterov ? g + momentum * buffer : buffer)
    // (without momentum: value -= rate * g)
    ATTN_OPTIMIZER_SGD = 0,
    // value *= 1 - rate * weight_decay
    // exp_avg    = beta1 * exp_avg    + (1 - beta1) * grad
    // exp_avg_sq = beta2 * exp_avg_sq + (1 - beta2) * grad * grad
    // value -= rate / (1 - beta1^n) * exp_avg / (sqrt(exp_avg_sq) / sqrt(1 - beta2^n) + epsilon)
    // in the n-th step
    ATTN_OPTIMIZER_ADAMW
} attn_optimizer_kind;

// A field that the kind does not have must keep the value that _init gave it.
typedef struct attn_optimizer_config {
    size_t struct_size; // set by the _init functions
    attn_optimizer_kind kind;
    double learning_rate; // >= 0; default 1e-3
    double weight_decay;  // >= 0; default 0 (SGD), 0.01 (AdamW)

    // SGD.
    double momentum;  // >= 0, default 0
    double dampening; // default 0
    bool nesterov;    // default false; needs momentum > 0 and dampening = 0

    // AdamW.
    double beta1, beta2; // in [0, 1); default 0.9, 0.999
    double epsilon;      // >= 0; default 1e-8

    attn_schedule schedule; // default constant

    uint64_t reserved[8]; // zero
} attn_optimizer_config;

ATTN_API void attn_sgd_config_init(attn_optimizer_config *config);
ATTN_API void attn_adamw_config_init(attn_optimizer_config *config);

// Errors: INVALID_ARGUMENT (the text names the field), OUT_OF_MEMORY.
ATTN_API attn_status attn_optimizer_create(const attn_context *context,
                                           const attn_optimizer_config *config,
                                           attn_optimizer **optimizer, attn_error *error);
ATTN_API void attn_optimizer_destroy(attn_optimizer *optimizer); // takes NULL

// Adds one parameter, or every parameter of a module in its order, with names that begin with
// `prefix` ("" or "encoder."). The parameter (float32 or float64, contiguous) and the module must
// outlive the optimizer, and the parameter's tensors stay where and what they are. On failure nothing
// is added. Errors: INVALID_ARGUMENT (a name or parameter that is there already, a read-only tensor),
// SHAPE, DTYPE, NOT_CONTIGUOUS, OVERLAP (value and gradient), STATE (after the first step; a module of
// another context), OUT_OF_MEMORY.
ATTN_API attn_status attn_optimizer_add_parameter(attn_optimizer *optimizer, const char *name,
                                                  attn_parameter *parameter, attn_error *error);
ATTN_API attn_status attn_optimizer_add_module(attn_optimizer *optimizer, const char *prefix,
                                               attn_module *module, attn_error *error);

// In the order of adding. Out of range: NULL.
ATTN_API int64_t attn_optimizer_parameter_count(const attn_optimizer *optimizer);
ATTN_API attn_parameter *attn_optimizer_parameter(const attn_optimizer *optimizer, int64_t index);
ATTN_API const char *attn_optimizer_parameter_name(const attn_optimizer *optimizer, int64_t index);

ATTN_API void attn_optimizer_zero_grad(attn_optimizer *optimizer);

// Changes every parameter by its gradient (a parameter that no loss reached has gradient 0, and still
// decays and follows its momentum) and touches it.
ATTN_API void attn_optimizer_step(attn_optimizer *optimizer);

// Steps taken; the learning rate of the next step; and a new base rate for the steps to come (one that
// is negative or not finite is ignored).
ATTN_API int64_t attn_optimizer_steps(const attn_optimizer *optimizer);
ATTN_API double attn_optimizer_rate(const attn_optimizer *optimizer);
ATTN_API void attn_optimizer_set_learning_rate(attn_optimizer *optimizer, double learning_rate);

// ---- gradients ------------------------------------------------------------------------------------

// Scales all gradients by max_norm / (norm + 1e-6) where this is below 1; *norm (may be NULL)
// receives the Euclidean norm of all gradients together before that, summed in double. Errors:
// INVALID_ARGUMENT (max_norm is not > 0), NOT_FINITE (the norm is not; no gradient is changed).
ATTN_API attn_status attn_optimizer_clip_grad_norm(attn_optimizer *optimizer, double max_norm,
                                                   double *norm, attn_error *error);

// Is the loss finite, and every gradient? If not, ATTN_ERR_NOT_FINITE with the step and the first
// tensor in which it appeared, as in
//   step 17: loss is nan; first seen in the result of divide, float32 [4,6,8], at [0,3,1]
//   step 17: loss is 0.25; gradient of W_key.weight is inf at [2,5]
ATTN_API attn_status attn_optimizer_check_finite(const attn_optimizer *optimizer, attn_var loss,
                                                 attn_error *error);

// Where a NaN or +infinity first appeared among a tape's vars up to and including `last` (in the order
// they were made), or among a trace's entries. -infinity is what masks write and does not count.
// `found` is false when there is none.
typedef struct attn_not_finite {
    bool found;
    const char *name;             // the op ("softmax"; NULL: an input), or the entry
    attn_tensor tensor;           // its value
    int64_t index[ATTN_MAX_DIMS]; // the element
    double value;
} attn_not_finite;

ATTN_API attn_not_finite attn_tape_first_not_finite(attn_var last);
ATTN_API attn_not_finite attn_trace_first_not_finite(const attn_trace *trace);

// ---- state ----------------------------------------------------------------------------------------

// The optimizer's moments by name, "exp_avg.W_query.weight", "momentum_buffer.out_proj.bias": views of
// its memory. `tensors` has room for attn_optimizer_moment_count entries; the names live as long as
// the optimizer.
ATTN_API int64_t attn_optimizer_moment_count(const attn_optimizer *optimizer);
ATTN_API void attn_optimizer_moments(const attn_optimizer *optimizer, attn_named_tensor *tensors);

// Puts the optimizer at `steps` steps with these moments: all of them, each once, with the right shape
// and dtype, or nothing is changed. The config stays the caller's. Errors: NOT_FOUND, SHAPE, DTYPE,
// INVALID_ARGUMENT, OVERLAP (tensors in the optimizer's own memory).
ATTN_API attn_status attn_optimizer_restore(attn_optimizer *optimizer, int64_t steps,
                                            const attn_named_tensor *tensors, int64_t count,
                                            attn_error *error);

ATTN_END_DECLS

#endif
