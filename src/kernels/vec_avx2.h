// kernels/vec_avx2.h: the vector vocabulary on AVX2 with FMA. See vec_portable.h for what each word
// means.
#ifndef ATTN_KERNELS_VEC_H
#define ATTN_KERNELS_VEC_H

#include <immintrin.h>

#include "kernels/real.h"

// Rows of the register tile for one, two and three vectors of lanes: twelve sums, the vectors of b
// and one broadcast of a fill the 16 registers.
enum { TILE_ROWS_1 = 8, TILE_ROWS_2 = 6, TILE_ROWS_3 = 4 };

#if ATTN_REAL_BITS == 32
enum { V_LANES = 8, V_COLUMNS = 8 };
typedef __m256 vreal;
typedef __m256 vmask;
#define V_OP(name) _mm256_##name##_ps
#define V_BITS(v) _mm256_castps_si256(v)
#define V_FROM_BITS(v) _mm256_castsi256_ps(v)
#define V_CMPEQ_BITS _mm256_cmpeq_epi32
#define V_CMPGT_BITS _mm256_cmpgt_epi32
#define V_SET1_BITS _mm256_set1_epi32
#define V_COUNT_BITS _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)
#define V_SHIFT_LEFT _mm256_slli_epi32
#define V_SHIFT_RIGHT _mm256_srli_epi32
enum { MANTISSA_BITS = 23 };
typedef int lane_int;
// Adding it puts a small whole number, plus the exponent's bias less 1, into the lowest bits.
#define V_BIASED_MAGIC 12583038.0f  // 1.5 * 2^23 + 126
#define V_EXPONENT_MAGIC 8388735.0f // 2^23 + 127
#define V_EXPONENT_MAGIC_BITS 0x4b000000
#define V_ONE_BITS 0x3f800000
#else
enum { V_LANES = 4, V_COLUMNS = 4 };
typedef __m256d vreal;
typedef __m256d vmask;
#define V_OP(name) _mm256_##name##_pd
#define V_BITS(v) _mm256_castpd_si256(v)
#define V_FROM_BITS(v) _mm256_castsi256_pd(v)
#define V_CMPEQ_BITS _mm256_cmpeq_epi64
#define V_CMPGT_BITS _mm256_cmpgt_epi64
#define V_SET1_BITS _mm256_set1_epi64x
#define V_COUNT_BITS _mm256_setr_epi64x(0, 1, 2, 3)
#define V_SHIFT_LEFT _mm256_slli_epi64
#define V_SHIFT_RIGHT _mm256_srli_epi64
enum { MANTISSA_BITS = 52 };
typedef long long lane_int;
#define V_BIASED_MAGIC 6755399441056766.0   // 1.5 * 2^52 + 1022
#define V_EXPONENT_MAGIC 4503599627371519.0 // 2^52 + 1023
#define V_EXPONENT_MAGIC_BITS 0x4330000000000000
#define V_ONE_BITS 0x3ff0000000000000
#endif

static inline __m256i v_first(int64_t n)
{
    return V_CMPGT_BITS(V_SET1_BITS((lane_int)n), V_COUNT_BITS);
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
    return _mm256_cvtph_ps(_mm_loadu_si128((const void *)p));
}

static inline vreal v_load_bf16(const uint16_t *p)
{
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)p));
    return V_FROM_BITS(V_SHIFT_LEFT(wide, 16));
}
#endif

static inline void v_store(real *p, vreal v)
{
    V_OP(storeu)(p, v);
}

static inline vreal v_load_part(const real *p, int64_t n)
{
    return V_OP(maskload)(p, v_first(n));
}

