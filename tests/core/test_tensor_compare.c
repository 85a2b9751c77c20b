#include <float.h>
#include <math.h>
#include <string.h>

#include "attn/tensor.h"
#include "status.h"

static attn_comparison compare(const attn_tensor *actual, const attn_tensor *expected,
                               double absolute, double relative)
{
    attn_comparison comparison;
    attn_error error;
    ASSERT_OK(attn_tensor_compare(actual, expected, absolute, relative, &comparison, &error));
    return comparison;
}

static attn_comparison compare_floats(int64_t count, const float *actual, const float *expected,
                                      double absolute, double relative)
{
    const attn_tensor a = attn_tensor_wrap_const(actual, ATTN_F32, 1, &count);
    const attn_tensor e = attn_tensor_wrap_const(expected, ATTN_F32, 1, &count);
    return compare(&a, &e, absolute, relative);
}

static void equal_tensors_do_not_differ(void **state)
{
    (void)state;
    const float values[] = {1, -2, NAN, INFINITY, -INFINITY, 0};
    const attn_comparison found = compare_floats(6, values, values, 0, 0);
    assert_int_equal(found.count, 6);
    assert_int_equal(found.differing, 0);
    assert_true(found.max_absolute == 0);
    assert_true(found.max_relative == 0);
    assert_int_equal(found.max_ulp, 0);
    assert_true(found.equal_bits);
}

static void nan_equals_only_nan(void **state)
{
    (void)state;
    const float nan_and_one[] = {NAN, 1}, one_and_nan[] = {1, NAN};
    for (int order = 0; order < 2; order++) {
        const attn_comparison found = order
                                          ? compare_floats(2, nan_and_one, one_and_nan, 1e30, 1e30)
                                          : compare_floats(2, one_and_nan, nan_and_one, 1e30, 1e30);
        assert_int_equal(found.differing, 2);
        assert_true(found.max_ulp == UINT64_MAX);
        assert_true(found.max_absolute == 0); // of the finite pairs, of which there are none
        assert_int_equal(found.worst[0], 0);
    }
    // Two NaN of different bits are equal as values.
    const uint32_t other_nan = 0xffc00123;
    const float usual = NAN;
    float unusual;
    memcpy(&unusual, &other_nan, sizeof unusual);
    const attn_comparison found = compare_floats(1, &usual, &unusual, 0, 0);
    assert_int_equal(found.differing, 0);
    assert_false(found.equal_bits);
}

static void an_infinity_equals_only_itself(void **state)
{
    (void)state;
    const float actual[] = {INFINITY, INFINITY, FLT_MAX, -INFINITY};
    const float expected[] = {INFINITY, -INFINITY, INFINITY, -FLT_MAX};
    const attn_comparison found = compare_floats(4, actual, expected, 1e38, 1);
    assert_int_equal(found.differing, 3);
    assert_int_equal(found.worst[0], 1);
    assert_true(isinf(found.worst_actual) && found.worst_actual > 0);
    assert_true(isinf(found.worst_expected) && found.worst_expected < 0);
    // The tolerance may overflow, but not in order to accept a finite difference of infinities.
    const float zero = 0, infinity = INFINITY;
    assert_int_equal(compare_floats(1, &zero, &infinity, 0, (double)INFINITY).differing, 1);
}

static void tolerances_add_up(void **state)
{
    (void)state;
    const float actual[] = {100.5f, 0.5f, -3}, expected[] = {100, 0, -3};
    assert_int_equal(compare_floats(3, actual, expected, 0.5, 0).differing, 0);
    assert_int_equal(compare_floats(3, actual, expected, 0.49, 0).differing, 2);
    assert_int_equal(compare_floats(3, actual, expected, 0, 0.005).differing, 1);
    const attn_comparison found = compare_floats(3, actual, expected, 0.4, 0.001);
    assert_int_equal(found.differing, 1);
    assert_int_equal(found.worst[0], 1);
    assert_true(found.max_absolute == 0.5);
    assert_true(found.max_relative == 0.005); // where expected is 0 there is none
}

static void the_worst_is_found(void **state)
{
    (void)state;
    float actual[24] = {0}, expected[24] = {0};
    actual[5] = 3;       // beyond the tolerance
    actual[17] = 5;      // more so
    expected[20] = 1e6f; // the largest difference, but within the relative tolerance
    actual[20] = 1e6f + 100;
    const int64_t shape[] = {2, 3, 4};
    const attn_tensor a = attn_tensor_wrap(actual, ATTN_F32, 3, shape);
    const attn_tensor e = attn_tensor_wrap(expected, ATTN_F32, 3, shape);
    attn_comparison found = compare(&a, &e, 1, 1e-3);
    assert_int_equal(found.differing, 2);
    assert_memory_equal(found.worst, ((const int64_t[]){1, 1, 1}), 3 * sizeof(int64_t));
    assert_true(found.worst_actual == 5);
    assert_true(found.max_absolute == 100);
    found = compare(&a, &e, 1000, 0); // nothing differs: the worst is that of max_absolute
    assert_int_equal(found.differing, 0);
    assert_memory_equal(found.worst, ((const int64_t[]){1, 2, 0}), 3 * sizeof(int64_t));
    assert_true(found.worst_expected == 1e6);
}

static void strides_are_followed(void **state)
{
    (void)state;
    const float rows[] = {1, 2, 3, 4, 5, 6}, columns[] = {1, 4, 2, 5, 3, 7};
    const attn_tensor a = attn_tensor_wrap_const(rows, ATTN_F32, 2, (const int64_t[]){2, 3});
    attn_tensor e = attn_tensor_wrap_const(columns, ATTN_F32, 2, (const int64_t[]){3, 2});
    attn_error error;
    ASSERT_OK(attn_tensor_transpose(&e, 0, 1, &e, &error));
    const attn_comparison found = compare(&a, &e, 0, 0);
    assert_int_equal(found.differing, 1);
    assert_memory_equal(found.worst, ((const int64_t[]){1, 2}), 2 * sizeof(int64_t));
}

