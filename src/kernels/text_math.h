// kernels/text_math.h: 2^t, exp, log and tanh in the vector vocabulary.
//
// Largest errors, in units in the last place of the result, as `check_kernels --long` measures them (every
// float32 argument, a sample for float64): exp 1.26 and 1.13, log 0.83 and 0.73, tanh 1.52 and 1.41.
#ifndef ATTN_KERNELS_TEXT_MATH_H
#define ATTN_KERNELS_TEXT_MATH_H

#include "kernels/real.h"

// 2^f on [-1/2, 1/2] as 1 + f (C1 + f (C2 + ...)): least squares of the relative error, with the
// coefficients rounded one after the other from C1 on. The polynomial is off by 0.06 ULP.
#if ATTN_REAL_BITS == 32
enum { EXP2_DEGREE = 6 };
static const real exp2_coefficient[EXP2_DEGREE] = {
    0x1.62e43p-1f, 0x1.ebfbd8p-3f, 0x1.c6af78p-5f, 0x1.3b30bp-7f, 0x1.5f0a66p-10f, 0x1.3f906cp-13f,
};
#define LOG2_E 0x1.715476p+0f
#define LOG2_E_LOW 0x1.4ae0cp-26f // the rest of log2(e)
#define EXP2_TURN 64.0f           // above it exp scales in two steps, so as to reach infinity
#define LN2_HIGH 0x1.62e3p-1f     // few enough bits that its product with an exponent is exact
#define LN2_LOW 0x1.2fefa2p-17f
#else
enum { EXP2_DEGREE = 11 };
static const real exp2_coefficient[EXP2_DEGREE] = {
    0x1.62e42fefa39efp-1,  0x1.ebfbdff82c5a5p-3,  0x1.c6b08d704a122p-5,  0x1.3b2ab6fb9ffb3p-7,
    0x1.5d87fe78a111cp-10, 0x1.4309130f139cbp-13, 0x1.ffcbfc595bcf6p-17, 0x1.62bfc71ea7788p-20,
    0x1.b5253f6036401p-24, 0x1.e61c1058a1947p-28, 0x1.e9471c875b804p-32,
};
#define LOG2_E 0x1.71547652b82fep+0
#define LOG2_E_LOW 0x1.777d0ffda0d24p-56
#define EXP2_TURN 512.0
#define LN2_HIGH 0x1.62e42feep-1
#define LN2_LOW 0x1.a39ef35793c76p-33
#endif

// V_EXP2_GAIN * 2^fraction for a fraction in [-1/2, 1/2].
INLINE vreal v_exp2_fraction(vreal fraction)
{
    vreal p = v_set1(V_EXP2_GAIN * exp2_coefficient[EXP2_DEGREE - 1]);
    UNROLL for (int i = EXP2_DEGREE - 2; i >= 0; i--)
    {
        p = v_fma(p, fraction, v_set1(V_EXP2_GAIN * exp2_coefficient[i]));
    }
    return v_fma(p, fraction, v_set1(V_EXP2_GAIN));
}

// 2^t for t < 127 (float) or 1023 (double); +0 where round(t) < EXP2_LOWEST; 2^0 is exactly 1.
INLINE vreal v_exp2(vreal t)
{
    vreal whole;
    const vreal fraction = v_exp2_split(t, &whole);
    return v_exp2_join(v_exp2_fraction(fraction), whole);
}

// e^x for every x: +0 where the result is subnormal, infinity where it is too large. x log2(e) is
// taken to twice the precision; its low part enters as a factor 1 + low ln 2.
INLINE vreal v_exp(vreal x)
{
    const vreal turn = v_set1(EXP2_TURN), top = v_set1(2 * EXP2_TURN + 2);
    vreal t = v_mul(x, v_set1(LOG2_E));
    const vreal low = v_fma(x, v_set1(LOG2_E_LOW), v_fma(x, v_set1(LOG2_E), v_sub(v_zero(), t)));
    const vmask large = v_lt(turn, t);
    t = v_select(v_lt(top, t), top, t);
    t = v_select(large, v_sub(t, turn), t);

    vreal whole;
    const vreal fraction = v_exp2_split(t, &whole);
    const vreal p = v_exp2_fraction(fraction);
    const vmask usual = v_both(v_lt(v_set1(EXP2_LOWEST - 1), t), v_le(t, turn));
    const vreal corrected = v_fma(v_mul(p, low), v_set1(exp2_coefficient[0]), p);
    const vreal result = v_exp2_join(v_select(usual, corrected, p), whole);
    const vreal step = v_exp2(turn);
    return v_select(large, v_mul(result, step), result);
}

