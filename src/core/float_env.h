// core/float_env.h: the floating-point environment under which the promised bits hold.
//
// Round to nearest, subnormals kept (no flush to zero, on input or output), exceptions masked. A
// caller may run under something else, or a thread pool may have left it so; entering and leaving
// cost a few nanoseconds when there is nothing to change.
#ifndef ATTN_CORE_FLOAT_ENV_H
#define ATTN_CORE_FLOAT_ENV_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

typedef struct attn_float_env {
    uint64_t saved;
    bool changed;
} attn_float_env;

#if defined(__x86_64__)

enum {
    ATTN_MXCSR_FLAGS = 0x003f,  // what has been raised: not part of the mode
    ATTN_MXCSR_DEFAULT = 0x1f80 // all exceptions masked, nearest, no FTZ, no DAZ
};

static inline attn_float_env attn_float_env_enter(void)
{
    const unsigned int mode = _mm_getcsr();
    const attn_float_env env = {mode, (mode & ~(unsigned)ATTN_MXCSR_FLAGS) != ATTN_MXCSR_DEFAULT};
    if (env.changed) {
        _mm_setcsr(ATTN_MXCSR_DEFAULT | (mode & ATTN_MXCSR_FLAGS));
    }
    return env;
}

static inline void attn_float_env_leave(attn_float_env env)
{
    if (env.changed) {
        _mm_setcsr((unsigned int)env.saved);
    }
}

#elif defined(__aarch64__)

static inline attn_float_env attn_float_env_enter(void)
{
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    if (mode != 0) {
        __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0) : "memory");
    }
    return (attn_float_env){mode, mode != 0};
}

static inline void attn_float_env_leave(attn_float_env env)
{
    if (env.changed) {
        __asm__ volatile("msr fpcr, %0" : : "r"(env.saved) : "memory");
    }
}

#else
#error "attn knows the floating-point environment of x86-64 and AArch64 only"
#endif

#endif
