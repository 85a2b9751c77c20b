// State dict: parameters by name into a module, strictly and all or nothing; and the buffers.
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/element.h"
#include "core/error.h"
#include "core/layout.h"
#include "core/text.h"
#include "modules/module.h"

// A list of faults that ends up as one text; the first one decides the status.
typedef struct faults {
    attn_status status;
    size_t used;
    char text[ATTN_ERROR_TEXT_SIZE];
} faults;

static void check_given(attn_module *module, const attn_named_tensor *tensors, int64_t count,
                        bool ignore_unknown, faults *found);
static void check_apart(const attn_module *module, const char *name, const attn_tensor *tensor,
                        faults *found);
static void check_missing(const attn_module *module, const attn_named_tensor *tensors,
                          int64_t count, faults *found);
static void add_fault(faults *found, attn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

attn_status attn_module_load_state(attn_module *module, const attn_named_tensor *tensors,
                                   int64_t count, bool ignore_unknown, attn_error *error)
{
    for (int64_t i = 0; i < count; i++) {
        if (!tensors || !tensors[i].name) {
            return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "%s: tensor %" PRId64 " has no name",
                             module->kind->kind, i);
        }
    }
    faults found = {.status = ATTN_OK};
    check_given(module, tensors, count, ignore_unknown, &found);
    check_missing(module, tensors, count, &found);
    if (found.status != ATTN_OK) {
        return attn_fail(error, found.status, "%s: %s", module->kind->kind, found.text);
    }

    for (int64_t i = 0; i < count; i++) {
        attn_parameter *parameter = attn_module_find_parameter(module, tensors[i].name);
        if (!parameter) {
            continue;
        }
        const attn_status status = attn_tensor_copy(&tensors[i].tensor, &parameter->value, error);
        if (status != ATTN_OK) {
            return status;
        }
        attn_parameter_touch(parameter);
    }
    if (!module->training) {
        attn_pack_parameters(module);
    }
    return ATTN_OK;
}

