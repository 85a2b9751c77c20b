// Loads one attention layer of a GPT-2 checkpoint from Hugging Face and runs it.
//
//   load_gpt2_layer MODEL.safetensors [LAYER [HEADS]]
//
// The layer is found by its names (h.LAYER.attn.c_attn.weight, with or without "transformer."), its
// joint projection is split and transposed, and its causal mask is known without being stored.
#include <attn/attn.h>
#include <stdio.h>
#include <stdlib.h>

// Runs the layer on eight vectors n, n/2, n/3, ... and prints the start of every output row.
static attn_status run(const attn_context *context, attn_module *layer, attn_error *error)
{
    enum { LENGTH = 8 };
    const int64_t width = attn_module_config(layer)->d_in;
    const int64_t shape[] = {LENGTH, width};
    attn_tensor x;
    attn_tape *tape = NULL;
    attn_status status = attn_tensor_create(context, ATTN_F32, 2, shape, &x, error);
    if (status != ATTN_OK) {
        return status;
    }
    float *values = x.data;
    for (int64_t row = 0; row < LENGTH; row++) {
        for (int64_t column = 0; column < width; column++) {
            values[row * width + column] = (float)(row + 1) / (float)(column + 1);
        }
    }
    status = attn_tape_create(context, &tape, error);
    if (status == ATTN_OK) {
        attn_module_eval(layer);
        attn_tape_set_recording(tape, false);
        const attn_var output = attn_module_apply(layer, attn_input(tape, &x, false));
        const attn_tensor start = attn_value(attn_slice(output, 1, 0, 4));
        char text[1024];
        attn_tensor_format(&start, 4, text, sizeof(text));
        status = attn_tape_status(tape);
        if (status == ATTN_OK) {
            printf("%s\n", text);
        } else {
            *error = *attn_tape_error(tape);
        }
    }
    attn_tape_destroy(tape);
    attn_tensor_destroy(context, &x);
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: load_gpt2_layer MODEL.safetensors [LAYER [HEADS]]\n");
        return 2;
    }
    const int64_t number = argc > 2 ? strtoll(argv[2], NULL, 10) : 0;
    const int64_t heads = argc > 3 ? strtoll(argv[3], NULL, 10) : 12;
    attn_context *context = NULL;
    attn_safetensors *file = NULL;
    attn_module *module = NULL;
    attn_layer layer;
    attn_error error;

    attn_status status = attn_context_create(NULL, &context, &error);
    if (status == ATTN_OK) {
        status = attn_safetensors_open(context, argv[1], &file, &error);
    }
    const attn_named_tensor *tensors = file == NULL ? NULL : attn_safetensors_entry(file, 0);
    const int64_t count = file == NULL ? 0 : attn_safetensors_count(file);
    if (status == ATTN_OK) {
        status = attn_layer_find(tensors, count, ATTN_LAYOUT_GPT2, NULL, number, &layer, &error);
    }
    if (status == ATTN_OK) {
        status = attn_layer_set_heads(&layer, heads, &error);
    }
    if (status == ATTN_OK) {
        layer.config.context_length = 1024;
        status = attn_layer_create_module(context, &layer, &module, &error);
    }
    if (status == ATTN_OK) {
        status = attn_layer_load(module, &layer, tensors, count, &error);
    }
    attn_safetensors_close(file); // the module has its own copy
    if (status == ATTN_OK) {
        printf("%s* has %lld values in %lld parameters\n", layer.prefix,
               (long long)attn_module_value_count(module),
               (long long)attn_module_parameter_count(module));
        status = run(context, module, &error);
    }
    if (status != ATTN_OK) {
        fprintf(stderr, "%s\n", error.text);
    }
    attn_module_destroy(module);
    attn_context_destroy(context);
    return status == ATTN_OK ? 0 : 1;
}
