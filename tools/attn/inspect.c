// attn inspect: what is in a file.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layer_options.h"
#include "tensor_file.h"
#include "text.h"
#include "tool.h"

static const option_row inspect_rows[] = {
    {"layers", 'l', NULL, "Only the attention layers."},
    {"values", 'v', NULL, "Also smallest, largest, mean and number of values that are not finite."},
    {NULL, 0, NULL, NULL},
};
static const option_group inspect_group = {"Inspect", inspect_rows};

static int run(const arguments *a);

static const option_group *const groups[] = {&inspect_group, &format_group, &help_group, NULL};

const command inspect_command = {
    .name = "inspect",
    .summary = "list the tensors and attention layers of a file",
    .operands = "FILE...",
    .least = 1,
    .most = -1,
    .description =
        "Lists tensors with dtype and shape, the metadata, the attention layers that are "
        "recognised (with layout, prefix and number), and the number of values. FILE is a .npy, "
        ".npz or .safetensors file, the .index.json of a sharded checkpoint, or - for standard "
        "input.",
    .groups = groups,
    .example = "  attn inspect model.safetensors\n",
    .run = run,
};

static int inspect_file(const arguments *a, const attn_context *context, const char *path);
static void print_metadata(const attn_safetensors *file);
static void print_tensors(const arguments *a, const tensor_file *file, progress *bar);
static void print_values(const attn_tensor *tensor);
static int print_layers(const arguments *a, const tensor_file *file);

static int run(const arguments *a)
{
    attn_context *context = plain_context(a);
    int status = context == NULL ? EXIT_TROUBLE : EXIT_OK;
    for (int i = 0; status == EXIT_OK && i < a->operand_count; i++) {
        status = inspect_file(a, context, a->operands[i]);
    }
    attn_context_destroy(context);
    return status;
}

static int inspect_file(const arguments *a, const attn_context *context, const char *path)
{
    tensor_file file;
    attn_error error;
    if (tensor_file_open(context, path, npy_flags(a), &file, &error) != ATTN_OK) {
        return library_trouble(a, &error);
    }
    double bytes = 0;
    int64_t values = 0;
    for (int64_t i = 0; i < file.count; i++) {
        const attn_tensor *tensor = &file.entries[i].tensor;
        values += attn_tensor_count(tensor);
        bytes += (double)attn_tensor_count(tensor) * (double)attn_dtype_size(tensor->dtype);
    }
    char size[32], count[32];
    format_bytes(bytes, size);
    format_count(values, count);
    printf("%s: %s, %lld tensor%s, %s values, %s\n", path, file.format, (long long)file.count,
           file.count == 1 ? "" : "s", count, size);
    if (!argument_given(a, "layers")) {
        if (file.safetensors != NULL) {
            print_metadata(file.safetensors);
        }
        progress bar;
        progress_begin(&bar, "attn inspect", values);
        print_tensors(a, &file, &bar);
        progress_end(&bar);
    }
    const int status = print_layers(a, &file);
    tensor_file_close(&file);
    return status;
}

// Text from a file, without what would steer a terminal.
static void print_safely(const char *text, int most)
{
    int printed = 0;
    for (; *text != '\0' && printed < most; text++, printed++) {
        const unsigned char c = (unsigned char)*text;
        putchar(c < 0x20 || c == 0x7F ? '?' : c);
    }
    if (*text != '\0') {
        fputs("...", stdout);
    }
}

static void print_metadata(const attn_safetensors *file)
{
    enum { MOST = 100 };
    for (int64_t i = 0; i < attn_safetensors_metadata_count(file); i++) {
        const char *key = attn_safetensors_metadata_key(file, i);
        fputs("  metadata  ", stdout);
        print_safely(key, MOST);
        fputs(" = ", stdout);
        print_safely(attn_safetensors_metadata(file, key), MOST);
        putchar('\n');
    }
}

static void print_tensors(const arguments *a, const tensor_file *file, progress *bar)
{
    enum { WIDEST = 56, MOST = 200 };
    int width = 0;
    for (int64_t i = 0; i < file->count; i++) {
        const int length = (int)strlen(file->entries[i].name);
        width = length > width ? length : width;
    }
    width = width > WIDEST ? WIDEST : width;
    for (int64_t i = 0; i < file->count; i++) {
        const attn_named_tensor *entry = &file->entries[i];
        char shape[160];
        attn_tensor_format_shape(&entry->tensor, shape, sizeof(shape));
        fputs("  ", stdout);
        print_safely(entry->name, MOST);
        printf("%*s%-8s  %s",
               width - (int)strlen(entry->name) + 2 > 0 ? width - (int)strlen(entry->name) + 2 : 2,
               "", attn_dtype_name(entry->tensor.dtype), shape);
        if (argument_given(a, "values")) {
            print_values(&entry->tensor);
        }
        putchar('\n');
        progress_advance(bar, attn_tensor_count(&entry->tensor));
    }
}

// Counts up an index tuple; false after the last.
static bool next_index(const attn_tensor *tensor, int64_t *index)
{
    for (int32_t d = tensor->ndim - 1; d >= 0; d--) {
        if (++index[d] < tensor->shape[d]) {
            return true;
        }
        index[d] = 0;
    }
    return false;
}

static void print_values(const attn_tensor *tensor)
{
    if (attn_tensor_count(tensor) == 0) {
        return;
    }
    double low = INFINITY;
    double high = -INFINITY;
    double sum = 0;
    int64_t finite = 0;
    int64_t index[ATTN_MAX_DIMS] = {0};
    do {
        const double value = attn_tensor_get(tensor, index);
        if (isfinite(value)) {
            low = fmin(low, value);
            high = fmax(high, value);
            sum += value;
            finite++;
        }
    } while (next_index(tensor, index));
    if (finite > 0) {
        printf("  min %.6g  max %.6g  mean %.6g", low, high, sum / (double)finite);
    }
    if (finite < attn_tensor_count(tensor)) {
        printf("  not finite %lld", (long long)(attn_tensor_count(tensor) - finite));
    }
}

static int print_layers(const arguments *a, const tensor_file *file)
{
    int64_t count = 0;
    attn_error error;
    if (attn_layers_find(file->entries, file->count, ATTN_LAYOUT_ANY, NULL, 0, &count, &error) !=
        ATTN_OK) {
        return library_trouble(a, &error);
    }
    attn_layer *layers = calloc((size_t)count + 1, sizeof(*layers));
    if (layers == NULL) {
        return trouble(a, "out of memory");
    }
    attn_layers_find(file->entries, file->count, ATTN_LAYOUT_ANY, layers, count, &count, &error);
    if (count == 0 && argument_given(a, "layers")) {
        puts("  no attention layer is recognised");
    }
    for (int64_t i = 0; i < count; i++) {
        const attn_layer *layer = &layers[i];
        char values[32];
        format_count(layer->values, values);
        printf("  layer ");
        if (layer->number >= 0) {
            printf("%lld", (long long)layer->number);
        } else {
            putchar('-');
        }
        printf("  %s  \"", attn_layout_name(layer->layout));
        print_safely(layer->prefix, ATTN_LAYER_PREFIX_SIZE);
        printf("\"  %s  d_in %lld  d_out %lld", layer->kind, (long long)layer->config.d_in,
               (long long)layer->config.d_out);
        if (layer->knows_heads) {
            printf("  heads %lld", (long long)layer->config.num_heads);
        }
        if (layer->config.num_kv_heads > 0) {
            printf("  key heads %lld", (long long)layer->config.num_kv_heads);
        }
        printf("  %s values\n", values);
    }
    free(layers);
    return EXIT_OK;
}
