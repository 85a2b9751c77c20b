// The optimizer as an object: which parameters it holds, and its moments.
#include "modules/optimizer.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/context.h"
#include "core/error.h"
#include "core/layout.h"
#include "core/text.h"
#include "modules/name.h"

static attn_status check_config(const attn_optimizer_config *config, attn_error *error);

static const char *const momentum_names[] = {"momentum_buffer."};
static const char *const adamw_names[] = {"exp_avg.", "exp_avg_sq."};

void attn_sgd_config_init(attn_optimizer_config *config)
{
    *config = (attn_optimizer_config){
        .struct_size = sizeof *config,
        .kind = ATTN_OPTIMIZER_SGD,
        .learning_rate = 1e-3,
    };
}

void attn_adamw_config_init(attn_optimizer_config *config)
{
    *config = (attn_optimizer_config){
        .struct_size = sizeof *config,
        .kind = ATTN_OPTIMIZER_ADAMW,
        .learning_rate = 1e-3,
        .weight_decay = 1e-2,
        .beta1 = 0.9,
        .beta2 = 0.999,
        .epsilon = 1e-8,
    };
}

attn_status attn_optimizer_create(const attn_context *context, const attn_optimizer_config *config,
                                  attn_optimizer **optimizer, attn_error *error)
{
    if (!context || !optimizer) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "optimizer: context or result is NULL");
    }
    const attn_status status = check_config(config, error);
    if (status != ATTN_OK) {
        return status;
    }
    attn_optimizer *fresh = attn_allocate(context, sizeof *fresh);
    if (!fresh) {
        return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY, "optimizer: no memory");
    }
    *fresh = (attn_optimizer){.context = context, .config = *config};
    if (config->kind == ATTN_OPTIMIZER_ADAMW) {
        fresh->moment_names = adamw_names;
        fresh->moment_count = 2;
    } else if (config->momentum != 0) {
        fresh->moment_names = momentum_names;
        fresh->moment_count = 1;
    }
    *optimizer = fresh;
    return ATTN_OK;
}

static void release_entry(attn_optimizer *optimizer, attn_optimizer_entry *entry)
{
    for (int32_t k = 0; k < optimizer->moment_count; k++) {
        attn_name_release(optimizer->context, entry->moments[k].name);
        attn_tensor_destroy(optimizer->context, &entry->moments[k].tensor);
    }
    attn_name_release(optimizer->context, entry->name);
}

static void release_entries_from(attn_optimizer *optimizer, int64_t first)
{
    while (optimizer->count > first) {
        release_entry(optimizer, &optimizer->entries[--optimizer->count]);
    }
}

void attn_optimizer_destroy(attn_optimizer *optimizer)
{
    if (!optimizer) {
        return;
    }
    const attn_context *context = optimizer->context;
    release_entries_from(optimizer, 0);
    attn_release(context, optimizer->entries,
                 (size_t)optimizer->capacity * sizeof optimizer->entries[0]);
    attn_release(context, optimizer, sizeof *optimizer);
}

// ---- config -------------------------------------------------------------------------------------

static attn_status check_schedule(const attn_schedule *schedule, attn_error *error)
{
    if (schedule->kind != ATTN_SCHEDULE_CONSTANT && schedule->kind != ATTN_SCHEDULE_COSINE) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "optimizer: unknown schedule (%d)",
                         (int)schedule->kind);
    }
    if (schedule->warmup_steps < 0) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "optimizer: schedule.warmup_steps (%" PRId64 ") must not be negative",
                         schedule->warmup_steps);
    }
    if (schedule->kind == ATTN_SCHEDULE_CONSTANT &&
        (schedule->total_steps != 0 || schedule->final_factor != 0)) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "optimizer: a constant schedule has no total_steps or final_factor");
    }
    if (schedule->kind == ATTN_SCHEDULE_COSINE && schedule->total_steps <= schedule->warmup_steps) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "optimizer: schedule.total_steps (%" PRId64
                         ") must exceed warmup_steps (%" PRId64 ")",
                         schedule->total_steps, schedule->warmup_steps);
    }
    if (!(schedule->final_factor >= 0 && isfinite(schedule->final_factor))) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "optimizer: schedule.final_factor (%g) must be finite and not negative",
                         schedule->final_factor);
    }
    return ATTN_OK;
}

