// A layer's tensors become views by the module's own names, which the module then copies.
#include <string.h>

#include "attn/tensor.h"
#include "core/context.h"
#include "core/element.h"
#include "core/error.h"
#include "io/layout.h"
#include "io/layout_names.h"
#include "io/named.h"
#include "io/text.h"

// Everything that a load needs to know.
typedef struct loading {
    attn_module *module;
    const attn_layer *layer;
    const attn_named_tensor *tensors;
    int64_t count;
    const attn_placement *places;
    attn_error *error;
} loading;

static attn_status check_module(const loading *l);
static attn_status check_refused(const loading *l);
static attn_status check_leftover(const loading *l, const attn_named_tensor *named,
                                  const char *name);
static attn_status view_parameter(const loading *l, const attn_parameter *parameter,
                                  attn_named_tensor *view);
static attn_status expected_shape(const loading *l, const attn_parameter *parameter,
                                  const attn_placement *place, int64_t shape[2], int64_t *first);
static attn_status wrong_shape(const loading *l, const char *name, const attn_tensor *given,
                               int32_t ndim, const int64_t *expected);
static attn_status missing(const loading *l, const char *name);
static bool is_bias(attn_role role);
static bool is_own_name(const char *name);
static bool is_zero(const attn_tensor *tensor);

attn_status attn_layer_load(attn_module *module, const attn_layer *layer,
                            const attn_named_tensor *tensors, int64_t count, attn_error *error)
{
    if (module == NULL || layer == NULL || count < 0 || (count > 0 && tensors == NULL)) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "layers: module, layer or tensors is NULL, or count is negative");
    }
    const bool separate = attn_named_find(tensors, count, layer->prefix,
                                          attn_layout_anchor(ATTN_LAYOUT_TORCH, true)) != NULL;
    const loading l = {
        module, layer, tensors, count, attn_layout_placements(layer->layout, separate), error};
    attn_status status = check_module(&l);
    if (status == ATTN_OK) {
        status = check_refused(&l);
    }
    if (status != ATTN_OK) {
        return status;
    }

    const attn_context *context = attn_module_context(module);
    const int64_t parameters = attn_module_parameter_count(module);
    const size_t room = (size_t)parameters * sizeof(attn_named_tensor);
    attn_named_tensor *views = attn_allocate(context, room);
    if (views == NULL) {
        return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY, "layers: out of memory");
    }
    for (int64_t i = 0; status == ATTN_OK && i < parameters; i++) {
        status = view_parameter(&l, attn_module_parameter(module, i), &views[i]);
    }
    if (status == ATTN_OK) {
        status = attn_module_load_state(module, views, parameters, false, error);
    }
    attn_release(context, views, room);
    return status;
}

// ---- what does not fit --------------------------------------------------------------------------

static attn_status check_module(const loading *l)
{
    const attn_layout layout = l->layer->layout;
    const char *name = attn_layout_name(layout);
    if (layout <= ATTN_LAYOUT_ANY || layout >= ATTN_LAYOUT_COUNT) {
        return attn_fail(l->error, ATTN_ERR_INVALID_ARGUMENT, "layers: unknown layout (%d)",
                         (int)layout);
    }
    if (layout == ATTN_LAYOUT_ATTN) {
        return ATTN_OK;
    }
    if (strcmp(attn_module_kind(l->module), "multi_head_attention") != 0) {
        return attn_fail(l->error, ATTN_ERR_INVALID_ARGUMENT,
                         "layers: layout %s fits multi_head_attention, not %s", name,
                         attn_module_kind(l->module));
    }
    const attn_attention_config *config = attn_module_config(l->module);
    const bool rotary = config->rotary != ATTN_ROTARY_NONE;
    if (layout == ATTN_LAYOUT_LLAMA && !rotary) {
        return attn_fail(l->error, ATTN_ERR_NOT_SUPPORTED,
                         "layers: %s* was trained with rotary positions; configure the module "
                         "for them (rotary: half-split for Hugging Face's files, interleaved for "
                         "Meta's)",
                         attn_show_name(l->layer->prefix).text);
    }
    if (layout != ATTN_LAYOUT_LLAMA && (rotary || config->qk_norm)) {
        return attn_fail(l->error, ATTN_ERR_NOT_SUPPORTED,
                         "layers: layout %s has no %s, but the module does", name,
                         rotary ? "rotary positions" : "query and key norms");
    }
    if (!config->out_proj) {
        return attn_fail(l->error, ATTN_ERR_NOT_SUPPORTED,
                         "layers: layout %s has an output projection, the module does not", name);
    }
    return ATTN_OK;
}

