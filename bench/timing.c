#define _POSIX_C_SOURCE 200809L
#include "timing.h"

#include <stdlib.h>
#include <time.h>

enum { LEAST_ROUNDS = 3 };
static const double shortest_sample = 2e-4; // seconds; shorter calls are repeated within a sample

double timing_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double sample(const struct contender *c)
{
    const double start = timing_now();
    for (int64_t i = 0; i < c->calls; i++) {
        c->run(c->state);
    }
    return (timing_now() - start) / (double)c->calls;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

// The first call warms caches and pools; the second tells how many make a sample.
static void choose_calls(struct contender *c)
{
    c->calls = 1;
    sample(c);
    const double once = sample(c);
    if (once < shortest_sample) {
        c->calls = (int64_t)(shortest_sample / (once > 1e-8 ? once : 1e-8)) + 1;
    }
}

void timing_run(struct contender *contenders, int count, double seconds)
{
    static double samples[MOST_CONTENDERS][MOST_ROUNDS];
    for (int c = 0; c < count; c++) {
        choose_calls(&contenders[c]);
    }
    const double start = timing_now();
    int rounds = 0;
    while (rounds < LEAST_ROUNDS || (rounds < MOST_ROUNDS && timing_now() - start < seconds)) {
        for (int c = 0; c < count; c++) {
            samples[c][rounds] = sample(&contenders[c]);
        }
        rounds++;
    }
    for (int c = 0; c < count; c++) {
        qsort(samples[c], (size_t)rounds, sizeof samples[c][0], ascending);
        contenders[c].best = samples[c][0];
        contenders[c].median = samples[c][rounds / 2];
        contenders[c].low = samples[c][rounds / 4];
        contenders[c].high = samples[c][(3 * rounds) / 4];
    }
}
