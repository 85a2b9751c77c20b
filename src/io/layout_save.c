// A module's parameters under another layout's names: loading's views, written through.
#include <string.h>

#include "core/error.h"
#include "io/layout_names.h"
#include "io/tensor_list.h"

// Everything that a save needs to know.
typedef struct saving {
    attn_module *module;
    attn_layout layout;
    const char *prefix;
    const attn_placement *places;
    attn_tensor_list *list;
    attn_error *error;
} saving;

static attn_status check_module(const attn_module *module, attn_layout layout, attn_error *error);
static bool needs_separate(attn_module *module);
static attn_status save_own(const saving *s, bool buffers);
static attn_status save_buffers(const saving *s);
static attn_status save_roles(const saving *s);
static attn_status save_group(const saving *s, attn_role first);
static bool is_wanted(const saving *s, attn_role role);
static void shape_of(const saving *s, attn_role role, int64_t shape[2], int32_t *ndim);
static attn_status copy_role(const saving *s, attn_role role, const attn_tensor *target);

attn_status attn_layer_save(const attn_context *context, attn_module *module, attn_layout layout,
                            const char *prefix, bool buffers, attn_tensor_list **list,
                            attn_error *error)
{
    if (context == NULL || module == NULL || prefix == NULL || list == NULL) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "layers: context, module, prefix or list is NULL");
    }
    attn_status status = check_module(module, layout, error);
    if (status != ATTN_OK) {
        return status;
    }
    saving s = {module, layout, prefix, attn_layout_placements(layout, needs_separate(module)),
                NULL,   error};
    const int64_t parameters = attn_module_parameter_count(module);
    const int64_t capacity = layout == ATTN_LAYOUT_ATTN
                                 ? parameters + attn_module_buffer_count(module)
                                 : ATTN_ROLE_COUNT;
    status = attn_tensor_list_create(context, capacity, &s.list, error);
    if (status != ATTN_OK) {
        return status;
    }
    status = layout == ATTN_LAYOUT_ATTN ? save_own(&s, buffers) : save_roles(&s);
    if (status != ATTN_OK) {
        attn_tensor_list_destroy(s.list);
        return status;
    }
    *list = s.list;
    return ATTN_OK;
}

// ---- what a layout cannot say -------------------------------------------------------------------

static attn_status check_module(const attn_module *module, attn_layout layout, attn_error *error)
{
    const char *name = attn_layout_name(layout);
    if (layout <= ATTN_LAYOUT_ANY || layout >= ATTN_LAYOUT_COUNT) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "layers: a layer is saved as attn, gpt2, torch or llama");
    }
    if (layout == ATTN_LAYOUT_ATTN) {
        return ATTN_OK;
    }
    if (strcmp(attn_module_kind(module), "multi_head_attention") != 0) {
        return attn_fail(error, ATTN_ERR_NOT_SUPPORTED,
                         "layers: layout %s holds multi_head_attention, not %s", name,
                         attn_module_kind(module));
    }
    const attn_attention_config *config = attn_module_config(module);
    const bool rotary = config->rotary != ATTN_ROTARY_NONE;
    const bool shares_heads = config->num_kv_heads != 0 &&
                              config->num_kv_heads != config->num_heads;
    const bool llama = layout == ATTN_LAYOUT_LLAMA;
    const char *reason = NULL;
    if (!config->out_proj) {
        reason = "needs an output projection (out_proj)";
    } else if (llama && !rotary) {
        reason = "needs a module with rotary positions";
    } else if (!llama && rotary) {
        reason = "has no rotary positions";
    } else if (!llama && config->qk_norm) {
        reason = "has no query and key norms (qk_norm)";
    } else if (!llama && shares_heads) {
        reason = "has as many key heads as query heads (num_kv_heads)";
    } else if (layout != ATTN_LAYOUT_TORCH && config->d_context != 0 &&
               config->d_context != config->d_in) {
        reason = "has no second input (d_context)";
    }
    if (reason != NULL) {
        return attn_fail(error, ATTN_ERR_NOT_SUPPORTED, "layers: layout %s %s", name, reason);
    }
    return ATTN_OK;
}

static const attn_parameter *find(attn_module *module, attn_role role)
{
    return attn_module_find_parameter(module, attn_role_name(role));
}

// torch splits its joint projection when keys come from vectors of another size.
static bool needs_separate(attn_module *module)
{
    const attn_parameter *query = find(module, ATTN_ROLE_QUERY);
    const attn_parameter *key = find(module, ATTN_ROLE_KEY);
    return query != NULL && key != NULL && query->value.shape[1] != key->value.shape[1];
}

// ---- this library's own names -------------------------------------------------------------------

