// kernels/vec_portable.h: the vector vocabulary in plain C, and what each word of it means.
//
// The other vec_*.h define the same words on intrinsics. A vector holds V_LANES elements of type
// `real`; words act lane by lane unless said otherwise. Every word is exact or rounded once, to
// nearest even, so a text written in these words gives the same bits on every tier. Here the fused
// multiply-add is the compiler's own: one instruction where the target has it, else the C library's
// correctly rounded function, which is slow.
#ifndef ATTN_KERNELS_VEC_H
#define ATTN_KERNELS_VEC_H

#include <string.h>

#define ATTN_PLAIN_LOOPS
#include "core/half.h"
#include "kernels/real.h"

// Rows of the register tile for one, two and three vectors of lanes.
enum { TILE_ROWS_1 = 4, TILE_ROWS_2 = 4, TILE_ROWS_3 = 2 };

enum { V_LANES = 4, V_COLUMNS = 4 };

#if ATTN_REAL_BITS == 32
typedef uint32_t word;
enum { MANTISSA_BITS = 23, EXPONENT_BIAS = 127 };
#define SCALAR_FMA __builtin_fmaf
#else
typedef uint64_t word;
enum { MANTISSA_BITS = 52, EXPONENT_BIAS = 1023 };
#define SCALAR_FMA __builtin_fma
#endif

typedef struct vreal {
    real at[V_LANES];
} vreal;

typedef struct vmask {
    bool at[V_LANES];
} vmask;

#define EACH_LANE(result, value)        \
    for (int i = 0; i < V_LANES; i++) { \
        (result).at[i] = (value);       \
    }

