// core/cpu.h: which tiers this CPU and operating system can run.
#ifndef ATTN_CORE_CPU_H
#define ATTN_CORE_CPU_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/context.h"

// CPUID with the registers that the operating system saves (XCR0) on x86; always true for portable;
// NEON on AArch64.
bool attn_cpu_supports(attn_tier tier);

// The best supported tier.
attn_tier attn_cpu_best_tier(void);

// Bytes of a core's second-level cache; 1 MiB where the system does not say.
int64_t attn_cpu_second_level_bytes(void);

#endif
