#include "tensors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/element.h"
#include "status.h"

// ---- memory -------------------------------------------------------------------------------------

enum { CANARY = 0x5c, CANARY_BYTES = 64 };

struct test_block {
    struct test_block *next;
    char *memory;
    size_t bytes;
};

void *test_pool_take(struct test_pool *pool, size_t bytes)
{
    struct test_block *block = malloc(sizeof(*block));
    assert_non_null(block);
    const size_t whole = (bytes + CANARY_BYTES + 63) / 64 * 64;
    *block = (struct test_block){pool->blocks, aligned_alloc(64, whole), bytes};
    assert_non_null(block->memory);
    memset(block->memory, 0, bytes);
    memset(block->memory + bytes, CANARY, CANARY_BYTES);
    pool->blocks = block;
    return block->memory;
}

void test_pool_end(struct test_pool *pool)
{
    while (pool->blocks != NULL) {
        struct test_block *block = pool->blocks;
        for (size_t n = 0; n < CANARY_BYTES; n++) {
            assert_int_equal((unsigned char)block->memory[block->bytes + n], CANARY);
        }
        pool->blocks = block->next;
        free(block->memory);
        free(block);
    }
}

attn_tensor test_tensor(struct test_pool *pool, attn_dtype dtype, int32_t ndim,
                        const int64_t *shape)
{
    attn_tensor tensor = attn_tensor_wrap(NULL, dtype, ndim, shape);
    const size_t count = (size_t)attn_tensor_count(&tensor);
    tensor.data = test_pool_take(pool, count * attn_dtype_size(dtype));
    return tensor;
}

attn_tensor test_tensor_as(struct test_pool *pool, attn_dtype dtype, const attn_tensor *source)
{
    const attn_tensor copy = test_tensor(pool, dtype, source->ndim, source->shape);
    attn_error error;
    ASSERT_OK(attn_tensor_copy(source, &copy, &error));
    return copy;
}

attn_tensor test_list(struct test_pool *pool, attn_dtype dtype, int64_t count,
                      const int64_t *values)
{
    const attn_tensor list = test_tensor(pool, dtype, 1, &count);
    for (int64_t n = 0; n < count; n++) {
        test_set(&list, n, 0, 0, 0, (double)values[n]);
    }
    return list;
}

// ---- random elements ----------------------------------------------------------------------------

