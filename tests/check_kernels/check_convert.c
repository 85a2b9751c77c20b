// check_kernels/check_convert.c: every half, and float32 values around all halves' midpoints.
#include <math.h>
#include <string.h>

#include "check_kernels/check.h"

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float half_value(uint16_t half)
{
    const int exponent = (half >> 10) & 31, fraction = half & 1023;
    const double magnitude = exponent == 31  ? (fraction ? (double)NAN : (double)INFINITY)
                             : exponent == 0 ? ldexp(fraction, -24)
                                             : ldexp(1024 + fraction, exponent - 25);
    return (float)(half & 0x8000 ? -magnitude : magnitude);
}

static float bfloat_value(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

struct format {
    const char *name;
    float (*value)(uint16_t);
    void (*widen)(const uint16_t *, float *, int64_t);
    void (*narrow)(const float *, uint16_t *, int64_t);
    uint16_t infinity;
};

static void check_widen(struct check *check, const struct format *format)
{
    for (uint32_t h = 0; h < 65536; h++) {
        uint16_t source[11];
        float target[11];
        const int64_t count = 1 + h % 11;
        for (int64_t i = 0; i < count; i++) {
            source[i] = (uint16_t)h;
        }
        format->widen(source, target, count);
        const float right = format->value((uint16_t)h);
        for (int64_t i = 0; i < count; i++) {
            if (bits_of(target[i]) != bits_of(right) &&
                !(target[i] != target[i] && right != right)) {
                check_failed(check, format->name, "%04x becomes %a", h, (double)target[i]);
            }
        }
    }
}

// Between two neighbours a < b: below the middle comes a, above it b, on it the even one.
static void check_narrow(struct check *check, const struct format *format)
{
    for (uint32_t h = 0; h < format->infinity; h++) {
        const double a = (double)format->value((uint16_t)h);
        const bool last = h + 1 == format->infinity;
        const double step = last ? a - (double)format->value((uint16_t)(h - 1))
                                 : (double)format->value((uint16_t)(h + 1)) - a;
        const float middle = (float)(a + step / 2);
        const float x[6] = {(float)a, nextafterf(middle, 0),
                            middle,   nextafterf(middle, INFINITY),
                            -middle,  -(float)a};
        const uint16_t up = (uint16_t)(h + 1), even = h % 2 ? up : (uint16_t)h;
        const uint16_t right[6] = {
            (uint16_t)h, (uint16_t)h, even, up, (uint16_t)(even | 0x8000), (uint16_t)(h | 0x8000)};
        uint16_t y[6];
        format->narrow(x, y, 6);
        for (int i = 0; i < 6; i++) {
            if (y[i] != right[i] && (double)middle != a) {
                check_failed(check, format->name, "%a becomes %04x, should be %04x", (double)x[i],
                             y[i], right[i]);
            }
        }
    }
    const float special[4] = {INFINITY, -INFINITY, NAN, 3.4e38f};
    uint16_t y[4];
    format->narrow(special, y, 4);
    const float back = format->value(y[2]);
    if (y[0] != format->infinity || y[1] != (format->infinity | 0x8000) || back == back ||
        (format->infinity == 0x7c00 && y[3] != format->infinity)) {
        check_failed(check, format->name, "a special value is wrong");
    }
}

void check_convert(struct check *check)
{
    const struct attn_kernels_convert *convert = check->table->convert;
    const struct format formats[2] = {
        {"float16", half_value, convert->f16_to_f32, convert->f32_to_f16, 0x7c00},
        {"bfloat16", bfloat_value, convert->bf16_to_f32, convert->f32_to_bf16, 0x7f80},
    };
    for (int i = 0; i < 2; i++) {
        check_widen(check, &formats[i]);
        check_narrow(check, &formats[i]);
    }
}
