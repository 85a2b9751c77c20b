// sdpa/strip.h: attention by strips, the engine's unit of work.
//
// A strip is up to 96 query rows, one per vector lane, that walk over the keys together, block by
// block. For each block: scores (keys x lanes) by one tile product, what the descriptor adds or
// masks, weights, and the values' product into a row-major accumulator. Nothing but a strip's own
// rows enters its numbers, and each row is computed as if it were alone.
//
// The text is compiled for float and for double (strip_text.h, forward_text.h).
#ifndef ATTN_SDPA_STRIP_H
#define ATTN_SDPA_STRIP_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "sdpa/problem.h"

enum {
    ATTN_STRIP_LANES = 96, // a multiple of every tier's vector; the backward's strips are as wide
    ATTN_STRIP_MOST_VECTORS = ATTN_STRIP_LANES / 2, // the narrowest has 2 lanes
    ATTN_SEGMENT_BLOCKS = 8                         // key blocks per segment
};

// Keys per block: part of the numerics specification.
static inline int64_t attn_key_block(int64_t head_dim, int64_t value_dim)
{
    const int64_t dim = head_dim > value_dim ? head_dim : value_dim;
    return dim <= 256 ? 128 : dim <= 512 ? 64 : 32;
}

static inline int64_t attn_round_up(int64_t count, int64_t step)
{
    return (count + step - 1) / step * step;
}

static inline int64_t attn_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t attn_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

// Where a row of a (batch, head, row, column) view starts.
static inline int64_t attn_row_offset(const struct attn_sdpa_view *view, int64_t batch,
                                      int64_t head, int64_t row)
{
    return batch * view->stride[0] + head * view->stride[1] + row * view->stride[2];
}

// The same of a query row of a sequence.
static inline int64_t attn_query_offset(const struct attn_sdpa_view *view,
                                        const struct attn_sdpa_sequence *sequence, int64_t head,
                                        int64_t row)
{
    return attn_row_offset(view, sequence->batch, head, sequence->query_start + row);
}

static inline const void *attn_element_at(const struct attn_sdpa_view *view, int64_t offset)
{
    return (const char *)view->data + offset * (int64_t)attn_dtype_size(view->dtype);
}

// True where the elements of a row are of the type and follow each other.
static inline bool attn_rows_adjacent(const struct attn_sdpa_view *view, attn_dtype dtype,
                                      int64_t columns)
{
    return view->dtype == dtype && (view->stride[3] == 1 || columns <= 1);
}

static inline int64_t attn_bytes_per_key(const struct attn_sdpa_problem *problem)
{
    return problem->head_dim * (int64_t)attn_dtype_size(problem->key.dtype) +
           problem->value_dim * (int64_t)attn_dtype_size(problem->value.dtype);
}

// Keys [begin, end).
struct attn_key_range {
    int64_t begin, end;
};

// The least range that holds both.
static inline struct attn_key_range attn_key_union(struct attn_key_range a, struct attn_key_range b)
{
    return (struct attn_key_range){attn_min(a.begin, b.begin), attn_max(a.end, b.end)};
}

// Rows [first, first + count) of a view at (batch, head), to be asked for; none where elements are not
// adjacent.
static inline struct attn_ahead_rows attn_ahead_of(const struct attn_sdpa_view *view, int64_t batch,
                                                   int64_t head, int64_t first, int64_t count,
                                                   int64_t columns)
{
    if (!view->data || view->stride[3] != 1 || count <= 0 || columns <= 0) {
        return (struct attn_ahead_rows){0};
    }
    const int64_t size = (int64_t)attn_dtype_size(view->dtype);
    const char *const data = attn_element_at(view, attn_row_offset(view, batch, head, first));
    if (view->stride[2] == columns || count == 1) {
        return (struct attn_ahead_rows){data, 0, count * columns * size, 0, 1};
    }
    return (struct attn_ahead_rows){data, 0, columns * size, view->stride[2] * size, count};
}

// Cuts scratch memory into pieces that start at multiples of 64 bytes. With base NULL it only counts.
struct attn_arena {
    char *base;
    size_t used;
};

static inline void *attn_arena_take(struct attn_arena *arena, int64_t count, size_t size)
{
    void *piece = arena->base ? arena->base + arena->used : NULL;
    arena->used += ((size_t)count * size + 63) / 64 * 64;
    return piece;
}

#define ATTN_REAL float
#define ATTN_NAME(name) name##_f32
#include "sdpa/strip_real.h"
#undef ATTN_REAL
#undef ATTN_NAME

#define ATTN_REAL double
#define ATTN_NAME(name) name##_f64
#include "sdpa/strip_real.h"
#undef ATTN_REAL
#undef ATTN_NAME

#endif
