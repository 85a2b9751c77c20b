// bench/timing.h: contenders timed in turns, so that a disturbance of the machine hits all alike.
#ifndef ATTN_BENCH_TIMING_H
#define ATTN_BENCH_TIMING_H

#include <stdint.h>

enum { MOST_CONTENDERS = 16, MOST_ROUNDS = 400 };

struct contender {
    const char *name; // "attn", "openblas", ...
    const char *what; // "forward", "forward+backward", "product"
    int threads;
    void (*run)(void *state);
    void *state;
    double worth;  // operations or bytes of a call; of the machine's own limits only
    int64_t calls; // per sample; chosen by timing_run
    double best, median, low, high; // seconds per call; low and high: the quartiles
};

double timing_now(void); // seconds, monotonic

// Fills best, median, low and high: rounds of one sample per contender until about `seconds` have passed
// (at least 3 rounds, at most MOST_ROUNDS).
void timing_run(struct contender *contenders, int count, double seconds);

#endif
