// kernels/text_tile.h: the outer-product tile, the one product behind scores, values, gradients and
// linear layers.
//
// A block of rows x vectors sums stays in registers while depth runs; each step reads the vectors of
// b once and broadcasts one element of a per row. A block's shape is a compile-time constant (the
// functions below are inlined with constant arguments), so the sums become registers.
#ifndef ATTN_KERNELS_TEXT_TILE_H
#define ATTN_KERNELS_TEXT_TILE_H

#include "kernels/text_stored.h"

typedef struct REAL_NAME(attn_tile) tile_call;

// Known strides of a let the compiler address its rows by constants.
enum a_layout { A_ANY, A_ROWS_ADJACENT, A_DEPTH_ADJACENT };

enum { TILE_MOST_ROWS = 16, TILE_MOST_VECTORS = 4 };

// Rows of a that share an address register: one for each of 12 rows would not fit, and what is moved
// back from a vector register for that costs a slot of a fused multiply-add.
enum { TILE_ROWS_PER_POINTER = 3 };

// Sums of a block from which on four steps share a line that is asked for.
enum { TILE_SHARED_LINE = 12 };

// All starts but 0 are something loaded times something: times 1 is exact.
INLINE void tile_begin(const tile_call *t, const int rows, const int vectors, int64_t part,
                       int64_t row, int64_t lane, vreal sum[][TILE_MOST_VECTORS])
{
    if (t->start == ATTN_TILE_ZERO) {
        UNROLL for (int r = 0; r < rows; r++)
        {
            UNROLL for (int v = 0; v < vectors; v++)
            {
                sum[r][v] = v_zero();
            }
        }
        return;
    }
    static const real one = 1;
    const bool shared = t->start == ATTN_TILE_LANES, scaled = t->start == ATTN_TILE_SCALE_ROW;
    const real *from = shared ? t->factor + lane : t->c + row * t->c_row + lane;
    const int64_t step = shared ? 0 : t->c_row;
    const real *factor = scaled ? t->factor + row : &one;
    UNROLL for (int r = 0; r < rows; r++)
    {
        const vreal times = v_set1(factor[scaled ? r : 0]);
        UNROLL for (int v = 0; v < vectors; v++)
        {
            const vreal start = part ? v_load_part(from, part) : v_load(from + v * V_LANES);
            sum[r][v] = v_mul(start, times);
        }
        from += step;
    }
}

// What a block asks for meanwhile: `step` bytes on in each of `times`, `lines` lines at most; `work`
// multiply-adds lie between two of them. Where rows are short and apart, all at once. With nothing to
// ask for it is what the block reads anyway.
INLINE const char *tile_ahead(const tile_call *t, int64_t work, int64_t times, const int lines,
                              int64_t *step)
{
    const char *data = (const char *)t->a;
    *step = 0;
    if (!t->ahead || times == 0) {
        return data;
    }
    const int64_t wanted = work * t->ahead->rate / 1024;
    const int64_t most = lines * ATTN_CACHE_LINE;
    const int64_t bytes = times * (wanted < most ? wanted : most);
    const int64_t taken = attn_ahead_take(t->ahead, bytes, &data);
    *step = (taken + times - 1) / times;
    attn_ahead_ask(t->ahead, bytes - taken);
    return data;
}

// One step of depth.
INLINE void tile_step(const real *const *a, int64_t a_row, const char *b, const int rows,
                      const int vectors, int64_t part, const attn_tile_select select,
                      const attn_storage storage, vreal sum[][TILE_MOST_VECTORS])
{
    vreal y[TILE_MOST_VECTORS];
    UNROLL for (int v = 0; v < vectors; v++)
    {
        y[v] = part ? stored_load_part(b, part, storage)
                    : stored_load(b + v * V_LANES * stored_size(storage), storage);
    }
    UNROLL for (int r = 0; r < rows; r++)
    {
        const int p = r / TILE_ROWS_PER_POINTER;
        const vreal x = v_set1(a[p][r % TILE_ROWS_PER_POINTER * a_row]);
        UNROLL for (int v = 0; v < vectors; v++)
        {
            if (select == ATTN_TILE_ALL) {
                sum[r][v] = v_fma(x, y[v], sum[r][v]);
            } else {
                const vmask hidden = v_hidden(select == ATTN_TILE_HIDDEN_A ? x : y[v]);
                sum[r][v] = v_fma_unless(hidden, x, y[v], sum[r][v]);
            }
        }
    }
}

