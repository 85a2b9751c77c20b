// MultiHeadAttention as a program would call it: on a tape, GPT-2 small's sizes.
#include <stdio.h>

#include "case.h"

enum { WIDTH = 768, HEADS = 12, CONTEXT = 1024 };

struct training {
    attn_tape *tape;
    attn_module *module;
    const attn_tensor *input, *upstream;
    attn_status status;
};

static attn_var forward(struct training *t)
{
    attn_tape_reset(t->tape);
    return attn_module_apply(t->module, attn_borrow(t->tape, t->input, NULL));
}

static void run_inference(void *state)
{
    struct training *const t = state;
    attn_tape_set_recording(t->tape, false);
    forward(t);
    t->status = t->status == ATTN_OK ? attn_tape_status(t->tape) : t->status;
}

static void run_training(void *state)
{
    struct training *const t = state;
    attn_tape_set_recording(t->tape, true);
    const attn_status status = attn_backward_from(forward(t), t->upstream, NULL);
    t->status = t->status == ATTN_OK ? status : t->status;
}

static bool make_training(const attn_context *context, const attn_tensor *input,
                          const attn_tensor *upstream, struct training *t)
{
    attn_attention_config config;
    attn_attention_config_init(&config);
    config.d_in = config.d_out = WIDTH;
    config.num_heads = HEADS;
    config.context_length = CONTEXT;
    attn_generator *generator = NULL;
    t->input = input;
    t->upstream = upstream;
    const bool made = attn_generator_create(context, 123, &generator, NULL) == ATTN_OK &&
                      attn_multi_head_attention_create(context, &config, generator, &t->module,
                                                       NULL) == ATTN_OK &&
                      attn_tape_create(context, &t->tape, NULL) == ATTN_OK;
    attn_generator_destroy(generator);
    return made;
}

// Four projections and the causal attention. A linear layer's backward is two products of its forward's
// size, attention's is 2.5 of them.
static struct result result_of(const char *name, int64_t batch, int64_t tokens)
{
    const double rows = (double)batch * (double)tokens;
    const double linear = 4 * 2 * rows * WIDTH * WIDTH;
    const double attention = 4 * rows * (double)tokens * WIDTH / 2;
    return (struct result){
        .name = name, .operations = linear + attention, .backward = 2 * linear + 2.5 * attention};
}

bool bench_module(struct bench *bench, const char *name, int64_t batch, int64_t tokens)
{
    const attn_context *const context = bench->contexts[1];
    const int64_t shape[] = {batch, tokens, WIDTH};
    attn_tensor input = {0};
    attn_tensor upstream = {0};
    attn_generator *generator = NULL;
    struct training training[MOST_THREADS + 1] = {0};
    struct contender contenders[MOST_CONTENDERS];
    int count = 0;
    bool fine = attn_generator_create(context, 1, &generator, NULL) == ATTN_OK &&
                attn_tensor_create(context, ATTN_F32, 3, shape, &input, NULL) == ATTN_OK &&
                attn_tensor_create(context, ATTN_F32, 3, shape, &upstream, NULL) == ATTN_OK &&
                attn_uniform(generator, -1, 1, &input, NULL) == ATTN_OK &&
                attn_uniform(generator, -1, 1, &upstream, NULL) == ATTN_OK;
    for (int t = 1; fine && t <= bench->machine.threads; t++) {
        fine = make_training(bench->contexts[t], &input, &upstream, &training[t]);
        contenders[count++] = (struct contender){.name = "attn",
                                                 .what = "forward",
                                                 .threads = t,
                                                 .run = run_inference,
                                                 .state = &training[t]};
        contenders[count++] = (struct contender){.name = "attn",
                                                 .what = "forward+backward",
                                                 .threads = t,
                                                 .run = run_training,
                                                 .state = &training[t]};
    }
    if (fine) {
        count += machine_add_limits(&bench->machine, NULL, 0, contenders + count);
        timing_run(contenders, count, &bench->timing);
    }
    for (int t = 1; t <= bench->machine.threads; t++) {
        fine = fine && training[t].status == ATTN_OK;
    }
    if (fine) {
        const struct result result = result_of(name, batch, tokens);
        report_case(bench, &result, contenders, count);
    } else {
        fprintf(stderr, "attn_bench: %s: out of memory\n", name);
    }
    for (int t = 1; t <= MOST_THREADS; t++) {
        attn_tape_destroy(training[t].tape);
        attn_module_destroy(training[t].module);
    }
    attn_tensor_destroy(context, &input);
    attn_tensor_destroy(context, &upstream);
    attn_generator_destroy(generator);
    return fine;
}