// Tensors of the layer that the module would leave out and that change the result.
static attn_status check_refused(const loading *l)
{
    const size_t length = strlen(l->layer->prefix);
    for (int64_t i = 0; i < l->count; i++) {
        const char *name = l->tensors[i].name;
        if (strncmp(name, l->layer->prefix, length) != 0) {
            continue;
        }
        const attn_status status = check_leftover(l, &l->tensors[i], name + length);
        if (status != ATTN_OK) {
            return status;
        }
    }
    return ATTN_OK;
}

static attn_status check_leftover(const loading *l, const attn_named_tensor *named,
                                  const char *name)
{
    const attn_shown shown = attn_show_name(named->name);
    if (attn_layout_is_buffer(l->layer->layout, name)) {
        return ATTN_OK;
    }
    if (l->layer->layout == ATTN_LAYOUT_TORCH &&
        (strcmp(name, "bias_k") == 0 || strcmp(name, "bias_v") == 0)) {
        return attn_fail(l->error, ATTN_ERR_NOT_SUPPORTED,
                         "%s: a learned extra key and value are not supported", shown.text);
    }
    for (int role = 0; role < ATTN_ROLE_COUNT; role++) {
        const attn_placement *place = &l->places[role];
        if (place->name == NULL || strcmp(place->name, name) != 0 ||
            attn_module_find_parameter(l->module, attn_role_name((attn_role)role)) != NULL) {
            continue;
        }
        if (role == ATTN_ROLE_QUERY_NORM || role == ATTN_ROLE_KEY_NORM) {
            return attn_fail(l->error, ATTN_ERR_NOT_SUPPORTED,
                             "%s: the module has no query and key norms (qk_norm)", shown.text);
        }
        if (is_bias((attn_role)role) && !is_zero(&named->tensor)) {
            return attn_fail(l->error, ATTN_ERR_NOT_SUPPORTED,
                             "%s: not zero, and the module has no such bias (%s)", shown.text,
                             role == ATTN_ROLE_OUT_BIAS ? "out_bias" : "qkv_bias");
        }
    }
    if (l->layer->layout == ATTN_LAYOUT_ATTN && is_own_name(name) &&
        attn_module_find_parameter(l->module, name) == NULL && !is_zero(&named->tensor)) {
        return attn_fail(l->error, ATTN_ERR_NOT_SUPPORTED, "%s: the %s has no such parameter",
                         shown.text, attn_module_kind(l->module));
    }
    return ATTN_OK;
}

static bool is_bias(attn_role role)
{
    return role == ATTN_ROLE_QUERY_BIAS || role == ATTN_ROLE_KEY_BIAS ||
           role == ATTN_ROLE_VALUE_BIAS || role == ATTN_ROLE_OUT_BIAS;
}

