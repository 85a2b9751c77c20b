// The fixed problems on which the promises of docs/numerics.md are checked. The long ones reach over
// several key blocks and segments.
#ifndef ATTN_TESTS_PROMISES_SUITE_H
#define ATTN_TESTS_PROMISES_SUITE_H

#include "support/attention.h"

struct suite_problem {
    const char *name;
    struct attention_shape shape;
    void (*add)(struct attention *a); // options; NULL: none
    // The one diagonal of all rows of batch entry 0, as an offset; parts of the rows keep it.
    int64_t offset;
    bool whole_rows; // no lengths and no packed sequences: any range of rows is a problem
    bool divisible;  // no packed sequences: batch entries and heads are problems
};

extern const struct suite_problem suite[];
extern const int suite_count;

// The problem with its inputs; attention_end ends it.
void suite_begin(struct attention *a, int n);

#endif
