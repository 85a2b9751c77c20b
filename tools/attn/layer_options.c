#define _GNU_SOURCE
#include "layer_options.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const option_row layer_rows[] = {
    {"layout", 0, "any|attn|gpt2|torch|llama",
     "How the model file names its tensors; default any."},
    {"layer", 'l', "N", "Number of the layer, where the file has several."},
    {"prefix", 0, "TEXT", "What stands before the layer's names, such as 'h.0.attn.'."},
    {NULL, 0, NULL, NULL},
};
const option_group layer_group = {"Which layer", layer_rows};

static const option_row module_rows[] = {
    {"heads", 'H', "N", "Number of heads; default from the file or the config.json beside it."},
    {"context-length", 0, "N", "Longest sequence; default from the file, else the input's."},
    {"no-causal", 0, NULL, "Multi-head attention without the causal mask."},
    {"rotary", 0, "none|half-split|interleaved",
     "Rotary positions; default half-split for llama, else none."},
    {"rotary-base", 0, "X", "Their base; default from config.json, else 10000."},
    {"qk-norm-epsilon", 0, "X", "Epsilon of query and key norms; default 1e-6."},
    {"dtype", 0, "float32|float64", "What the module computes in; default float32."},
    {NULL, 0, NULL, NULL},
};
const option_group module_group = {"Module", module_rows};

// A whole config.json; models' are a few KiB.
enum { MOST_CONFIG = 1 << 20 };

static char *read_config(const char *path);
static bool config_number(const char *config, const char *key, double *value);
static bool choose_heads(const arguments *a, const tensor_file *file, const char *config,
                         attn_layer *layer, int *status);
static bool metadata_number(const tensor_file *file, const char *key, double *value);

bool choose_layer(const arguments *a, const tensor_file *file, const char *path, attn_layer *layer,
                  int *status)
{
    int64_t number;
    *status = EXIT_USAGE;
    if (!argument_integer(a, "layer", 0, INT64_MAX, -1, &number)) {
        return false;
    }
    const attn_layout layout = (attn_layout)argument_choice(a, "layout", ATTN_LAYOUT_ANY);
    attn_error error;
    if (attn_layer_find(file->entries, file->count, layout, argument_text(a, "prefix"), number,
                        layer, &error) != ATTN_OK) {
        *status = trouble(a, "%s: %s", path, error.text);
        return false;
    }
    return complete_layer(a, file, path, layer, status);
}

bool complete_layer(const arguments *a, const tensor_file *file, const char *path,
                    attn_layer *layer, int *status)
{
    char *config = read_config(path);
    attn_attention_config *into = &layer->config;
    double base = 10000;
    double epsilon = 1e-6;
    double found;
    config_number(config, "rope_theta", &base);
    config_number(config, "rms_norm_eps", &epsilon);
    if (into->context_length == 0 && (config_number(config, "n_positions", &found) ||
                                      config_number(config, "max_position_embeddings", &found) ||
                                      metadata_number(file, "context_length", &found))) {
        into->context_length = (int64_t)found;
    }
    *status = EXIT_USAGE;
    bool done = choose_heads(a, file, config, layer, status) &&
                argument_real(a, "rotary-base", 0, HUGE_VAL, base, &base) &&
                argument_real(a, "qk-norm-epsilon", 0, 1, epsilon, &epsilon) &&
                argument_integer(a, "context-length", 1, INT64_MAX, into->context_length,
                                 &into->context_length);
    free(config);
    into->rotary = (attn_rotary_style)argument_choice(a, "rotary", (int)into->rotary);
    if (into->rotary != ATTN_ROTARY_NONE) {
        into->rotary_base = base;
    }
    if (into->qk_norm) {
        into->qk_norm_epsilon = epsilon;
    }
    into->dtype = argument_choice(a, "dtype", 0) == 1 ? ATTN_F64 : ATTN_F32;
    if (done && argument_given(a, "no-causal")) {
        if (strcmp(layer->kind, "multi_head_attention") != 0) {
            *status = usage_error(a, "--no-causal: a %s is what it is", layer->kind);
            done = false;
        }
        into->causal = false;
    }
    if (done) {
        *status = EXIT_OK;
    }
    return done;
}

static bool choose_heads(const arguments *a, const tensor_file *file, const char *config,
                         attn_layer *layer, int *status)
{
    int64_t heads = 0;
    double found;
    if (!argument_integer(a, "heads", 1, INT64_MAX, 0, &heads)) {
        return false;
    }
    if (heads == 0 && layer->knows_heads) {
        return true;
    }
    if (heads == 0 && (config_number(config, "n_head", &found) ||
                       config_number(config, "num_attention_heads", &found) ||
                       metadata_number(file, "num_heads", &found))) {
        heads = (int64_t)found;
    }
    if (heads == 0) {
        *status = usage_error(a,
                              "the file does not tell the number of heads of \"%s\" (its queries "
                              "have %lld values); give --heads",
                              layer->prefix, (long long)layer->query_width);
        return false;
    }
    attn_error error;
    if (attn_layer_set_heads(layer, heads, &error) != ATTN_OK) {
        *status = library_trouble(a, &error);
        return false;
    }
    return true;
}

attn_module *load_layer(const arguments *a, const attn_context *context, const tensor_file *file,
                        const attn_layer *layer)
{
    attn_error error;
    attn_module *module = NULL;
    if (attn_layer_create_module(context, layer, &module, &error) != ATTN_OK ||
        attn_layer_load(module, layer, file->entries, file->count, &error) != ATTN_OK) {
        library_trouble(a, &error);
        attn_module_destroy(module);
        return NULL;
    }
    attn_module_eval(module);
    return module;
}

// ---- what a model says about itself ---------------------------------------------------------------

// config.json beside the file, or NULL.
static char *read_config(const char *path)
{
    char name[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const int folder = slash == NULL ? 0 : (int)(slash - path) + 1;
    const int length = snprintf(name, sizeof(name), "%.*sconfig.json", folder, path);
    FILE *stream = length > 0 && (size_t)length < sizeof(name) ? fopen(name, "rb") : NULL;
    if (stream == NULL) {
        return NULL;
    }
    char *text = malloc(MOST_CONFIG + 1);
    const size_t size = text == NULL ? 0 : fread(text, 1, MOST_CONFIG, stream);
    fclose(stream);
    if (text != NULL) {
        text[size] = '\0';
    }
    return text;
}

// The number after "key": in flat JSON. Values of other kinds do not count.
static bool config_number(const char *config, const char *key, double *value)
{
    const size_t length = strlen(key);
    for (const char *at = config; at != NULL && (at = strstr(at, key)) != NULL; at += length) {
        const char *after = at + length;
        if (at == config || at[-1] != '"' || *after++ != '"') {
            continue;
        }
        after += strspn(after, " \t\r\n");
        if (*after++ != ':') {
            continue;
        }
        after += strspn(after, " \t\r\n");
        char *end;
        const double number = strtod(after, &end);
        if (isdigit((unsigned char)*after) && end != after && number > 0 && number < 1e15) {
            *value = number;
            return true;
        }
    }
    return false;
}

static bool metadata_number(const tensor_file *file, const char *key, double *value)
{
    const char *text =
        file->safetensors == NULL ? NULL : attn_safetensors_metadata(file->safetensors, key);
    if (text == NULL) {
        return false;
    }
    char *end;
    const double number = strtod(text, &end);
    if (end == text || *end != '\0' || !(number >= 1 && number < 1e15)) {
        return false;
    }
    *value = number;
    return true;
}
