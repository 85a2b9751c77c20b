// Where a parameter gets its name, its memory and its first values.
#include <string.h>

#include "core/context.h"
#include "core/error.h"
#include "gemm/gemm.h"
#include "modules/module.h"
#include "modules/name.h"

// ---- registration -------------------------------------------------------------------------------

attn_status attn_register_parameter(attn_module *module, const char *prefix, const char *name,
                                    const char *suffix, int32_t ndim, const int64_t *shape,
                                    attn_initial initial, int64_t fan_in,
                                    attn_parameter **parameter, attn_error *error)
{
    const attn_context *context = module->context;
    attn_parameter_entry *entry = attn_allocate(context, sizeof *entry);
    if (!entry) {
        return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY, "%s: no memory for parameter %s",
                         module->kind->kind, name);
    }
    memset(entry, 0, sizeof *entry);
    module->parameters[module->parameter_count++] = entry;
    entry->initial = initial;
    entry->fan_in = fan_in;
    entry->parameter.name = attn_name_create(context, prefix, name, suffix);
    if (!entry->parameter.name) {
        return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY, "%s: no memory for the name of %s",
                         module->kind->kind, name);
    }
    const attn_dtype dtype = module->config.dtype;
    attn_status status =
        attn_tensor_create(context, dtype, ndim, shape, &entry->parameter.value, error);
    if (status == ATTN_OK) {
        status = attn_tensor_create(context, dtype, ndim, shape, &entry->parameter.grad, error);
    }
    *parameter = &entry->parameter;
    return status;
}

attn_status attn_register_buffer(attn_module *module, const char *prefix, const char *name,
                                 attn_error *error)
{
    char *text = attn_name_create(module->context, prefix, name, "");
    if (!text) {
        return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY, "%s: no memory for the name of %s",
                         module->kind->kind, name);
    }
    module->buffer_names[module->buffer_count++] = text;
    return ATTN_OK;
}

void attn_release_parameters(attn_module *module)
{
    const attn_context *context = module->context;
    for (int64_t i = 0; i < module->parameter_count; i++) {
        attn_parameter_entry *entry = module->parameters[i];
        attn_tensor_destroy(context, &entry->parameter.value);
        attn_tensor_destroy(context, &entry->parameter.grad);
        attn_packed_weight_destroy(entry->packed);
        attn_name_release(context, entry->parameter.name);
        attn_release(context, entry, sizeof *entry);
    }
    for (int64_t i = 0; i < module->buffer_count; i++) {
        attn_name_release(context, module->buffer_names[i]);
    }
    attn_release(context, module->parameters,
                 (size_t)module->parameter_capacity * sizeof module->parameters[0]);
    attn_release(context, module->buffer_names,
                 (size_t)module->buffer_capacity * sizeof module->buffer_names[0]);
}

// ---- first values -------------------------------------------------------------------------------

attn_status attn_initialize_parameters(attn_module *module, attn_generator *generator,
                                       attn_error *error)
{
    attn_status status = ATTN_OK;
    for (int64_t i = 0; i < module->parameter_count && status == ATTN_OK; i++) {
        const attn_parameter_entry *entry = module->parameters[i];
        const attn_tensor *value = &entry->parameter.value;
        if (entry->initial == ATTN_INITIAL_ONE) {
            status = attn_tensor_fill(value, 1, error);
        } else if (!generator) {
            continue;
        } else if (entry->initial == ATTN_INITIAL_UNIFORM) {
            status = attn_rand(generator, value, error);
        } else {
            status = attn_kaiming_uniform(generator, entry->fan_in, value, error);
        }
    }
    return status;
}

// ---- packed form --------------------------------------------------------------------------------

void attn_pack_parameters(attn_module *module)
{
    for (int64_t i = 0; i < module->parameter_count; i++) {
        attn_parameter_entry *entry = module->parameters[i];
        const attn_tensor *weight = &entry->parameter.value;
        if (!entry->projects ||
            (entry->packed && entry->packed_version == entry->parameter.version)) {
            continue;
        }
        const attn_status status =
            entry->packed
                ? attn_packed_weight_refresh(entry->packed, weight, NULL)
                : attn_packed_weight_create(module->context, weight, &entry->packed, NULL);
        if (status == ATTN_OK) {
            entry->packed_version = entry->parameter.version;
        }
    }
}

const struct attn_packed_weight *attn_packed_parameter(const attn_parameter *parameter)
{
    // A parameter is the first member of its entry.
    const attn_parameter_entry *entry = (const attn_parameter_entry *)parameter;
    return entry->packed && entry->packed_version == parameter->version ? entry->packed : NULL;
}

// ---- access -------------------------------------------------------------------------------------

attn_var attn_parameter_var(attn_tape *tape, const attn_parameter *parameter)
{
    return attn_borrow(tape, &parameter->value, &parameter->grad);
}

int64_t attn_module_parameter_count(const attn_module *module)
{
    return module->parameter_count;
}

attn_parameter *attn_module_parameter(attn_module *module, int64_t index)
{
    return index >= 0 && index < module->parameter_count ? &module->parameters[index]->parameter
                                                         : NULL;
}

attn_parameter *attn_module_find_parameter(attn_module *module, const char *name)
{
    for (int64_t i = 0; i < module->parameter_count; i++) {
        if (strcmp(module->parameters[i]->parameter.name, name) == 0) {
            return &module->parameters[i]->parameter;
        }
    }
    return NULL;
}

void attn_parameter_touch(attn_parameter *parameter)
{
    parameter->version++;
}

int64_t attn_module_value_count(const attn_module *module)
{
    int64_t count = 0;
    for (int64_t i = 0; i < module->parameter_count; i++) {
        count += attn_tensor_count(&module->parameters[i]->parameter.value);
    }
    return count;
}

void attn_module_zero_grad(attn_module *module)
{
    for (int64_t i = 0; i < module->parameter_count; i++) {
        attn_tensor_fill(&module->parameters[i]->parameter.grad, 0, NULL);
    }
}

void attn_module_state(attn_module *module, attn_named_tensor *tensors)
{
    for (int64_t i = 0; i < module->parameter_count; i++) {
        const attn_parameter *parameter = &module->parameters[i]->parameter;
        tensors[i] = (attn_named_tensor){parameter->name, parameter->value};
    }
}
