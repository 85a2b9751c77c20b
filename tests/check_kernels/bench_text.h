// check_kernels/bench_text.h: times of the kernels that decide the engine's speed, for one element
// type. The best of many repetitions, in nanoseconds and, for products, in GFLOP/s.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "check_kernels/check.h"
#include "kernels/real.h"

typedef struct REAL_NAME(attn_kernels) kernels_t;

enum { KEYS = 128, DIM = 64, REPEATS = 300 };

static double seconds(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct bench {
    const kernels_t *kernels;
    int64_t lanes;
    real *key, *query, *score, *value, *accumulator;
    real max[48], sum[48], factor[48];
};

static void scores(struct bench *b)
{
    const struct REAL_NAME(attn_tile) call = {
        .a = b->key,
        .a_row = DIM,
        .a_depth = 1,
        .b = b->query,
        .b_depth = b->lanes,
        .c = b->score,
        .c_row = b->lanes,
    };
    b->kernels->tile(&call, KEYS, b->lanes, DIM);
}

static void values(struct bench *b)
{
    const struct REAL_NAME(attn_tile) call = {
        .a = b->score,
        .a_row = 1,
        .a_depth = b->lanes,
        .b = b->value,
        .b_depth = DIM,
        .c = b->accumulator,
        .c_row = DIM,
        .factor = b->factor,
        .start = ATTN_TILE_SCALE_ROW,
    };
    b->kernels->tile(&call, b->lanes, DIM, KEYS);
}

static void softmax(struct bench *b)
{
    const struct REAL_NAME(attn_softmax) call = {
        .score = b->score,
        .row = b->lanes,
        .scale = R(0.125),
        .max = b->max,
        .sum = b->sum,
        .factor = b->factor,
    };
    b->kernels->softmax(&call, KEYS, b->lanes);
}

static void transpose(struct bench *b)
{
    const struct REAL_NAME(attn_transpose) turn = {
        .source = b->accumulator,
        .source_row = DIM,
        .factor = 1,
        .target = b->query,
        .target_row = b->lanes,
    };
    b->kernels->transpose(&turn, b->lanes, DIM);
}

static void report(const struct attn_kernels *table, const char *name, struct bench *b,
                   void (*run)(struct bench *), double work, const char *unit)
{
    double best = 1;
    for (int i = 0; i < REPEATS; i++) {
        const double start = seconds();
        run(b);
        const double time = seconds() - start;
        best = time < best ? time : best;
    }
    printf("%-24s float%d %-10s %10.0f ns %9.2f %s\n", table->name, ATTN_REAL_BITS, name,
           best * 1e9, work / best * 1e-9, unit);
}

static real *numbers(int64_t count)
{
    real *x = aligned_alloc(64, (size_t)(count * (int64_t)sizeof(real) + 63) / 64 * 64);
    for (int64_t i = 0; x && i < count; i++) {
        x[i] = (real)((double)(i * 7919 % 1000) / 1000 - 0.5);
    }
    return x;
}

void REAL_NAME(bench)(const struct attn_kernels *table)
{
    struct bench b = {.kernels = table->REAL_TABLE, .lanes = table->REAL_TABLE->tile_lanes};
    b.key = numbers(KEYS * DIM);
    b.value = numbers(KEYS * DIM);
    b.query = numbers(DIM * b.lanes);
    b.score = numbers(KEYS * b.lanes);
    b.accumulator = numbers(DIM * b.lanes);
    if (b.key && b.value && b.query && b.score && b.accumulator) {
        const double product = 2.0 * KEYS * DIM * (double)b.lanes;
        report(table, "scores", &b, scores, product, "GFLOP/s");
        report(table, "softmax", &b, softmax, KEYS * (double)b.lanes, "G weights/s");
        report(table, "values", &b, values, product, "GFLOP/s");
        report(table, "transpose", &b, transpose, DIM * (double)b.lanes, "G elements/s");
    }
    free(b.key);
    free(b.value);
    free(b.query);
    free(b.score);
    free(b.accumulator);
}