// part: 0, or the number of lanes of a single vector that is not full.
INLINE void tile_block(const tile_call *t, const int rows, const int vectors, int64_t part,
                       int64_t row, int64_t lane, int64_t depth, const enum a_layout layout,
                       const attn_tile_select select, const attn_storage storage)
{
    vreal sum[TILE_MOST_ROWS][TILE_MOST_VECTORS];
    tile_begin(t, rows, vectors, part, row, lane, sum);

    const int64_t a_row = layout == A_ROWS_ADJACENT ? 1 : t->a_row;
    const int64_t a_depth = layout == A_DEPTH_ADJACENT ? 1 : t->a_depth;
    const real *a[TILE_MOST_ROWS / TILE_ROWS_PER_POINTER + 1];
    UNROLL for (int p = 0; p * TILE_ROWS_PER_POINTER < rows; p++)
    {
        a[p] = t->a + (row + p * TILE_ROWS_PER_POINTER) * a_row;
    }
    const bool reals = storage == ATTN_STORED_REAL;
    const int64_t size = stored_size(storage), b_step = t->b_depth * size;
    const char *b = (reals ? (const char *)t->b : (const char *)t->narrow_b) + lane * size;
    // A line that is asked for twice goes to the second-level cache twice; small blocks, which wait
    // for memory, have a line to ask for in every step.
    const int steps = rows * vectors >= TILE_SHARED_LINE ? 4 : 1, lines = steps > 1 ? 2 : 1;
    int64_t ahead_step;
    const char *ahead = tile_ahead(t, rows * vectors * steps, depth / steps, lines, &ahead_step);
    const bool two = lines > 1 && ahead_step > ATTN_CACHE_LINE;
    int64_t k = 0;
    for (; k + steps <= depth; k += steps) {
        __builtin_prefetch(ahead, 0, 2);
        if (two) {
            __builtin_prefetch(ahead + ATTN_CACHE_LINE, 0, 2);
        }
        ahead += ahead_step;
        UNROLL for (int s = 0; s < steps; s++)
        {
            tile_step(a, a_row, b, rows, vectors, part, select, storage, sum);
            b += b_step;
            UNROLL for (int p = 0; p * TILE_ROWS_PER_POINTER < rows; p++)
            {
                a[p] += a_depth;
            }
        }
    }
    for (; steps > 1 && k < depth; k++, b += b_step) {
        tile_step(a, a_row, b, rows, vectors, part, select, storage, sum);
        UNROLL for (int p = 0; p * TILE_ROWS_PER_POINTER < rows; p++)
        {
            a[p] += a_depth;
        }
    }

    UNROLL for (int r = 0; r < rows; r++)
    {
        real *c = t->c + (row + r) * t->c_row + lane;
        UNROLL for (int v = 0; v < vectors; v++)
        {
            if (part) {
                v_store_part(c, sum[r][v], part);
            } else {
                v_store(c + v * V_LANES, sum[r][v]);
            }
        }
    }
}

// All rows of one group of lanes: blocks of `most` rows, then halves of what is left.
INLINE void tile_rows(const tile_call *t, int64_t rows, const int most, const int vectors,
                      int64_t part, int64_t lane, int64_t depth, const enum a_layout layout,
                      const attn_tile_select select, const attn_storage storage)
{
    int64_t row = 0;
    for (; row + most <= rows; row += most) {
        tile_block(t, most, vectors, part, row, lane, depth, layout, select, storage);
    }
    if (most > 8 && row + 8 <= rows) {
        tile_block(t, 8, vectors, part, row, lane, depth, layout, select, storage);
        row += 8;
    }
    if (most > 4 && row + 4 <= rows) {
        tile_block(t, 4, vectors, part, row, lane, depth, layout, select, storage);
        row += 4;
    }
    if (row + 2 <= rows) {
        tile_block(t, 2, vectors, part, row, lane, depth, layout, select, storage);
        row += 2;
    }
    if (row < rows) {
        tile_block(t, 1, vectors, part, row, lane, depth, layout, select, storage);
    }
}

