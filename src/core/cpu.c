#define _DEFAULT_SOURCE // _SC_LEVEL2_CACHE_SIZE
#include "core/cpu.h"

#include <stdint.h>
#include <unistd.h>

#if defined(__x86_64__)

#include <cpuid.h>

enum {
    // leaf 1, ECX
    FMA = 1 << 12,
    OSXSAVE = 1 << 27,
    AVX = 1 << 28,
    F16C = 1 << 29,
    // leaf 7, EBX
    AVX2 = 1 << 5,
    AVX512F = 1 << 16,
    AVX512DQ = 1 << 17,
    AVX512BW = 1 << 30,
    // XCR0: which registers the operating system saves
    SAVES_YMM = 0x06,
    SAVES_ZMM = 0xe6
};
#define AVX512VL (1u << 31)

static bool has(uint32_t word, uint32_t bits)
{
    return (word & bits) == bits;
}

static uint32_t saved_registers(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

bool attn_cpu_supports(attn_tier tier)
{
    if (tier == ATTN_TIER_PORTABLE) {
        return true;
    }
    uint32_t a, b, c1, b7, c, d;
    if (!__get_cpuid(1, &a, &b, &c1, &d) || !__get_cpuid_count(7, 0, &a, &b7, &c, &d) ||
        !has(c1, OSXSAVE)) {
        return false;
    }
    const bool avx2 = has(c1, AVX | FMA | F16C) && has(b7, AVX2) &&
                      has(saved_registers(), SAVES_YMM);
    switch (tier) {
    case ATTN_TIER_AVX2: return avx2;
    case ATTN_TIER_AVX512:
        return avx2 && has(b7, AVX512F | AVX512DQ | AVX512BW | AVX512VL) &&
               has(saved_registers(), SAVES_ZMM);
    default: return false;
    }
}

#elif defined(__aarch64__)

bool attn_cpu_supports(attn_tier tier)
{
    return tier == ATTN_TIER_PORTABLE || tier == ATTN_TIER_NEON;
}

#else

bool attn_cpu_supports(attn_tier tier)
{
    return tier == ATTN_TIER_PORTABLE;
}

#endif

attn_tier attn_cpu_best_tier(void)
{
    static const attn_tier best_first[] = {ATTN_TIER_AVX512, ATTN_TIER_AVX2, ATTN_TIER_NEON};
    for (unsigned i = 0; i < sizeof best_first / sizeof best_first[0]; i++) {
        if (attn_cpu_supports(best_first[i])) {
            return best_first[i];
        }
    }
    return ATTN_TIER_PORTABLE;
}

int64_t attn_cpu_second_level_bytes(void)
{
    long bytes = 0;
#if defined(_SC_LEVEL2_CACHE_SIZE)
    bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
    return bytes > 0 ? bytes : INT64_C(1) << 20;
}
