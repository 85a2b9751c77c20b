// kernels/vec_neon.h: the vector vocabulary on AArch64. See vec_portable.h for what each word means.
#ifndef ATTN_KERNELS_VEC_H
#define ATTN_KERNELS_VEC_H

#include <arm_neon.h>
#include <string.h>

#include "kernels/real.h"

// Rows of the register tile for one, two and three vectors of lanes: up to 24 of 32 registers are
// sums.
enum { TILE_ROWS_1 = 8, TILE_ROWS_2 = 8, TILE_ROWS_3 = 8 };

#if ATTN_REAL_BITS == 32
enum { V_LANES = 4, V_COLUMNS = 4, MANTISSA_BITS = 23, EXPONENT_BIAS = 127 };
typedef float32x4_t vreal;
typedef uint32x4_t vmask;
#define V_OP(name) name##_f32
#define V_BITS(v) vreinterpretq_u32_f32(v)
#define V_FROM_BITS(v) vreinterpretq_f32_u32(v)
#define V_DUP_BITS(x) vdupq_n_u32(x)
#define V_SHIFT_LEFT vshlq_n_u32
#define V_SHIFT_RIGHT vshrq_n_u32
#define V_TO_INTEGER(v) vreinterpretq_u32_s32(vcvtq_s32_f32(v))
#define V_FROM_INTEGER vcvtq_f32_u32
#define V_SIGN_BIT (UINT32_C(1) << 31)
#define V_ONE_BITS UINT32_C(0x3f800000)
#define V_INTEGER(name) name##_u32
#else
enum { V_LANES = 2, V_COLUMNS = 2, MANTISSA_BITS = 52, EXPONENT_BIAS = 1023 };
typedef float64x2_t vreal;
typedef uint64x2_t vmask;
#define V_OP(name) name##_f64
#define V_BITS(v) vreinterpretq_u64_f64(v)
#define V_FROM_BITS(v) vreinterpretq_f64_u64(v)
#define V_DUP_BITS(x) vdupq_n_u64(x)
#define V_SHIFT_LEFT vshlq_n_u64
#define V_SHIFT_RIGHT vshrq_n_u64
#define V_TO_INTEGER(v) vreinterpretq_u64_s64(vcvtq_s64_f64(v))
#define V_FROM_INTEGER vcvtq_f64_u64
#define V_SIGN_BIT (UINT64_C(1) << 63)
#define V_ONE_BITS UINT64_C(0x3ff0000000000000)
#define V_INTEGER(name) name##_u64
#endif

static inline vreal v_set1(real x)
{
    return V_OP(vdupq_n)(x);
}

static inline vreal v_zero(void)
{
    return v_set1(0);
}

static inline vreal v_load(const real *p)
{
    return V_OP(vld1q)(p);
}

#if ATTN_REAL_BITS == 32
static inline vreal v_load_f16(const uint16_t *p)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
}

static inline vreal v_load_bf16(const uint16_t *p)
{
    return V_FROM_BITS(vshll_n_u16(vld1_u16(p), 16));
}
#endif

static inline void v_store(real *p, vreal v)
{
    V_OP(vst1q)(p, v);
}

static inline vreal v_load_part(const real *p, int64_t n)
{
    real lane[V_LANES] = {0};
    memcpy(lane, p, (size_t)n * sizeof(real));
    return v_load(lane);
}

static inline void v_store_part(real *p, vreal v, int64_t n)
{
    real lane[V_LANES];
    v_store(lane, v);
    memcpy(p, lane, (size_t)n * sizeof(real));
}

static inline vreal v_add(vreal a, vreal b)
{
    return V_OP(vaddq)(a, b);
}

static inline vreal v_sub(vreal a, vreal b)
{
    return V_OP(vsubq)(a, b);
}

static inline vreal v_mul(vreal a, vreal b)
{
    return V_OP(vmulq)(a, b);
}

static inline vreal v_div(vreal a, vreal b)
{
    return V_OP(vdivq)(a, b);
}

static inline vreal v_fma(vreal a, vreal b, vreal c)
{
    return V_OP(vfmaq)(c, a, b);
}

static inline vmask v_lt(vreal a, vreal b)
{
    return V_OP(vcltq)(a, b);
}

static inline vmask v_le(vreal a, vreal b)
{
    return V_OP(vcleq)(a, b);
}

