// kernels/text_transpose.h: transposition by squares: of V_LANES reals, of twice as many elements of 16 bits.
#ifndef ATTN_KERNELS_TEXT_TRANSPOSE_H
#define ATTN_KERNELS_TEXT_TRANSPOSE_H

#include <string.h>

#include "kernels/kernels.h"

typedef struct REAL_NAME(attn_transpose) transpose_call;

// One square, V_COLUMNS columns at a time. ahead: what to ask for in steps of ahead_step bytes, one for
// each column.
INLINE void transpose_square(const real *source, int64_t source_row, const bool scaled, real factor,
                             real *target, int64_t target_row, const char *ahead,
                             int64_t ahead_step)
{
    for (int c = 0; c < V_LANES; c += V_COLUMNS) {
        vreal column[V_COLUMNS];
        v_load_columns(source + c, source_row * (int64_t)sizeof(real), column);
        UNROLL for (int i = 0; i < V_COLUMNS; i++)
        {
            __builtin_prefetch(ahead, 0, 2);
            v_store(target, scaled ? v_mul(column[i], v_set1(factor)) : column[i]);
            target += target_row;
            ahead += ahead_step;
            RUNNING(target);
            RUNNING(ahead);
        }
    }
}

static void transpose(const transpose_call *t, int64_t rows, int64_t columns);

// One of which `rows` x `columns` exist.
static void transpose_part(const transpose_call *t, const real *source, int64_t rows,
                           int64_t columns, real *target)
{
    real square[V_LANES * V_LANES], turned[V_LANES * V_LANES];
    for (int64_t r = 0; r < V_LANES; r++) {
        v_store(square + r * V_LANES,
                r < rows ? v_load_part(source + r * t->source_row, columns) : v_zero());
    }
    const transpose_call whole = {.source = square,
                                  .source_row = V_LANES,
                                  .factor = t->factor,
                                  .target = turned,
                                  .target_row = V_LANES};
    transpose(&whole, V_LANES, V_LANES);
    for (int64_t c = 0; c < columns; c++) {
        v_store_part(target + c * t->target_row, v_load(turned + c * V_LANES), rows);
    }
}

// So few that a square would hold little else than nothing.
static void transpose_few(const transpose_call *t, int64_t rows, int64_t columns)
{
    for (int64_t c = 0; c < columns; c++) {
        for (int64_t r = 0; r < rows; r++) {
            t->target[c * t->target_row + r] = t->source[r * t->source_row + c] * t->factor;
        }
    }
}

INLINE void transpose_squares(const transpose_call *t, int64_t rows, int64_t columns,
                              const bool scaled)
{
    for (int64_t r = 0; r < rows; r += V_LANES) {
        const int64_t some_rows = rows - r < V_LANES ? rows - r : V_LANES;
        for (int64_t c = 0; c < columns; c += V_LANES) {
            const int64_t some_columns = columns - c < V_LANES ? columns - c : V_LANES;
            const real *from = t->source + r * t->source_row + c;
            real *to = t->target + c * t->target_row + r;
            if (some_rows < V_LANES || some_columns < V_LANES) {
                transpose_part(t, from, some_rows, some_columns, to);
                continue;
            }
            const char *ahead = (const char *)to; // asks for nothing that would not come anyway
            const int64_t square = V_LANES * V_LANES * (int64_t)sizeof(real);
            const int64_t bytes = t->ahead ? attn_ahead_take(t->ahead, square, &ahead) : 0;
            transpose_square(from, t->source_row, scaled, t->factor, to, t->target_row, ahead,
                             bytes / V_LANES);
        }
    }
}

static void transpose(const transpose_call *t, int64_t rows, int64_t columns)
{
    if (rows * columns <= 2 * V_LANES) {
        transpose_few(t, rows, columns);
    } else if (t->factor == 1) {
        transpose_squares(t, rows, columns, false);
    } else {
        transpose_squares(t, rows, columns, true);
    }
}

// ---- elements of 16 bits ------------------------------------------------------------------------

#if ATTN_REAL_BITS == 32
typedef struct attn_transpose_narrow narrow_call;

enum { NARROW_LANES = 2 * V_LANES };

// A square of NARROW_LANES. Two neighbours of a row are moved as one element of 32 bits; even rows and odd
// ones apart, so that interleaving what they hold is all that is left to do.
INLINE void narrow_square(const uint16_t *source, int64_t source_row, uint16_t *target,
                          int64_t target_row, const char *ahead, int64_t ahead_step)
{
    const int64_t two_rows = 2 * source_row * (int64_t)sizeof *source;
    for (int c = 0; c < V_LANES; c += V_COLUMNS) {
        vreal even[V_COLUMNS], odd[V_COLUMNS];
        v_load_columns(source + 2 * c, two_rows, even);
        v_load_columns(source + source_row + 2 * c, two_rows, odd);
        UNROLL for (int i = 0; i < V_COLUMNS; i++)
        {
            __builtin_prefetch(ahead, 0, 2);
            __builtin_prefetch(ahead + ahead_step, 0, 2);
            v_store_narrow(target, target + target_row, even[i], odd[i]);
            target += 2 * target_row;
            ahead += 2 * ahead_step;
            RUNNING(target);
            RUNNING(ahead);
        }
    }
}

// What a square asks for: it is as much work as a multiply-add for each of the 2 NARROW_LANES vectors that it
// would be as reals.
INLINE int64_t narrow_bytes(const struct attn_ahead *ahead)
{
    const int64_t most = NARROW_LANES * ATTN_CACHE_LINE;
    const int64_t wanted = 2 * NARROW_LANES * ahead->rate / 1024;
    return wanted < most ? wanted : most;
}

static void narrow_part(const narrow_call *t, const uint16_t *source, int64_t rows, int64_t columns,
                        uint16_t *target)
{
    uint16_t square[NARROW_LANES * NARROW_LANES] = {0}, turned[NARROW_LANES * NARROW_LANES];
    for (int64_t r = 0; r < rows; r++) {
        memcpy(square + r * NARROW_LANES, source + r * t->source_row,
               (size_t)columns * sizeof *square);
    }
    narrow_square(square, NARROW_LANES, turned, NARROW_LANES, (const char *)target, 0);
    for (int64_t c = 0; c < columns; c++) {
        memcpy(target + c * t->target_row, turned + c * NARROW_LANES,
               (size_t)rows * sizeof *turned);
    }
}

static void transpose_narrow(const narrow_call *t, int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; r += NARROW_LANES) {
        const int64_t some_rows = rows - r < NARROW_LANES ? rows - r : NARROW_LANES;
        for (int64_t c = 0; c < columns; c += NARROW_LANES) {
            const int64_t some_columns = columns - c < NARROW_LANES ? columns - c : NARROW_LANES;
            const uint16_t *from = t->source + r * t->source_row + c;
            uint16_t *to = t->target + c * t->target_row + r;
            if (some_rows < NARROW_LANES || some_columns < NARROW_LANES) {
                narrow_part(t, from, some_rows, some_columns, to);
                continue;
            }
            const char *ahead = (const char *)to;
            const int64_t bytes =
                t->ahead ? attn_ahead_take(t->ahead, narrow_bytes(t->ahead), &ahead) : 0;
            narrow_square(from, t->source_row, to, t->target_row, ahead, bytes / NARROW_LANES);
        }
    }
}
#endif

#endif
