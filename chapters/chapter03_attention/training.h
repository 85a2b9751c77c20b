// training.h: what the two trainings share: random tokens, the step loop with its progress line,
// Ctrl-C and checkpoints.
#ifndef CHAPTER03_TRAINING_H
#define CHAPTER03_TRAINING_H

#include <attn/checkpoint.h>

#include "learner.h"
#include "train.h"

// Two learners that see the same batches, changed by one optimizer.
typedef struct training {
    learner learners[2];
    attn_optimizer *optimizer;
    attn_generator *data; // the stream of training batches
    attn_tensor tokens;   // (LEARNER_BATCH, SEQUENCE) int64: the current batch
    attn_tensor targets;  // (LEARNER_BATCH, target positions, answers) int64
    double losses[2];     // of the last step
} training;

// The loss of one learner on the current batch.
typedef attn_var (*loss_function)(demo *d, training *t, int which);

// Called after every step with its number, from 1.
typedef void (*report_function)(demo *d, const training *t, int64_t step);

enum { TRAINING_DATA_SEED = 1, HELD_OUT_SEED = 2 };

// The learners exist; `names` are their prefixes. Takes what training needs.
void training_open(demo *d, training *t, const char *const names[2], int64_t target_positions);
void training_close(demo *d, training *t);

// Fills t->tokens with random tokens from `generator`.
void draw_tokens(training *t, attn_generator *generator);

// Trains until options->steps. Returns 0, or 130 after Ctrl-C with the state in the checkpoint.
int training_run(demo *d, training *t, const train_options *options, loss_function loss,
                 report_function report);

#endif