// Groups of three vectors, except that four are better split two and two. The rare cases do with
// smaller blocks.
INLINE void tile_lanes(const tile_call *t, int64_t rows, int64_t lanes, int64_t depth,
                       const enum a_layout layout, const attn_tile_select select)
{
    const bool rare = layout == A_ANY || select != ATTN_TILE_ALL;
    const int rows_1 = rare ? 4 : TILE_ROWS_1, rows_2 = rare ? 4 : TILE_ROWS_2;
    int64_t lane = 0;
    for (int64_t left = lanes / V_LANES; left > 0; left = (lanes - lane) / V_LANES) {
        if (!rare && (left == 3 || left > 4)) {
            tile_rows(t, rows, TILE_ROWS_3, 3, 0, lane, depth, layout, select, ATTN_STORED_REAL);
            lane += 3 * V_LANES;
        } else if (left != 1) {
            tile_rows(t, rows, rows_2, 2, 0, lane, depth, layout, select, ATTN_STORED_REAL);
            lane += 2 * V_LANES;
        } else {
            tile_rows(t, rows, rows_1, 1, 0, lane, depth, layout, select, ATTN_STORED_REAL);
            lane += V_LANES;
        }
    }
    if (lane < lanes) {
        tile_rows(t, rows, 4, 1, lanes - lane, lane, depth, layout, select, ATTN_STORED_REAL);
    }
}

#if ATTN_REAL_BITS == 32
// b in 16 bits: few rows, so that each vector is converted once or twice. A single row would wait for its
// own sums if they were few.
INLINE void tile_stored(const tile_call *t, int64_t rows, int64_t lanes, int64_t depth,
                        const attn_tile_select select, const attn_storage storage)
{
    int64_t lane = 0;
    for (; rows == 1 && lane + 4 * V_LANES <= lanes; lane += 4 * V_LANES) {
        tile_block(t, 1, 4, 0, 0, lane, depth, A_ROWS_ADJACENT, select, storage);
    }
    for (; lane + 2 * V_LANES <= lanes; lane += 2 * V_LANES) {
        tile_rows(t, rows, 4, 2, 0, lane, depth, A_ROWS_ADJACENT, select, storage);
    }
    for (; lane < lanes; lane += V_LANES) {
        const int64_t left = lanes - lane, part = left < V_LANES ? left : 0;
        tile_rows(t, rows, 4, 1, part, lane, depth, A_ROWS_ADJACENT, select, storage);
    }
}

static void tile_narrow(const tile_call *t, int64_t rows, int64_t lanes, int64_t depth)
{
    const bool f16 = t->b_storage == ATTN_STORED_F16;
    if (t->select == ATTN_TILE_ALL && f16) {
        tile_stored(t, rows, lanes, depth, ATTN_TILE_ALL, ATTN_STORED_F16);
    } else if (t->select == ATTN_TILE_ALL) {
        tile_stored(t, rows, lanes, depth, ATTN_TILE_ALL, ATTN_STORED_BF16);
    } else if (f16) {
        tile_stored(t, rows, lanes, depth, ATTN_TILE_HIDDEN_A, ATTN_STORED_F16);
    } else {
        tile_stored(t, rows, lanes, depth, ATTN_TILE_HIDDEN_A, ATTN_STORED_BF16);
    }
}
#endif

static void tile_rows_adjacent(const tile_call *t, int64_t rows, int64_t lanes, int64_t depth)
{
    tile_lanes(t, rows, lanes, depth, A_ROWS_ADJACENT, ATTN_TILE_ALL);
}

static void tile_depth_adjacent(const tile_call *t, int64_t rows, int64_t lanes, int64_t depth)
{
    tile_lanes(t, rows, lanes, depth, A_DEPTH_ADJACENT, ATTN_TILE_ALL);
}

static void tile_any(const tile_call *t, int64_t rows, int64_t lanes, int64_t depth)
{
    tile_lanes(t, rows, lanes, depth, A_ANY, ATTN_TILE_ALL);
}

static void tile_hidden_a(const tile_call *t, int64_t rows, int64_t lanes, int64_t depth)
{
    tile_lanes(t, rows, lanes, depth, A_ANY, ATTN_TILE_HIDDEN_A);
}

static void tile_hidden_b(const tile_call *t, int64_t rows, int64_t lanes, int64_t depth)
{
    tile_lanes(t, rows, lanes, depth, A_ANY, ATTN_TILE_HIDDEN_B);
}

static void tile(const tile_call *t, int64_t rows, int64_t lanes, int64_t depth)
{
#if ATTN_REAL_BITS == 32
    if (t->b_storage != ATTN_STORED_REAL) {
        tile_narrow(t, rows, lanes, depth);
        return;
    }
#endif
    if (t->select == ATTN_TILE_HIDDEN_A) {
        tile_hidden_a(t, rows, lanes, depth);
    } else if (t->select == ATTN_TILE_HIDDEN_B) {
        tile_hidden_b(t, rows, lanes, depth);
    } else if (t->a_row == 1) {
        tile_rows_adjacent(t, rows, lanes, depth);
    } else if (t->a_depth == 1) {
        tile_depth_adjacent(t, rows, lanes, depth);
    } else {
        tile_any(t, rows, lanes, depth);
    }
}

#endif
