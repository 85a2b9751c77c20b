// kernels/text_transpose.h: transposition by squares of V_LANES.
#ifndef ATTN_KERNELS_TEXT_TRANSPOSE_H
#define ATTN_KERNELS_TEXT_TRANSPOSE_H

#include "kernels/real.h"

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

INLINE void transpose_full_square(const real *source, int64_t source_row, vreal factor,
                                  real *target, int64_t target_row)
{
    vreal v[V_LANES];
    UNROLL for (int r = 0; r < V_LANES; r++)
    {
        v[r] = v_load(source + r * source_row);
    }
    v_transpose(v);
    UNROLL for (int c = 0; c < V_LANES; c++)
    {
        v_store(target + c * target_row, v_mul(v[c], factor));
    }
}

// So few that a square would hold little else than nothing.
static void transpose_few(const real *source, int64_t source_row, int64_t rows, int64_t columns,
                          real factor, real *target, int64_t target_row)
{
    for (int64_t c = 0; c < columns; c++) {
        for (int64_t r = 0; r < rows; r++) {
            target[c * target_row + r] = source[r * source_row + c] * factor;
        }
    }
}

static void transpose(const real *source, int64_t source_row, int64_t rows, int64_t columns,
                      real factor, real *target, int64_t target_row)
{
    if (rows * columns <= 2 * V_LANES) {
        transpose_few(source, source_row, rows, columns, factor, target, target_row);
        return;
    }
    const vreal factors = v_set1(factor);
    for (int64_t r = 0; r < rows; r += V_LANES) {
        const int64_t some_rows = rows - r < V_LANES ? rows - r : V_LANES;
        for (int64_t c = 0; c < columns; c += V_LANES) {
            const int64_t some_columns = columns - c < V_LANES ? columns - c : V_LANES;
            const real *from = source + r * source_row + c;
            real *to = target + c * target_row + r;
            if (some_rows == V_LANES && some_columns == V_LANES) {
                transpose_full_square(from, source_row, factors, to, target_row);
            } else {
                transpose_square(from, source_row, some_rows, some_columns, factors, to,
                                 target_row);
            }
        }
    }
}

#endif
