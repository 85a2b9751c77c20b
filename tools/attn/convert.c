// attn convert: between formats, dtypes and layouts.
#include <stdlib.h>
#include <string.h>

#include "layer_options.h"
#include "tensor_file.h"
#include "tool.h"

static const option_row convert_rows[] = {
    {"to", 't', "attn|gpt2|torch|llama", "Write the attention layers in this layout."},
    {"cast", 0, "float64|float32|float16|bfloat16", "Convert floating tensors to this dtype."},
    {"tensor", 0, "NAME", "Only this tensor."},
    {"keep-rest", 0, NULL, "With --to, also the tensors that belong to no converted layer."},
    {"buffers", 0, NULL, "With --to attn, also the causal masks."},
    {"new-prefix", 0, "TEXT", "Put one layer's tensors under this prefix; default its old one."},
    {NULL, 0, NULL, NULL},
};
static const option_group convert_group = {"Convert", convert_rows};

static int run(const arguments *a);

static const option_group *const groups[] = {&convert_group, &layer_group, &module_group,
                                             &format_group,  &help_group,  NULL};

const command convert_command = {
    .name = "convert",
    .summary = "convert between file formats, dtypes and layouts of attention layers",
    .operands = "IN OUT",
    .least = 2,
    .most = 2,
    .description =
        "Reads IN (.npy, .npz, .safetensors, .index.json or - for standard input) and writes OUT: "
        "a .safetensors file, a .npy file or - where there is one tensor, or a folder (a name that "
        "ends in '/') that gets each tensor as NAME.npy.\n\n"
        "With --to every recognised attention layer (or the one that --layer or --prefix names) "
        "is rewritten: fused projections are split or joined, transposed ones turned.",
    .groups = groups,
    .example =
        "  attn convert weights.npz weights.safetensors\n"
        "  attn convert model.safetensors layer0.safetensors --layer 0 --to attn --heads 12\n",
    .run = run,
};

// The tensors that will be written, and what owns their memory.
typedef struct conversion {
    const arguments *arguments;
    const attn_context *context;
    const char *path;
    tensor_file file;
    attn_named_tensor *tensors;
    int64_t count;
    attn_tensor_list **lists; // of converted layers
    int64_t list_count;
    attn_tensor *casts; // copies in another dtype
    int64_t cast_count;
} conversion;

static int choose_tensors(conversion *c);
static int convert_layers(conversion *c);
static int convert_layer(conversion *c, attn_layer *layer);
static bool belongs(const attn_layer *layers, int64_t count, const char *name);
static int cast_tensors(conversion *c);
static int save(const conversion *c);
static void close_conversion(conversion *c);

static int run(const arguments *a)
{
    if (!argument_given(a, "to")) {
        const char *foreign = given_in_group(a, &layer_group, NULL);
        foreign = foreign != NULL ? foreign : given_in_group(a, &module_group, NULL);
        for (int i = 0; foreign == NULL && i < 3; i++) {
            static const char *const names[] = {"keep-rest", "buffers", "new-prefix"};
            foreign = argument_given(a, names[i]) ? names[i] : NULL;
        }
        if (foreign != NULL) {
            return usage_error(a, "--%s goes with --to", foreign);
        }
    }
    conversion c = {.arguments = a, .context = plain_context(a), .path = a->operands[0]};
    if (c.context == NULL) {
        return EXIT_TROUBLE;
    }
    attn_error error;
    int status = EXIT_OK;
    if (tensor_file_open(c.context, c.path, npy_flags(a), &c.file, &error) != ATTN_OK) {
        status = library_trouble(a, &error);
    }
    if (status == EXIT_OK) {
        status = argument_given(a, "to") ? convert_layers(&c) : choose_tensors(&c);
    }
    if (status == EXIT_OK && argument_given(a, "cast")) {
        status = cast_tensors(&c);
    }
    if (status == EXIT_OK) {
        status = save(&c);
    }
    close_conversion(&c);
    return status;
}

