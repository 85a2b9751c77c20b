// kernels/vec_lowered.h: the vector vocabulary with the width and the tile of AVX-512, on pairs of AVX2
// vectors. It makes whatever depends on that width testable on machines without AVX-512, and is never
// chosen for a context. See vec_portable.h for what each word means.
#ifndef ATTN_KERNELS_VEC_LOWERED_H
#define ATTN_KERNELS_VEC_LOWERED_H

// AVX2's words, under names that say they are half of the real thing.
#define vreal half_real
#define vmask half_mask
#define v_first half_first
#define v_zero half_zero
#define v_set1 half_set1
#define v_load half_load
#define v_load_f16 half_load_f16
#define v_load_bf16 half_load_bf16
#define v_store half_store
#define v_load_part half_load_part
#define v_store_part half_store_part
#define v_add half_add
#define v_sub half_sub
#define v_mul half_mul
#define v_div half_div
#define v_fma half_fma
#define v_max half_max
#define v_sign_bit half_sign_bit
#define v_abs half_abs
#define v_copysign half_copysign
#define v_lt half_lt
#define v_le half_le
#define v_eq half_eq
#define v_hidden half_hidden
#define v_both half_both
#define v_any half_any
#define v_select half_select
#define v_fma_unless half_fma_unless
#define v_exp2_split half_exp2_split
#define v_exp2_join half_exp2_join
#define v_log2_split half_log2_split
#define v_load_columns half_load_columns
#define v_store_narrow half_store_narrow
#define v_store_quads half_store_quads
#define V_LANES HALF_LANES
#define V_COLUMNS HALF_COLUMNS
#define TILE_ROWS_1 HALF_TILE_ROWS_1
#define TILE_ROWS_2 HALF_TILE_ROWS_2
#define TILE_ROWS_3 HALF_TILE_ROWS_3
#include "kernels/vec_avx2.h"
#undef vreal
#undef vmask
#undef v_first
#undef v_zero
#undef v_set1
#undef v_load
#undef v_load_f16
#undef v_load_bf16
#undef v_store
#undef v_load_part
#undef v_store_part
#undef v_add
#undef v_sub
#undef v_mul
#undef v_div
#undef v_fma
#undef v_max
#undef v_sign_bit
#undef v_abs
#undef v_copysign
#undef v_lt
#undef v_le
#undef v_eq
#undef v_hidden
#undef v_both
#undef v_any
#undef v_select
#undef v_fma_unless
#undef v_exp2_split
#undef v_exp2_join
#undef v_log2_split
#undef v_load_columns
#undef v_store_narrow
#undef v_store_quads
#undef V_LANES
#undef V_COLUMNS
#undef TILE_ROWS_1
#undef TILE_ROWS_2
#undef TILE_ROWS_3

enum {
    V_LANES = 2 * HALF_LANES,
    V_COLUMNS = HALF_COLUMNS,
    TILE_ROWS_1 = 16,
    TILE_ROWS_2 = 12,
    TILE_ROWS_3 = 8
};

typedef struct vreal {
    half_real low, high;
} vreal;

typedef struct vmask {
    half_mask low, high;
} vmask;

