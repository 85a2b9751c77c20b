// kernels/neon_convert.c: storage formats on AArch64.
#define ATTN_REAL_BITS 32
#include "kernels/vec_neon.h"

#define F16_BY_INSTRUCTION

static inline void f16_store(const float *source, uint16_t *target)
{
    vst1_u16(target, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(source))));
}

#define TIER_CONVERT attn_kernels_convert_neon
#include "kernels/text_convert.h"