static inline word scalar_bits(real x)
{
    word bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline real scalar_from_bits(word bits)
{
    real x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#define SIGN_BIT ((word)1 << (ATTN_REAL_BITS - 1))

static inline vreal v_set1(real x)
{
    vreal v;
    EACH_LANE(v, x)
    return v;
}

static inline vreal v_zero(void)
{
    return v_set1(0);
}

// Loads and stores need no alignment. The _part words touch the first n elements only (0 <= n <=
// V_LANES); the other lanes load as +0.
static inline vreal v_load(const real *p)
{
    vreal v;
    EACH_LANE(v, p[i])
    return v;
}

#if ATTN_REAL_BITS == 32
// V_LANES elements of a narrower format; exact.
static inline vreal v_load_f16(const uint16_t *p)
{
    vreal v;
    EACH_LANE(v, attn_f16_to_f32(p[i]))
    return v;
}

static inline vreal v_load_bf16(const uint16_t *p)
{
    vreal v;
    EACH_LANE(v, attn_bf16_to_f32(p[i]))
    return v;
}
#endif

static inline void v_store(real *p, vreal v)
{
    for (int i = 0; i < V_LANES; i++) {
        p[i] = v.at[i];
    }
}

static inline vreal v_load_part(const real *p, int64_t n)
{
    vreal v;
    EACH_LANE(v, i < n ? p[i] : 0)
    return v;
}

static inline void v_store_part(real *p, vreal v, int64_t n)
{
    for (int i = 0; i < n; i++) {
        p[i] = v.at[i];
    }
}

static inline vreal v_add(vreal a, vreal b)
{
    EACH_LANE(a, a.at[i] + b.at[i])
    return a;
}

static inline vreal v_sub(vreal a, vreal b)
{
    EACH_LANE(a, a.at[i] - b.at[i])
    return a;
}

static inline vreal v_mul(vreal a, vreal b)
{
    EACH_LANE(a, a.at[i] * b.at[i])
    return a;
}

static inline vreal v_div(vreal a, vreal b)
{
    EACH_LANE(a, a.at[i] / b.at[i])
    return a;
}

// a * b + c, rounded once.
static inline vreal v_fma(vreal a, vreal b, vreal c)
{
    EACH_LANE(c, SCALAR_FMA(a.at[i], b.at[i], c.at[i]))
    return c;
}

// a > b ? a : b. So b where either is NaN; v_max(x, running) skips a NaN x.
static inline vreal v_max(vreal a, vreal b)
{
    EACH_LANE(b, a.at[i] > b.at[i] ? a.at[i] : b.at[i])
    return b;
}

static inline vreal v_abs(vreal a)
{
    EACH_LANE(a, scalar_from_bits(scalar_bits(a.at[i]) & ~SIGN_BIT))
    return a;
}

static inline vreal v_copysign(vreal a, vreal sign)
{
    EACH_LANE(a, scalar_from_bits((scalar_bits(a.at[i]) & ~SIGN_BIT) |
                                  (scalar_bits(sign.at[i]) & SIGN_BIT)))
    return a;
}

// Comparisons are false where either is NaN.
static inline vmask v_lt(vreal a, vreal b)
{
    vmask m;
    EACH_LANE(m, a.at[i] < b.at[i])
    return m;
}

static inline vmask v_le(vreal a, vreal b)
{
    vmask m;
    EACH_LANE(m, a.at[i] <= b.at[i])
    return m;
}

static inline vmask v_eq(vreal a, vreal b)
{
    vmask m;
    EACH_LANE(m, a.at[i] == b.at[i])
    return m;
}

// Where a has the bits of -0: the mark of a masked pair.
static inline vmask v_hidden(vreal a)
{
    vmask m;
    EACH_LANE(m, scalar_bits(a.at[i]) == SIGN_BIT)
    return m;
}

static inline vmask v_both(vmask a, vmask b)
{
    EACH_LANE(a, a.at[i] && b.at[i])
    return a;
}

// True when any lane is set.
static inline bool v_any(vmask m)
{
    bool any = false;
    for (int i = 0; i < V_LANES; i++) {
        any = any || m.at[i];
    }
    return any;
}

// a where m is set, else b.
static inline vreal v_select(vmask m, vreal a, vreal b)
{
    EACH_LANE(b, m.at[i] ? a.at[i] : b.at[i])
    return b;
}

// c where m is set, else a * b + c.
static inline vreal v_fma_unless(vmask m, vreal a, vreal b, vreal c)
{
    EACH_LANE(c, m.at[i] ? c.at[i] : SCALAR_FMA(a.at[i], b.at[i], c.at[i]))
    return c;
}

// Where the sum is made, its last place is 1.
#define ROUNDING_MAGIC ((real)((word)3 << (MANTISSA_BITS - 1)))

// The two halves of 2^t for t <= 127 (float) or 1023 (double): the fraction, t less the nearest whole
// number (ties to even), which is exact; and, after 2^fraction is known, its product with the other
// part. `whole` carries the exponent from one to the other in whatever form suits the tier. Where
// that exponent is below EXP2_LOWEST the product is +0 and the fraction may be anything finite; where
// t is NaN both are.
static inline vreal v_exp2_split(vreal t, vreal *whole)
{
    const real lowest = EXP2_LOWEST - 1;
    vreal fraction;
    for (int i = 0; i < V_LANES; i++) {
        const real x = lowest > t.at[i] ? lowest : t.at[i];
        whole->at[i] = (x + ROUNDING_MAGIC) - ROUNDING_MAGIC;
        fraction.at[i] = x - whole->at[i];
    }
    return fraction;
}

// What v_exp2_join wants 2^fraction multiplied by.
enum { V_EXP2_GAIN = 2 };

static inline vreal v_exp2_join(vreal fraction, vreal whole)
{
    for (int i = 0; i < V_LANES; i++) {
        const real n = whole.at[i] == whole.at[i] ? whole.at[i] : 0;
        const word exponent = (word)(int)(n + (EXPONENT_BIAS - 1));
        fraction.at[i] *= scalar_from_bits(exponent << MANTISSA_BITS);
    }
    return fraction;
}

// x = mantissa * 2^whole, 1 <= mantissa < 2, for normal positive x; anything for other x.
static inline vreal v_log2_split(vreal x, vreal *whole)
{
    for (int i = 0; i < V_LANES; i++) {
        const word bits = scalar_bits(x.at[i]);
        whole->at[i] = (real)((int)(bits >> MANTISSA_BITS) - EXPONENT_BIAS);
        x.at[i] = scalar_from_bits((bits & (((word)1 << MANTISSA_BITS) - 1)) |
                                   ((word)EXPONENT_BIAS << MANTISSA_BITS));
    }
    return x;
}

// The first V_COLUMNS elements of V_LANES rows that are `row` bytes apart: a vector for each column.
// Bits are moved, whatever they mean; the rows need no alignment.
static inline void v_load_columns(const void *source, int64_t row, vreal column[V_COLUMNS])
{
    for (int i = 0; i < V_LANES; i++) {
        real elements[V_COLUMNS];
        memcpy(elements, (const char *)source + i * row, sizeof elements);
        for (int c = 0; c < V_COLUMNS; c++) {
            column[c].at[i] = elements[c];
        }
    }
}

#if ATTN_REAL_BITS == 32
// Lanes that hold two elements of 16 bits each, the first in the lower bits: all first ones to `first`,
// all second ones to `second`, those of a and b in turn.
static inline void v_store_narrow(uint16_t *first, uint16_t *second, vreal a, vreal b)
{
    for (int i = 0; i < V_LANES; i++) {
        const word of_a = scalar_bits(a.at[i]), of_b = scalar_bits(b.at[i]);
        first[2 * i] = (uint16_t)(of_a & 0xffff);
        first[2 * i + 1] = (uint16_t)(of_b & 0xffff);
        second[2 * i] = (uint16_t)(of_a >> 16);
        second[2 * i + 1] = (uint16_t)(of_b >> 16);
    }
}

// Four rows, column by column: p[4 i + r] = row[r] at lane i.
static inline void v_store_quads(real *p, const vreal row[4])
{
    for (int i = 0; i < V_LANES; i++) {
        for (int r = 0; r < 4; r++) {
            p[4 * i + r] = row[r].at[i];
        }
    }
}
#endif

#endif
