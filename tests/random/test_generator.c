#include <math.h>
#include <stdio.h>
#include <string.h>

#include "allocator.h"
#include "attn/random.h"
#include "status.h"

static test_allocator allocator;
static attn_context *context;
static attn_generator *generator;

static int setup(void **state)
{
    (void)state;
    context = test_context_on(&allocator);
    attn_error error;
    ASSERT_OK(attn_generator_create(context, 5489, &generator, &error));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    attn_generator_destroy(generator);
    attn_generator_destroy(NULL);
    test_context_end(context, &allocator);
    return 0;
}

static attn_tensor vector_of(void *data, attn_dtype dtype, int64_t count)
{
    return attn_tensor_wrap(data, dtype, 1, &count);
}

// ---- words --------------------------------------------------------------------------------------

// The C++ standard prescribes the 10000th word of the default seed 5489; the first ones are in the
// output that the inventors publish.
static void words_of_the_default_seed(void **state)
{
    (void)state;
    static const uint32_t first[] = {3499211612u, 581869302u, 3890346734u, 3586334585u, 545404204u};
    attn_generator_manual_seed(generator, 5489);
    uint32_t word = 0;
    for (int i = 0; i < 10000; i++) {
        word = attn_generator_u32(generator);
        if (i < 5) {
            assert_int_equal(word, first[i]);
        }
    }
    assert_int_equal(word, 4123659995u);
}

static void two_words_make_a_long_one(void **state)
{
    (void)state;
    attn_generator_manual_seed(generator, 5489);
    assert_true(attn_generator_u64(generator) == (UINT64_C(3499211612) << 32 | 581869302));
}

static void only_32_bits_of_the_seed_count(void **state)
{
    (void)state;
    attn_generator_manual_seed(generator, (UINT64_C(77) << 32) + 5489);
    assert_int_equal(attn_generator_u32(generator), 3499211612u);
    attn_generator_state saved;
    attn_generator_save(generator, &saved);
    assert_true(saved.seed == (UINT64_C(77) << 32) + 5489); // but all are remembered
}

// ---- save and restore ---------------------------------------------------------------------------

static void a_restored_state_continues_bit_for_bit(void **state)
{
    (void)state;
    float before[40], after[40];
    attn_error error;
    // At every place in the block of words, with and without a normal number in waiting.
    for (int words = 0; words < 1300; words += 93) {
        attn_generator_manual_seed(generator, 7);
        for (int i = 0; i < words; i++) {
            attn_generator_u32(generator);
        }
        attn_tensor few = vector_of(before, ATTN_F32, words % 2 ? 3 : 2);
        ASSERT_OK(attn_randn(generator, &few, &error));
        attn_generator_state saved;
        attn_generator_save(generator, &saved);
        assert_int_equal(saved.has_normal, words % 2);
        attn_generator *other = NULL;
        ASSERT_OK(attn_generator_create(context, 1, &other, &error));
        ASSERT_OK(attn_generator_restore(other, &saved, &error));
        for (int part = 0; part < 2; part++) { // 5 in pairs, then 35 in blocks
            const attn_tensor a = vector_of(before + 5 * part, ATTN_F32, part ? 35 : 5);
            const attn_tensor b = vector_of(after + 5 * part, ATTN_F32, part ? 35 : 5);
            ASSERT_OK(attn_randn(generator, &a, &error));
            ASSERT_OK(attn_randn(other, &b, &error));
        }
        assert_memory_equal(before, after, sizeof before);
        attn_generator_destroy(other);
    }
}

static void seeding_forgets_a_waiting_normal(void **state)
{
    (void)state;
    double first[2], again[2];
    attn_error error;
    const attn_tensor one = vector_of(first, ATTN_F64, 1), two = vector_of(again, ATTN_F64, 2);
    attn_generator_manual_seed(generator, 3);
    ASSERT_OK(attn_randn(generator, &one, &error));
    attn_generator_manual_seed(generator, 3);
    ASSERT_OK(attn_randn(generator, &two, &error));
    assert_true(first[0] == again[0]);
}

