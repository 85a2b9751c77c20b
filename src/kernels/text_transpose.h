// kernels/text_transpose.h: transposition by squares of V_LANES.
#ifndef ATTN_KERNELS_TEXT_TRANSPOSE_H
#define ATTN_KERNELS_TEXT_TRANSPOSE_H

#include "kernels/text_stored.h"

typedef struct REAL_NAME(attn_transpose) transpose_call;

// One square, of which `rows` x `columns` exist; source_row in bytes.
INLINE void transpose_square(const char *source, int64_t source_row, int64_t rows, int64_t columns,
                             vreal factor, real *target, int64_t target_row,
                             const attn_storage storage)
{
    vreal v[V_LANES];
    UNROLL for (int r = 0; r < V_LANES; r++)
    {
        v[r] = r < rows ? stored_load_part(source + r * source_row, columns, storage) : v_zero();
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
INLINE void transpose_full_square(const char *source, int64_t source_row, vreal factor,
                                  real *target, int64_t target_row, const char *ahead,
                                  int64_t ahead_step, const attn_storage storage)
{
    vreal v[V_LANES];
    UNROLL for (int r = 0; r < V_LANES; r++)
    {
        v[r] = stored_load(source + r * source_row, storage);
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

INLINE void transpose_stored(const transpose_call *t, int64_t rows, int64_t columns,
                             const attn_storage storage)
{
    const vreal factor = v_set1(t->factor);
    const bool reals = storage == ATTN_STORED_REAL;
    const char *const source = reals ? (const char *)t->source : (const char *)t->narrow;
    const int64_t size = stored_size(storage), source_row = t->source_row * size;
    for (int64_t r = 0; r < rows; r += V_LANES) {
        const int64_t some_rows = rows - r < V_LANES ? rows - r : V_LANES;
        for (int64_t c = 0; c < columns; c += V_LANES) {
            const int64_t some_columns = columns - c < V_LANES ? columns - c : V_LANES;
            const char *const from = source + r * source_row + c * size;
            real *to = t->target + c * t->target_row + r;
            if (some_rows < V_LANES || some_columns < V_LANES) {
                transpose_square(from, source_row, some_rows, some_columns, factor, to,
                                 t->target_row, storage);
                continue;
            }
            const char *ahead = (const char *)to; // asks for nothing that would not come anyway
            const int64_t square = V_LANES * V_LANES * t->ahead_size;
            const int64_t bytes = t->ahead ? attn_ahead_take(t->ahead, square, &ahead) : 0;
            transpose_full_square(from, source_row, factor, to, t->target_row, ahead,
                                  bytes / V_LANES, storage);
        }
    }
}

static void transpose(const transpose_call *t, int64_t rows, int64_t columns)
{
    if (t->storage == ATTN_STORED_F16) {
        transpose_stored(t, rows, columns, ATTN_STORED_F16);
    } else if (t->storage == ATTN_STORED_BF16) {
        transpose_stored(t, rows, columns, ATTN_STORED_BF16);
    } else if (rows * columns <= 2 * V_LANES) {
        transpose_few(t, rows, columns);
    } else {
        transpose_stored(t, rows, columns, ATTN_STORED_REAL);
    }
}

#endif