static bool is_given(const attn_named_tensor *tensors, int64_t count, const char *name)
{
    for (int64_t i = 0; i < count; i++) {
        if (strcmp(tensors[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static void check_given(attn_module *module, const attn_named_tensor *tensors, int64_t count,
                        bool ignore_unknown, faults *found)
{
    for (int64_t i = 0; i < count; i++) {
        const char *name = tensors[i].name;
        const attn_tensor *tensor = &tensors[i].tensor;
        attn_tensor layout;
        const attn_parameter *parameter = attn_module_find_parameter(module, name);
        if (parameter) {
            layout = parameter->value;
        } else if (attn_module_buffer_shape(module, name, &layout, NULL) != ATTN_OK) {
            if (!ignore_unknown) {
                add_fault(found, ATTN_ERR_NOT_FOUND, "unknown %s", name);
            }
            continue;
        }
        attn_error detail;
        if (is_given(tensors, i, name)) {
            add_fault(found, ATTN_ERR_INVALID_ARGUMENT, "%s is given twice", name);
        }
        if (attn_tensor_check(tensor, name, &detail) != ATTN_OK) {
            add_fault(found, detail.status, "%s", detail.text);
            continue;
        }
        if (!attn_tensor_same_shape(tensor, &layout)) {
            add_fault(found, ATTN_ERR_SHAPE, "%s is %s, must be %s", name,
                      attn_shape_text(tensor).text, attn_shape_text(&layout).text);
        }
        if (parameter && !attn_is_floating(tensor->dtype)) {
            add_fault(found, ATTN_ERR_DTYPE, "%s is %s, must be floating", name,
                      attn_dtype_name(tensor->dtype));
        }
        check_apart(module, name, tensor, found);
    }
}

// What is read must not be what is written, or the order of copying would show.
static void check_apart(const attn_module *module, const char *name, const attn_tensor *tensor,
                        faults *found)
{
    for (int64_t i = 0; i < module->parameter_count; i++) {
        const attn_parameter *parameter = &module->parameters[i]->parameter;
        if (attn_overlaps(tensor, &parameter->value)) {
            add_fault(found, ATTN_ERR_OVERLAP, "%s given in the memory of the module's %s", name,
                      parameter->name);
        }
    }
}

static void check_missing(const attn_module *module, const attn_named_tensor *tensors,
                          int64_t count, faults *found)
{
    for (int64_t i = 0; i < module->parameter_count; i++) {
        const char *name = module->parameters[i]->parameter.name;
        if (!is_given(tensors, count, name)) {
            add_fault(found, ATTN_ERR_NOT_FOUND, "missing %s", name);
        }
    }
}

static void add_fault(faults *found, attn_status status, const char *format, ...)
{
    if (found->status == ATTN_OK) {
        found->status = status;
    } else if (found->used + 3 < sizeof found->text) {
        found->used +=
            (size_t)snprintf(found->text + found->used, sizeof found->text - found->used, "; ");
    }
    const size_t room = sizeof found->text - found->used;
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(found->text + found->used, room, format, arguments);
    va_end(arguments);
    found->used += (size_t)length < room ? (size_t)length : room - 1;
}

// ---- buffers ------------------------------------------------------------------------------------

int64_t attn_module_buffer_count(const attn_module *module)
{
    return module->buffer_count;
}

const char *attn_module_buffer_name(const attn_module *module, int64_t index)
{
    return index >= 0 && index < module->buffer_count ? module->buffer_names[index] : NULL;
}

attn_status attn_module_buffer_shape(const attn_module *module, const char *name,
                                     attn_tensor *layout, attn_error *error)
{
    for (int64_t i = 0; i < module->buffer_count; i++) {
        if (strcmp(module->buffer_names[i], name) != 0) {
            continue;
        }
        const int64_t length = module->config.context_length;
        *layout = attn_tensor_wrap(NULL, ATTN_F32, 2, (int64_t[]){length, length});
        return ATTN_OK;
    }
    return attn_fail(error, ATTN_ERR_NOT_FOUND, "%s: no buffer is named %s", module->kind->kind,
                     name);
}

// The causal mask: 1 above the diagonal, where a key lies in the future of its query.
attn_status attn_module_buffer(const attn_module *module, const char *name, const attn_tensor *out,
                               attn_error *error)
{
    attn_tensor layout;
    attn_status status = attn_module_buffer_shape(module, name, &layout, error);
    if (status == ATTN_OK) {
        status = attn_tensor_check(out, name, error);
    }
    if (status != ATTN_OK) {
        return status;
    }
    if (!attn_tensor_same_shape(out, &layout)) {
        return attn_fail(error, ATTN_ERR_SHAPE, "%s: buffer %s is %s, not %s", module->kind->kind,
                         name, attn_shape_text(&layout).text, attn_shape_text(out).text);
    }
    if (out->dtype != layout.dtype) {
        return attn_fail(error, ATTN_ERR_DTYPE, "%s: buffer %s is float32, not %s",
                         module->kind->kind, name, attn_dtype_name(out->dtype));
    }
    if (attn_overlaps_itself(out)) {
        return attn_fail(error, ATTN_ERR_OVERLAP,
                         "%s: the output for buffer %s of shape %s with stride %s overlaps itself",
                         module->kind->kind, name, attn_shape_text(out).text,
                         attn_stride_text(out).text);
    }
    status = attn_tensor_fill(out, 0, error); // refuses what cannot be written
    if (status != ATTN_OK) {
        return status;
    }
    float *mask = out->data;
    const int64_t length = layout.shape[0];
    for (int64_t query = 0; query < length; query++) {
        for (int64_t key = query + 1; key < length; key++) {
            mask[query * out->stride[0] + key * out->stride[1]] = 1;
        }
    }
    return ATTN_OK;
}
