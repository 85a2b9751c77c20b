// kernels/kernels.c: the tables of all tiers, and the choice among them.
#include "kernels/kernels.h"

#include "core/cpu.h"

extern const struct attn_kernels_f32 attn_kernels_f32_portable;
extern const struct attn_kernels_f64 attn_kernels_f64_portable;
extern const struct attn_kernels_convert attn_kernels_convert_portable;

static const struct attn_kernels portable = {
    .name = "portable",
    .tier = ATTN_TIER_PORTABLE,
    .f32 = &attn_kernels_f32_portable,
    .f64 = &attn_kernels_f64_portable,
    .convert = &attn_kernels_convert_portable,
};

#ifdef __x86_64__
extern const struct attn_kernels_f32 attn_kernels_f32_avx2;
extern const struct attn_kernels_f64 attn_kernels_f64_avx2;
extern const struct attn_kernels_f32 attn_kernels_f32_avx512;
extern const struct attn_kernels_f64 attn_kernels_f64_avx512;
extern const struct attn_kernels_f32 attn_kernels_f32_lowered;
extern const struct attn_kernels_f64 attn_kernels_f64_lowered;
extern const struct attn_kernels_convert attn_kernels_convert_avx2;
extern const struct attn_kernels_convert attn_kernels_convert_avx512;

static const struct attn_kernels avx2 = {
    .name = "avx2",
    .tier = ATTN_TIER_AVX2,
    .f32 = &attn_kernels_f32_avx2,
    .f64 = &attn_kernels_f64_avx2,
    .convert = &attn_kernels_convert_avx2,
};

static const struct attn_kernels avx512 = {
    .name = "avx512",
    .tier = ATTN_TIER_AVX512,
    .f32 = &attn_kernels_f32_avx512,
    .f64 = &attn_kernels_f64_avx512,
    .convert = &attn_kernels_convert_avx512,
};

static const struct attn_kernels lowered = {
    .name = "avx512 on pairs of avx2",
    .tier = ATTN_TIER_AVX2,
    .f32 = &attn_kernels_f32_lowered,
    .f64 = &attn_kernels_f64_lowered,
    .convert = &attn_kernels_convert_avx2,
};
#endif

#ifdef __aarch64__
extern const struct attn_kernels_f32 attn_kernels_f32_neon;
extern const struct attn_kernels_f64 attn_kernels_f64_neon;
extern const struct attn_kernels_convert attn_kernels_convert_neon;

static const struct attn_kernels neon = {
    .name = "neon",
    .tier = ATTN_TIER_NEON,
    .f32 = &attn_kernels_f32_neon,
    .f64 = &attn_kernels_f64_neon,
    .convert = &attn_kernels_convert_neon,
};
#endif

// The first table of a tier is the one that a context gets.
static const struct attn_kernels *const tables[] = {
    &portable,
#ifdef __x86_64__
    &avx2,     &avx512, &lowered,
#endif
#ifdef __aarch64__
    &neon,
#endif
};

enum { TABLES = sizeof tables / sizeof tables[0] };

const struct attn_kernels *attn_kernels_select(attn_tier tier)
{
    const attn_tier wanted = tier == ATTN_TIER_AUTO ? attn_cpu_best_tier() : tier;
    for (int32_t i = 0; i < TABLES; i++) {
        if (tables[i]->tier == wanted) {
            return tables[i];
        }
    }
    return NULL;
}

int32_t attn_kernels_count(void)
{
    int32_t count = 0;
    for (int32_t i = 0; i < TABLES; i++) {
        count += attn_cpu_supports(tables[i]->tier) ? 1 : 0;
    }
    return count;
}

const struct attn_kernels *attn_kernels_at(int32_t index)
{
    for (int32_t i = 0; i < TABLES; i++) {
        if (attn_cpu_supports(tables[i]->tier) && index-- == 0) {
            return tables[i];
        }
    }
    return NULL;
}