uint64_t test_random(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

int64_t test_random_below(uint64_t *state, int64_t count)
{
    return (int64_t)(test_random(state) % (uint64_t)count);
}

double test_random_uniform(uint64_t *state)
{
    return (double)(test_random(state) >> 11) * 0x1p-53;
}

double test_random_normal(uint64_t *state)
{
    const double radius = sqrt(-2.0 * log(1.0 - test_random_uniform(state)));
    return radius * cos(6.283185307179586 * test_random_uniform(state));
}

struct filling {
    uint64_t *state;
    double parameter;
};

static void set_normal(void *state, const attn_tensor *tensor, const int64_t *index)
{
    const struct filling *filling = state;
    test_set(tensor, index[0], index[1], index[2], index[3],
             filling->parameter * test_random_normal(filling->state));
}

static void set_bernoulli(void *state, const attn_tensor *tensor, const int64_t *index)
{
    const struct filling *filling = state;
    test_set(tensor, index[0], index[1], index[2], index[3],
             test_random_uniform(filling->state) < filling->parameter ? 1.0 : 0.0);
}

void test_fill_normal(const attn_tensor *tensor, double scale, uint64_t *state)
{
    test_for_each(tensor, set_normal, &(struct filling){state, scale});
}

void test_fill_bernoulli(const attn_tensor *tensor, double p, uint64_t *state)
{
    test_for_each(tensor, set_bernoulli, &(struct filling){state, p});
}

// ---- elements -----------------------------------------------------------------------------------

static char *element(const attn_tensor *tensor, const int64_t index[4])
{
    assert_in_range(tensor->ndim, 0, 4);
    int64_t at = 0;
    for (int32_t d = 0; d < tensor->ndim; d++) {
        assert_true(index[d] >= 0 && index[d] < tensor->shape[d]);
        at += index[d] * tensor->stride[d];
    }
    return (char *)tensor->data + at * (int64_t)attn_dtype_size(tensor->dtype);
}

double test_at(const attn_tensor *tensor, int64_t i0, int64_t i1, int64_t i2, int64_t i3)
{
    return attn_element_load(tensor->dtype, element(tensor, (int64_t[]){i0, i1, i2, i3}));
}

void test_set(const attn_tensor *tensor, int64_t i0, int64_t i1, int64_t i2, int64_t i3,
              double value)
{
    attn_element_store(tensor->dtype, element(tensor, (int64_t[]){i0, i1, i2, i3}), value);
}

void test_for_each(const attn_tensor *tensor, test_visit visit, void *state)
{
    assert_in_range(tensor->ndim, 0, 4);
    int64_t size[4] = {1, 1, 1, 1};
    for (int32_t d = 0; d < tensor->ndim; d++) {
        size[d] = tensor->shape[d];
    }
    int64_t index[4];
    for (index[0] = 0; index[0] < size[0]; index[0]++) {
        for (index[1] = 0; index[1] < size[1]; index[1]++) {
            for (index[2] = 0; index[2] < size[2]; index[2]++) {
                for (index[3] = 0; index[3] < size[3]; index[3]++) {
                    visit(state, tensor, index);
                }
            }
        }
    }
}

// ---- comparisons --------------------------------------------------------------------------------

static attn_comparison compare(const char *what, const attn_tensor *actual,
                               const attn_tensor *expected, double absolute, double relative)
{
    attn_comparison comparison;
    attn_error error;
    const attn_status status =
        attn_tensor_compare(actual, expected, absolute, relative, &comparison, &error);
    if (status != ATTN_OK) {
        fail_msg("%s: %s", what, error.text);
    }
    return comparison;
}

void assert_tensors_close(const char *what, const attn_tensor *actual, const attn_tensor *expected,
                          double absolute, double relative)
{
    const attn_comparison found = compare(what, actual, expected, absolute, relative);
    if (found.differing != 0) {
        fail_msg(
            "%s: %lld of %lld elements differ, at [%lld,%lld,%lld,%lld] %.17g instead of %.17g",
            what, (long long)found.differing, (long long)found.count, (long long)found.worst[0],
            (long long)found.worst[1], (long long)found.worst[2], (long long)found.worst[3],
            found.worst_actual, found.worst_expected);
    }
}

void assert_same_bits(const char *what, const attn_tensor *actual, const attn_tensor *expected)
{
    const attn_comparison found = compare(what, actual, expected, 0.0, 0.0);
    if (!found.equal_bits) {
        fail_msg(
            "%s: %lld of %lld elements differ, at [%lld,%lld,%lld,%lld] %.17g instead of %.17g",
            what, (long long)found.differing, (long long)found.count, (long long)found.worst[0],
            (long long)found.worst[1], (long long)found.worst[2], (long long)found.worst[3],
            found.worst_actual, found.worst_expected);
    }
}

void assert_other_bits(const char *what, const attn_tensor *actual, const attn_tensor *expected)
{
    if (compare(what, actual, expected, 0.0, 0.0).equal_bits) {
        fail_msg("%s: every element has the same bits; a change was due", what);
    }
}

struct digesting {
    uint64_t digest;
};

static void digest_element(void *state, const attn_tensor *tensor, const int64_t *index)
{
    struct digesting *digesting = state;
    const unsigned char *bytes = (const unsigned char *)element(tensor, index);
    for (size_t n = 0; n < attn_dtype_size(tensor->dtype); n++) {
        digesting->digest = (digesting->digest ^ bytes[n]) * UINT64_C(0x100000001b3);
    }
}

uint64_t test_digest(uint64_t digest, const attn_tensor *tensor)
{
    struct digesting digesting = {digest};
    test_for_each(tensor, digest_element, &digesting);
    return digesting.digest;
}
