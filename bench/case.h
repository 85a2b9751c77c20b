// bench/case.h: what a case is given, and what it hands to the report.
#ifndef ATTN_BENCH_CASE_H
#define ATTN_BENCH_CASE_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/attn.h"
#include "machine.h"
#include "peers.h"
#include "timing.h"

struct bench {
    struct machine machine;
    attn_context *contexts[MOST_THREADS + 1]; // contexts[t] runs on t threads
    struct blas blas[MOST_BLAS];
    int blas_count;
    struct timing timing;
    bool json;
    bool torch; // ask torch as well
};

// What a contender's call is worth, in the unit that limits it.
struct result {
    const char *name;      // of the case
    double operations;     // of a forward; 0 where bytes limit
    double backward;       // operations of a backward
    double bytes;          // that must be read; 0 where operations limit
    double workspace;      // bytes of scratch on one thread
    double softmax_scores; // scores that pass through the softmax; 0: not an attention case
};

struct attention_shape {
    const char *name;
    int64_t batch, heads, kv_heads, tq, tk, head_dim;
    bool causal, backward;
    attn_dtype cache; // dtype of key and value
    bool by_bytes;    // decode: measured against the read bandwidth
};

// Each runs one case and reports it; false (with a line on standard error) when it could not.
bool bench_attention(struct bench *bench, const struct attention_shape *shape);
bool bench_module(struct bench *bench, const char *name, int64_t batch, int64_t tokens);
bool bench_linear(struct bench *bench, const char *name, int64_t rows, int64_t out, int64_t in);

// One line per contender, with its share of the machine's limit.
void report_head(const struct bench *bench);
void report_case(const struct bench *bench, const struct result *result,
                 const struct contender *contenders, int count);

#endif
