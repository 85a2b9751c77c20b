#include "run_module.h"

#include <string.h>

#include "layer_options.h"
#include "tensor_file.h"

// Everything a run of a layer holds.
typedef struct module_run {
    const arguments *arguments;
    const attn_context *context;
    tensor_file model, input_file, lengths_file;
    attn_tensor input, lengths;
    int64_t length_numbers[64];
    attn_module *module;
    attn_tape *tape;
    attn_trace *trace;
} module_run;

static int open_module(module_run *r);
static int forward(module_run *r, attn_tensor *output);
static int read_lengths(module_run *r, const attn_tensor **lengths);
static int save(const module_run *r, const attn_tensor *output);
static void close_run(module_run *r);

int run_module(const arguments *a, const attn_context *context)
{
    if (!argument_given(a, "input")) {
        return usage_error(a, "--model needs --input");
    }
    module_run r = {.arguments = a, .context = context};
    attn_tensor output;
    int status = open_module(&r);
    if (status == EXIT_OK) {
        status = forward(&r, &output);
    }
    if (status == EXIT_OK) {
        status = save(&r, &output);
    }
    close_run(&r);
    return status;
}

static int open_module(module_run *r)
{
    const arguments *a = r->arguments;
    const char *path = argument_text(a, "model");
    attn_error error;
    if (tensor_file_open(r->context, path, npy_flags(a), &r->model, &error) != ATTN_OK) {
        return trouble(a, "--model: %s", error.text);
    }
    if (tensor_file_open_one(r->context, argument_text(a, "input"), npy_flags(a), &r->input_file,
                             &r->input, &error) != ATTN_OK) {
        return trouble(a, "--input: %s", error.text);
    }
    attn_layer layer;
    int status;
    if (!choose_layer(a, &r->model, path, &layer, &status)) {
        return status;
    }
    const bool masked = strncmp(layer.kind, "self_attention", 14) != 0 && layer.config.causal;
    if (masked && layer.config.context_length == 0 && r->input.ndim >= 2) {
        int64_t position = 0;
        argument_integer(a, "position", 0, INT64_MAX / 2, 0, &position);
        const int64_t length = r->input.shape[r->input.ndim - 2];
        layer.config.context_length = position + (length > 0 ? length : 1);
    }
    r->module = load_layer(a, r->context, &r->model, &layer);
    return r->module == NULL ? EXIT_TROUBLE : EXIT_OK;
}

static int forward(module_run *r, attn_tensor *output)
{
    const arguments *a = r->arguments;
    attn_error error;
    attn_module_call call;
    attn_module_call_init(&call);
    if (!argument_integer(a, "position", 0, INT64_MAX, 0, &call.position)) {
        return EXIT_USAGE;
    }
    const int status = read_lengths(r, &call.key_lengths);
    if (status != EXIT_OK) {
        return status;
    }
    if (attn_tape_create(r->context, &r->tape, &error) != ATTN_OK ||
        ((argument_given(a, "trace") || argument_given(a, "weights")) &&
         attn_trace_create(r->context, &r->trace, &error) != ATTN_OK)) {
        return library_trouble(a, &error);
    }
    attn_tape_set_recording(r->tape, false);
    // The module computes in its own dtype.
    attn_tensor input;
    if (attn_tensor_create(r->context, attn_module_config(r->module)->dtype, r->input.ndim,
                           r->input.shape, &input, &error) != ATTN_OK) {
        return library_trouble(a, &error);
    }
    if (attn_tensor_copy(&r->input, &input, &error) != ATTN_OK) {
        attn_tensor_destroy(r->context, &input);
        return trouble(a, "--input: %s", error.text);
    }
    call.input = attn_input(r->tape, &input, false);
    attn_tensor_destroy(r->context, &input);
    call.trace = r->trace;
    *output = attn_value(attn_module_forward(r->module, &call));
    if (attn_tape_status(r->tape) != ATTN_OK) {
        return library_trouble(a, attn_tape_error(r->tape));
    }
    return EXIT_OK;
}

// --key-lengths as numbers or a file.
static int read_lengths(module_run *r, const attn_tensor **lengths)
{
    const arguments *a = r->arguments;
    const char *text = argument_text(a, "key-lengths");
    *lengths = NULL;
    if (text == NULL) {
        return EXIT_OK;
    }
    int count;
    attn_error error;
    if (strspn(text, "0123456789,") == strlen(text)) {
        if (!argument_integers(a, "key-lengths", r->length_numbers, 64, &count)) {
            return EXIT_USAGE;
        }
        const int64_t shape[] = {count};
        r->lengths = attn_tensor_wrap(r->length_numbers, ATTN_I64, 1, shape);
    } else if (tensor_file_open_one(r->context, text, npy_flags(a), &r->lengths_file, &r->lengths,
                                    &error) != ATTN_OK) {
        return trouble(a, "--key-lengths: %s", error.text);
    }
    *lengths = &r->lengths;
    return EXIT_OK;
}

static int save(const module_run *r, const attn_tensor *output)
{
    const arguments *a = r->arguments;
    attn_error error;
    const attn_named_tensor named = {"output", *output};
    const char *path = argument_text(a, "output");
    if (path != NULL &&
        tensor_file_save(r->context, path, &named, 1, NULL, 0, npy_flags(a), &error) != ATTN_OK) {
        return library_trouble(a, &error);
    }
    path = argument_text(a, "weights");
    if (path != NULL) {
        const attn_named_tensor *weights = attn_trace_find(r->trace, "attn_weights");
        if (weights == NULL) {
            return trouble(a, "the heads of a %s have weights of their own; --trace writes them",
                           attn_module_kind(r->module));
        }
        if (tensor_file_save(r->context, path, weights, 1, NULL, 0, npy_flags(a), &error) !=
            ATTN_OK) {
            return library_trouble(a, &error);
        }
    }
    const char *folder = argument_text(a, "trace");
    if (folder == NULL) {
        return EXIT_OK;
    }
    char slashed[4096];
    snprintf(slashed, sizeof(slashed), "%s/", folder);
    const int64_t count = attn_trace_count(r->trace);
    for (int64_t i = 0; i < count; i++) {
        if (tensor_file_save(r->context, slashed, attn_trace_entry(r->trace, i), 1, NULL, 0,
                             npy_flags(a), &error) != ATTN_OK) {
            return library_trouble(a, &error);
        }
    }
    return tensor_file_save(r->context, slashed, &named, 1, NULL, 0, npy_flags(a), &error) ==
                   ATTN_OK
               ? EXIT_OK
               : library_trouble(a, &error);
}

static void close_run(module_run *r)
{
    attn_trace_destroy(r->trace);
    attn_tape_destroy(r->tape);
    attn_module_destroy(r->module);
    tensor_file_close(&r->model);
    tensor_file_close(&r->input_file);
    tensor_file_close(&r->lengths_file);
}
