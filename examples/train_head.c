// Trains one causal head to repeat the word before: row i of the output should be word i - 1 (row 0,
// which has no word before, its own).
//
//   train_head
//
// The head sees each word beside its position, both one-hot. It has to learn to look one place back
// and to copy what it finds there.
#include <attn/attn.h>
#include <stdio.h>

enum { WORDS = 5, LENGTH = 6, BATCH = 16, WIDTH = WORDS + LENGTH, STEPS = 100 };

static float input[BATCH][LENGTH][WIDTH];
static float target[BATCH][LENGTH][WIDTH];

// New sentences of random words.
static void draw_sentences(attn_generator *generator)
{
    for (int b = 0; b < BATCH; b++) {
        for (int t = 0; t < LENGTH; t++) {
            for (int d = 0; d < WIDTH; d++) {
                input[b][t][d] = target[b][t][d] = 0;
            }
            input[b][t][attn_generator_u32(generator) % WORDS] = 1;
            input[b][t][WORDS + t] = 1;
            for (int d = 0; d < WORDS; d++) {
                target[b][t][d] = input[b][t > 0 ? t - 1 : 0][d];
            }
        }
    }
}

// Mean squared error of one batch on a fresh tape, and its gradients in the module's parameters.
static attn_status step(attn_tape *tape, attn_module *head, double *loss, attn_error *error)
{
    const int64_t shape[] = {BATCH, LENGTH, WIDTH};
    const attn_tensor x = attn_tensor_wrap_const(input, ATTN_F32, 3, shape);
    const attn_tensor wanted = attn_tensor_wrap_const(target, ATTN_F32, 3, shape);
    attn_tape_reset(tape);
    const attn_var output = attn_module_apply(head, attn_input(tape, &x, false));
    const attn_var error_of_batch = attn_mse_loss(output, attn_input(tape, &wanted, false));
    *loss = attn_item(error_of_batch);
    return attn_backward(error_of_batch, error);
}

int main(void)
{
    attn_context *context = NULL;
    attn_generator *generator = NULL;
    attn_module *head = NULL;
    attn_optimizer *optimizer = NULL;
    attn_tape *tape = NULL;
    attn_error error;
    attn_attention_config config;
    attn_attention_config_init(&config);
    config.d_in = config.d_out = WIDTH;
    config.context_length = LENGTH;
    attn_optimizer_config adamw;
    attn_adamw_config_init(&adamw);
    adamw.learning_rate = 0.03;
    adamw.weight_decay = 0;

    attn_status status = attn_context_create(NULL, &context, &error);
    if (status == ATTN_OK) {
        status = attn_generator_create(context, 123, &generator, &error);
    }
    if (status == ATTN_OK) {
        status = attn_causal_attention_create(context, &config, generator, &head, &error);
    }
    if (status == ATTN_OK) {
        status = attn_optimizer_create(context, &adamw, &optimizer, &error);
    }
    if (status == ATTN_OK) {
        status = attn_optimizer_add_module(optimizer, "", head, &error);
    }
    if (status == ATTN_OK) {
        status = attn_tape_create(context, &tape, &error);
    }
    for (int i = 0; status == ATTN_OK && i <= STEPS; i++) {
        double loss;
        draw_sentences(generator);
        attn_optimizer_zero_grad(optimizer);
        status = step(tape, head, &loss, &error);
        if (status == ATTN_OK) {
            attn_optimizer_step(optimizer);
            if (i % 20 == 0) {
                printf("step %3d  loss %.4f\n", i, loss);
            }
        }
    }
    if (status != ATTN_OK) {
        fprintf(stderr, "%s\n", error.text);
    }
    attn_tape_destroy(tape);
    attn_optimizer_destroy(optimizer);
    attn_module_destroy(head);
    attn_generator_destroy(generator);
    attn_context_destroy(context);
    return status == ATTN_OK ? 0 : 1;
}
