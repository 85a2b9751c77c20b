// Tensors for tests: memory that is freed in one go, reproducible random elements, comparisons.
#ifndef ATTN_TESTS_SUPPORT_TENSORS_H
#define ATTN_TESTS_SUPPORT_TENSORS_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/tensor.h"

// ---- memory -------------------------------------------------------------------------------------

// Owns every tensor taken from it. Start from zero: `struct test_pool pool = {0};`
struct test_pool {
    struct test_block *blocks;
};

// Zeroed, aligned to 64 bytes, with canaries behind it that test_pool_end checks.
void *test_pool_take(struct test_pool *pool, size_t bytes);
void test_pool_end(struct test_pool *pool);

// A row-major tensor of zeros.
attn_tensor test_tensor(struct test_pool *pool, attn_dtype dtype, int32_t ndim,
                        const int64_t *shape);
// A row-major copy of another dtype.
attn_tensor test_tensor_as(struct test_pool *pool, attn_dtype dtype, const attn_tensor *source);
// A one-dimensional int64 or int32 list.
attn_tensor test_list(struct test_pool *pool, attn_dtype dtype, int64_t count,
                      const int64_t *values);

// ---- random elements ----------------------------------------------------------------------------

// A small generator (splitmix64) that has nothing in common with the library's.
uint64_t test_random(uint64_t *state);
// In [0, count).
int64_t test_random_below(uint64_t *state, int64_t count);
// In [0, 1), and standard normal.
double test_random_uniform(uint64_t *state);
double test_random_normal(uint64_t *state);

// Every element in row-major order: normal times `scale`; or 1 with probability p, else 0.
void test_fill_normal(const attn_tensor *tensor, double scale, uint64_t *state);
void test_fill_bernoulli(const attn_tensor *tensor, double p, uint64_t *state);

// ---- elements -----------------------------------------------------------------------------------

// The element at (i0, i1, ...): as many indices as the tensor has dims.
double test_at(const attn_tensor *tensor, int64_t i0, int64_t i1, int64_t i2, int64_t i3);
void test_set(const attn_tensor *tensor, int64_t i0, int64_t i1, int64_t i2, int64_t i3,
              double value);

// Calls visit(index) for every element in row-major order.
typedef void (*test_visit)(void *state, const attn_tensor *tensor, const int64_t *index);
void test_for_each(const attn_tensor *tensor, test_visit visit, void *state);

// ---- comparisons --------------------------------------------------------------------------------

// |actual - expected| <= absolute + relative * |expected| for every element; NaN equals only NaN.
// `what` stands in the message.
void assert_tensors_close(const char *what, const attn_tensor *actual, const attn_tensor *expected,
                          double absolute, double relative);
void assert_same_bits(const char *what, const attn_tensor *actual, const attn_tensor *expected);
void assert_other_bits(const char *what, const attn_tensor *actual, const attn_tensor *expected);

// A digest (FNV-1a, 64 bits) of the elements' bytes in row-major order, continuing from `digest`.
#define TEST_DIGEST_START UINT64_C(0xcbf29ce484222325)
uint64_t test_digest(uint64_t digest, const attn_tensor *tensor);

#endif
