// kernels/text_transpose.h: transposition by squares of V_LANES.
#ifndef ATTN_KERNELS_TEXT_TRANSPOSE_H
#define ATTN_KERNELS_TEXT_TRANSPOSE_H

#include "kernels/real.h"

typedef struct REAL_NAME(attn_transpose) transpose_call;

// One square, of which `rows` x `columns` exist.
INLINE void transpose_square(const real *source, int64_t source_row, int64_t rows, int64_t columns,
                             vreal factor, real *target, int64_t target_row)
{
    vreal v[V_LANES];
    UNROLL for (int r = 0; r < V_LANES; r++)
    {
        v[r] = r < rows ? v_load_part(source + r * source_row, columns) : v_zero();
    }
    v_transpose(v);
    UNROLL for (int c = 0; c < V_LANES; c++)
    {
        if (c < columns) {
            v_store_part(target + c * target_row, v_mul(v[c], factor), rows);
        }
    }
}

// ahead: what to ask for in steps of ahead_step bytes
INLINE void transpose_full_square(const real *source, int64_t source_row, vreal factor,
                                  real *target, int64_t target_row, const char *ahead,
                                  int64_t ahead_step)
{
    vreal v[V_LANES];
    UNROLL for (int r = 0; r < V_LANES; r++)
    {
        v[r] = v_load(source + r * source_row);
        __builtin_prefetch(ahead + r * ahead_step, 0, 2);
    }
    v_transpose(v);
    UNROLL for (int c = 0; c < V_LANES; c++)
    {
        v_store(target + c * target_row, v_mul(v[c], factor));
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

static void transpose(const transpose_call *t, int64_t rows, int64_t columns)
{
    if (rows * columns <= 2 * V_LANES) {
        transpose_few(t, rows, columns);
        return;
    }
    const vreal factor = v_set1(t->factor);
    for (int64_t r = 0; r < rows; r += V_LANES) {
        const int64_t some_rows = rows - r < V_LANES ? rows - r : V_LANES;
        for (int64_t c = 0; c < columns; c += V_LANES) {
            const int64_t some_columns = columns - c < V_LANES ? columns - c : V_LANES;
            const real *from = t->source + r * t->source_row + c;
            real *to = t->target + c * t->target_row + r;
            if (some_rows == V_LANES && some_columns == V_LANES) {
                const char *ahead = (const char *)from;
                const int64_t square = V_LANES * V_LANES * t->ahead_size;
                const int64_t bytes = t->ahead ? attn_ahead_take(t->ahead, square, &ahead) : 0;
                transpose_full_square(from, t->source_row, factor, to, t->target_row, ahead,
                                      bytes / V_LANES);
            } else {
                transpose_square(from, t->source_row, some_rows, some_columns, factor, to,
                                 t->target_row);
            }
        }
    }
}

#endif
