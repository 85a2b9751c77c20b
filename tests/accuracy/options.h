// The option space of attention as factors with levels, and a table of rows in which every pair of
// levels of two factors stands at least once.
#ifndef ATTN_TESTS_ACCURACY_OPTIONS_H
#define ATTN_TESTS_ACCURACY_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum factor {
    FACTOR_PASS,
    FACTOR_DTYPE,
    FACTOR_HEADS,
    FACTOR_SIZE,
    FACTOR_HEAD_DIM,
    FACTOR_LOGITS,
    FACTOR_SCALE,
    FACTOR_DIAGONAL,
    FACTOR_CAUSAL,
    FACTOR_WINDOW,
    FACTOR_LENGTHS,
    FACTOR_KEEP,
    FACTOR_BIAS,
    FACTOR_ALIBI,
    FACTOR_SOFTCAP,
    FACTOR_SINKS,
    FACTOR_DROPOUT,
    FACTOR_GRAD_LSE,
    FACTOR_COUNT
};

enum { MOST_LEVELS = 4 };

struct factor_levels {
    const char *name;
    int count;
    const char *levels[MOST_LEVELS];
};

extern const struct factor_levels factors[FACTOR_COUNT];

struct option_row {
    int level[FACTOR_COUNT];
};

enum { MOST_ROWS = 200 };

// Fills the table, always the same, and returns the number of rows.
int options_cover(struct option_row rows[MOST_ROWS]);

// The number of pairs of levels that no row has.
int options_uncovered(const struct option_row *rows, int count);

void options_print(const struct option_row *rows, int count);

#endif
