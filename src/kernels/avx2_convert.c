// kernels/avx2_convert.c: storage formats with F16C.
#define ATTN_REAL_BITS 32
#include "kernels/vec_avx2.h"

#define F16_BY_INSTRUCTION

static inline void f16_store(const float *source, uint16_t *target)
{
    _mm_storeu_si128((void *)target,
                     _mm256_cvtps_ph(_mm256_loadu_ps(source), _MM_FROUND_TO_NEAREST_INT));
}

#define TIER_CONVERT attn_kernels_convert_avx2
#include "kernels/text_convert.h"
