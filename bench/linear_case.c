// One linear layer, beside sgemm.
#include <stdio.h>
#include <stdlib.h>

#include "case.h"

struct layer {
    attn_tape *tape;
    attn_module *module;
    const attn_tensor *input;
    attn_status status;
};

struct product {
    const struct blas *blas;
    int threads, rows, out, in;
    const float *input, *weight;
    float *output;
};

static void run_layer(void *state)
{
    struct layer *const layer = state;
    attn_tape_reset(layer->tape);
    attn_tape_set_recording(layer->tape, false);
    attn_module_apply(layer->module, attn_borrow(layer->tape, layer->input, NULL));
    layer->status = layer->status == ATTN_OK ? attn_tape_status(layer->tape) : layer->status;
}

static void run_product(void *state)
{
    const struct product *const p = state;
    if (p->blas->set_threads) {
        p->blas->set_threads(p->threads);
    }
    p->blas->sgemm(BLAS_ROW_MAJOR, BLAS_PLAIN, BLAS_TRANSPOSED, p->rows, p->out, p->in, 1, p->input,
                   p->in, p->weight, p->in, 0, p->output, p->out);
}

static int add_layers(const struct bench *bench, int64_t out, int64_t in, const attn_tensor *input,
                      struct layer *layers, struct contender *contenders)
{
    for (int t = 1; t <= bench->machine.threads; t++) {
        const attn_context *const context = bench->contexts[t];
        attn_generator *generator = NULL;
        layers[t].input = input;
        const bool made = attn_generator_create(context, 1, &generator, NULL) == ATTN_OK &&
                          attn_linear_create(context, in, out, true, ATTN_F32, generator,
                                             &layers[t].module, NULL) == ATTN_OK &&
                          attn_tape_create(context, &layers[t].tape, NULL) == ATTN_OK;
        attn_generator_destroy(generator);
        if (!made) {
            return 0;
        }
        contenders[t - 1] = (struct contender){
            .name = "attn", .what = "linear", .threads = t, .run = run_layer, .state = &layers[t]};
    }
    return bench->machine.threads;
}

bool bench_linear(struct bench *bench, const char *name, int64_t rows, int64_t out, int64_t in)
{
    const attn_context *const context = bench->contexts[1];
    struct layer layers[MOST_THREADS + 1] = {0};
    struct product products[MOST_BLAS * MOST_THREADS];
    struct contender contenders[MOST_CONTENDERS];
    attn_tensor input = {0};
    attn_generator *generator = NULL;
    float *const output = malloc((size_t)(rows * out) * sizeof(float));
    int count = 0;
    if (output && attn_generator_create(context, 1, &generator, NULL) == ATTN_OK &&
        attn_tensor_create(context, ATTN_F32, 2, (int64_t[]){rows, in}, &input, NULL) == ATTN_OK &&
        attn_uniform(generator, -1, 1, &input, NULL) == ATTN_OK) {
        count = add_layers(bench, out, in, &input, layers, contenders);
    }
    const bool fine = count > 0;
    for (int i = 0; fine && i < bench->blas_count * bench->machine.threads; i++) {
        products[i] =
            (struct product){.blas = &bench->blas[i / bench->machine.threads],
                             .threads = 1 + i % bench->machine.threads,
                             .rows = (int)rows,
                             .out = (int)out,
                             .in = (int)in,
                             .input = input.data,
                             .weight = attn_module_parameter(layers[1].module, 0)->value.data,
                             .output = output};
        contenders[count++] = (struct contender){.name = products[i].blas->name,
                                                 .what = "sgemm",
                                                 .threads = products[i].threads,
                                                 .run = run_product,
                                                 .state = &products[i]};
    }
    if (fine) {
        count += machine_add_limits(&bench->machine, NULL, 0, contenders + count);
        timing_run(contenders, count, &bench->timing);
        const struct result result = {.name = name,
                                      .operations = 2.0 * (double)rows * (double)out * (double)in};
        report_case(bench, &result, contenders, count);
        for (int b = 0; b < bench->blas_count; b++) {
            if (bench->blas[b].set_threads) {
                bench->blas[b].set_threads(1);
            }
        }
    } else {
        fprintf(stderr, "attn_bench: %s: out of memory\n", name);
    }
    for (int t = 1; t <= MOST_THREADS; t++) {
        attn_tape_destroy(layers[t].tape);
        attn_module_destroy(layers[t].module);
    }
    attn_tensor_destroy(context, &input);
    attn_generator_destroy(generator);
    free(output);
    return fine;
}