static void impossible_states_are_refused(void **state)
{
    (void)state;
    attn_generator_manual_seed(generator, 5489);
    attn_generator_state saved;
    attn_error error;
    attn_generator_save(generator, &saved);
    saved.position = 625;
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "generator_restore: position (625) must be in [0, 624]",
                 attn_generator_restore(generator, &saved, &error));
    saved.position = 0;
    saved.has_normal = 2;
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "generator_restore: has_normal (2) must be 0 or 1",
                 attn_generator_restore(generator, &saved, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "generator_restore: state is NULL",
                 attn_generator_restore(generator, NULL, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "generator_restore: generator is NULL",
                 attn_generator_restore(NULL, &saved, &error));
    assert_int_equal(attn_generator_u32(generator), 3499211612u);
}

static void creation_can_fail(void **state)
{
    (void)state;
    attn_generator *other = NULL;
    attn_error error;
    allocator.fail_at = allocator.calls;
    ASSERT_FAILS(ATTN_ERR_OUT_OF_MEMORY, "generator: out of memory",
                 attn_generator_create(context, 1, &other, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "generator: context is NULL",
                 attn_generator_create(NULL, 1, &other, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "generator: generator is NULL",
                 attn_generator_create(context, 1, NULL, &error));
    assert_null(other);
}

// ---- fills --------------------------------------------------------------------------------------

enum { FILLS = 8 };

// Each fill with fixed legal parameters, and a dtype that it takes.
static attn_status fill(int which, const attn_tensor *out, attn_error *error)
{
    switch (which) {
    case 0: return attn_rand(generator, out, error);
    case 1: return attn_uniform(generator, -1, 1, out, error);
    case 2: return attn_randn(generator, out, error);
    case 3: return attn_bernoulli(generator, 0.5, out, error);
    case 4: return attn_dropout_mask(generator, 0.5, out, error);
    case 5: return attn_randint(generator, 0, 10, out, error);
    case 6: return attn_randperm(generator, out, error);
    default: return attn_kaiming_uniform(generator, 9, out, error);
    }
}

static const attn_dtype dtypes[FILLS] = {ATTN_F32,  ATTN_F64, ATTN_F32, ATTN_U8,
                                         ATTN_BOOL, ATTN_I64, ATTN_I64, ATTN_F32};
static const char *const names[FILLS] = {"rand",         "uniform", "randn",    "bernoulli",
                                         "dropout_mask", "randint", "randperm", "kaiming_uniform"};

static bool nothing_was_drawn(uint64_t seed)
{
    attn_generator_state now, fresh;
    attn_generator_save(generator, &now);
    attn_generator_manual_seed(generator, seed);
    attn_generator_save(generator, &fresh);
    return memcmp(&now, &fresh, sizeof now) == 0;
}

static void what_every_fill_refuses(void **state)
{
    (void)state;
    _Alignas(8) unsigned char memory[256] = {0};
    for (int f = 0; f < FILLS; f++) {
        attn_generator_manual_seed(generator, 11);
        attn_error error;
        char text[200];
        const attn_tensor good = vector_of(memory, dtypes[f], 6);
        attn_tensor bad = good;
        bad.flags = ATTN_TENSOR_READ_ONLY;
        snprintf(text, sizeof text, "%s: the output is read-only", names[f]);
        ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, text, fill(f, &bad, &error));
        bad = good;
        bad.dtype = ATTN_BF16;
        snprintf(text, sizeof text, "%s: the output cannot be bfloat16", names[f]);
        ASSERT_FAILS(ATTN_ERR_DTYPE, text, fill(f, &bad, &error));
        bad = good;
        bad.stride[0] = 0;
        snprintf(text, sizeof text, "%s: the output of shape [6] with stride [0] overlaps itself",
                 names[f]);
        ASSERT_FAILS(ATTN_ERR_OVERLAP, text, fill(f, &bad, &error));
        snprintf(text, sizeof text, "%s: the tensor is NULL", names[f]);
        ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, text, fill(f, NULL, &error));
        attn_generator *kept = generator;
        generator = NULL;
        snprintf(text, sizeof text, "%s: generator is NULL", names[f]);
        ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, text, fill(f, &good, &error));
        generator = kept;
        for (size_t i = 0; i < sizeof memory; i++) {
            assert_int_equal(memory[i], 0);
        }
        assert_true(nothing_was_drawn(11));
    }
}