// log x for x >= 0 that is not subnormal; -infinity for 0, NaN for NaN. With x = 2^k (1 + f) and
// s = f / (2 + f): log(1 + f) = f - s (f - R), where R = log((1 + s) / (1 - s)) / s - 2 is a polynomial
// in s^2 (Tang 1990; the coefficients are FreeBSD's e_log.c and e_logf.c).
INLINE vreal v_log(vreal x)
{
#if ATTN_REAL_BITS == 32
    static const real coefficient[] = {0xaaaaaap-24f, 0xccce13p-25f, 0x91e9eep-25f, 0xf89e26p-26f};
    enum { TERMS = 4 };
#else
    static const real coefficient[] = {
        6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01,
        2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01,
        1.479819860511658591e-01,
    };
    enum { TERMS = 7 };
#endif
    vreal k;
    vreal m = v_log2_split(x, &k);
    const vmask upper = v_lt(v_set1(R(1.41421356)), m);
    m = v_select(upper, v_mul(m, v_set1(R(0.5))), m);
    k = v_select(upper, v_add(k, v_set1(1)), k);

    const vreal f = v_sub(m, v_set1(1));
    const vreal s = v_div(f, v_add(v_set1(2), f));
    const vreal z = v_mul(s, s);
    vreal p = v_set1(coefficient[TERMS - 1]);
    UNROLL for (int i = TERMS - 2; i >= 0; i--)
    {
        p = v_fma(p, z, v_set1(coefficient[i]));
    }
    const vreal half_square = v_mul(v_mul(v_set1(R(0.5)), f), f);
    const vreal low = v_fma(s, v_fma(p, z, half_square), v_mul(k, v_set1(LN2_LOW)));
    const vreal small = v_sub(f, v_sub(half_square, low));
    const vreal result = v_fma(k, v_set1(LN2_HIGH), small);

    const vreal infinity = v_set1((real)INFINITY);
    const vreal special = v_select(v_eq(x, v_zero()), v_sub(v_zero(), infinity), x);
    const vmask ordinary = v_both(v_lt(v_zero(), x), v_lt(x, infinity));
    return v_select(ordinary, result, special);
}

// tanh x. Near 0: x + x^3 P(x^2) (the polynomial and the rational function are Moshier's, Cephes
// library); further out: 1 - 2 / (e^2x + 1).
INLINE vreal v_tanh(vreal x)
{
    const vreal a = v_abs(x);
    const vreal z = v_mul(x, x);
#if ATTN_REAL_BITS == 32
    static const real numerator[] = {-5.70498872745e-3f, 2.06390887954e-2f, -5.37397155531e-2f,
                                     1.33314422036e-1f, -3.33332819422e-1f};
    vreal p = v_set1(numerator[0]);
    UNROLL for (int i = 1; i < 5; i++)
    {
        p = v_fma(p, z, v_set1(numerator[i]));
    }
#else
    static const real numerator[] = {-9.64399179425052238628e-1, -9.92877231001918586564e1,
                                     -1.61468768441708447952e3};
    static const real denominator[] = {1.12811678491632931402e2, 2.23548839060100448583e3,
                                       4.84406305325125486048e3};
    vreal p = v_set1(numerator[0]), q = v_set1(1);
    UNROLL for (int i = 1; i < 3; i++)
    {
        p = v_fma(p, z, v_set1(numerator[i]));
    }
    UNROLL for (int i = 0; i < 3; i++)
    {
        q = v_fma(q, z, v_set1(denominator[i]));
    }
    p = v_div(p, q);
#endif
    const vreal near_zero = v_fma(v_mul(a, z), p, a);

    // From 44 on tanh is 1 in either type, and e^88 is finite.
    const vreal bounded = v_select(v_lt(v_set1(22), a), v_set1(22), a);
    const vreal e = v_exp(v_add(bounded, bounded));
    const vreal far = v_sub(v_set1(1), v_div(v_set1(2), v_add(e, v_set1(1))));
    const vreal result = v_select(v_lt(a, v_set1(R(0.625))), near_zero, far);
    return v_copysign(v_select(v_eq(x, x), result, x), x);
}

#define MAP_KERNEL(name, function)                                                   \
    static void name(const real *source, real *target, int64_t count)                \
    {                                                                                \
        int64_t i = 0;                                                               \
        for (; i + V_LANES <= count; i += V_LANES) {                                 \
            v_store(target + i, function(v_load(source + i)));                       \
        }                                                                            \
        if (i < count) {                                                             \
            const int64_t part = count - i;                                          \
            v_store_part(target + i, function(v_load_part(source + i, part)), part); \
        }                                                                            \
    }

MAP_KERNEL(map_exp, v_exp)
MAP_KERNEL(map_log, v_log)
MAP_KERNEL(map_tanh, v_tanh)

#endif
