// kernels/vec_avx512.h: the vector vocabulary on AVX-512 (F, BW, DQ, VL). See vec_portable.h for
// what each word means.
#ifndef ATTN_KERNELS_VEC_H
#define ATTN_KERNELS_VEC_H

#include <immintrin.h>
#include <stdint.h>

#include "kernels/real.h"

// Rows of the register tile for one, two and three vectors of lanes: 24 sums, three vectors of b and
// broadcasts of a fill the 32 registers.
enum { TILE_ROWS_1 = 16, TILE_ROWS_2 = 12, TILE_ROWS_3 = 8 };

#if ATTN_REAL_BITS == 32
enum { V_LANES = 16 };
typedef __m512 vreal;
typedef __mmask16 vmask;
#define V_OP(name) _mm512_##name##_ps
#define V_OP_MASK(name) _mm512_##name##_ps_mask
#define V_BITS(v) _mm512_castps_si512(v)
#define V_FROM_BITS(v) _mm512_castsi512_ps(v)
#define V_HIDDEN _mm512_set1_epi32(INT32_MIN)
#define V_CMPEQ_BITS _mm512_cmpeq_epi32_mask
#else
enum { V_LANES = 8 };
typedef __m512d vreal;
typedef __mmask8 vmask;
#define V_OP(name) _mm512_##name##_pd
#define V_OP_MASK(name) _mm512_##name##_pd_mask
#define V_BITS(v) _mm512_castpd_si512(v)
#define V_FROM_BITS(v) _mm512_castsi512_pd(v)
#define V_HIDDEN _mm512_set1_epi64(INT64_MIN)
#define V_CMPEQ_BITS _mm512_cmpeq_epi64_mask
#endif

static inline vmask v_first(int64_t n)
{
    return (vmask)((1u << n) - 1);
}

static inline vreal v_zero(void)
{
    return V_OP(setzero)();
}

static inline vreal v_set1(real x)
{
    return V_OP(set1)(x);
}

static inline vreal v_load(const real *p)
{
    return V_OP(loadu)(p);
}

#if ATTN_REAL_BITS == 32
static inline vreal v_load_f16(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const void *)p));
}

static inline vreal v_load_bf16(const uint16_t *p)
{
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)p));
    return V_FROM_BITS(_mm512_slli_epi32(wide, 16));
}
#endif

static inline void v_store(real *p, vreal v)
{
    V_OP(storeu)(p, v);
}

static inline vreal v_load_part(const real *p, int64_t n)
{
    return V_OP(maskz_loadu)(v_first(n), p);
}

static inline void v_store_part(real *p, vreal v, int64_t n)
{
    V_OP(mask_storeu)(p, v_first(n), v);
}

static inline vreal v_add(vreal a, vreal b)
{
    return V_OP(add)(a, b);
}

static inline vreal v_sub(vreal a, vreal b)
{
    return V_OP(sub)(a, b);
}

static inline vreal v_mul(vreal a, vreal b)
{
    return V_OP(mul)(a, b);
}

static inline vreal v_div(vreal a, vreal b)
{
    return V_OP(div)(a, b);
}

static inline vreal v_fma(vreal a, vreal b, vreal c)
{
    return V_OP(fmadd)(a, b, c);
}

static inline vreal v_max(vreal a, vreal b)
{
    return V_OP(max)(a, b);
}

static inline vreal v_abs(vreal a)
{
    return V_OP(abs)(a);
}

static inline vreal v_copysign(vreal a, vreal sign)
{
    return V_OP(or)(V_OP(andnot)(V_FROM_BITS(V_HIDDEN), a), V_OP(and)(V_FROM_BITS(V_HIDDEN), sign));
}

static inline vmask v_lt(vreal a, vreal b)
{
    return V_OP_MASK(cmp)(a, b, _CMP_LT_OQ);
}

static inline vmask v_le(vreal a, vreal b)
{
    return V_OP_MASK(cmp)(a, b, _CMP_LE_OQ);
}

static inline vmask v_eq(vreal a, vreal b)
{
    return V_OP_MASK(cmp)(a, b, _CMP_EQ_OQ);
}

static inline vmask v_hidden(vreal a)
{
    return V_CMPEQ_BITS(V_BITS(a), V_HIDDEN);
}

