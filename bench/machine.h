// bench/machine.h: the machine's own limits, measured in the same run as everything else.
#ifndef ATTN_BENCH_MACHINE_H
#define ATTN_BENCH_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/context.h"
#include "timing.h"

enum { MOST_THREADS = 2 };

// What one call of the limits' loops covers.
struct limit {
    const attn_context *context;
    const char *memory[2];       // to be read
    int64_t bytes;               // of each of both, a multiple of 4096
    int streams;                 // that are read at once
    double operations;           // of one worker
    uint64_t sums[MOST_THREADS]; // keeps the reads alive
};

// The attention tile and the softmax pass alone, operands in the first-level cache.
struct kernels_alone;

struct machine {
    int threads; // 1 .. MOST_THREADS that are measured
    struct limit limits[MOST_THREADS + 1];
    struct kernels_alone *alone;
};

enum { MOST_LIMITS = 2 * MOST_THREADS + 2 };

// contexts[t] runs on t threads. False: out of memory.
bool machine_init(struct machine *machine, attn_context *const *contexts);
void machine_free(struct machine *machine);

// Adds the limits that a case is measured against to its contenders, so that they are timed in the same
// turns: multiply-adds on each number of threads, the tile and the softmax alone on one. With `memory`,
// reading both blocks of it (`bytes` each, rounded down to whole pages) takes the multiply-adds' place.
int machine_add_limits(struct machine *machine, const void *const memory[2], int64_t bytes,
                       struct contender *contenders);

// How well the machine does right now, for timing_run: the rate of the tile, operands in the first-level
// cache, on the worst of `threads` threads. `state` is the machine.
double machine_look(void *state, int threads);

// The limit on `threads` threads among a case's contenders after timing_run: operations or bytes per
// second. What the machine can do undisturbed: its faster quartile.
double machine_limit(const struct contender *contenders, int count, int threads);

// Of the tile alone: its share of the one-thread limit. Of the softmax: seconds per score. 0 where
// not measured.
double machine_tile_share(const struct contender *contenders, int count);
double machine_softmax_seconds(const struct contender *contenders, int count);

#endif
