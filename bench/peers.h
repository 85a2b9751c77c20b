// bench/peers.h: what else computes the same: a plain matmul-softmax-matmul on a BLAS found at run
// time. A BLAS runs on one thread, unless a case sets more; the plain path on several threads gives
// every thread its own heads.
#ifndef ATTN_BENCH_PEERS_H
#define ATTN_BENCH_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/context.h"

struct blas {
    const char *name; // "openblas", "blis"
    void (*sgemm)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                  const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
    void (*set_threads)(int threads);
};

enum { BLAS_ROW_MAJOR = 101, BLAS_PLAIN = 111, BLAS_TRANSPOSED = 112, MOST_BLAS = 2 };

// The libraries found on this machine, at most MOST_BLAS.
int peers_find_blas(struct blas *found);

// The plain path for contiguous (heads, T, D) arrays; scores: (executor->workers, tq, tk) scratch.
struct plain {
    const struct blas *blas;
    const attn_executor *executor;
    int64_t heads, heads_per_kv, tq, tk, head_dim;
    bool causal;
    const float *query, *key, *value;
    float *output, *scores;
};

void peers_run_plain(void *plain);

#endif
