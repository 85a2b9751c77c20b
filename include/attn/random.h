// attn/random.h: random numbers that are the same everywhere.
//
// Two kinds. `attn_generator` is the stream of torch's CPU generator (MT19937): the same seed gives
// the same bits as torch::manual_seed followed by the same calls, so weights and dropout masks can
// be compared with a torch program. It is sequential. Philox 4x32-10 is addressed by position: any
// element can be computed alone, in any order, on any thread, which is what dropout inside the
// fused attention uses.
#ifndef ATTN_RANDOM_H
#define ATTN_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/context.h"
#include "attn/export.h"
#include "attn/status.h"
#include "attn/tensor.h"

ATTN_BEGIN_DECLS

typedef struct attn_generator attn_generator;

// The whole state, plain data: write it to a checkpoint and restore it later, bit for bit.
typedef struct attn_generator_state {
    uint64_t seed;       // as given to manual_seed
    uint32_t words[624]; // MT19937
    uint32_t position;   // next word, 0 .. 624
    uint32_t has_normal; // 1: `normal` is the cached second value of a Box-Muller pair
    double normal;
} attn_generator_state;

// Errors: OUT_OF_MEMORY. A generator belongs to one thread at a time.
ATTN_API attn_status attn_generator_create(const attn_context *context, uint64_t seed,
                                           attn_generator **generator, attn_error *error);
ATTN_API void attn_generator_destroy(attn_generator *generator); // takes NULL

// torch::manual_seed: restarts the stream and forgets a cached normal. Only seed mod 2^32 enters
// MT19937, as in torch.
ATTN_API void attn_generator_manual_seed(attn_generator *generator, uint64_t seed);

ATTN_API void attn_generator_save(const attn_generator *generator, attn_generator_state *state);
// Errors: INVALID_ARGUMENT (position > 624, has_normal > 1).
ATTN_API attn_status attn_generator_restore(attn_generator *generator,
                                            const attn_generator_state *state, attn_error *error);

// The raw words: 32 bits; 64 bits with the first word as the high half.
ATTN_API uint32_t attn_generator_u32(attn_generator *generator);
ATTN_API uint64_t attn_generator_u64(attn_generator *generator);

// ---- fills: `out` may have any strides; elements are drawn in logical (row-major) order ----------
// All: errors INVALID_ARGUMENT (NULL, read-only, a parameter out of range), DTYPE, OVERLAP (an
// output with stride 0). Nothing is drawn for an empty tensor or on an error.

// Uniform in [0, 1), float32 (24 bits) or float64 (53 bits): torch.rand.
ATTN_API attn_status attn_rand(attn_generator *generator, const attn_tensor *out,
                               attn_error *error);

// Uniform in [from, to): from and to rounded to the dtype, then fma(x, to - from, from).
ATTN_API attn_status attn_uniform(attn_generator *generator, double from, double to,
                                  const attn_tensor *out, attn_error *error);

// Standard normal: torch.randn, including its two paths. Fewer than 16 values (computed in double)
// have torch's bits. From 16 values on, they have the bits of torch's scalar kernels
// (ATEN_CPU_CAPABILITY=default) with glibc 2.36, and are within 3 units in the last place of them
// with any libm that is good to one. torch's AVX2 kernels round the angle otherwise: they differ by up
// to 1.25 * 2^-21 times the radius of the Box-Muller pair.
ATTN_API attn_status attn_randn(attn_generator *generator, const attn_tensor *out,
                                attn_error *error);

// 1 with probability p (float32, float64, uint8 or bool): torch.bernoulli. 0 <= p <= 1.
ATTN_API attn_status attn_bernoulli(attn_generator *generator, double p, const attn_tensor *out,
                                    attn_error *error);

// The keep-mask of torch's element-wise dropout: true where a 53-bit uniform is < 1 - p. `out` is
// bool or uint8. 0 <= p < 1; for p = 0 all true and nothing is drawn.
ATTN_API attn_status attn_dropout_mask(attn_generator *generator, double p, const attn_tensor *out,
                                       attn_error *error);

// Integers low + draw mod (high - low), low < high, into int64 or int32: torch.randint. The draw has
// 32 bits; for an int64 output and a range of 2^32 or more it has 64, as in torch 1.13 (later ones
// take 64 from 2^28 on).
ATTN_API attn_status attn_randint(attn_generator *generator, int64_t low, int64_t high,
                                  const attn_tensor *out, attn_error *error);

// A random permutation of 0 .. n-1, n the size of the one-dimensional int64 tensor: torch.randperm.
ATTN_API attn_status attn_randperm(attn_generator *generator, const attn_tensor *out,
                                   attn_error *error);

// Linear's default: uniform in +-1/sqrt(fan_in) (kaiming uniform with a = sqrt(5)). In float32 this
// bound has the bits of torch's longer formula for every fan_in up to 200000.
ATTN_API attn_status attn_kaiming_uniform(attn_generator *generator, int64_t fan_in,
                                          const attn_tensor *out, attn_error *error);

// ---- Philox -------------------------------------------------------------------------------------

// Philox 4x32 with ten rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
ATTN_API void attn_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

// Where a dropout decision stands. `stream` tells layers apart, `call` forward passes.
typedef struct attn_philox_address {
    uint64_t seed, stream, call;
    int64_t batch, head;
} attn_philox_address;

// The 64-bit key of one (seed, stream, call, batch, head):
//   w = philox(counter = {stream.lo, stream.hi, call.lo, call.hi}, key = {seed.lo, seed.hi})
//   v = philox(counter = {batch.lo, batch.hi, head.lo ^ w[2], head.hi ^ w[3]}, key = {w[0], w[1]})
//   head_key = {v[0], v[1]}
ATTN_API void attn_philox_head_key(const attn_philox_address *address, uint32_t head_key[2]);

// The word of weight (row, key): word key % 4 of
//   philox(counter = {(key / 4).lo, (key / 4).hi, row.lo, row.hi}, key = head_key)
ATTN_API uint32_t attn_philox_word(const uint32_t head_key[2], int64_t row, int64_t key);

// A weight is kept when its word is below this threshold, (1 - p) * 2^32 rounded to nearest even.
// The result is in [0, 2^32]; 2^32 keeps everything.
ATTN_API uint64_t attn_philox_threshold(double p);

ATTN_END_DECLS

#endif