// ---- which tensors ------------------------------------------------------------------------------

static bool reserve(conversion *c, int64_t count)
{
    c->tensors = calloc((size_t)count + 1, sizeof(*c->tensors));
    c->casts = calloc((size_t)count + 1, sizeof(*c->casts));
    if (c->tensors == NULL || c->casts == NULL) {
        trouble(c->arguments, "out of memory");
        return false;
    }
    return true;
}

static int choose_tensors(conversion *c)
{
    const char *name = argument_text(c->arguments, "tensor");
    if (!reserve(c, c->file.count)) {
        return EXIT_TROUBLE;
    }
    for (int64_t i = 0; i < c->file.count; i++) {
        if (name == NULL || strcmp(name, c->file.entries[i].name) == 0) {
            c->tensors[c->count++] = c->file.entries[i];
        }
    }
    if (name != NULL && c->count == 0) {
        return trouble(c->arguments, "%s: no tensor is named \"%s\"", c->path, name);
    }
    return EXIT_OK;
}

// ---- layers -------------------------------------------------------------------------------------

// Every layer, or the one that was named.
static int convert_layers(conversion *c)
{
    const arguments *a = c->arguments;
    const attn_layout layout = (attn_layout)argument_choice(a, "layout", ATTN_LAYOUT_ANY);
    const bool one = argument_given(a, "layer") || argument_given(a, "prefix");
    attn_error error;
    int64_t count = 1;
    if (!one && attn_layers_find(c->file.entries, c->file.count, layout, NULL, 0, &count, &error) !=
                    ATTN_OK) {
        return library_trouble(a, &error);
    }
    if (count == 0) {
        return trouble(a, "%s: no attention layer is recognised", c->path);
    }
    attn_layer *layers = calloc((size_t)count, sizeof(*layers));
    c->lists = calloc((size_t)count, sizeof(*c->lists));
    // A layer has at most as many tensors as its file, and gains at most its ten roles and masks.
    int status = layers != NULL && c->lists != NULL && reserve(c, 2 * c->file.count + 16 * count)
                     ? EXIT_OK
                     : EXIT_TROUBLE;
    if (status == EXIT_OK && one) {
        choose_layer(a, &c->file, c->path, layers, &status);
    } else if (status == EXIT_OK) {
        attn_layers_find(c->file.entries, c->file.count, layout, layers, count, &count, &error);
    }
    progress bar;
    progress_begin(&bar, "attn convert", count);
    for (int64_t i = 0; status == EXIT_OK && i < count; i++) {
        if (!one) {
            complete_layer(a, &c->file, c->path, &layers[i], &status);
        }
        if (status == EXIT_OK) {
            status = convert_layer(c, &layers[i]);
        }
        progress_advance(&bar, 1);
    }
    progress_end(&bar);
    for (int64_t i = 0; status == EXIT_OK && argument_given(a, "keep-rest") && i < c->file.count;
         i++) {
        if (!belongs(layers, count, c->file.entries[i].name)) {
            c->tensors[c->count++] = c->file.entries[i];
        }
    }
    free(layers);
    return status;
}

static int convert_layer(conversion *c, attn_layer *layer)
{
    const arguments *a = c->arguments;
    const char *prefix = argument_text(a, "new-prefix");
    if (prefix != NULL && c->list_count > 0) {
        return usage_error(a, "--new-prefix is for one layer; choose it with --layer or --prefix");
    }
    // The longest sequence is no parameter; a module only needs one.
    if (layer->config.causal && layer->config.context_length == 0 &&
        strncmp(layer->kind, "self_attention", 14) != 0) {
        layer->config.context_length = 1024;
    }
    attn_module *module = load_layer(a, c->context, &c->file, layer);
    if (module == NULL) {
        return EXIT_TROUBLE;
    }
    const attn_layout to = (attn_layout)((int)ATTN_LAYOUT_ATTN + argument_choice(a, "to", 0));
    attn_error error;
    attn_tensor_list *list = NULL;
    const attn_status status = attn_layer_save(c->context, module, to,
                                               prefix == NULL ? layer->prefix : prefix,
                                               argument_given(a, "buffers"), &list, &error);
    attn_module_destroy(module);
    if (status != ATTN_OK) {
        return trouble(a, "%s: %s", *layer->prefix == '\0' ? c->path : layer->prefix, error.text);
    }
    c->lists[c->list_count++] = list;
    for (int64_t i = 0; i < attn_tensor_list_count(list); i++) {
        c->tensors[c->count++] = attn_tensor_list_entries(list)[i];
    }
    return EXIT_OK;
}

