// The attention layers among a file's tensors, from their names and shapes alone.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "io/layout.h"
#include "io/layout_names.h"
#include "io/named.h"
#include "io/text.h"

// The tensors that are searched.
typedef struct source {
    const attn_named_tensor *tensors;
    int64_t count;
} source;

// A projection's weight as (out, in), whatever its layout.
typedef struct widths {
    int64_t out, in;
} widths;

static bool match(const source *from, const char *name, attn_layout layout, attn_layer *layer);
static bool strip_suffix(const char *name, const char *suffix, char prefix[ATTN_LAYER_PREFIX_SIZE]);
static bool describe(const source *from, attn_layer *layer, bool separate);
static bool describe_v1(const source *from, attn_layer *layer);
static void describe_wrapper(const source *from, attn_layer *layer);
static bool is_later_head(const source *from, const attn_layer *layer);
static bool describe_extras(const source *from, const attn_placement *places, attn_layer *layer);
static void describe_mask(const source *from, attn_layer *layer);
static void count_values(const source *from, const attn_placement *places, attn_layer *layer);
static int64_t last_number(const char *prefix);
static attn_status check_tensors(const attn_named_tensor *tensors, int64_t count,
                                 attn_layout layout, attn_error *error);

// ---- finding ------------------------------------------------------------------------------------

attn_status attn_layers_find(const attn_named_tensor *tensors, int64_t count, attn_layout layout,
                             attn_layer *layers, int64_t capacity, int64_t *found,
                             attn_error *error)
{
    attn_status status = check_tensors(tensors, count, layout, error);
    if (status != ATTN_OK) {
        return status;
    }
    if (found == NULL || capacity < 0 || (capacity > 0 && layers == NULL)) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "layers: found or layers is NULL, or capacity is negative");
    }
    const source from = {tensors, count};
    int64_t used = 0;
    for (int64_t i = 0; i < count; i++) {
        attn_layer layer;
        if (match(&from, tensors[i].name, layout, &layer)) {
            if (used < capacity) {
                layers[used] = layer;
            }
            used++;
        }
    }
    *found = used;
    return ATTN_OK;
}

attn_status attn_layer_find(const attn_named_tensor *tensors, int64_t count, attn_layout layout,
                            const char *prefix, int64_t number, attn_layer *layer,
                            attn_error *error)
{
    attn_status status = check_tensors(tensors, count, layout, error);
    if (status != ATTN_OK) {
        return status;
    }
    if (layer == NULL) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "layers: layer is NULL");
    }
    const source from = {tensors, count};
    attn_layer chosen = {0};
    int64_t matches = 0;
    for (int64_t i = 0; i < count; i++) {
        attn_layer current;
        if (!match(&from, tensors[i].name, layout, &current)) {
            continue;
        }
        if ((prefix == NULL || strcmp(prefix, current.prefix) == 0) &&
            (number < 0 || number == current.number)) {
            matches++;
            chosen = current;
        }
    }
    if (matches == 1) {
        *layer = chosen;
        return ATTN_OK;
    }
    char wanted[ATTN_LAYER_PREFIX_SIZE] = "";
    if (prefix != NULL) {
        snprintf(wanted, sizeof(wanted), " \"%s\"", attn_show_name(prefix).text);
    } else if (number >= 0) {
        snprintf(wanted, sizeof(wanted), " %" PRId64, number);
    }
    char list[300];
    attn_layers_list(tensors, count, layout, list, sizeof(list));
    return attn_fail(error, ATTN_ERR_NOT_FOUND, "layers: %s attention layer%s; %s",
                     matches == 0 ? "there is no" : "more than one", wanted, list);
}

static attn_status check_tensors(const attn_named_tensor *tensors, int64_t count,
                                 attn_layout layout, attn_error *error)
{
    if (count < 0 || (count > 0 && tensors == NULL)) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "layers: tensors is NULL, or count is negative");
    }
    if ((unsigned)layout >= ATTN_LAYOUT_COUNT) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "layers: unknown layout (%d)",
                         (int)layout);
    }
    return ATTN_OK;
}