static inline vmask v_eq(vreal a, vreal b)
{
    return V_OP(vceqq)(a, b);
}

static inline vreal v_select(vmask m, vreal a, vreal b)
{
    return V_OP(vbslq)(m, a, b);
}

static inline vreal v_max(vreal a, vreal b)
{
    return v_select(v_lt(b, a), a, b);
}

static inline vreal v_abs(vreal a)
{
    return V_OP(vabsq)(a);
}

static inline vreal v_copysign(vreal a, vreal sign)
{
    return v_select(V_DUP_BITS(V_SIGN_BIT), sign, a);
}

static inline vmask v_hidden(vreal a)
{
    return V_INTEGER(vceqq)(V_BITS(a), V_DUP_BITS(V_SIGN_BIT));
}

static inline vmask v_both(vmask a, vmask b)
{
    return V_INTEGER(vandq)(a, b);
}

static inline bool v_any(vmask m)
{
    return vmaxvq_u32((uint32x4_t)m) != 0;
}

static inline vreal v_fma_unless(vmask m, vreal a, vreal b, vreal c)
{
    return v_select(m, c, v_fma(a, b, c));
}

static inline vreal v_exp2_split(vreal t, vreal *whole)
{
    const vreal x = v_max(v_set1(EXP2_LOWEST - 1), t);
    *whole = V_OP(vrndnq)(x);
    return v_sub(x, *whole);
}

// As on AVX2: twice the polynomial, so that the lowest exponent's field is 0.
enum { V_EXP2_GAIN = 2 };

static inline vreal v_exp2_join(vreal fraction, vreal whole)
{
    const vmask biased = V_TO_INTEGER(v_add(whole, v_set1(EXPONENT_BIAS - 1)));
    return v_mul(fraction, V_FROM_BITS(V_SHIFT_LEFT(biased, MANTISSA_BITS)));
}

static inline vreal v_log2_split(vreal x, vreal *whole)
{
    const vmask exponent = V_SHIFT_RIGHT(V_BITS(x), MANTISSA_BITS);
    *whole = v_sub(V_FROM_INTEGER(exponent), v_set1(EXPONENT_BIAS));
    const vmask high = V_SHIFT_LEFT(exponent, MANTISSA_BITS);
    return V_FROM_BITS(V_INTEGER(vorrq)(V_INTEGER(vbicq)(V_BITS(x), high), V_DUP_BITS(V_ONE_BITS)));
}

#if ATTN_REAL_BITS == 32
static inline vreal load_row(const void *source, int64_t at)
{
    return vreinterpretq_f32_u8(vld1q_u8((const uint8_t *)source + at));
}

static inline void v_load_columns(const void *source, int64_t row, vreal column[4])
{
    const float32x4x2_t low = vtrnq_f32(load_row(source, 0), load_row(source, row));
    const float32x4x2_t high = vtrnq_f32(load_row(source, 2 * row), load_row(source, 3 * row));
    column[0] = vcombine_f32(vget_low_f32(low.val[0]), vget_low_f32(high.val[0]));
    column[1] = vcombine_f32(vget_low_f32(low.val[1]), vget_low_f32(high.val[1]));
    column[2] = vcombine_f32(vget_high_f32(low.val[0]), vget_high_f32(high.val[0]));
    column[3] = vcombine_f32(vget_high_f32(low.val[1]), vget_high_f32(high.val[1]));
}

static inline void v_store_narrow(uint16_t *first, uint16_t *second, vreal a, vreal b)
{
    const uint16x8_t of_a = vreinterpretq_u16_f32(a), of_b = vreinterpretq_u16_f32(b);
    vst1q_u16(first, vtrn1q_u16(of_a, of_b));
    vst1q_u16(second, vtrn2q_u16(of_a, of_b));
}

static inline void v_store_quads(real *p, const vreal row[4])
{
    vst4q_f32(p, (float32x4x4_t){{row[0], row[1], row[2], row[3]}});
}
#else
static inline void v_load_columns(const void *source, int64_t row, vreal column[2])
{
    const vreal first = vreinterpretq_f64_u8(vld1q_u8(source));
    const vreal second = vreinterpretq_f64_u8(vld1q_u8((const uint8_t *)source + row));
    column[0] = vtrn1q_f64(first, second);
    column[1] = vtrn2q_f64(first, second);
}
#endif

#endif
