// kernels/real.h: the element type of one compilation of the texts, from ATTN_REAL_BITS.
#ifndef ATTN_KERNELS_REAL_H
#define ATTN_KERNELS_REAL_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#if ATTN_REAL_BITS == 32
typedef float real;
#define REAL_NAME(name) name##_f32
#define REAL_TABLE f32
// 2^t counts as 0 where t rounds to less: no subnormal weight ever exists.
#define EXP2_LOWEST (-125.0f)
#define R(x) ((real)x##f)
#elif ATTN_REAL_BITS == 64
typedef double real;
#define REAL_NAME(name) name##_f64
#define REAL_TABLE f64
#define EXP2_LOWEST (-1021.0)
#define R(x) ((real)(x))
#else
#error "ATTN_REAL_BITS is 32 or 64"
#endif

// Keeps a pointer that runs through memory in one register. Compilers would work out an address for each
// step beforehand, have too few registers for them, and fetch them back one by one.
#define RUNNING(pointer) __asm__("" : "+r"(pointer))

// The texts are written as small functions that take their shape as constant arguments and as loops
// over those constants; for speed both must disappear. Where speed is not the point, they stay: the
// code would take minutes to compile.
#if defined(__has_feature) && !defined(ATTN_PLAIN_LOOPS)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ATTN_PLAIN_LOOPS
#endif
#elif (defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)) && !defined(ATTN_PLAIN_LOOPS)
#define ATTN_PLAIN_LOOPS
#endif

#ifdef ATTN_PLAIN_LOOPS
#define INLINE static inline
#define UNROLL
#else
#define INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#endif

#endif
