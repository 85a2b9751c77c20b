// train.h: trainings that show attention learning where to look.
#ifndef CHAPTER03_TRAIN_H
#define CHAPTER03_TRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "demo.h"

typedef struct train_options {
    bool no_mask;           // the leak: next token with and without the causal mask
    bool resume;            // go on from the checkpoint
    const char *checkpoint; // where Ctrl-C writes the state
    int64_t steps;          // 0: as many as the task needs
} train_options;

// Returns the program's exit status: 0, 1 after a failure, 130 after Ctrl-C.
int train(demo *d, const train_options *options);

#endif
