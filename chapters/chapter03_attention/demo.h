// demo.h: what every section of the program shares: a context, a tape, torch's random stream, the
// chapter's six tokens, and the language of the text.
#ifndef CHAPTER03_DEMO_H
#define CHAPTER03_DEMO_H

#include <stdbool.h>
#include <stdint.h>

#include <attn/attn.h>

#include "text.h"

enum { TOKENS = 6, EMBEDDING = 3 };

typedef struct demo {
    const char *const *text; // the chosen language, indexed by text_id
    bool terminal;           // standard output is a terminal: progress and key presses make sense
    bool colour;
    bool timing;       // print measured times (they differ from run to run)
    int broken_claims; // claims that did not hold; the program then ends with status 1
    attn_context *context;
    attn_tape *tape;
    attn_generator *generator;
} demo;

// Ends the program with a message if the context cannot be made.
void demo_open(demo *d);
void demo_close(demo *d);

// Ends the program with the message of a failure that no input can provoke (such as lack of
// memory).
void must(attn_status status, const attn_error *error);

// The same for a chain of tape operations: called once, at the end of the chain.
void must_tape(const demo *d);

// Starts a section: forgets the variables of the one before.
void fresh_tape(demo *d);

// torch::manual_seed.
void manual_seed(demo *d, uint64_t seed);

// "Your journey starts with one step.": six tokens, three numbers each.
extern const char *const token_names[TOKENS];
extern const float token_inputs[TOKENS][EMBEDDING];

attn_var make_inputs(demo *d); // (6, 3)
attn_var make_batch(demo *d);  // (2, 6, 3): the sentence twice

// A leaf on the tape that holds the caller's row-major numbers.
attn_var leaf(demo *d, const float *numbers, int32_t ndim, const int64_t *shape);

// torch.rand and torch.randn as leaves.
attn_var rand_leaf(demo *d, int32_t ndim, const int64_t *shape);
attn_var randn_leaf(demo *d, int32_t ndim, const int64_t *shape);

// A matrix (rows, columns) to be trained that belongs to no module: normal numbers of the given
// deviation, and its gradient. The name must outlive it.
void own_parameter_create(demo *d, attn_parameter *p, const char *name, int64_t rows,
                          int64_t columns, double deviation);
void own_parameter_destroy(demo *d, attn_parameter *p);

// A module's parameter as a variable whose gradient a backward adds to the module's.
attn_var parameter(demo *d, attn_module *module, const char *name);

// An intermediate of a module's forward on `input`: "attn_weights", "context", ...
attn_var traced(demo *d, attn_module *module, attn_var input, const char *name);

// Element [row, column] of a matrix, or [row] of a vector.
double element(attn_var var, int64_t row, int64_t column);

bool same_bits(attn_var a, attn_var b);
bool close_to(attn_var a, attn_var b, double tolerance);
double largest_difference(attn_var a, attn_var b);

double seconds_now(void);

#endif
