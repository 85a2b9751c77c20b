// The one interface of all modules: creation, forward, modes, accessors.
#include "attn/module.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/context.h"
#include "core/error.h"
#include "modules/dropout.h"
#include "modules/module.h"
#include "tape/tape.h"

// ---- creation -----------------------------------------------------------------------------------

attn_status attn_module_allocate(const attn_context *context, const attn_module_class *kind,
                                 const attn_attention_config *config, int64_t parameter_count,
                                 int64_t buffer_count, attn_module **module, attn_error *error)
{
    if (!context) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "%s: context is NULL", kind->kind);
    }
    if (parameter_count > INT64_MAX / (int64_t)sizeof(void *) ||
        buffer_count > INT64_MAX / (int64_t)sizeof(void *)) {
        return attn_fail(error, ATTN_ERR_OVERFLOW, "%s: too many parameters", kind->kind);
    }
    const size_t parameter_bytes = (size_t)parameter_count * sizeof(attn_parameter_entry *);
    const size_t buffer_bytes = (size_t)buffer_count * sizeof(char *);
    attn_module *fresh = attn_allocate(context, kind->size);
    void *parameters = attn_allocate(context, parameter_bytes);
    void *buffers = attn_allocate(context, buffer_bytes);
    if (!fresh || !parameters || (buffer_bytes && !buffers)) {
        attn_release(context, buffers, buffer_bytes);
        attn_release(context, parameters, parameter_bytes);
        attn_release(context, fresh, kind->size);
        return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY, "%s: no memory for %lld parameters",
                         kind->kind, (long long)parameter_count);
    }
    memset(fresh, 0, kind->size);
    fresh->context = context;
    fresh->kind = kind;
    if (config) {
        fresh->config = *config;
    }
    fresh->training = true;
    fresh->parameters = parameters;
    fresh->parameter_capacity = parameter_count;
    fresh->buffer_names = buffers;
    fresh->buffer_capacity = buffer_count;
    *module = fresh;
    return ATTN_OK;
}

attn_status attn_module_finish(attn_module *module, attn_status status, attn_generator *generator,
                               attn_module **result, attn_error *error)
{
    if (status == ATTN_OK && !result) {
        status =
            attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "%s: module is NULL", module->kind->kind);
    }
    if (status == ATTN_OK) {
        status = attn_initialize_parameters(module, generator, error);
    }
    if (status != ATTN_OK) {
        attn_module_destroy(module);
        return status;
    }
    *result = module;
    return ATTN_OK;
}

void attn_module_destroy(attn_module *module)
{
    if (!module) {
        return;
    }
    const attn_context *context = module->context;
    attn_release_parameters(module);
    if (module->kind->release) {
        module->kind->release(module);
    }
    attn_release(context, module, module->kind->size);
}

const char *attn_module_kind(const attn_module *module)
{
    return module->kind->kind;
}

const attn_attention_config *attn_module_config(const attn_module *module)
{
    return module->kind->fields & ATTN_FIELD_CONFIG ? &module->config : NULL;
}

const attn_context *attn_module_context(const attn_module *module)
{
    return module->context;
}

// ---- forward ------------------------------------------------------------------------------------

void attn_module_call_init(attn_module_call *call)
{
    *call = (attn_module_call){.struct_size = sizeof *call};
}

attn_var attn_module_apply(attn_module *module, attn_var input)
{
    attn_module_call call;
    attn_module_call_init(&call);
    call.input = input;
    return attn_module_forward(module, &call);
}

attn_var attn_module_forward(attn_module *module, const attn_module_call *call)
{
    if (!module || !call || !call->input.tape) {
        return ATTN_NO_VAR;
    }
    if (!attn_module_call_check(module, call)) {
        return attn_tape_failed(call->input.tape);
    }
    const bool draws = call->generator && module->training && module->config.dropout > 0;
    attn_generator_state before;
    if (draws) {
        attn_generator_save(call->generator, &before);
    }
    const attn_var output = module->kind->forward(module, call);
    if (!attn_tape_healthy(call->input.tape)) {
        if (draws) {
            (void)attn_generator_restore(call->generator, &before, NULL); // as if not drawn
        }
    } else if (attn_module_drops_by_position(module)) {
        module->dropout_calls++;
    }
    return output;
}

bool attn_module_fail(const attn_module *module, attn_var input, attn_status status,
                      const char *format, ...)
{
    char text[ATTN_ERROR_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    attn_tape_raise(input.tape, status, "%s: %s", module->kind->kind, text);
    return false;
}

// ---- modes --------------------------------------------------------------------------------------

void attn_module_train(attn_module *module)
{
    module->training = true;
}

void attn_module_eval(attn_module *module)
{
    module->training = false;
    attn_pack_parameters(module);
}

bool attn_module_training(const attn_module *module)
{
    return module->training;
}

uint64_t attn_module_dropout_calls(const attn_module *module)
{
    return module->dropout_calls;
}

void attn_module_set_dropout_calls(attn_module *module, uint64_t calls)
{
    module->dropout_calls = calls;
}
