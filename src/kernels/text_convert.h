// kernels/text_convert.h: float16 and bfloat16 from and to float32, in integer arithmetic that
// compilers turn into vectors.
#ifndef ATTN_KERNELS_TEXT_CONVERT_H
#define ATTN_KERNELS_TEXT_CONVERT_H

#include <string.h>

#include "kernels/kernels.h"

static inline uint32_t float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float float_from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void bf16_to_f32(const uint16_t *source, float *target, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        target[i] = float_from_bits((uint32_t)source[i] << 16);
    }
}

// Adding just under half of the last place kept, and its lowest bit, rounds to nearest even.
static void f32_to_bf16(const float *source, uint16_t *target, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const uint32_t bits = float_bits(source[i]);
        const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
        const uint32_t nan = (bits >> 16) | 0x40;
        target[i] = (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded);
    }
}

#ifdef F16_BY_INSTRUCTION

static void f16_to_f32(const uint16_t *source, float *target, int64_t count)
{
    int64_t i = 0;
    for (; i + V_LANES <= count; i += V_LANES) {
        v_store(target + i, v_load_f16(source + i));
    }
    if (i < count) {
        uint16_t half[V_LANES] = {0};
        float whole[V_LANES];
        memcpy(half, source + i, (size_t)(count - i) * sizeof *half);
        v_store(whole, v_load_f16(half));
        memcpy(target + i, whole, (size_t)(count - i) * sizeof *whole);
    }
}

static void f32_to_f16(const float *source, uint16_t *target, int64_t count)
{
    int64_t i = 0;
    for (; i + V_LANES <= count; i += V_LANES) {
        f16_store(source + i, target + i);
    }
    if (i < count) {
        uint16_t half[V_LANES];
        float whole[V_LANES] = {0};
        memcpy(whole, source + i, (size_t)(count - i) * sizeof *whole);
        f16_store(whole, half);
        memcpy(target + i, half, (size_t)(count - i) * sizeof *half);
    }
}

#else

// A subnormal half is its 10 bits times 2^-24.
static void f16_to_f32(const uint16_t *source, float *target, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const uint32_t sign = (uint32_t)(source[i] & 0x8000) << 16;
        const uint32_t exponent = (source[i] >> 10) & 0x1f, fraction = source[i] & 0x3ff;
        const uint32_t quiet = exponent == 0x1f && fraction ? 0x400000 : 0;
        const uint32_t special = 0x7f800000 | (fraction << 13) | quiet;
        const uint32_t normal = ((exponent + 112) << 23) | (fraction << 13);
        const uint32_t small = float_bits((float)fraction * 0x1p-24f);
        const uint32_t magnitude = exponent == 0x1f ? special : exponent == 0 ? small : normal;
        target[i] = float_from_bits(sign | magnitude);
    }
}

// Subnormal results: adding 1/2 leaves multiples of 2^-24, rounded to nearest even.
static void f32_to_f16(const float *source, uint16_t *target, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const uint32_t bits = float_bits(source[i]);
        const uint32_t magnitude = bits & 0x7fffffff, sign = (bits >> 16) & 0x8000;
        const uint32_t nan = 0x7e00 | ((magnitude >> 13) & 0x1ff);
        const uint32_t small = float_bits(float_from_bits(magnitude) + 0.5f) - float_bits(0.5f);
        const uint32_t normal = (magnitude - (112u << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
        uint32_t half = magnitude < 0x38800000 ? small : normal;
        half = magnitude >= 0x477ff000 ? 0x7c00 : half;
        half = magnitude > 0x7f800000 ? nan : half;
        target[i] = (uint16_t)(sign | half);
    }
}

#endif

const struct attn_kernels_convert TIER_CONVERT = {
    .f16_to_f32 = f16_to_f32,
    .f32_to_f16 = f32_to_f16,
    .bf16_to_f32 = bf16_to_f32,
    .f32_to_bf16 = f32_to_bf16,
};

#endif
