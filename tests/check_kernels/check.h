// check_kernels/check.h: what all checks share.
#ifndef ATTN_CHECK_KERNELS_CHECK_H
#define ATTN_CHECK_KERNELS_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/kernels.h"

struct check {
    const struct attn_kernels *table;     // under test
    const struct attn_kernels *reference; // portable: its bits are the right ones
    uint64_t state;                       // of the random stream
    bool exhaustive;                      // every float32 argument instead of a sample
    int64_t failures;
};

// Reports a failure of `kernel`; the first few are printed.
void check_failed(struct check *check, const char *kernel, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

uint32_t check_random(struct check *check);
int64_t check_between(struct check *check, int64_t low, int64_t high); // both included
double check_uniform(struct check *check);                             // [-1, 1)

// Memory with canaries on both sides. `size` bytes are filled with the canary as well.
struct guarded {
    unsigned char *memory;
    void *data;
    int64_t size;
};

struct guarded guarded_take(int64_t size);
// Reports a damaged canary and releases.
void guarded_give(struct check *check, const char *kernel, struct guarded *guarded);

void check_f32(struct check *check);
void check_f64(struct check *check);
void check_convert(struct check *check);
void bench_f32(const struct attn_kernels *table);
void bench_f64(const struct attn_kernels *table);

#endif
