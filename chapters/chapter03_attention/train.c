// train.c: two tasks on random tokens. Copying from two places at once needs two heads; predicting
// the next token needs the causal mask, or the answer is read instead of predicted.
#include "train.h"

#include <math.h>
#include <stdio.h>

#include "print.h"
#include "training.h"

enum { NEAR = 1, FAR = 3, COPY_STEPS = 400, LEAK_STEPS = 100, HELD_OUT_BATCHES = 20 };

// ---- copying the tokens one and three places back -----------------------------------------------

enum { COPY_POSITIONS = SEQUENCE - FAR }; // positions that have a token three places back

static const char *const copy_names[2] = {"two_heads.", "one_head."};

static int64_t token_at(const training *t, int64_t row, int64_t position)
{
    return ((const int64_t *)t->tokens.data)[row * SEQUENCE + position];
}

static void fill_copy_targets(training *t)
{
    int64_t *target = t->targets.data;
    for (int64_t row = 0; row < LEARNER_BATCH; ++row) {
        for (int64_t i = FAR; i < SEQUENCE; ++i) {
            *target++ = token_at(t, row, i - NEAR);
            *target++ = token_at(t, row, i - FAR);
        }
    }
}

// Logits of the positions that have both answers: (batch, COPY_POSITIONS, 2, VOCABULARY).
static attn_var copy_logits(demo *d, training *t, int which)
{
    return attn_slice(learner_logits(d, &t->learners[which], &t->tokens), 1, FAR, SEQUENCE);
}

static attn_var copy_loss(demo *d, training *t, int which)
{
    fill_copy_targets(t);
    return attn_cross_entropy(copy_logits(d, t, which), &t->targets);
}

static bool named_correctly(const attn_tensor *logits, int64_t row, int64_t i, int64_t answer,
                            int64_t target)
{
    double best = -INFINITY;
    int64_t chosen = -1;
    for (int64_t token = 0; token < VOCABULARY; ++token) {
        const double logit =
            attn_tensor_get(logits, (int64_t[ATTN_MAX_DIMS]){row, i, answer, token});
        if (logit > best) {
            best = logit;
            chosen = token;
        }
    }
    return chosen == target;
}

// Shares of right answers on sequences that training never saw: one place back, three places back.
static void held_out_accuracy(demo *d, training *t, int which, double accuracy[2])
{
    attn_error error = {0};
    attn_generator *unseen;
    must(attn_generator_create(d->context, HELD_OUT_SEED, &unseen, &error), &error);
    int64_t right[2] = {0, 0};
    attn_tape_set_recording(d->tape, false);
    for (int batch = 0; batch < HELD_OUT_BATCHES; ++batch) {
        fresh_tape(d);
        draw_tokens(t, unseen);
        fill_copy_targets(t);
        const attn_tensor logits = attn_value(copy_logits(d, t, which));
        must_tape(d);
        const int64_t *target = t->targets.data;
        for (int64_t row = 0; row < LEARNER_BATCH; ++row) {
            for (int64_t i = 0; i < COPY_POSITIONS; ++i) {
                for (int64_t answer = 0; answer < 2; ++answer) {
                    right[answer] += named_correctly(&logits, row, i, answer, *target++);
                }
            }
        }
    }
    attn_tape_set_recording(d->tape, true);
    attn_generator_destroy(unseen);
    for (int answer = 0; answer < 2; ++answer) {
        accuracy[answer] = (double)right[answer] /
                           (HELD_OUT_BATCHES * LEARNER_BATCH * COPY_POSITIONS);
    }
}

static double overall(const double accuracy[2])
{
    return (accuracy[0] + accuracy[1]) / 2;
}

static void show_learner_weights(demo *d, training *t, int which)
{
    fresh_tape(d);
    const attn_tensor sentence =
        attn_tensor_wrap_const(t->tokens.data, ATTN_I64, 2, (int64_t[]){1, SEQUENCE});
    const attn_var weights = learner_weights(d, &t->learners[which], &sentence); // (H, T, T)
    for (int64_t head = 0; head < attn_value(weights).shape[0]; ++head) {
        char name[64];
        snprintf(name, sizeof name, "attn_weights, head %d", (int)head);
        const attn_tensor one = attn_value(attn_select(weights, 0, head));
        show_heat(d, name, &one, NULL, NULL);
    }
    must_tape(d);
}

static void report_copy(demo *d, const training *t, int64_t step_number)
{
    if (step_number == 1 || step_number % 40 == 0) {
        say(d, T_TRAIN_ROW, (int)step_number, t->losses[0], t->losses[1]);
    }
}