void attn_layers_list(const attn_named_tensor *tensors, int64_t count, attn_layout layout,
                      char *buffer, size_t size)
{
    enum { ELLIPSIS_ROOM = 8 };
    const source from = {tensors, count};
    size_t used = (size_t)snprintf(buffer, size, "no layer is recognised");
    int64_t listed = 0;
    for (int64_t i = 0; i < count; i++) {
        attn_layer layer;
        if (!match(&from, tensors[i].name, layout, &layer)) {
            continue;
        }
        const attn_shown shown = attn_show_name(*layer.prefix ? layer.prefix : "(no prefix)");
        if (listed == 0) {
            used = (size_t)snprintf(buffer, size, "the layers are %s", shown.text);
        } else if (used + strlen(shown.text) + 2 + ELLIPSIS_ROOM < size) {
            used += (size_t)snprintf(buffer + used, size - used, ", %s", shown.text);
        } else {
            snprintf(buffer + used, size - used, ", ...");
            return;
        }
        listed++;
    }
}

// ---- one layer ----------------------------------------------------------------------------------

// Is this tensor the one by which a complete layer of the layout is known?
static bool match(const source *from, const char *name, attn_layout layout, attn_layer *layer)
{
    const attn_layout first = layout == ATTN_LAYOUT_ANY ? ATTN_LAYOUT_ATTN : layout;
    const attn_layout last = layout == ATTN_LAYOUT_ANY ? ATTN_LAYOUT_LLAMA : layout;
    for (int candidate = (int)first; candidate <= (int)last; candidate++) {
        for (int separate = 0; separate <= (candidate == ATTN_LAYOUT_TORCH); separate++) {
            *layer = (attn_layer){.layout = (attn_layout)candidate};
            if (strip_suffix(name, attn_layout_anchor(layer->layout, separate), layer->prefix) &&
                describe(from, layer, separate)) {
                return true;
            }
        }
    }
    *layer = (attn_layer){.layout = ATTN_LAYOUT_ATTN};
    return first == ATTN_LAYOUT_ATTN && strip_suffix(name, "W_query", layer->prefix) &&
           describe_v1(from, layer);
}

// Takes a whole suffix off: what is left is empty or ends in a point.
static bool strip_suffix(const char *name, const char *suffix, char prefix[ATTN_LAYER_PREFIX_SIZE])
{
    const size_t length = strlen(name);
    const size_t suffix_length = strlen(suffix);
    if (length < suffix_length || strcmp(name + length - suffix_length, suffix) != 0) {
        return false;
    }
    const size_t rest = length - suffix_length;
    if (rest >= ATTN_LAYER_PREFIX_SIZE || (rest > 0 && name[rest - 1] != '.')) {
        return false;
    }
    memcpy(prefix, name, rest);
    prefix[rest] = '\0';
    return true;
}

static const attn_tensor *find_role(const source *from, const attn_layer *layer,
                                    const attn_placement *place)
{
    if (place->name == NULL) {
        return NULL;
    }
    const attn_named_tensor *named =
        attn_named_find(from->tensors, from->count, layer->prefix, place->name);
    return named == NULL ? NULL : &named->tensor;
}

static bool find_widths(const source *from, const attn_layer *layer, const attn_placement *place,
                        widths *result)
{
    const attn_tensor *weight = find_role(from, layer, place);
    if (weight == NULL || weight->ndim != 2) {
        return false;
    }
    result->out = weight->shape[place->transposed ? 1 : 0];
    result->in = weight->shape[place->transposed ? 0 : 1];
    if (place->part != ATTN_WHOLE) {
        if (result->out % 3 != 0) {
            return false;
        }
        result->out /= 3;
    }
    return result->out > 0 && result->in > 0;
}

