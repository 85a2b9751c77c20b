// kernels/ahead.h: memory that will be needed soon, asked for while something else is computed.
//
// The hardware's own prefetchers follow a stream within a page, but not from block to block. Asked for
// all at once, lines would queue up before the loads of the running product, which then waits; so the
// products ask for a line now and then between their multiply-adds.
#ifndef ATTN_KERNELS_AHEAD_H
#define ATTN_KERNELS_AHEAD_H

#include <stddef.h>
#include <stdint.h>

enum { ATTN_CACHE_LINE = 64 };

// Rows of memory; what was asked for is taken off.
struct attn_ahead_rows {
    const char *data;
    int64_t done;       // bytes of the first row
    int64_t size, step; // bytes of a row, bytes from row to row
    int64_t rows;
};

enum { ATTN_AHEAD_PARTS = 8 };

// The first part that is not exhausted comes first.
struct attn_ahead {
    struct attn_ahead_rows parts[ATTN_AHEAD_PARTS];
    int64_t rate; // bytes for 1024 vector multiply-adds
};

// The rate at which `bytes` are done a quarter before `work` vector multiply-adds are.
static inline int64_t attn_ahead_rate(double bytes, double work)
{
    enum { MOST = 1 << 16 };
    const double rate = 1.25 * 1024 * bytes / (work > 1 ? work : 1);
    return rate < MOST ? (int64_t)rate : MOST;
}

static inline int64_t attn_ahead_bytes(const struct attn_ahead *ahead)
{
    int64_t bytes = 0;
    for (int p = 0; p < ATTN_AHEAD_PARTS; p++) {
        bytes += ahead->parts[p].rows * ahead->parts[p].size;
    }
    return bytes;
}

// Takes off at most `bytes` that follow each other, and gives their number; 0 when all is exhausted.
static inline int64_t attn_ahead_take(struct attn_ahead *ahead, int64_t bytes, const char **data)
{
    for (int p = 0; p < ATTN_AHEAD_PARTS; p++) {
        struct attn_ahead_rows *const part = &ahead->parts[p];
        if (part->rows > 0) {
            const int64_t left = part->size - part->done;
            const int64_t taken = bytes < left ? bytes : left;
            *data = part->data + part->done;
            part->done += taken;
            if (part->done == part->size) {
                part->done = 0;
                part->data += --part->rows > 0 ? part->step : 0;
            }
            return taken;
        }
    }
    return 0;
}

// Asks for `bytes` at once, into the second-level cache.
static inline void attn_ahead_ask(struct attn_ahead *ahead, int64_t bytes)
{
    const char *data = NULL;
    for (int64_t some; bytes > 0 && (some = attn_ahead_take(ahead, bytes, &data)) > 0;
         bytes -= some) {
        for (int64_t byte = 0; byte < some; byte += ATTN_CACHE_LINE) {
            __builtin_prefetch(data + byte, 0, 2);
        }
    }
}

#endif