static inline vmask v_both(vmask a, vmask b)
{
    return a & b;
}

static inline bool v_any(vmask a)
{
    return a != 0;
}

static inline vreal v_select(vmask m, vreal a, vreal b)
{
    return V_OP(mask_blend)(m, b, a);
}

static inline vreal v_fma_unless(vmask m, vreal a, vreal b, vreal c)
{
    return V_OP(mask3_fmadd)(a, b, c, (vmask)~m);
}

static inline vreal v_exp2_split(vreal t, vreal *whole)
{
    const vreal fraction = V_OP(reduce)(t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    *whole = v_sub(t, fraction);
    return fraction;
}

enum { V_EXP2_GAIN = 1 };

static inline vreal v_exp2_join(vreal fraction, vreal whole)
{
    const vmask normal = V_OP_MASK(cmp)(whole, v_set1(EXP2_LOWEST), _CMP_NLT_UQ);
    return V_OP(maskz_scalef)(normal, fraction, whole);
}

static inline vreal v_log2_split(vreal x, vreal *whole)
{
    *whole = V_OP(getexp)(x);
    return V_OP(getmant)(x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_zero);
}

// Within each 128-bit quarter first, then the quarters themselves.
#if ATTN_REAL_BITS == 32
static inline void v_transpose(vreal row[16])
{
    vreal pair[16], quad[16];
    UNROLL for (int i = 0; i < 16; i += 2)
    {
        pair[i] = _mm512_unpacklo_ps(row[i], row[i + 1]);
        pair[i + 1] = _mm512_unpackhi_ps(row[i], row[i + 1]);
    }
    UNROLL for (int i = 0; i < 16; i += 4)
    {
        quad[i] = _mm512_shuffle_ps(pair[i], pair[i + 2], 0x44);
        quad[i + 1] = _mm512_shuffle_ps(pair[i], pair[i + 2], 0xee);
        quad[i + 2] = _mm512_shuffle_ps(pair[i + 1], pair[i + 3], 0x44);
        quad[i + 3] = _mm512_shuffle_ps(pair[i + 1], pair[i + 3], 0xee);
    }
    UNROLL for (int i = 0; i < 4; i++)
    {
        const vreal even_low = _mm512_shuffle_f32x4(quad[i], quad[i + 4], 0x88);
        const vreal even_high = _mm512_shuffle_f32x4(quad[i + 8], quad[i + 12], 0x88);
        const vreal odd_low = _mm512_shuffle_f32x4(quad[i], quad[i + 4], 0xdd);
        const vreal odd_high = _mm512_shuffle_f32x4(quad[i + 8], quad[i + 12], 0xdd);
        row[i] = _mm512_shuffle_f32x4(even_low, even_high, 0x88);
        row[i + 4] = _mm512_shuffle_f32x4(odd_low, odd_high, 0x88);
        row[i + 8] = _mm512_shuffle_f32x4(even_low, even_high, 0xdd);
        row[i + 12] = _mm512_shuffle_f32x4(odd_low, odd_high, 0xdd);
    }
}
#else
static inline void v_transpose(vreal row[8])
{
    vreal pair[8];
    UNROLL for (int i = 0; i < 8; i += 2)
    {
        pair[i] = _mm512_unpacklo_pd(row[i], row[i + 1]);
        pair[i + 1] = _mm512_unpackhi_pd(row[i], row[i + 1]);
    }
    UNROLL for (int i = 0; i < 2; i++)
    {
        const vreal even_low = _mm512_shuffle_f64x2(pair[i], pair[i + 2], 0x88);
        const vreal even_high = _mm512_shuffle_f64x2(pair[i + 4], pair[i + 6], 0x88);
        const vreal odd_low = _mm512_shuffle_f64x2(pair[i], pair[i + 2], 0xdd);
        const vreal odd_high = _mm512_shuffle_f64x2(pair[i + 4], pair[i + 6], 0xdd);
        row[i] = _mm512_shuffle_f64x2(even_low, even_high, 0x88);
        row[i + 2] = _mm512_shuffle_f64x2(odd_low, odd_high, 0x88);
        row[i + 4] = _mm512_shuffle_f64x2(even_low, even_high, 0xdd);
        row[i + 6] = _mm512_shuffle_f64x2(odd_low, odd_high, 0xdd);
    }
}
#endif

#endif
