// training.c: the step loop.
#define _POSIX_C_SOURCE 200809L // sigaction, isatty

#include "training.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "print.h"

enum { EXIT_INTERRUPTED = 130 };

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

// The first Ctrl-C stops after the current step; a second one ends the program at once.
static void catch_interrupt(struct sigaction *before)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_interrupt;
    action.sa_flags = (int)SA_RESETHAND;
    interrupted = 0;
    sigaction(SIGINT, &action, before);
}

void training_open(demo *d, training *t, const char *const names[2], int64_t target_positions)
{
    attn_error error = {0};
    attn_optimizer_config config;
    attn_adamw_config_init(&config);
    config.learning_rate = 0.01;
    must(attn_optimizer_create(d->context, &config, &t->optimizer, &error), &error);
    for (int i = 0; i < 2; ++i) {
        learner_add(&t->learners[i], t->optimizer, names[i]);
    }
    must(attn_generator_create(d->context, TRAINING_DATA_SEED, &t->data, &error), &error);
    must(attn_tensor_create(d->context, ATTN_I64, 2, (int64_t[]){LEARNER_BATCH, SEQUENCE},
                            &t->tokens, &error),
         &error);
    must(attn_tensor_create(d->context, ATTN_I64, 3,
                            (int64_t[]){LEARNER_BATCH, target_positions, t->learners[0].answers},
                            &t->targets, &error),
         &error);
}

void training_close(demo *d, training *t)
{
    fresh_tape(d);
    attn_tensor_destroy(d->context, &t->tokens);
    attn_tensor_destroy(d->context, &t->targets);
    attn_generator_destroy(t->data);
    attn_optimizer_destroy(t->optimizer);
    for (int i = 0; i < 2; ++i) {
        learner_destroy(d, &t->learners[i]);
    }
}

void draw_tokens(training *t, attn_generator *generator)
{
    attn_error error = {0};
    must(attn_randint(generator, 0, VOCABULARY, &t->tokens, &error), &error);
}

static attn_checkpoint checkpoint_of(training *t)
{
    attn_checkpoint checkpoint;
    attn_checkpoint_init(&checkpoint);
    checkpoint.optimizer = t->optimizer;
    checkpoint.generators = &t->data;
    checkpoint.generator_count = 1;
    return checkpoint;
}

static void train_step(demo *d, training *t, loss_function loss)
{
    attn_error error = {0};
    fresh_tape(d);
    draw_tokens(t, t->data);
    attn_var each[2];
    for (int i = 0; i < 2; ++i) {
        each[i] = loss(d, t, i);
    }
    const attn_var total = attn_add(each[0], each[1]); // two separate models, one backward
    must_tape(d);
    attn_optimizer_zero_grad(t->optimizer);
    must(attn_backward(total, &error), &error);
    must(attn_optimizer_check_finite(t->optimizer, total, &error), &error);
    attn_optimizer_step(t->optimizer);
    for (int i = 0; i < 2; ++i) {
        t->losses[i] = attn_item(each[i]);
    }
}

static void print_progress(const demo *d, const training *t, int64_t step, int64_t steps,
                           double seconds_left)
{
    fflush(stdout);
    fprintf(stderr, d->text[T_TRAIN_PROGRESS], (long long)step, (long long)steps, t->losses[0],
            t->losses[1], seconds_left);
    fflush(stderr);
}

static void clear_progress(void)
{
    fputs("\r\033[K", stderr);
    fflush(stderr);
}

// Writes the state and says how to go on.
static int stop(demo *d, training *t, const train_options *options, int64_t step)
{
    attn_error error = {0};
    const attn_checkpoint checkpoint = checkpoint_of(t);
    must(attn_checkpoint_save(d->context, options->checkpoint, &checkpoint, &error), &error);
    say(d, T_TRAIN_STOPPED, (long long)step, options->checkpoint);
    return EXIT_INTERRUPTED;
}

int training_run(demo *d, training *t, const train_options *options, loss_function loss,
                 report_function report)
{
    if (options->resume) {
        attn_error error = {0};
        const attn_checkpoint checkpoint = checkpoint_of(t);
        must(attn_checkpoint_load(d->context, options->checkpoint, &checkpoint, &error), &error);
        say(d, T_TRAIN_RESUMED, (long long)attn_optimizer_steps(t->optimizer), options->checkpoint);
    }
    const bool progress = isatty(STDERR_FILENO) && isatty(STDOUT_FILENO);
    const int64_t first = attn_optimizer_steps(t->optimizer);
    const double start = seconds_now();
    struct sigaction before;
    catch_interrupt(&before);
    int status = 0;
    for (int64_t step = first + 1; step <= options->steps && status == 0; ++step) {
        train_step(d, t, loss);
        if (progress) {
            clear_progress();
        }
        report(d, t, step);
        fflush(stdout);
        if (progress && step < options->steps && !interrupted) {
            const double each = (seconds_now() - start) / (double)(step - first);
            print_progress(d, t, step, options->steps, each * (double)(options->steps - step));
        }
        if (interrupted) {
            status = stop(d, t, options, step);
        }
    }
    sigaction(SIGINT, &before, NULL);
    return status;
}
