#include "options.h"

#include <stdio.h>
#include <string.h>

#include "support/tensors.h"

const struct factor_levels factors[FACTOR_COUNT] = {
    [FACTOR_PASS] = {"pass", 2, {"forward", "backward"}},
    [FACTOR_DTYPE] = {"dtype", 4, {"f32", "f64", "f16", "bf16"}},
    [FACTOR_HEADS] = {"heads", 3, {"equal", "grouped", "one"}},
    [FACTOR_SIZE] = {"size", 3, {"0..8", "0..80", "0..300"}},
    [FACTOR_HEAD_DIM] = {"head_dim", 4, {"1..8", "8n", "1..256", "Dv!=D"}},
    [FACTOR_LOGITS] = {"logits", 3, {"normal", "large", "shifted"}},
    [FACTOR_SCALE] = {"scale", 2, {"1/sqrt", "given"}},
    [FACTOR_DIAGONAL] = {"diagonal", 3, {"top", "bottom", "offset"}},
    [FACTOR_CAUSAL] = {"causal", 2, {"-", "causal"}},
    [FACTOR_WINDOW] = {"window", 4, {"-", "left", "right", "both"}},
    [FACTOR_LENGTHS] = {"lengths", 3, {"-", "lengths", "packed"}},
    [FACTOR_KEEP] = {"keep", 3, {"-", "full", "shared"}},
    [FACTOR_BIAS] = {"bias", 4, {"-", "full", "head", "key"}},
    [FACTOR_ALIBI] = {"alibi", 2, {"-", "alibi"}},
    [FACTOR_SOFTCAP] = {"softcap", 2, {"-", "softcap"}},
    [FACTOR_SINKS] = {"sinks", 2, {"-", "sinks"}},
    [FACTOR_DROPOUT] = {"dropout", 3, {"-", "philox", "keep"}},
    [FACTOR_GRAD_LSE] = {"grad_lse", 2, {"-", "grad_lse"}},
};

struct coverage {
    bool pair[FACTOR_COUNT][MOST_LEVELS][FACTOR_COUNT][MOST_LEVELS];
};

static void cover(struct coverage *coverage, const struct option_row *row)
{
    for (int f = 0; f < FACTOR_COUNT; f++) {
        for (int g = 0; g < FACTOR_COUNT; g++) {
            coverage->pair[f][row->level[f]][g][row->level[g]] = true;
        }
    }
}

// New pairs that `level` of factor f makes with the first `chosen` factors of `order`.
static int gain(const struct coverage *coverage, const struct option_row *row, const int *order,
                int chosen, int f, int level)
{
    int count = 0;
    for (int n = 0; n < chosen; n++) {
        const int g = order[n];
        count += !coverage->pair[f][level][g][row->level[g]];
    }
    return count;
}

// A row made greedily: factors in random order, each at the level that adds most pairs.
static int candidate(const struct coverage *coverage, uint64_t *random, struct option_row *row)
{
    int order[FACTOR_COUNT], total = 0;
    for (int n = 0; n < FACTOR_COUNT; n++) {
        const int other = (int)test_random_below(random, n + 1);
        order[n] = order[other];
        order[other] = n;
    }
    for (int n = 0; n < FACTOR_COUNT; n++) {
        const int f = order[n];
        const int first = (int)test_random_below(random, factors[f].count);
        int best = -1;
        for (int k = 0; k < factors[f].count; k++) {
            const int level = (first + k) % factors[f].count;
            const int found = gain(coverage, row, order, n, f, level);
            if (found > best) {
                best = found;
                row->level[f] = level;
            }
        }
        total += best;
    }
    return total;
}

int options_cover(struct option_row rows[MOST_ROWS])
{
    static struct coverage coverage;
    memset(&coverage, 0, sizeof(coverage));
    uint64_t random = 7;
    int count = 0;
    while (count < MOST_ROWS) {
        int best = 0;
        struct option_row row;
        for (int n = 0; n < 30; n++) {
            const int found = candidate(&coverage, &random, &row);
            if (found > best) {
                best = found;
                rows[count] = row;
            }
        }
        if (best == 0 && options_uncovered(rows, count) == 0) {
            break;
        }
        if (best > 0) {
            cover(&coverage, &rows[count]);
            count++;
        }
    }
    return count;
}

int options_uncovered(const struct option_row *rows, int count)
{
    static struct coverage coverage;
    memset(&coverage, 0, sizeof(coverage));
    for (int n = 0; n < count; n++) {
        cover(&coverage, &rows[n]);
    }
    int missing = 0;
    for (int f = 0; f < FACTOR_COUNT; f++) {
        for (int g = 0; g < f; g++) {
            for (int k = 0; k < factors[f].count * factors[g].count; k++) {
                missing += !coverage.pair[f][k / factors[g].count][g][k % factors[g].count];
            }
        }
    }
    return missing;
}

void options_print(const struct option_row *rows, int count)
{
    printf("row");
    for (int f = 0; f < FACTOR_COUNT; f++) {
        printf(" %-8s", factors[f].name);
    }
    printf("\n");
    for (int n = 0; n < count; n++) {
        printf("%3d", n);
        for (int f = 0; f < FACTOR_COUNT; f++) {
            printf(" %-8s", factors[f].levels[rows[n].level[f]]);
        }
        printf("\n");
    }
}
