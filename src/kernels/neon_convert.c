// kernels/neon_convert.c: storage formats on AArch64.
#include <arm_neon.h>
#include <stdint.h>

enum { F16_LANES = 4 };
#define F16_BY_INSTRUCTION

static inline void f16_load(const uint16_t *source, float *target)
{
    vst1q_f32(target, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(source))));
}

static inline void f16_store(const float *source, uint16_t *target)
{
    vst1_u16(target, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(source))));
}

#define TIER_CONVERT attn_kernels_convert_neon
#include "kernels/text_convert.h"