static void show_copy_result(demo *d, training *t, bool trained)
{
    step(d, trained ? T_TRAIN_AFTER : T_TRAIN_BEFORE);
    double accuracies[2][2];
    for (int which = 0; which < 2; ++which) {
        held_out_accuracy(d, t, which, accuracies[which]);
        say(d, which == 0 ? T_TRAIN_TWO_HEADS : T_TRAIN_ONE_HEAD, 100 * overall(accuracies[which]),
            100 * accuracies[which][0], 100 * accuracies[which][1]);
        show_learner_weights(d, t, which);
    }
    if (trained && attn_optimizer_steps(t->optimizer) >= COPY_STEPS) {
        claim(d, overall(accuracies[0]) > 0.95, T_TRAIN_TWO_SOLVE);
        claim(d, overall(accuracies[1]) < 0.75, T_TRAIN_ONE_CANNOT);
    }
}

static int train_copy(demo *d, const train_options *options)
{
    training t = {0};
    learner_create(d, &t.learners[0], 2, true, 2);
    learner_create(d, &t.learners[1], 1, true, 2);
    training_open(d, &t, copy_names, COPY_POSITIONS);
    heading(d, "--train", T_TRAIN_TITLE, "train.c");
    say(d, T_TRAIN_INTRO, VOCABULARY, SEQUENCE, WIDTH, LEARNER_SEED, (int)options->steps,
        LEARNER_BATCH);
    if (!options->resume) {
        show_copy_result(d, &t, false);
    }
    step(d, T_TRAIN_STEPS);
    const int status = training_run(d, &t, options, copy_loss, report_copy);
    if (status == 0) {
        show_copy_result(d, &t, true);
        say(d, T_TRAIN_MEANING);
    }
    training_close(d, &t);
    return status;
}

// ---- the leak: next token without and with the mask ---------------------------------------------

enum { LEAK_POSITIONS = SEQUENCE - 1, CURVE_COLUMNS = 20 };

static const char *const leak_names[2] = {"without_mask.", "with_mask."};

static attn_var leak_loss(demo *d, training *t, int which)
{
    int64_t *target = t->targets.data;
    for (int64_t row = 0; row < LEARNER_BATCH; ++row) {
        for (int64_t i = 0; i < LEAK_POSITIONS; ++i) {
            *target++ = token_at(t, row, i + 1);
        }
    }
    const attn_var logits = learner_logits(d, &t->learners[which], &t->tokens);
    return attn_cross_entropy(attn_slice(logits, 1, 0, LEAK_POSITIONS), &t->targets);
}

// A bar as long as the loss, ln(vocabulary) being CURVE_COLUMNS; returns its length.
static int print_bar(double loss)
{
    const int filled = (int)(loss / log(VOCABULARY) * CURVE_COLUMNS + 0.5);
    for (int column = 0; column < filled; ++column) {
        putchar('#');
    }
    return filled;
}

static void report_leak(demo *d, const training *t, int64_t step_number)
{
    (void)d;
    if (step_number == 1 || step_number % 5 == 0) {
        printf("  %5lld  %.4f |", (long long)step_number, t->losses[0]);
        const int filled = print_bar(t->losses[0]);
        printf("%*s%.4f |", CURVE_COLUMNS + 4 - filled, "", t->losses[1]);
        (void)print_bar(t->losses[1]);
        putchar('\n');
    }
}

static int train_leak(demo *d, const train_options *options)
{
    training t = {0};
    learner_create(d, &t.learners[0], 1, false, 1);
    learner_create(d, &t.learners[1], 1, true, 1);
    training_open(d, &t, leak_names, LEAK_POSITIONS);
    heading(d, "--train --no-mask", T_LEAK_TITLE, "train.c");
    say(d, T_LEAK_INTRO, VOCABULARY, log(VOCABULARY), LEARNER_SEED);
    step(d, T_LEAK_HEADER);
    const int status = training_run(d, &t, options, leak_loss, report_leak);
    if (status == 0) {
        step(d, T_LEAK_WEIGHTS);
        show_learner_weights(d, &t, 0);
        if (options->steps >= LEAK_STEPS) {
            claim(d, t.losses[0] < 0.05, T_LEAK_READS);
            claim(d, fabs(t.losses[1] - log(VOCABULARY)) < 0.1, T_LEAK_CANNOT, log(VOCABULARY));
        }
        say(d, T_LEAK_MEANING);
    }
    training_close(d, &t);
    return status;
}

int train(demo *d, const train_options *options)
{
    train_options chosen = *options;
    if (chosen.steps == 0) {
        chosen.steps = options->no_mask ? LEAK_STEPS : COPY_STEPS;
    }
    return options->no_mask ? train_leak(d, &chosen) : train_copy(d, &chosen);
}
