// A random problem for a row of the option table.
#ifndef ATTN_TESTS_ACCURACY_DRAW_H
#define ATTN_TESTS_ACCURACY_DRAW_H

#include "options.h"
#include "support/attention.h"

// The same seed and row give the same problem. attention_end ends it.
void draw_begin(struct attention *a, const struct option_row *row, uint64_t seed);

#endif
