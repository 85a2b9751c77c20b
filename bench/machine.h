// bench/machine.h: the machine's own limits, measured in the same run as everything else.
#ifndef ATTN_BENCH_MACHINE_H
#define ATTN_BENCH_MACHINE_H

#include "attn/context.h"

enum { MOST_THREADS = 2 };

struct machine {
    int threads;                        // 1 .. MOST_THREADS that are measured
    double fma_peak[MOST_THREADS + 1];  // float32 operations per second (2 per fused multiply-add)
    double bandwidth[MOST_THREADS + 1]; // bytes per second read from memory
    double tile; // share of the peak of the attention tile alone, operands in the first-level cache
    double softmax; // seconds per score of the softmax pass alone, on one thread
};

// contexts[t] runs on t threads.
void machine_measure(struct machine *machine, attn_context *const *contexts);

#endif