static bool belongs(const attn_layer *layers, int64_t count, const char *name)
{
    for (int64_t i = 0; i < count; i++) {
        const size_t length = strlen(layers[i].prefix);
        if (length > 0 && strncmp(name, layers[i].prefix, length) == 0) {
            return true;
        }
    }
    return false;
}

// ---- dtype and output ---------------------------------------------------------------------------

static bool is_floating(attn_dtype dtype)
{
    return dtype == ATTN_F64 || dtype == ATTN_F32 || dtype == ATTN_F16 || dtype == ATTN_BF16;
}

static int cast_tensors(conversion *c)
{
    static const attn_dtype dtypes[] = {ATTN_F64, ATTN_F32, ATTN_F16, ATTN_BF16};
    const attn_dtype dtype = dtypes[argument_choice(c->arguments, "cast", 0)];
    progress bar;
    progress_begin(&bar, "attn convert", c->count);
    for (int64_t i = 0; i < c->count; i++) {
        attn_tensor *tensor = &c->tensors[i].tensor;
        attn_tensor *cast = &c->casts[c->cast_count];
        attn_error error;
        progress_advance(&bar, 1);
        if (!is_floating(tensor->dtype) || tensor->dtype == dtype) {
            continue;
        }
        if (attn_tensor_create(c->context, dtype, tensor->ndim, tensor->shape, cast, &error) !=
            ATTN_OK) {
            return library_trouble(c->arguments, &error);
        }
        c->cast_count++;
        if (attn_tensor_copy(tensor, cast, &error) != ATTN_OK) {
            return library_trouble(c->arguments, &error);
        }
        *tensor = *cast;
    }
    progress_end(&bar);
    return EXIT_OK;
}

static int save(const conversion *c)
{
    const arguments *a = c->arguments;
    const char *path = a->operands[1];
    const attn_safetensors *file = c->file.safetensors;
    const int64_t pairs = file == NULL ? 0 : attn_safetensors_metadata_count(file);
    attn_text_pair *metadata = calloc((size_t)pairs + 1, sizeof(*metadata));
    if (metadata == NULL) {
        return trouble(a, "out of memory");
    }
    for (int64_t i = 0; i < pairs; i++) {
        const char *key = attn_safetensors_metadata_key(file, i);
        metadata[i] = (attn_text_pair){key, attn_safetensors_metadata(file, key)};
    }
    // The one tensor of a .npy has no name of its own.
    for (int64_t i = 0; i < c->count; i++) {
        const char *name = c->tensors[i].name;
        if (name == NULL || *name == '\0') {
            c->tensors[i].name = "tensor";
        }
    }
    attn_error error;
    const attn_status status = tensor_file_save(c->context, path, c->tensors, c->count, metadata,
                                                pairs, npy_flags(a), &error);
    free(metadata);
    return status == ATTN_OK ? EXIT_OK : library_trouble(a, &error);
}

static void close_conversion(conversion *c)
{
    for (int64_t i = 0; i < c->cast_count; i++) {
        attn_tensor_destroy(c->context, &c->casts[i]);
    }
    for (int64_t i = 0; i < c->list_count; i++) {
        attn_tensor_list_destroy(c->lists[i]);
    }
    free(c->casts);
    free((void *)c->lists);
    free(c->tensors);
    tensor_file_close(&c->file);
    attn_context_destroy((attn_context *)(uintptr_t)c->context);
}
