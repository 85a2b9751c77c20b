#define _POSIX_C_SOURCE 200809L
#include "timing.h"

#include <stdlib.h>
#include <string.h>
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

static double samples[MOST_CONTENDERS][MOST_ROUNDS];
static double looks[MOST_CONTENDERS][MOST_ROUNDS]; // the worse of those before and after a sample

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

static void take(struct contender *c, int index, int round, const struct timing *timing)
{
    const double before = timing->look ? timing->look(timing->state, c->threads) : 1;
    samples[index][round] = sample(c);
    const double after = timing->look ? timing->look(timing->state, c->threads) : 1;
    looks[index][round] = smaller(before, after);
}

// A look that only one in twenty of the run's samples has exceeded, less 10 %.
static double least_look(int count, int rounds)
{
    static double all[MOST_CONTENDERS * MOST_ROUNDS];
    int taken = 0;
    for (int c = 0; c < count; c++) {
        memcpy(all + taken, looks[c], (size_t)rounds * sizeof *all);
        taken += rounds;
    }
    qsort(all, (size_t)taken, sizeof *all, ascending);
    return 0.9 * all[taken - 1 - taken / 20];
}

static void summarise(struct contender *c, int index, int rounds, double least)
{
    static double kept[MOST_ROUNDS];
    int count = 0;
    for (int r = 0; r < rounds; r++) {
        if (looks[index][r] >= least) {
            kept[count++] = samples[index][r];
        }
    }
    c->samples = count;
    if (count == 0) {
        memcpy(kept, samples[index], (size_t)rounds * sizeof *kept);
        count = rounds;
    }
    qsort(kept, (size_t)count, sizeof *kept, ascending);
    c->best = kept[0];
    c->median = kept[count / 2];
    c->low = kept[count / 4];
    c->high = kept[(3 * count) / 4];
}

void timing_run(struct contender *contenders, int count, const struct timing *timing)
{
    for (int c = 0; c < count; c++) {
        choose_calls(&contenders[c]);
    }
    const double start = timing_now();
    int rounds = 0;
    while (rounds < LEAST_ROUNDS ||
           (rounds < MOST_ROUNDS && timing_now() - start < timing->seconds)) {
        for (int c = 0; c < count; c++) {
            take(&contenders[c], c, rounds, timing);
        }
        rounds++;
    }
    const double least = timing->look ? least_look(count, rounds) : 0;
    for (int c = 0; c < count; c++) {
        summarise(&contenders[c], c, rounds, least);
    }
}