static void an_empty_output_draws_nothing(void **state)
{
    (void)state;
    for (int f = 0; f < FILLS; f++) {
        attn_generator_manual_seed(generator, 11);
        attn_error error;
        const attn_tensor empty = vector_of(NULL, dtypes[f], 0);
        ASSERT_OK(fill(f, &empty, &error));
        assert_true(nothing_was_drawn(11));
    }
}

// A transposed output takes the same numbers in its own logical order, the blocks of randn too.
static void strides_do_not_change_the_stream(void **state)
{
    (void)state;
    for (int f = 0; f < FILLS; f++) {
        _Alignas(8) unsigned char plain_bytes[8 * 42], other_bytes[8 * 42];
        attn_tensor plain = attn_tensor_wrap(plain_bytes, dtypes[f], 2, (const int64_t[]){6, 7});
        attn_tensor other = attn_tensor_wrap(other_bytes, dtypes[f], 2, (const int64_t[]){7, 6});
        attn_error error;
        ASSERT_OK(attn_tensor_transpose(&other, 0, 1, &other, &error));
        if (f == 6) { // randperm: one dimension, every second place
            plain = vector_of(plain_bytes, dtypes[f], 20);
            other = vector_of(other_bytes, dtypes[f], 20);
            other.stride[0] = 2;
        }
        attn_generator_manual_seed(generator, 5);
        ASSERT_OK(fill(f, &plain, &error));
        attn_generator_manual_seed(generator, 5);
        ASSERT_OK(fill(f, &other, &error));
        attn_comparison found;
        ASSERT_OK(attn_tensor_compare(&other, &plain, 0, 0, &found, &error));
        assert_true(found.equal_bits);
    }
}

static void parameters_out_of_range_are_refused(void **state)
{
    (void)state;
    _Alignas(8) unsigned char memory[64] = {0};
    attn_error error;
    const attn_tensor floats = vector_of(memory, ATTN_F32, 4), mask = vector_of(memory, ATTN_U8, 4);
    const attn_tensor longs = vector_of(memory, ATTN_I64, 4), ints = vector_of(memory, ATTN_I32, 4);
    attn_generator_manual_seed(generator, 11);
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT,
                 "uniform: from (2) must be <= to (1), both and their difference finite in float32",
                 attn_uniform(generator, 2, 1, &floats, &error));
    static const double bounds[][2] = {{0, 1e39}, {-1e39, 0}, {-3e38, 3e38}, {NAN, 1}, {0, NAN}};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(attn_uniform(generator, bounds[i][0], bounds[i][1], &floats, &error),
                         ATTN_ERR_INVALID_ARGUMENT);
    }
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "bernoulli: p (1.5) must be in [0, 1]",
                 attn_bernoulli(generator, 1.5, &floats, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "dropout_mask: p (1) must be in [0, 1)",
                 attn_dropout_mask(generator, 1, &mask, &error));
    assert_int_equal(attn_dropout_mask(generator, (double)NAN, &mask, &error),
                     ATTN_ERR_INVALID_ARGUMENT);
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "randint: low (3) must be < high (3)",
                 attn_randint(generator, 3, 3, &longs, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "randint: [0, 2147483649) does not fit in int32",
                 attn_randint(generator, 0, INT64_C(2147483649), &ints, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "kaiming_uniform: fan_in (0) must be >= 1",
                 attn_kaiming_uniform(generator, 0, &floats, &error));
    const attn_tensor square = attn_tensor_wrap(memory, ATTN_I64, 2, (const int64_t[]){2, 2});
    ASSERT_FAILS(ATTN_ERR_SHAPE, "randperm: the output must have one dimension; its shape is [2,2]",
                 attn_randperm(generator, &square, &error));
    assert_true(nothing_was_drawn(11));
}

static void dropout_of_zero_keeps_all_and_draws_nothing(void **state)
{
    (void)state;
    uint8_t keep[9] = {0};
    const attn_tensor mask = vector_of(keep, ATTN_BOOL, 9);
    attn_error error;
    attn_generator_manual_seed(generator, 11);
    ASSERT_OK(attn_dropout_mask(generator, 0, &mask, &error));
    for (int i = 0; i < 9; i++) {
        assert_int_equal(keep[i], 1);
    }
    assert_true(nothing_was_drawn(11));
}

