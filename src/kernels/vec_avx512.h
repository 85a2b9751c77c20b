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
enum { V_LANES = 16, V_COLUMNS = 8 };
typedef __m512 vreal;
typedef __mmask16 vmask;
#define V_OP(name) _mm512_##name##_ps
#define V_OP_MASK(name) _mm512_##name##_ps_mask
#define V_BITS(v) _mm512_castps_si512(v)
#define V_FROM_BITS(v) _mm512_castsi512_ps(v)
#define V_HIDDEN _mm512_set1_epi32(INT32_MIN)
#define V_CMPEQ_BITS _mm512_cmpeq_epi32_mask
#else
enum { V_LANES = 8, V_COLUMNS = 4 };
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

// Quarters of 128 bits are put together by loads, which broadcast under a mask: of the shuffles, which
// share one port, only those within quarters are left.
#if ATTN_REAL_BITS == 32
static inline __m128 load_quarter(const char *at)
{
    return _mm_loadu_ps((const void *)at);
}

static inline void v_load_columns(const void *source, int64_t row, vreal column[8])
{
    const char *at = source, *later = at + 8 * row;
    vreal part[2][4], pair[4];
    UNROLL for (int r = 0; r < 4; r++)
    {
        UNROLL for (int q = 0; q < 2; q++)
        {
            vreal x = _mm512_broadcast_f32x4(load_quarter(at + 16 * q));
            x = _mm512_mask_broadcast_f32x4(x, 0x00f0, load_quarter(at + 4 * row + 16 * q));
            x = _mm512_mask_broadcast_f32x4(x, 0x0f00, load_quarter(later + 16 * q));
            x = _mm512_mask_broadcast_f32x4(x, 0xf000, load_quarter(later + 4 * row + 16 * q));
            part[q][r] = x;
        }
        at += row;
        later += row;
        RUNNING(at);
        RUNNING(later);
    }
    UNROLL for (int q = 0; q < 2; q++)
    {
        pair[0] = _mm512_unpacklo_ps(part[q][0], part[q][1]);
        pair[1] = _mm512_unpackhi_ps(part[q][0], part[q][1]);
        pair[2] = _mm512_unpacklo_ps(part[q][2], part[q][3]);
        pair[3] = _mm512_unpackhi_ps(part[q][2], part[q][3]);
        column[4 * q] = _mm512_shuffle_ps(pair[0], pair[2], 0x44);
        column[4 * q + 1] = _mm512_shuffle_ps(pair[0], pair[2], 0xee);
        column[4 * q + 2] = _mm512_shuffle_ps(pair[1], pair[3], 0x44);
        column[4 * q + 3] = _mm512_shuffle_ps(pair[1], pair[3], 0xee);
    }
}

static inline void v_store_narrow(uint16_t *first, uint16_t *second, vreal a, vreal b)
{
    const __mmask32 odd = 0xaaaaaaaa;
    const __m512i low = _mm512_slli_epi32(V_BITS(b), 16), high = _mm512_srli_epi32(V_BITS(a), 16);
    _mm512_storeu_si512(first, _mm512_mask_blend_epi16(odd, V_BITS(a), low));
    _mm512_storeu_si512(second, _mm512_mask_blend_epi16(odd, high, V_BITS(b)));
}

static inline void v_store_quads(real *p, const vreal row[4])
{
    const vreal low_0 = _mm512_unpacklo_ps(row[0], row[1]),
                low_2 = _mm512_unpacklo_ps(row[2], row[3]);
    const vreal high_0 = _mm512_unpackhi_ps(row[0], row[1]),
                high_2 = _mm512_unpackhi_ps(row[2], row[3]);
    const vreal quad_0 = _mm512_shuffle_ps(low_0, low_2, 0x44); // lanes 0, 4, 8, 12
    const vreal quad_1 = _mm512_shuffle_ps(low_0, low_2, 0xee); // lanes 1, 5, ...
    const vreal quad_2 = _mm512_shuffle_ps(high_0, high_2, 0x44);
    const vreal quad_3 = _mm512_shuffle_ps(high_0, high_2, 0xee);
    const vreal even_0 = _mm512_shuffle_f32x4(quad_0, quad_1, 0x88);
    const vreal even_2 = _mm512_shuffle_f32x4(quad_2, quad_3, 0x88);
    const vreal odd_0 = _mm512_shuffle_f32x4(quad_0, quad_1, 0xdd);
    const vreal odd_2 = _mm512_shuffle_f32x4(quad_2, quad_3, 0xdd);
    _mm512_storeu_ps(p, _mm512_shuffle_f32x4(even_0, even_2, 0x88));
    _mm512_storeu_ps(p + 16, _mm512_shuffle_f32x4(odd_0, odd_2, 0x88));
    _mm512_storeu_ps(p + 32, _mm512_shuffle_f32x4(even_0, even_2, 0xdd));
    _mm512_storeu_ps(p + 48, _mm512_shuffle_f32x4(odd_0, odd_2, 0xdd));
}
#else
static inline __m128d load_quarter(const char *at)
{
    return _mm_loadu_pd((const void *)at);
}

static inline void v_load_columns(const void *source, int64_t row, vreal column[4])
{
    const char *at = source, *later = at + 4 * row;
    vreal part[2][2];
    UNROLL for (int r = 0; r < 2; r++)
    {
        UNROLL for (int q = 0; q < 2; q++)
        {
            vreal x = _mm512_broadcast_f64x2(load_quarter(at + 16 * q));
            x = _mm512_mask_broadcast_f64x2(x, 0x0c, load_quarter(at + 2 * row + 16 * q));
            x = _mm512_mask_broadcast_f64x2(x, 0x30, load_quarter(later + 16 * q));
            x = _mm512_mask_broadcast_f64x2(x, 0xc0, load_quarter(later + 2 * row + 16 * q));
            part[q][r] = x;
        }
        at += row;
        later += row;
        RUNNING(at);
        RUNNING(later);
    }
    UNROLL for (int q = 0; q < 2; q++)
    {
        column[2 * q] = _mm512_unpacklo_pd(part[q][0], part[q][1]);
        column[2 * q + 1] = _mm512_unpackhi_pd(part[q][0], part[q][1]);
    }
}

#endif

#endif