static attn_status check_config(const attn_optimizer_config *config, attn_error *error)
{
    if (!config || config->struct_size != sizeof *config) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "optimizer: config is NULL or not filled by an _init function");
    }
    for (size_t i = 0; i < sizeof config->reserved / sizeof config->reserved[0]; i++) {
        if (config->reserved[i] != 0) {
            return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                             "optimizer: config.reserved[%zu] must be zero", i);
        }
    }
    const bool sgd = config->kind == ATTN_OPTIMIZER_SGD;
    if (!sgd && config->kind != ATTN_OPTIMIZER_ADAMW) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "optimizer: unknown kind (%d)",
                         (int)config->kind);
    }
    // beta1 and beta2 are 0 for SGD, and momentum and dampening 0 for AdamW, until someone sets them.
    const struct {
        const char *name;
        double value, limit; // 0 <= value, and value < limit
        bool exists;
    } rules[] = {
        {"learning_rate", config->learning_rate, INFINITY, true},
        {"weight_decay", config->weight_decay, INFINITY, true},
        {"momentum", config->momentum, INFINITY, sgd},
        {"dampening", fabs(config->dampening), INFINITY, sgd},
        {"beta1", config->beta1, 1, !sgd},
        {"beta2", config->beta2, 1, !sgd},
        {"epsilon", config->epsilon, INFINITY, !sgd},
    };
    const char *kind = sgd ? "sgd" : "adamw";
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (!rules[i].exists && rules[i].value != 0) {
            return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "%s: has no %s", kind,
                             rules[i].name);
        }
        if (!(rules[i].value >= 0 && rules[i].value < rules[i].limit)) {
            return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "%s: %s (%g) must be in [0, %g)",
                             kind, rules[i].name, rules[i].value, rules[i].limit);
        }
    }
    if (config->nesterov && !sgd) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "adamw: has no nesterov");
    }
    if (config->nesterov && (config->momentum == 0 || config->dampening != 0)) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "sgd: nesterov needs a momentum (%g) above 0 and dampening (%g) 0",
                         config->momentum, config->dampening);
    }
    return check_schedule(&config->schedule, error);
}

// ---- parameters ---------------------------------------------------------------------------------

static attn_status reserve_entry(attn_optimizer *optimizer, attn_error *error)
{
    if (optimizer->count < optimizer->capacity) {
        return ATTN_OK;
    }
    const int64_t capacity = optimizer->capacity ? 2 * optimizer->capacity : 8;
    const size_t size = sizeof optimizer->entries[0];
    attn_optimizer_entry *entries = attn_allocate(optimizer->context, (size_t)capacity * size);
    if (!entries) {
        return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY,
                         "optimizer: no memory for %" PRId64 " parameters", capacity);
    }
    if (optimizer->count > 0) {
        memcpy(entries, optimizer->entries, (size_t)optimizer->count * size);
    }
    attn_release(optimizer->context, optimizer->entries, (size_t)optimizer->capacity * size);
    optimizer->entries = entries;
    optimizer->capacity = capacity;
    return ATTN_OK;
}

