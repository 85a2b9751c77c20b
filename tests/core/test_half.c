// The 16-bit formats against a search for the nearest of all their values.
#include <float.h>
#include <math.h>

#include "core/half.h"
#include "unit.h"

typedef struct format {
    int exponent_bits, mantissa_bits;
    float (*to_f32)(uint16_t);
    uint16_t (*from_f32)(float);
    uint16_t (*from_f64)(double);
} format;

static const format formats[] = {
    {5, 10, attn_f16_to_f32, attn_f32_to_f16, attn_f64_to_f16},
    {8, 7, attn_bf16_to_f32, attn_f32_to_bf16, attn_f64_to_bf16},
};
enum { FORMATS = sizeof formats / sizeof formats[0] };

// The value of a bit pattern by the definition of the format; the exponent of all ones as if it
// were one more finite exponent, which is where rounding decides about infinity.
static double value_of(const format *format, uint16_t bits)
{
    const int bias = (1 << (format->exponent_bits - 1)) - 1;
    const int mantissa = bits & ((1 << format->mantissa_bits) - 1);
    const int exponent = bits >> format->mantissa_bits & ((1 << format->exponent_bits) - 1);
    const int implicit = exponent > 0 ? 1 << format->mantissa_bits : 0;
    const double magnitude =
        ldexp(mantissa + implicit, (exponent > 0 ? exponent : 1) - bias - format->mantissa_bits);
    return bits & 0x8000 ? -magnitude : magnitude;
}

static uint16_t infinity_of(const format *format)
{
    return (uint16_t)(((1 << format->exponent_bits) - 1) << format->mantissa_bits);
}

// The nearest pattern of a value >= 0 by bisection, ties to the even one.
static uint16_t nearest(const format *format, double value)
{
    uint16_t low = 0, high = infinity_of(format);
    if (value >= value_of(format, high)) {
        return high;
    }
    while (high - low > 1) {
        const uint16_t middle = (uint16_t)((low + high) / 2);
        *(value_of(format, middle) <= value ? &low : &high) = middle;
    }
    const double below = value - value_of(format, low), above = value_of(format, high) - value;
    return below < above || (below == above && low % 2 == 0) ? low : high;
}

static void widening_is_exact(void **state)
{
    (void)state;
    for (int f = 0; f < FORMATS; f++) {
        const uint16_t infinity = infinity_of(&formats[f]);
        for (uint32_t bits = 0; bits <= UINT16_MAX; bits++) {
            const float value = formats[f].to_f32((uint16_t)bits);
            const uint32_t magnitude = bits & 0x7fff;
            assert_int_equal(signbit(value) != 0, bits >> 15);
            if (magnitude < infinity) {
                assert_true((double)value == value_of(&formats[f], (uint16_t)bits));
                assert_int_equal(formats[f].from_f32(value), bits);
                assert_int_equal(formats[f].from_f64((double)value), bits);
            } else if (magnitude == infinity) {
                assert_true(isinf(value));
                assert_int_equal(formats[f].from_f32(value), bits);
                assert_int_equal(formats[f].from_f64((double)value), bits);
            } else {
                assert_true(isnan(value));
                const uint32_t quiet = 1u << (formats[f].mantissa_bits - 1);
                assert_int_equal(formats[f].from_f32(value), bits | quiet);
            }
        }
    }
}

// Around every value and every midpoint, and far outside.
static void narrowing_rounds_to_nearest_even(void **state)
{
    (void)state;
    for (int f = 0; f < FORMATS; f++) {
        const format *format = &formats[f];
        for (uint32_t bits = 0; bits < infinity_of(format); bits++) {
            const double value = value_of(format, (uint16_t)bits);
            const double next = value_of(format, (uint16_t)(bits + 1));
            const float near[] = {(float)value, (float)(value + (next - value) / 2)};
            for (int n = 0; n < 2; n++) {
                const float around[] = {near[n], nextafterf(near[n], 0),
                                        nextafterf(near[n], INFINITY)};
                for (int a = 0; a < 3; a++) {
                    const uint16_t expected = nearest(format, (double)around[a]);
                    assert_int_equal(format->from_f32(around[a]), expected);
                    assert_int_equal(format->from_f32(-around[a]), expected | 0x8000);
                }
            }
        }
        assert_int_equal(format->from_f32(INFINITY), infinity_of(format));
        assert_int_equal(format->from_f64(DBL_MAX), infinity_of(format));
        assert_int_equal(format->from_f64(-DBL_MAX), infinity_of(format) | 0x8000);
        assert_int_equal(format->from_f64(DBL_MIN), 0);
        assert_int_equal(format->from_f64(-DBL_TRUE_MIN), 0x8000);
        assert_true(isnan(format->to_f32(format->from_f64((double)NAN))));
    }
}

// A double a little above a midpoint would first round to the midpoint in float32, then to even.
static void a_double_is_rounded_once(void **state)
{
    (void)state;
    for (int f = 0; f < FORMATS; f++) {
        const format *format = &formats[f];
        for (uint32_t bits = 0; bits < infinity_of(format); bits += 7) {
            const double value = value_of(format, (uint16_t)bits);
            const double next = value_of(format, (uint16_t)(bits + 1));
            const double middle = value + (next - value) / 2;
            const double around[] = {nextafter(middle, 0), middle, nextafter(middle, next)};
            for (int a = 0; a < 3; a++) {
                const uint16_t expected = nearest(format, around[a]);
                assert_int_equal(format->from_f64(around[a]), expected);
                assert_int_equal(format->from_f64(-around[a]), expected | 0x8000);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(widening_is_exact),
        cmocka_unit_test(narrowing_rounds_to_nearest_even),
        cmocka_unit_test(a_double_is_rounded_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
