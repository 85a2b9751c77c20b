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
    int samples;   // that count
    double best, median, low, high; // seconds per call; low and high: the quartiles
};

double timing_now(void); // seconds, monotonic

// Samples taken while the machine was disturbed can be left out: those with a look before or after
// that gave less than 90 % of the run's best looks; the clock alone moves by some percent.
struct timing {
    double seconds;                           // per case
    double (*look)(void *state, int threads); // NULL: all samples count
    void *state;
};

// Fills samples, best, median, low and high: rounds of one sample per contender until about `seconds`
// have passed (at least 3 rounds, at most MOST_ROUNDS). A contender without an undisturbed sample keeps
// all of its samples, and `samples` is 0.
void timing_run(struct contender *contenders, int count, const struct timing *timing);

#endif