static bool describe(const source *from, attn_layer *layer, bool separate)
{
    if (layer->layout == ATTN_LAYOUT_ATTN && is_later_head(from, layer)) {
        return false;
    }
    const attn_placement *places = attn_layout_placements(layer->layout, separate);
    widths query, key, value;
    if (!find_widths(from, layer, &places[ATTN_ROLE_QUERY], &query) ||
        !find_widths(from, layer, &places[ATTN_ROLE_KEY], &key) ||
        !find_widths(from, layer, &places[ATTN_ROLE_VALUE], &value) || key.out != value.out ||
        key.in != value.in) {
        return false;
    }
    attn_attention_config *config = &layer->config;
    attn_attention_config_init(config);
    config->d_in = query.in;
    config->d_out = query.out;
    config->d_context = key.in == query.in ? 0 : key.in;
    config->causal = layer->layout != ATTN_LAYOUT_TORCH && config->d_context == 0;
    layer->query_width = query.out;
    layer->key_width = key.out;
    layer->number = last_number(layer->prefix);
    if (!describe_extras(from, places, layer)) {
        return false;
    }
    describe_mask(from, layer);
    count_values(from, places, layer);
    layer->kind = "multi_head_attention";
    if (layer->layout == ATTN_LAYOUT_ATTN && !config->out_proj && query.out == key.out &&
        config->d_context == 0 && !config->qk_norm) {
        // Without out_proj the rest of multi-head attention is the single-head module.
        layer->kind = config->context_length > 0 ? "causal_attention" : "self_attention_v2";
        attn_attention_config plain;
        attn_attention_config_init(&plain);
        config->causal = plain.causal;
        config->out_proj = plain.out_proj;
        config->out_bias = plain.out_bias;
        layer->knows_heads = true;
        describe_wrapper(from, layer);
    }
    return true;
}

// out_proj, biases and norms.
static bool describe_extras(const source *from, const attn_placement *places, attn_layer *layer)
{
    attn_attention_config *config = &layer->config;
    widths out;
    config->out_proj = find_widths(from, layer, &places[ATTN_ROLE_OUT], &out);
    if (config->out_proj) {
        config->d_out = out.out;
    }
    if (config->out_proj ? out.in != layer->query_width : layer->layout != ATTN_LAYOUT_ATTN) {
        return false;
    }
    config->qkv_bias = find_role(from, layer, &places[ATTN_ROLE_QUERY_BIAS]) != NULL;
    config->out_bias = !config->out_proj ||
                       find_role(from, layer, &places[ATTN_ROLE_OUT_BIAS]) != NULL;
    if (layer->layout == ATTN_LAYOUT_LLAMA) {
        config->rotary = ATTN_ROTARY_HALF_SPLIT;
    }
    const attn_tensor *norm = find_role(from, layer, &places[ATTN_ROLE_QUERY_NORM]);
    config->qk_norm = norm != NULL;
    if (norm == NULL) {
        return true;
    }
    if (norm->ndim != 1 || norm->shape[0] <= 0 || layer->query_width % norm->shape[0] != 0 ||
        layer->key_width % norm->shape[0] != 0) {
        return true; // another kind of norm: attn_layer_load will say so
    }
    return attn_layer_set_heads(layer, layer->query_width / norm->shape[0], NULL) == ATTN_OK;
}

// A saved mask tells the longest sequence: attn's (n, n), gpt2's (1, 1, n, n).
static void describe_mask(const source *from, attn_layer *layer)
{
    const char *name = layer->layout == ATTN_LAYOUT_GPT2 ? "bias" : "mask";
    const attn_named_tensor *mask =
        attn_named_find(from->tensors, from->count, layer->prefix, name);
    const int32_t ndim = layer->layout == ATTN_LAYOUT_GPT2 ? 4 : 2;
    if (mask != NULL && mask->tensor.ndim == ndim &&
        mask->tensor.shape[ndim - 1] == mask->tensor.shape[ndim - 2]) {
        layer->config.context_length = mask->tensor.shape[ndim - 1];
    }
}

