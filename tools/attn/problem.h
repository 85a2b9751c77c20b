// problem.h: an attention problem from the command line: query, key, value and every field of the
// descriptor.
#ifndef ATTN_TOOL_PROBLEM_H
#define ATTN_TOOL_PROBLEM_H

#include "tensor_file.h"
#include "tool.h"

extern const option_group input_group;     // --query, --key, --value
extern const option_group attention_group; // the descriptor
extern const option_group dropout_group;

// The tensors that options name, kept open.
enum { MOST_INPUTS = 16, MOST_NUMBERS = 64 };

typedef struct problem {
    const arguments *arguments;
    const attn_context *context;
    attn_tensor query, key, value; // (B, H, T, D), whatever rank the files have
    int32_t rank;                  // of the files: 2, 3 or 4
    attn_sdpa_desc desc;
    tensor_file files[MOST_INPUTS];
    attn_tensor tensors[MOST_INPUTS];
    int64_t numbers[MOST_INPUTS][MOST_NUMBERS]; // of lists on the command line
    int used;
    int status; // to exit with, where opening failed
} problem;

// Reads the options. False after a message, with p->status set.
bool problem_open(problem *p, const arguments *a, const attn_context *context);
void problem_close(problem *p);

// Reads one more tensor by an option's name; NULL where the option was not given, or, after a message,
// with p->status set. Shorter ranks than `rank` get dims of 1 in front.
const attn_tensor *problem_tensor(problem *p, const char *option, int32_t rank);

// Whole numbers from an option: a list such as 3,5 or a file.
const attn_tensor *problem_integers(problem *p, const char *option);

// An output in the shape that goes with the files' rank: without the dims of 1 that were put in front.
attn_tensor problem_output_view(const problem *p, const attn_tensor *output);

#endif