// Does the name, without prefix, look like a parameter of one of this library's modules?
static bool is_own_name(const char *name)
{
    static const char *const firsts[] = {"W_query", "W_key", "W_value", "out_proj", "heads"};
    const size_t length = strcspn(name, ".");
    const char *last = strrchr(name, '.');
    if (last != NULL && strcmp(last, ".mask") == 0) {
        return false;
    }
    for (size_t i = 0; i < sizeof(firsts) / sizeof(*firsts); i++) {
        if (strlen(firsts[i]) == length && memcmp(name, firsts[i], length) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_zero(const attn_tensor *tensor)
{
    const int64_t shape[] = {attn_tensor_count(tensor)};
    attn_tensor flat;
    if (attn_tensor_view(tensor, 1, shape, &flat, NULL) != ATTN_OK) {
        return false;
    }
    for (int64_t i = 0; i < shape[0]; i++) {
        if (attn_tensor_get(&flat, &i) != 0) {
            return false;
        }
    }
    return true;
}

// ---- one parameter ------------------------------------------------------------------------------

// The part of the file that holds the parameter, seen in the parameter's own shape.
static attn_status view_parameter(const loading *l, const attn_parameter *parameter,
                                  attn_named_tensor *view)
{
    const attn_role role = attn_role_from_name(parameter->name);
    attn_placement place = {parameter->name, ATTN_WHOLE, false};
    if (l->layer->layout != ATTN_LAYOUT_ATTN && role != ATTN_ROLE_COUNT) {
        place = l->places[role];
    }
    const attn_named_tensor *named =
        attn_named_find(l->tensors, l->count, l->layer->prefix, place.name);
    if (named == NULL) {
        return missing(l, place.name);
    }
    int64_t shape[2];
    int64_t first = 0;
    attn_status status = expected_shape(l, parameter, &place, shape, &first);
    if (status != ATTN_OK) {
        return status;
    }
    const int32_t ndim = parameter->value.ndim;
    if (named->tensor.ndim != ndim ||
        memcmp(named->tensor.shape, shape, (size_t)ndim * sizeof(*shape)) != 0) {
        return wrong_shape(l, named->name, &named->tensor, ndim, shape);
    }
    if (!attn_is_floating(named->tensor.dtype)) {
        return attn_fail(l->error, ATTN_ERR_DTYPE, "%s: expected a floating dtype, got %s",
                         attn_show_name(named->name).text, attn_dtype_name(named->tensor.dtype));
    }
    attn_tensor part = named->tensor;
    if (place.part != ATTN_WHOLE) {
        const int32_t dim = place.transposed ? 1 : 0;
        status = attn_tensor_slice(&part, dim, first, first + parameter->value.shape[0], 1, &part,
                                   l->error);
    }
    if (status == ATTN_OK && place.transposed) {
        status = attn_tensor_transpose(&part, 0, 1, &part, l->error);
    }
    *view = (attn_named_tensor){parameter->name, part};
    return status;
}

// The file's shape for a parameter of one or two dims, and where its own rows start there.
static attn_status expected_shape(const loading *l, const attn_parameter *parameter,
                                  const attn_placement *place, int64_t shape[2], int64_t *first)
{
    const attn_tensor *value = &parameter->value;
    shape[0] = value->shape[0];
    shape[1] = value->ndim == 2 ? value->shape[1] : 0;
    if (place->part != ATTN_WHOLE) {
        const attn_parameter *query =
            attn_module_find_parameter(l->module, attn_role_name(ATTN_ROLE_QUERY));
        const attn_parameter *key =
            attn_module_find_parameter(l->module, attn_role_name(ATTN_ROLE_KEY));
        if (value->ndim == 2 && !attn_tensor_same_shape(&query->value, &key->value)) {
            return attn_fail(l->error, ATTN_ERR_NOT_SUPPORTED,
                             "layers: %s%s holds query, key and value of one shape, but the "
                             "module's query is %s and its key %s",
                             attn_show_name(l->layer->prefix).text, place->name,
                             attn_show_shape(2, query->value.shape).text,
                             attn_show_shape(2, key->value.shape).text);
        }
        *first = shape[0] * place->part;
        shape[0] *= 3;
    }
    if (place->transposed) {
        const int64_t kept = shape[0];
        shape[0] = shape[1];
        shape[1] = kept;
    }
    return ATTN_OK;
}

static attn_status wrong_shape(const loading *l, const char *name, const attn_tensor *given,
                               int32_t ndim, const int64_t *expected)
{
    const bool transposed = ndim == 2 && given->ndim == 2 && given->shape[0] == expected[1] &&
                            given->shape[1] == expected[0];
    return attn_fail(l->error, ATTN_ERR_SHAPE, "%s: expected %s, got %s%s",
                     attn_show_name(name).text, attn_show_shape(ndim, expected).text,
                     attn_show_shape(given->ndim, given->shape).text,
                     transposed ? " (is it transposed?)" : "");
}

static attn_status missing(const loading *l, const char *name)
{
    char whole[ATTN_LAYER_PREFIX_SIZE + 64];
    const size_t length = strlen(l->layer->prefix);
    memcpy(whole, l->layer->prefix, length);
    const size_t rest = strlen(name) < 63 ? strlen(name) : 63;
    memcpy(whole + length, name, rest);
    whole[length + rest] = '\0';
    char nearest[200];
    attn_named_nearest(l->tensors, l->count, whole, nearest, sizeof(nearest));
    char layers[160];
    attn_layers_list(l->tensors, l->count, l->layer->layout, layers, sizeof(layers));
    return attn_fail(l->error, ATTN_ERR_NOT_FOUND, "%s: no such tensor%s%s; %s",
                     attn_show_name(whole).text, *nearest == '\0' ? "" : "; the nearest are ",
                     nearest, layers);
}
