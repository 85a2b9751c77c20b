// kernels/text_rows.h: what is done to whole rows of an accumulator.
#ifndef ATTN_KERNELS_TEXT_ROWS_H
#define ATTN_KERNELS_TEXT_ROWS_H

#include "kernels/real.h"

// NaN comes out as the one quiet NaN, whose bits do not depend on the instruction set.
static void scale_row(const real *source, real factor, real *target, int64_t count)
{
    const vreal f = v_set1(factor), nan = v_set1((real)NAN);
    for (int64_t i = 0; i < count; i += V_LANES) {
        const int64_t part = count - i < V_LANES ? count - i : V_LANES;
        const vreal x = v_mul(v_load_part(source + i, part), f);
        v_store_part(target + i, v_select(v_eq(x, x), x, nan), part);
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
