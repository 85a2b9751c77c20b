// gpt2.h: one forward of a multi-head attention in GPT-2's size, for exercises 3.3 and 1.
#ifndef CHAPTER03_GPT2_H
#define CHAPTER03_GPT2_H

#include <stdint.h>

#include <attn/attn.h>

#include "demo.h"

enum { GPT2_BATCH = 2, GPT2_TOKENS = 8, GPT2_CONTEXT = 1024, GPT2_SHOWN = 8, GPT2_PARAMETERS = 8 };

typedef struct gpt2_run {
    attn_tensor output; // (2, 8, width), on the tape: valid until its reset
    attn_tensor first;  // output[0, 0, :8]: the first token
    attn_tensor last;   // output[0, 7, :8]: the last token
    int64_t values;     // numbers in all parameters
    int64_t parameters; // and their tensors, by name
    char names[GPT2_PARAMETERS][32];
    attn_tensor shapes[GPT2_PARAMETERS]; // without data
} gpt2_run;

// Seed 123, MultiHeadAttention(width, width, 1024, 0.0, heads), x = randn(2, 8, width), forward.
gpt2_run gpt2_forward(demo *d, int64_t width, int64_t heads);

#endif