static attn_status check_parameter(const attn_optimizer *optimizer, const char *prefix,
                                   const char *name, const attn_parameter *parameter,
                                   attn_error *error)
{
    const attn_tensor *value = &parameter->value, *grad = &parameter->grad;
    if (optimizer->steps > 0) {
        return attn_fail(error, ATTN_ERR_STATE,
                         "optimizer: %s%s comes after step %" PRId64
                         "; add parameters before the first",
                         prefix, name, optimizer->steps);
    }
    attn_status status = attn_tensor_check(value, name, error);
    if (status == ATTN_OK) {
        status = attn_tensor_check(grad, name, error);
    }
    if (status != ATTN_OK) {
        return status;
    }
    if ((value->dtype != ATTN_F32 && value->dtype != ATTN_F64) || grad->dtype != value->dtype) {
        return attn_fail(error, ATTN_ERR_DTYPE,
                         "optimizer: %s%s is %s with a %s gradient; both must be float32 or "
                         "float64",
                         prefix, name, attn_dtype_name(value->dtype), attn_dtype_name(grad->dtype));
    }
    if (!attn_tensor_same_shape(value, grad)) {
        return attn_fail(error, ATTN_ERR_SHAPE, "optimizer: %s%s has shape %s but its gradient %s",
                         prefix, name, attn_shape_text(value).text, attn_shape_text(grad).text);
    }
    if (!attn_tensor_is_contiguous(value) || !attn_tensor_is_contiguous(grad)) {
        return attn_fail(error, ATTN_ERR_NOT_CONTIGUOUS, "optimizer: %s%s is not contiguous",
                         prefix, name);
    }
    if ((value->flags | grad->flags) & ATTN_TENSOR_READ_ONLY) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "optimizer: %s%s is read-only", prefix,
                         name);
    }
    if (attn_overlaps(value, grad)) {
        return attn_fail(error, ATTN_ERR_OVERLAP, "optimizer: %s%s overlaps its gradient", prefix,
                         name);
    }
    for (int64_t i = 0; i < optimizer->count; i++) {
        const char *other = optimizer->entries[i].name;
        const size_t length = strlen(prefix);
        if (optimizer->entries[i].parameter == parameter ||
            (strncmp(other, prefix, length) == 0 && strcmp(other + length, name) == 0)) {
            return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                             "optimizer: %s%s is there already, as %s", prefix, name, other);
        }
    }
    return ATTN_OK;
}

static attn_status add_entry(attn_optimizer *optimizer, const char *prefix, const char *name,
                             attn_parameter *parameter, attn_error *error)
{
    attn_status status = check_parameter(optimizer, prefix, name, parameter, error);
    if (status == ATTN_OK) {
        status = reserve_entry(optimizer, error);
    }
    if (status != ATTN_OK) {
        return status;
    }
    const attn_context *context = optimizer->context;
    attn_optimizer_entry *entry = &optimizer->entries[optimizer->count];
    *entry = (attn_optimizer_entry){.parameter = parameter};
    entry->name = attn_name_create(context, prefix, name, "");
    bool complete = entry->name != NULL;
    for (int32_t k = 0; complete && k < optimizer->moment_count; k++) {
        attn_moment *moment = &entry->moments[k];
        moment->name = attn_name_create(context, optimizer->moment_names[k], entry->name, "");
        complete = moment->name &&
                   attn_tensor_create(context, parameter->value.dtype, parameter->value.ndim,
                                      parameter->value.shape, &moment->tensor, NULL) == ATTN_OK;
    }
    if (!complete) {
        release_entry(optimizer, entry);
        return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY, "optimizer: no memory for %s%s", prefix,
                         name);
    }
    optimizer->count++;
    return ATTN_OK;
}

attn_status attn_optimizer_add_parameter(attn_optimizer *optimizer, const char *name,
                                         attn_parameter *parameter, attn_error *error)
{
    if (!name || !parameter) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "optimizer: name or parameter is NULL");
    }
    return add_entry(optimizer, "", name, parameter, error);
}

attn_status attn_optimizer_add_module(attn_optimizer *optimizer, const char *prefix,
                                      attn_module *module, attn_error *error)
{
    if (!prefix || !module) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "optimizer: prefix or module is NULL");
    }
    if (attn_module_context(module) != optimizer->context) {
        return attn_fail(error, ATTN_ERR_STATE,
                         "optimizer: the parameters of this %s belong to another context",
                         attn_module_kind(module));
    }
    const int64_t before = optimizer->count;
    attn_status status = ATTN_OK;
    for (int64_t i = 0; i < attn_module_parameter_count(module) && status == ATTN_OK; i++) {
        attn_parameter *parameter = attn_module_parameter(module, i);
        status = add_entry(optimizer, prefix, parameter->name, parameter, error);
    }
    if (status != ATTN_OK) {
        release_entries_from(optimizer, before);
    }
    return status;
}

int64_t attn_optimizer_parameter_count(const attn_optimizer *optimizer)
{
    return optimizer->count;
}

attn_parameter *attn_optimizer_parameter(const attn_optimizer *optimizer, int64_t index)
{
    return index >= 0 && index < optimizer->count ? optimizer->entries[index].parameter : NULL;
}

