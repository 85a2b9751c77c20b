// learner.h: the smallest model that has to learn where to look: learned token and position
// embeddings, one attention module, and a linear layer that reads its output.
#ifndef CHAPTER03_LEARNER_H
#define CHAPTER03_LEARNER_H

#include <stdbool.h>
#include <stdint.h>

#include <attn/attn.h>
#include <attn/optim.h>

#include "demo.h"

enum { VOCABULARY = 10, SEQUENCE = 12, WIDTH = 32, LEARNER_BATCH = 32, LEARNER_SEED = 123 };

typedef struct learner {
    attn_parameter token;    // (VOCABULARY, WIDTH)
    attn_parameter position; // (SEQUENCE, WIDTH)
    attn_module *attention;  // MultiHeadAttention
    attn_module *readout;    // Linear (WIDTH -> answers * VOCABULARY)
    int64_t answers;         // tokens to name at each position
} learner;

// Parameters from LEARNER_SEED: two learners of one shape start from the same numbers.
void learner_create(demo *d, learner *l, int64_t heads, bool causal, int64_t answers);
void learner_destroy(demo *d, learner *l);

// All its parameters, with names that begin with `prefix`.
void learner_add(learner *l, attn_optimizer *optimizer, const char *prefix);

// tokens (batch, SEQUENCE) int64 -> logits (batch, SEQUENCE, answers, VOCABULARY).
attn_var learner_logits(demo *d, learner *l, const attn_tensor *tokens);

// The attention weights (heads, SEQUENCE, SEQUENCE) of the first sequence, on the tape.
attn_var learner_weights(demo *d, learner *l, const attn_tensor *tokens);

#endif