#define BOTH_1(type, name)                                      \
    static inline type v_##name(vreal a)                        \
    {                                                           \
        return (type){half_##name(a.low), half_##name(a.high)}; \
    }
#define BOTH_2(type, argument, name)                                           \
    static inline type v_##name(argument a, argument b)                        \
    {                                                                          \
        return (type){half_##name(a.low, b.low), half_##name(a.high, b.high)}; \
    }

BOTH_1(vreal, abs)
BOTH_1(vmask, hidden)
BOTH_2(vreal, vreal, add)
BOTH_2(vreal, vreal, sub)
BOTH_2(vreal, vreal, mul)
BOTH_2(vreal, vreal, div)
BOTH_2(vreal, vreal, max)
BOTH_2(vreal, vreal, copysign)
BOTH_2(vreal, vreal, exp2_join)
BOTH_2(vmask, vreal, lt)
BOTH_2(vmask, vreal, le)
BOTH_2(vmask, vreal, eq)
BOTH_2(vmask, vmask, both)

static inline vreal v_set1(real x)
{
    return (vreal){half_set1(x), half_set1(x)};
}

static inline vreal v_zero(void)
{
    return v_set1(0);
}

static inline vreal v_load(const real *p)
{
    return (vreal){half_load(p), half_load(p + HALF_LANES)};
}

#if ATTN_REAL_BITS == 32
static inline vreal v_load_f16(const uint16_t *p)
{
    return (vreal){half_load_f16(p), half_load_f16(p + HALF_LANES)};
}

static inline vreal v_load_bf16(const uint16_t *p)
{
    return (vreal){half_load_bf16(p), half_load_bf16(p + HALF_LANES)};
}
#endif

static inline void v_store(real *p, vreal v)
{
    half_store(p, v.low);
    half_store(p + HALF_LANES, v.high);
}

static inline int64_t lanes_of_half(int64_t n)
{
    return n < 0 ? 0 : n < HALF_LANES ? n : HALF_LANES;
}

static inline vreal v_load_part(const real *p, int64_t n)
{
    return (vreal){half_load_part(p, lanes_of_half(n)),
                   half_load_part(p + HALF_LANES, lanes_of_half(n - HALF_LANES))};
}

static inline void v_store_part(real *p, vreal v, int64_t n)
{
    half_store_part(p, v.low, lanes_of_half(n));
    half_store_part(p + HALF_LANES, v.high, lanes_of_half(n - HALF_LANES));
}

static inline vreal v_fma(vreal a, vreal b, vreal c)
{
    return (vreal){half_fma(a.low, b.low, c.low), half_fma(a.high, b.high, c.high)};
}

static inline vreal v_fma_unless(vmask m, vreal a, vreal b, vreal c)
{
    return (vreal){half_fma_unless(m.low, a.low, b.low, c.low),
                   half_fma_unless(m.high, a.high, b.high, c.high)};
}

static inline vreal v_select(vmask m, vreal a, vreal b)
{
    return (vreal){half_select(m.low, a.low, b.low), half_select(m.high, a.high, b.high)};
}

static inline bool v_any(vmask m)
{
    return half_any(m.low) || half_any(m.high);
}

static inline vreal v_exp2_split(vreal t, vreal *whole)
{
    return (vreal){half_exp2_split(t.low, &whole->low), half_exp2_split(t.high, &whole->high)};
}

static inline vreal v_log2_split(vreal x, vreal *whole)
{
    return (vreal){half_log2_split(x.low, &whole->low), half_log2_split(x.high, &whole->high)};
}

static inline void v_load_columns(const void *source, int64_t row, vreal column[V_COLUMNS])
{
    half_real low[V_COLUMNS], high[V_COLUMNS];
    half_load_columns(source, row, low);
    half_load_columns((const char *)source + HALF_LANES * row, row, high);
    for (int c = 0; c < V_COLUMNS; c++) {
        column[c] = (vreal){low[c], high[c]};
    }
}

#if ATTN_REAL_BITS == 32
static inline void v_store_narrow(uint16_t *first, uint16_t *second, vreal a, vreal b)
{
    half_store_narrow(first, second, a.low, b.low);
    half_store_narrow(first + 2 * HALF_LANES, second + 2 * HALF_LANES, a.high, b.high);
}

static inline void v_store_quads(real *p, const vreal row[4])
{
    half_store_quads(p, (half_real[]){row[0].low, row[1].low, row[2].low, row[3].low});
    half_store_quads(p + 4 * HALF_LANES,
                     (half_real[]){row[0].high, row[1].high, row[2].high, row[3].high});
}
#endif

#endif
