// kernels/avx512_convert.c: storage formats with AVX-512.
#define ATTN_REAL_BITS 32
#include "kernels/vec_avx512.h"

#define F16_BY_INSTRUCTION

static inline void f16_store(const float *source, uint16_t *target)
{
    _mm256_storeu_si256((void *)target,
                        _mm512_cvtps_ph(_mm512_loadu_ps(source), _MM_FROUND_TO_NEAREST_INT));
}

#define TIER_CONVERT attn_kernels_convert_avx512
#include "kernels/text_convert.h"
