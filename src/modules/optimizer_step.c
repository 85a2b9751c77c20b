// What a step does to the parameters, and to the gradients before it.
#include <inttypes.h>
#include <math.h>

#include "core/context.h"
#include "core/error.h"
#include "modules/optimizer.h"
#include "modules/update.h"

// ---- step ---------------------------------------------------------------------------------------

// Elements that one job updates. Every element is computed by itself, so the split reaches no bit.
enum { CHUNK = 1 << 14 };

typedef struct update_job {
    const attn_optimizer_entry *entry;
    bool adamw;
    attn_sgd_factors sgd_factors;
    attn_adamw_factors adamw_factors;
} update_job;

static void update_chunk(void *argument, int64_t index, int32_t worker);
static attn_sgd_factors sgd_factors(const attn_optimizer *optimizer);
static attn_adamw_factors adamw_factors(const attn_optimizer *optimizer);

void attn_optimizer_step(attn_optimizer *optimizer)
{
    update_job job = {.adamw = optimizer->config.kind == ATTN_OPTIMIZER_ADAMW};
    if (job.adamw) {
        job.adamw_factors = adamw_factors(optimizer);
    } else {
        job.sgd_factors = sgd_factors(optimizer);
    }
    for (int64_t i = 0; i < optimizer->count; i++) {
        attn_parameter *parameter = optimizer->entries[i].parameter;
        job.entry = &optimizer->entries[i];
        const int64_t count = attn_tensor_count(&parameter->value);
        attn_parallel_for(optimizer->context, count / CHUNK + (count % CHUNK != 0), update_chunk,
                          &job);
        attn_parameter_touch(parameter);
    }
    optimizer->steps++;
}

static void update_chunk(void *argument, int64_t index, int32_t worker)
{
    (void)worker;
    const update_job *job = argument;
    const attn_tensor *value = &job->entry->parameter->value;
    const int64_t first = index * CHUNK;
    const int64_t rest = attn_tensor_count(value) - first;
    const int64_t count = rest < CHUNK ? rest : CHUNK;
    const attn_moment *moments = job->entry->moments;
    void *pointers[] = {value->data, job->entry->parameter->grad.data, moments[0].tensor.data,
                        moments[1].tensor.data};
    if (value->dtype == ATTN_F32) {
        float *at[4];
        for (int k = 0; k < 4; k++) {
            at[k] = pointers[k] ? (float *)pointers[k] + first : NULL;
        }
        if (job->adamw) {
            attn_adamw_f32(&job->adamw_factors, at[0], at[1], at[2], at[3], count);
        } else {
            attn_sgd_f32(&job->sgd_factors, at[0], at[1], at[2], count);
        }
    } else {
        double *at[4];
        for (int k = 0; k < 4; k++) {
            at[k] = pointers[k] ? (double *)pointers[k] + first : NULL;
        }
        if (job->adamw) {
            attn_adamw_f64(&job->adamw_factors, at[0], at[1], at[2], at[3], count);
        } else {
            attn_sgd_f64(&job->sgd_factors, at[0], at[1], at[2], count);
        }
    }
}

static attn_sgd_factors sgd_factors(const attn_optimizer *optimizer)
{
    const attn_optimizer_config *config = &optimizer->config;
    return (attn_sgd_factors){.rate = attn_optimizer_rate(optimizer),
                              .weight_decay = config->weight_decay,
                              .momentum = config->momentum,
                              .dampening = config->dampening,
                              .nesterov = config->nesterov,
                              .first = optimizer->steps == 0};
}

static attn_adamw_factors adamw_factors(const attn_optimizer *optimizer)
{
    const attn_optimizer_config *config = &optimizer->config;
    const double rate = attn_optimizer_rate(optimizer);
    const double n = (double)(optimizer->steps + 1);
    return (attn_adamw_factors){.decay = 1 - rate * config->weight_decay,
                                .beta1 = config->beta1,
                                .beta2 = config->beta2,
                                .step_size = rate / (1 - pow(config->beta1, n)),
                                .root_correction = sqrt(1 - pow(config->beta2, n)),
                                .epsilon = config->epsilon};
}

int64_t attn_optimizer_steps(const attn_optimizer *optimizer)
{
    return optimizer->steps;
}

double attn_optimizer_rate(const attn_optimizer *optimizer)
{
    return optimizer->config.learning_rate *
           attn_schedule_factor(&optimizer->config.schedule, optimizer->steps);
}

void attn_optimizer_set_learning_rate(attn_optimizer *optimizer, double learning_rate)
{
    if (learning_rate >= 0 && isfinite(learning_rate)) {
        optimizer->config.learning_rate = learning_rate;
    }
}

// ---- gradients ----------------------------------------------------------------------------------

void attn_optimizer_zero_grad(attn_optimizer *optimizer)
{
    for (int64_t i = 0; i < optimizer->count; i++) {
        attn_tensor_fill(&optimizer->entries[i].parameter->grad, 0, NULL);
    }
}

static double sum_of_squares(const attn_tensor *tensor)
{
    const int64_t count = attn_tensor_count(tensor);
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        const double value = tensor->dtype == ATTN_F32 ? ((const float *)tensor->data)[i]
                                                       : ((const double *)tensor->data)[i];
        sum = fma(value, value, sum);
    }
    return sum;
}

attn_status attn_optimizer_clip_grad_norm(attn_optimizer *optimizer, double max_norm, double *norm,
                                          attn_error *error)
{
    if (!(max_norm > 0)) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "clip_grad_norm: max_norm (%g) must be positive", max_norm);
    }
    double sum = 0;
    for (int64_t i = 0; i < optimizer->count; i++) {
        sum += sum_of_squares(&optimizer->entries[i].parameter->grad);
    }
    const double total = sqrt(sum);
    if (!isfinite(total)) {
        return attn_fail(error, ATTN_ERR_NOT_FINITE,
                         "clip_grad_norm: step %" PRId64 ": the norm of the gradients is %g",
                         optimizer->steps, attn_shown_value(total));
    }
    if (norm) {
        *norm = total;
    }
    const double factor = max_norm / (total + 1e-6);
    if (factor >= 1) {
        return ATTN_OK;
    }
    for (int64_t i = 0; i < optimizer->count; i++) {
        const attn_tensor *grad = &optimizer->entries[i].parameter->grad;
        if (grad->dtype == ATTN_F32) {
            attn_scale_by_f32(factor, grad->data, attn_tensor_count(grad));
        } else {
            attn_scale_by_f64(factor, grad->data, attn_tensor_count(grad));
        }
    }
    return ATTN_OK;
}