static void ulps_are_counted_in_expecteds_dtype(void **state)
{
    (void)state;
    const float actual[] = {1, 0, -1.5f};
    const float expected[] = {1 + FLT_EPSILON, -0.0f, -1.5f};
    attn_comparison found = compare_floats(3, actual, expected, 0, 0);
    assert_int_equal(found.differing, 1);
    assert_int_equal(found.max_ulp, 1);
    const float tiny = 0x1p-149f, minus_tiny = -0x1p-149f;
    assert_int_equal(compare_floats(1, &tiny, &minus_tiny, 0, 0).max_ulp, 2);
    const double precise = 1 + DBL_EPSILON, one = 1;
    const float single = 1;
    const attn_tensor p = attn_tensor_wrap_const(&precise, ATTN_F64, 0, NULL);
    const attn_tensor s = attn_tensor_wrap_const(&single, ATTN_F32, 0, NULL);
    const attn_tensor d = attn_tensor_wrap_const(&one, ATTN_F64, 0, NULL);
    assert_int_equal(compare(&p, &s, 0, 0).max_ulp, 0);
    assert_int_equal(compare(&p, &s, 0, 0).differing, 1);
    assert_false(compare(&d, &s, 0, 0).equal_bits); // other dtypes have no equal bits
    assert_int_equal(compare(&s, &p, 0, 0).max_ulp, 1);
    const uint16_t half[] = {0x3c00}, next_half[] = {0x3c02};
    attn_tensor h = attn_tensor_wrap_const(half, ATTN_F16, 0, NULL);
    attn_tensor n = attn_tensor_wrap_const(next_half, ATTN_F16, 0, NULL);
    assert_int_equal(compare(&h, &n, 0, 0).max_ulp, 2);
    h.dtype = n.dtype = ATTN_BF16;
    assert_int_equal(compare(&h, &n, 0, 0).max_ulp, 2);
}

static void zeros_of_both_signs_are_equal_values(void **state)
{
    (void)state;
    const float plus = 0, minus = -0.0f;
    const attn_comparison found = compare_floats(1, &plus, &minus, 0, 0);
    assert_int_equal(found.differing, 0);
    assert_false(found.equal_bits);
}

static void large_integers_are_compared_exactly(void **state)
{
    (void)state;
    const int64_t a = INT64_MAX, b = INT64_MAX - 1, c = INT64_MIN;
    const attn_tensor x = attn_tensor_wrap_const(&a, ATTN_I64, 0, NULL);
    const attn_tensor y = attn_tensor_wrap_const(&b, ATTN_I64, 0, NULL);
    const attn_tensor z = attn_tensor_wrap_const(&c, ATTN_I64, 0, NULL);
    assert_int_equal(compare(&x, &y, 0, 0).differing, 1);
    assert_true(compare(&x, &y, 0, 0).max_absolute == 1);
    assert_true(compare(&x, &z, 0, 0).max_ulp == UINT64_MAX);
    assert_int_equal(compare(&x, &x, 0, 0).differing, 0);
}

static void empty_tensors_are_equal(void **state)
{
    (void)state;
    const attn_comparison found = compare_floats(0, NULL, NULL, 0, 0);
    assert_int_equal(found.count, 0);
    assert_int_equal(found.differing, 0);
    assert_true(found.equal_bits);
}

static void wrong_comparisons_are_refused(void **state)
{
    (void)state;
    const float values[6] = {0};
    const attn_tensor a = attn_tensor_wrap_const(values, ATTN_F32, 2, (const int64_t[]){2, 3});
    attn_tensor b = attn_tensor_wrap_const(values, ATTN_F32, 2, (const int64_t[]){3, 2});
    attn_comparison found = {.count = 7};
    attn_error error;
    ASSERT_FAILS(ATTN_ERR_SHAPE, "compare: actual of shape [2,3], expected of shape [3,2]",
                 attn_tensor_compare(&a, &b, 0, 0, &found, &error));
    b = a;
    b.dtype = ATTN_I32;
    ASSERT_FAILS(ATTN_ERR_DTYPE, "compare: actual is float32, expected is int32",
                 attn_tensor_compare(&a, &b, 0, 0, &found, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "compare: the tolerances (-1, 0) must be >= 0",
                 attn_tensor_compare(&a, &a, -1, 0, &found, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "compare: actual: the tensor is NULL",
                 attn_tensor_compare(NULL, &a, 0, 0, &found, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "compare: expected: the tensor is NULL",
                 attn_tensor_compare(&a, NULL, 0, 0, &found, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "compare: comparison is NULL",
                 attn_tensor_compare(&a, &a, 0, 0, NULL, &error));
    assert_int_equal(attn_tensor_compare(&a, &a, 0, (double)NAN, &found, &error),
                     ATTN_ERR_INVALID_ARGUMENT);
    assert_int_equal(found.count, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_tensors_do_not_differ),
        cmocka_unit_test(nan_equals_only_nan),
        cmocka_unit_test(an_infinity_equals_only_itself),
        cmocka_unit_test(tolerances_add_up),
        cmocka_unit_test(the_worst_is_found),
        cmocka_unit_test(strides_are_followed),
        cmocka_unit_test(ulps_are_counted_in_expecteds_dtype),
        cmocka_unit_test(zeros_of_both_signs_are_equal_values),
        cmocka_unit_test(large_integers_are_compared_exactly),
        cmocka_unit_test(empty_tensors_are_equal),
        cmocka_unit_test(wrong_comparisons_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
