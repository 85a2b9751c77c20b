// core/half.h: the two 16-bit floating formats as bit patterns.
//
// To float32: exact. From float32 and float64: round to nearest even, too large becomes infinity,
// NaN stays NaN and is made quiet. All in integer arithmetic or exact float arithmetic, so the
// result does not depend on the CPU.
#ifndef ATTN_CORE_HALF_H
#define ATTN_CORE_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t attn_f32_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float attn_f32_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float attn_bf16_to_f32(uint16_t half)
{
    return attn_f32_from_bits((uint32_t)half << 16);
}

static inline uint16_t attn_f32_to_bf16(float value)
{
    const uint32_t bits = attn_f32_bits(value);
    if ((bits & 0x7fffffff) > 0x7f800000) {
        return (uint16_t)(bits >> 16 | 0x40); // NaN
    }
    const uint32_t odd = bits >> 16 & 1;
    return (uint16_t)((bits + 0x7fff + odd) >> 16);
}

static inline float attn_f16_to_f32(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    const uint32_t exponent = half >> 10 & 0x1f;
    const uint32_t mantissa = half & 0x3ff;
    if (exponent == 0) { // zero or subnormal: mantissa * 2^-24, exact in float32
        return attn_f32_from_bits(sign | attn_f32_bits((float)mantissa * 0x1p-24f));
    }
    const uint32_t wide = exponent == 0x1f ? 0xff : exponent + 127 - 15;
    return attn_f32_from_bits(sign | wide << 23 | mantissa << 13);
}

static inline uint16_t attn_f32_to_f16(float value)
{
    const uint32_t bits = attn_f32_bits(value);
    const uint32_t magnitude = bits & 0x7fffffff;
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    if (magnitude > 0x7f800000) {
        return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff)); // NaN
    }
    if (magnitude >= 0x477ff000) { // 65520: halfway between the largest half and the next step
        return (uint16_t)(sign | 0x7c00);
    }
    if (magnitude < 0x38800000) { // below 2^-14: adding 0.5 makes the unit in the last place 2^-24
        const uint32_t rounded = attn_f32_bits(attn_f32_from_bits(magnitude) + 0.5f);
        return (uint16_t)(sign | (rounded - 0x3f000000));
    }
    const uint32_t odd = magnitude >> 13 & 1;
    const uint32_t rounded = magnitude - (112u << 23) + 0xfff + odd;
    return (uint16_t)(sign | rounded >> 13);
}

// float64 to float32 "rounded to odd": truncated, with the last bit set when anything was lost.
// A second rounding to a format with two bits less then equals one rounding.
static inline float attn_f64_to_f32_odd(double value)
{
    const float nearest = (float)value;
    if ((double)nearest == value || value != value) {
        return nearest;
    }
    const double distance = (double)nearest - value;
    const uint32_t away = (value > 0) == (distance > 0); // rounded away from zero
    return attn_f32_from_bits((attn_f32_bits(nearest) - away) | 1);
}

static inline uint16_t attn_f64_to_f16(double value)
{
    return attn_f32_to_f16(attn_f64_to_f32_odd(value));
}

static inline uint16_t attn_f64_to_bf16(double value)
{
    return attn_f32_to_bf16(attn_f64_to_f32_odd(value));
}

#endif