static attn_status save_own(const saving *s, bool buffers)
{
    for (int64_t i = 0; i < attn_module_parameter_count(s->module); i++) {
        const attn_parameter *parameter = attn_module_parameter(s->module, i);
        const attn_tensor *value = &parameter->value;
        attn_tensor target;
        attn_status status = attn_tensor_list_add(s->list, s->prefix, parameter->name, value->dtype,
                                                  value->ndim, value->shape, &target, s->error);
        if (status == ATTN_OK) {
            status = attn_tensor_copy(value, &target, s->error);
        }
        if (status != ATTN_OK) {
            return status;
        }
    }
    return buffers ? save_buffers(s) : ATTN_OK;
}

static attn_status save_buffers(const saving *s)
{
    for (int64_t i = 0; i < attn_module_buffer_count(s->module); i++) {
        const char *name = attn_module_buffer_name(s->module, i);
        attn_tensor layout, target;
        attn_status status = attn_module_buffer_shape(s->module, name, &layout, s->error);
        if (status == ATTN_OK) {
            status = attn_tensor_list_add(s->list, s->prefix, name, layout.dtype, layout.ndim,
                                          layout.shape, &target, s->error);
        }
        if (status == ATTN_OK) {
            status = attn_module_buffer(s->module, name, &target, s->error);
        }
        if (status != ATTN_OK) {
            return status;
        }
    }
    return ATTN_OK;
}

// ---- others' names ------------------------------------------------------------------------------

// Every tensor of the layout, by the first role that lies in it.
static attn_status save_roles(const saving *s)
{
    for (int role = 0; role < ATTN_ROLE_COUNT; role++) {
        if (is_wanted(s, (attn_role)role) && s->places[role].part <= 0) {
            const attn_status status = save_group(s, (attn_role)role);
            if (status != ATTN_OK) {
                return status;
            }
        }
    }
    return ATTN_OK;
}

// gpt2 always has both biases; torch has both or none.
static bool is_wanted(const saving *s, attn_role role)
{
    if (s->places[role].name == NULL) {
        return false;
    }
    const bool is_bias = role == ATTN_ROLE_OUT_BIAS || role == ATTN_ROLE_QUERY_BIAS ||
                         role == ATTN_ROLE_KEY_BIAS || role == ATTN_ROLE_VALUE_BIAS;
    if (is_bias && s->layout == ATTN_LAYOUT_GPT2) {
        return true;
    }
    if (is_bias && s->layout == ATTN_LAYOUT_TORCH) {
        return find(s->module, ATTN_ROLE_QUERY_BIAS) != NULL ||
               find(s->module, ATTN_ROLE_OUT_BIAS) != NULL;
    }
    return find(s->module, role) != NULL;
}

// One tensor with all its parts. A bias that the module lacks stays zero.
static attn_status save_group(const saving *s, attn_role first)
{
    const attn_placement *place = &s->places[first];
    const int parts = place->part == ATTN_WHOLE ? 1 : 3;
    int64_t shape[2];
    int32_t ndim;
    shape_of(s, first, shape, &ndim);
    const int64_t rows = shape[0];
    shape[0] *= parts;
    int64_t lying[2] = {shape[0], shape[1]};
    if (place->transposed) {
        lying[0] = shape[1];
        lying[1] = shape[0];
    }
    attn_tensor target;
    attn_status status = attn_tensor_list_add(s->list, s->prefix, place->name,
                                              attn_module_parameter(s->module, 0)->value.dtype,
                                              ndim, lying, &target, s->error);
    if (status == ATTN_OK && place->transposed) {
        status = attn_tensor_transpose(&target, 0, 1, &target, s->error);
    }
    for (int part = 0; status == ATTN_OK && part < parts; part++) {
        attn_tensor rows_of_part;
        status = attn_tensor_slice(&target, 0, part * rows, (part + 1) * rows, 1, &rows_of_part,
                                   s->error);
        if (status == ATTN_OK) {
            status = copy_role(s, (attn_role)((int)first + part), &rows_of_part);
        }
    }
    return status;
}

// The parameter's shape; a bias that the module lacks is as long as its weight has rows.
static void shape_of(const saving *s, attn_role role, int64_t shape[2], int32_t *ndim)
{
    const attn_parameter *parameter = find(s->module, role);
    if (parameter != NULL) {
        *ndim = parameter->value.ndim;
        shape[0] = parameter->value.shape[0];
        shape[1] = parameter->value.shape[1];
        return;
    }
    const attn_role weight = role == ATTN_ROLE_OUT_BIAS
                                 ? ATTN_ROLE_OUT
                                 : (attn_role)((int)role - (int)ATTN_ROLE_QUERY_BIAS);
    *ndim = 1;
    shape[0] = find(s->module, weight)->value.shape[0];
    shape[1] = 0;
}

static attn_status copy_role(const saving *s, attn_role role, const attn_tensor *target)
{
    const attn_parameter *parameter = find(s->module, role);
    return parameter == NULL ? ATTN_OK : attn_tensor_copy(&parameter->value, target, s->error);
}