static void count_values(const source *from, const attn_placement *places, attn_layer *layer)
{
    for (int role = 0; role < ATTN_ROLE_COUNT; role++) {
        const attn_tensor *tensor = find_role(from, layer, &places[role]);
        if (tensor != NULL && places[role].part <= 0) { // a fused tensor counts once
            layer->values += attn_tensor_count(tensor);
        }
    }
}

// ---- this library's other modules ---------------------------------------------------------------

// SelfAttentionV1: plain matrices (d_in, d_out).
static bool describe_v1(const source *from, attn_layer *layer)
{
    static const char *const names[] = {"W_query", "W_key", "W_value"};
    const attn_tensor *first = NULL;
    for (int i = 0; i < 3; i++) {
        const attn_named_tensor *matrix =
            attn_named_find(from->tensors, from->count, layer->prefix, names[i]);
        if (matrix == NULL || matrix->tensor.ndim != 2 ||
            (first != NULL && !attn_tensor_same_shape(first, &matrix->tensor))) {
            return false;
        }
        first = &matrix->tensor;
        layer->values += attn_tensor_count(first);
    }
    if (first->shape[0] == 0 || first->shape[1] == 0) {
        return false;
    }
    attn_attention_config_init(&layer->config);
    layer->config.d_in = first->shape[0];
    layer->config.d_out = layer->query_width = layer->key_width = first->shape[1];
    layer->number = last_number(layer->prefix);
    layer->knows_heads = true;
    layer->kind = "self_attention_v1";
    return true;
}

// MultiHeadAttentionWrapper: heads.0. and its like, all of one shape. Turns the layer of head 0 into
// that of the wrapper.
static void describe_wrapper(const source *from, attn_layer *layer)
{
    char prefix[ATTN_LAYER_PREFIX_SIZE];
    if (!strip_suffix(layer->prefix, "heads.0.", prefix)) {
        return;
    }
    const attn_named_tensor *first =
        attn_named_find(from->tensors, from->count, layer->prefix, "W_query.weight");
    int64_t heads = 0;
    for (const attn_named_tensor *query = first;
         query != NULL && attn_tensor_same_shape(&query->tensor, &first->tensor);) {
        char name[64];
        snprintf(name, sizeof(name), "heads.%" PRId64 ".W_query.weight", ++heads);
        query = attn_named_find(from->tensors, from->count, prefix, name);
    }
    memcpy(layer->prefix, prefix, sizeof(prefix));
    layer->number = last_number(prefix);
    layer->kind = "multi_head_attention_wrapper";
    layer->config.num_heads = heads;
    layer->values *= heads;
    layer->query_width *= heads;
    layer->key_width *= heads;
}

// heads.1. and later belong to the wrapper that heads.0. announces.
static bool is_later_head(const source *from, const attn_layer *layer)
{
    const size_t length = strlen(layer->prefix);
    size_t digits = 0;
    while (digits + 1 < length && layer->prefix[length - 2 - digits] >= '0' &&
           layer->prefix[length - 2 - digits] <= '9') {
        digits++;
    }
    const size_t start = length - 1 - digits;
    if (length == 0 || digits == 0 || start < 6 ||
        strncmp(layer->prefix + start - 6, "heads.", 6) != 0 ||
        strcmp(layer->prefix + start, "0.") == 0) {
        return false;
    }
    char first[ATTN_LAYER_PREFIX_SIZE + 32];
    snprintf(first, sizeof(first), "%.*s0.W_query.weight", (int)start, layer->prefix);
    return attn_named_find(from->tensors, from->count, "", first) != NULL;
}

static int64_t last_number(const char *prefix)
{
    int64_t number = -1;
    for (const char *part = prefix; *part != '\0';) {
        const size_t length = strcspn(part, ".");
        const size_t digits = strspn(part, "0123456789");
        if (digits == length && digits > 0 && digits < 10) {
            number = 0;
            for (size_t i = 0; i < digits; i++) {
                number = number * 10 + (part[i] - '0');
            }
        }
        part += length;
        part += *part == '.';
    }
    return number;
}
