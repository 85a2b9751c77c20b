// kernels/text_rows.h: what is done to whole rows of an accumulator.
#ifndef ATTN_KERNELS_TEXT_ROWS_H
#define ATTN_KERNELS_TEXT_ROWS_H

#include "kernels/real.h"

// Times 0, everything finite is a zero, and the sum of zeros is one.
static bool finite(const real *source, int64_t source_row, int64_t rows, int64_t columns)
{
    vreal sum[4] = {v_zero(), v_zero(), v_zero(), v_zero()};
    if (source_row == columns) {
        columns *= rows;
        rows = rows > 0;
    }
    for (int64_t r = 0; r < rows; r++, source += source_row) {
        int64_t c = 0;
        for (; c + 4 * V_LANES <= columns; c += 4 * V_LANES) {
            UNROLL for (int i = 0; i < 4; i++)
            {
                sum[i] = v_fma(v_load(source + c + i * V_LANES), v_zero(), sum[i]);
            }
        }
        for (; c < columns; c += V_LANES) {
            const int64_t part = columns - c < V_LANES ? columns - c : V_LANES;
            sum[0] = v_fma(v_load_part(source + c, part), v_zero(), sum[0]);
        }
    }
    const vreal all = v_add(v_add(sum[0], sum[1]), v_add(sum[2], sum[3]));
    return !v_any(v_lt(v_zero(), v_select(v_eq(all, all), v_zero(), v_set1(1))));
}

INLINE vreal scaled(vreal source, vreal factor)
{
    const vreal x = v_fma(source, factor, v_zero());
    return v_select(v_eq(x, x), x, v_set1((real)NAN));
}

// NaN comes out as the one quiet NaN, whose bits do not depend on the instruction set, and either zero
// of the source as +0.
static void scale_rows(const struct REAL_NAME(attn_scale) * t, int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; r++) {
        const real *source = t->source + r * t->source_row;
        real *target = t->target + r * t->target_row;
        const vreal factor = v_set1(t->factor[r * t->factor_step]);
        int64_t c = 0;
        for (; c + 4 * V_LANES <= columns; c += 4 * V_LANES) {
            UNROLL for (int i = 0; i < 4 * V_LANES; i += V_LANES)
            {
                v_store(target + c + i, scaled(v_load(source + c + i), factor));
            }
        }
        for (; c + V_LANES <= columns; c += V_LANES) {
            v_store(target + c, scaled(v_load(source + c), factor));
        }
        if (c < columns) {
            const int64_t part = columns - c;
            v_store_part(target + c, scaled(v_load_part(source + c, part), factor), part);
        }
    }
}

static void merge_row(real *total, real total_factor, const real *part, real part_factor,
                      int64_t count)
{
    const vreal f = v_set1(total_factor), g = v_set1(part_factor);
    for (int64_t i = 0; i < count; i += V_LANES) {
        const int64_t some = count - i < V_LANES ? count - i : V_LANES;
        const vreal x = v_mul(v_load_part(total + i, some), f);
        v_store_part(total + i, v_fma(v_load_part(part + i, some), g, x), some);
    }
}

#endif