static inline void v_store_part(real *p, vreal v, int64_t n)
{
    V_OP(maskstore)(p, v_first(n), v);
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

static inline vreal v_sign_bit(void)
{
    return v_set1(R(-0.0));
}

static inline vreal v_abs(vreal a)
{
    return V_OP(andnot)(v_sign_bit(), a);
}

static inline vreal v_copysign(vreal a, vreal sign)
{
    return V_OP(or)(v_abs(a), V_OP(and)(v_sign_bit(), sign));
}

static inline vmask v_lt(vreal a, vreal b)
{
    return V_OP(cmp)(a, b, _CMP_LT_OQ);
}

static inline vmask v_le(vreal a, vreal b)
{
    return V_OP(cmp)(a, b, _CMP_LE_OQ);
}

static inline vmask v_eq(vreal a, vreal b)
{
    return V_OP(cmp)(a, b, _CMP_EQ_OQ);
}

static inline vmask v_hidden(vreal a)
{
    return V_FROM_BITS(V_CMPEQ_BITS(V_BITS(a), V_BITS(v_sign_bit())));
}

static inline vmask v_both(vmask a, vmask b)
{
    return V_OP(and)(a, b);
}

static inline bool v_any(vmask m)
{
    return V_OP(movemask)(m) != 0;
}

static inline vreal v_select(vmask m, vreal a, vreal b)
{
    return V_OP(blendv)(b, a, m);
}

static inline vreal v_fma_unless(vmask m, vreal a, vreal b, vreal c)
{
    return V_OP(blendv)(V_OP(fmadd)(a, b, c), c, m);
}

static inline vreal v_exp2_split(vreal t, vreal *whole)
{
    const vreal x = v_max(v_set1(EXP2_LOWEST - 1), t);
    *whole = V_OP(round)(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    return v_sub(x, *whole);
}

// The polynomial comes twice as large, so that whole = EXP2_LOWEST - 1 has the exponent field 0, which
// is the number 0.
enum { V_EXP2_GAIN = 2 };

static inline vreal v_exp2_join(vreal fraction, vreal whole)
{
    const vreal biased = v_add(whole, v_set1(V_BIASED_MAGIC));
    return v_mul(fraction, V_FROM_BITS(V_SHIFT_LEFT(V_BITS(biased), MANTISSA_BITS)));
}

static inline vreal v_log2_split(vreal x, vreal *whole)
{
    const __m256i exponent = V_SHIFT_RIGHT(V_BITS(x), MANTISSA_BITS);
    const __m256i magic = V_SET1_BITS(V_EXPONENT_MAGIC_BITS);
    *whole = v_sub(V_FROM_BITS(_mm256_or_si256(exponent, magic)), v_set1(V_EXPONENT_MAGIC));
    const __m256i mantissa = V_SHIFT_LEFT(exponent, MANTISSA_BITS);
    const __m256i fraction_bits = _mm256_andnot_si256(mantissa, V_BITS(x));
    return V_FROM_BITS(_mm256_or_si256(fraction_bits, V_SET1_BITS(V_ONE_BITS)));
}

// Halves of 128 bits are put together by loads.
#if ATTN_REAL_BITS == 32
static inline void v_load_columns(const void *source, int64_t row, vreal column[8])
{
    const char *at = source;
    vreal part[2][4], pair[4];
    UNROLL for (int r = 0; r < 4; r++)
    {
        UNROLL for (int q = 0; q < 2; q++)
        {
            const __m256 low = _mm256_castps128_ps256(_mm_loadu_ps((const void *)(at + 16 * q)));
            const __m128 high = _mm_loadu_ps((const void *)(at + 4 * row + 16 * q));
            part[q][r] = _mm256_insertf128_ps(low, high, 1);
        }
        at += row;
        RUNNING(at);
    }
    UNROLL for (int q = 0; q < 2; q++)
    {
        pair[0] = _mm256_unpacklo_ps(part[q][0], part[q][1]);
        pair[1] = _mm256_unpackhi_ps(part[q][0], part[q][1]);
        pair[2] = _mm256_unpacklo_ps(part[q][2], part[q][3]);
        pair[3] = _mm256_unpackhi_ps(part[q][2], part[q][3]);
        column[4 * q] = _mm256_shuffle_ps(pair[0], pair[2], 0x44);
        column[4 * q + 1] = _mm256_shuffle_ps(pair[0], pair[2], 0xee);
        column[4 * q + 2] = _mm256_shuffle_ps(pair[1], pair[3], 0x44);
        column[4 * q + 3] = _mm256_shuffle_ps(pair[1], pair[3], 0xee);
    }
}

static inline void v_store_narrow(uint16_t *first, uint16_t *second, vreal a, vreal b)
{
    const __m256i low = _mm256_slli_epi32(V_BITS(b), 16), high = _mm256_srli_epi32(V_BITS(a), 16);
    _mm256_storeu_si256((void *)first, _mm256_blend_epi16(V_BITS(a), low, 0xaa));
    _mm256_storeu_si256((void *)second, _mm256_blend_epi16(high, V_BITS(b), 0xaa));
}

static inline void v_store_quads(real *p, const vreal row[4])
{
    const vreal low_0 = _mm256_unpacklo_ps(row[0], row[1]),
                low_2 = _mm256_unpacklo_ps(row[2], row[3]);
    const vreal high_0 = _mm256_unpackhi_ps(row[0], row[1]),
                high_2 = _mm256_unpackhi_ps(row[2], row[3]);
    const vreal quad_0 = _mm256_shuffle_ps(low_0, low_2, 0x44); // lanes 0 and 4
    const vreal quad_1 = _mm256_shuffle_ps(low_0, low_2, 0xee); // lanes 1 and 5
    const vreal quad_2 = _mm256_shuffle_ps(high_0, high_2, 0x44);
    const vreal quad_3 = _mm256_shuffle_ps(high_0, high_2, 0xee);
    _mm256_storeu_ps(p, _mm256_permute2f128_ps(quad_0, quad_1, 0x20));
    _mm256_storeu_ps(p + 8, _mm256_permute2f128_ps(quad_2, quad_3, 0x20));
    _mm256_storeu_ps(p + 16, _mm256_permute2f128_ps(quad_0, quad_1, 0x31));
    _mm256_storeu_ps(p + 24, _mm256_permute2f128_ps(quad_2, quad_3, 0x31));
}
#else
static inline void v_load_columns(const void *source, int64_t row, vreal column[4])
{
    const char *at = source;
    vreal part[2][2];
    UNROLL for (int r = 0; r < 2; r++)
    {
        UNROLL for (int q = 0; q < 2; q++)
        {
            const __m256d low = _mm256_castpd128_pd256(_mm_loadu_pd((const void *)(at + 16 * q)));
            const __m128d high = _mm_loadu_pd((const void *)(at + 2 * row + 16 * q));
            part[q][r] = _mm256_insertf128_pd(low, high, 1);
        }
        at += row;
        RUNNING(at);
    }
    UNROLL for (int q = 0; q < 2; q++)
    {
        column[2 * q] = _mm256_unpacklo_pd(part[q][0], part[q][1]);
        column[2 * q + 1] = _mm256_unpackhi_pd(part[q][0], part[q][1]);
    }
}
#endif

#endif