static void certain_coins(void **state)
{
    (void)state;
    double flips[20];
    const attn_tensor out = vector_of(flips, ATTN_F64, 20);
    attn_error error;
    for (int p = 0; p < 2; p++) {
        ASSERT_OK(attn_bernoulli(generator, p, &out, &error));
        for (int i = 0; i < 20; i++) {
            assert_true(flips[i] == p);
        }
    }
}

// Ranges from 2^32 on take two words for an int64, and one for an int32.
static void wide_ranges(void **state)
{
    (void)state;
    int64_t value;
    int32_t narrow;
    const attn_tensor longs = vector_of(&value, ATTN_I64, 1);
    const attn_tensor ints = vector_of(&narrow, ATTN_I32, 1);
    attn_error error;
    attn_generator_manual_seed(generator, 5489);
    ASSERT_OK(attn_randint(generator, -5, (INT64_C(1) << 32) - 6, &longs, &error));
    assert_true(value == INT64_C(3499211612) % ((INT64_C(1) << 32) - 1) - 5);
    attn_generator_manual_seed(generator, 5489);
    ASSERT_OK(attn_randint(generator, -5, (INT64_C(1) << 40) - 5, &longs, &error));
    const uint64_t word = UINT64_C(3499211612) << 32 | 581869302;
    assert_true(value == (int64_t)(word % (UINT64_C(1) << 40)) - 5);
    attn_generator_manual_seed(generator, 5489);
    ASSERT_OK(attn_randint(generator, INT64_MIN, INT64_MAX, &longs, &error));
    assert_true(value == (int64_t)(word % UINT64_MAX + (UINT64_C(1) << 63)));
    attn_generator_manual_seed(generator, 5489);
    ASSERT_OK(attn_randint(generator, INT32_MIN, INT64_C(1) << 31, &ints, &error));
    assert_int_equal(narrow, (int32_t)(INT64_C(3499211612) - (INT64_C(1) << 31)));
}

// float64 in blocks: the definition by hand from the generator's own uniforms.
static void blocks_of_float64_normals(void **state)
{
    (void)state;
    double normal[19], uniform[16];
    const attn_tensor out = vector_of(normal, ATTN_F64, 19),
                      draws = vector_of(uniform, ATTN_F64, 16);
    attn_error error;
    attn_generator_manual_seed(generator, 1);
    ASSERT_OK(attn_randn(generator, &out, &error));
    attn_generator_state end;
    attn_generator_save(generator, &end);
    attn_generator_manual_seed(generator, 1);
    for (int block = 0; block < 2; block++) { // places 0 to 15, then 3 to 18 once more
        ASSERT_OK(attn_rand(generator, &draws, &error));
        const int start = block * 3, checked = block ? 16 : 3;
        for (int i = 0; i < checked; i++) {
            const double radius = sqrt(-2 * log(1 - uniform[i % 8]));
            const double theta = 8 * atan(1) * uniform[i % 8 + 8];
            const double expected = radius * (i < 8 ? cos(theta) : sin(theta));
            assert_true(fabs(normal[start + i] - expected) <= 1e-15 * radius);
        }
        if (block == 0) {
            for (int i = 0; i < 3; i++) { // drawn for the places 16 to 18 and dropped
                attn_generator_u64(generator);
            }
        }
    }
    attn_generator_state now;
    attn_generator_save(generator, &now);
    assert_memory_equal(&now, &end, sizeof now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_the_default_seed),
        cmocka_unit_test(two_words_make_a_long_one),
        cmocka_unit_test(only_32_bits_of_the_seed_count),
        cmocka_unit_test(a_restored_state_continues_bit_for_bit),
        cmocka_unit_test(seeding_forgets_a_waiting_normal),
        cmocka_unit_test(impossible_states_are_refused),
        cmocka_unit_test(creation_can_fail),
        cmocka_unit_test(what_every_fill_refuses),
        cmocka_unit_test(an_empty_output_draws_nothing),
        cmocka_unit_test(strides_do_not_change_the_stream),
        cmocka_unit_test(parameters_out_of_range_are_refused),
        cmocka_unit_test(dropout_of_zero_keeps_all_and_draws_nothing),
        cmocka_unit_test(certain_coins),
        cmocka_unit_test(wide_ranges),
        cmocka_unit_test(blocks_of_float64_normals),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