const char *attn_optimizer_parameter_name(const attn_optimizer *optimizer, int64_t index)
{
    return index >= 0 && index < optimizer->count ? optimizer->entries[index].name : NULL;
}

// ---- state --------------------------------------------------------------------------------------

int64_t attn_optimizer_moment_count(const attn_optimizer *optimizer)
{
    return optimizer->count * optimizer->moment_count;
}

void attn_optimizer_moments(const attn_optimizer *optimizer, attn_named_tensor *tensors)
{
    for (int32_t k = 0; k < optimizer->moment_count; k++) {
        for (int64_t i = 0; i < optimizer->count; i++) {
            const attn_moment *moment = &optimizer->entries[i].moments[k];
            *tensors++ = (attn_named_tensor){moment->name, moment->tensor};
        }
    }
}

static attn_moment *find_moment(const attn_optimizer *optimizer, const char *name)
{
    for (int64_t i = 0; i < optimizer->count; i++) {
        for (int32_t k = 0; k < optimizer->moment_count; k++) {
            if (strcmp(optimizer->entries[i].moments[k].name, name) == 0) {
                return &optimizer->entries[i].moments[k];
            }
        }
    }
    return NULL;
}

// May the tensor number i be copied to the moment of its name, beside those before it?
static attn_status check_given(const attn_optimizer *optimizer, const attn_named_tensor *tensors,
                               int64_t i, attn_error *error)
{
    if (!tensors || !tensors[i].name) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "optimizer: moment %" PRId64 " has no name", i);
    }
    const char *name = tensors[i].name;
    const attn_tensor *tensor = &tensors[i].tensor;
    const attn_moment *moment = find_moment(optimizer, name);
    if (!moment) {
        return attn_fail(error, ATTN_ERR_NOT_FOUND, "optimizer: unknown moment %s", name);
    }
    const attn_status status = attn_tensor_check(tensor, name, error);
    if (status != ATTN_OK) {
        return status;
    }
    if (tensor->dtype != moment->tensor.dtype) {
        return attn_fail(error, ATTN_ERR_DTYPE, "optimizer: %s is %s, not %s", name,
                         attn_dtype_name(tensor->dtype), attn_dtype_name(moment->tensor.dtype));
    }
    if (!attn_tensor_same_shape(tensor, &moment->tensor)) {
        return attn_fail(error, ATTN_ERR_SHAPE, "optimizer: %s is %s, must be %s", name,
                         attn_shape_text(tensor).text, attn_shape_text(&moment->tensor).text);
    }
    for (int64_t j = 0; j < i; j++) {
        if (strcmp(tensors[j].name, name) == 0) {
            return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "optimizer: %s is given twice",
                             name);
        }
    }
    for (int64_t e = 0; e < optimizer->count; e++) {
        for (int32_t k = 0; k < optimizer->moment_count; k++) {
            if (attn_overlaps(tensor, &optimizer->entries[e].moments[k].tensor)) {
                return attn_fail(error, ATTN_ERR_OVERLAP,
                                 "optimizer: %s is given in the memory of the optimizer's %s", name,
                                 optimizer->entries[e].moments[k].name);
            }
        }
    }
    return ATTN_OK;
}

attn_status attn_optimizer_restore(attn_optimizer *optimizer, int64_t steps,
                                   const attn_named_tensor *tensors, int64_t count,
                                   attn_error *error)
{
    if (steps < 0) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "optimizer: steps (%" PRId64 ") must not be negative", steps);
    }
    for (int64_t i = 0; i < count; i++) {
        const attn_status status = check_given(optimizer, tensors, i, error);
        if (status != ATTN_OK) {
            return status;
        }
    }
    // All known and none twice: the number tells whether one is missing.
    if (count != attn_optimizer_moment_count(optimizer)) {
        return attn_fail(error, ATTN_ERR_NOT_FOUND,
                         "optimizer: %" PRId64 " moments given, %" PRId64 " needed", count,
                         attn_optimizer_moment_count(optimizer));
    }
    for (int64_t i = 0; i < count; i++) {
        const attn_status status = attn_tensor_copy(
            &tensors[i].tensor, &find_moment(optimizer, tensors[i].name)->tensor, error);
        if (status != ATTN_OK) {
            return status;
        }
    }
    optimizer->steps = steps;
    return ATTN_OK;
}
