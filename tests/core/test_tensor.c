#include <math.h>
#include <string.h>

#include "allocator.h"
#include "attn/tensor.h"
#include "status.h"

static void dtypes_have_names_and_sizes(void **state)
{
    (void)state;
    static const struct {
        attn_dtype dtype;
        const char *name;
        size_t size;
    } cases[] = {
        {ATTN_F32, "float32", 4}, {ATTN_F64, "float64", 8},     {ATTN_F16, "float16", 2},
        {ATTN_I64, "int64", 8},   {ATTN_BF16, "bfloat16", 2},   {ATTN_I32, "int32", 4},
        {ATTN_I16, "int16", 2},   {ATTN_I8, "int8", 1},         {ATTN_U8, "uint8", 1},
        {ATTN_BOOL, "bool", 1},   {ATTN_DTYPE_NONE, "none", 0},
    };
    assert_int_equal(sizeof cases / sizeof cases[0], ATTN_DTYPE_COUNT);
    for (size_t i = 0; i < ATTN_DTYPE_COUNT; i++) {
        assert_string_equal(attn_dtype_name(cases[i].dtype), cases[i].name);
        assert_int_equal(attn_dtype_size(cases[i].dtype), cases[i].size);
    }
    assert_string_equal(attn_dtype_name(ATTN_DTYPE_COUNT), "unknown");
    assert_int_equal(attn_dtype_size((attn_dtype)-1), 0);
}

// ---- wrap and check -----------------------------------------------------------------------------

static float values[24];

static void wrapped_memory_is_row_major(void **state)
{
    (void)state;
    const attn_tensor tensor = attn_tensor_wrap(values, ATTN_F32, 3, (const int64_t[]){2, 3, 4});
    assert_ptr_equal(tensor.data, values);
    assert_int_equal(tensor.stride[0], 12);
    assert_int_equal(tensor.stride[2], 1);
    assert_int_equal(tensor.flags, 0);
    assert_int_equal(attn_tensor_count(&tensor), 24);
    assert_true(attn_tensor_is_contiguous(&tensor));
    const attn_tensor constant =
        attn_tensor_wrap_const(values, ATTN_F32, 3, (const int64_t[]){2, 3, 4});
    assert_int_equal(constant.flags, ATTN_TENSOR_READ_ONLY);
    const attn_tensor scalar = attn_tensor_wrap(values, ATTN_F32, 0, NULL);
    assert_int_equal(attn_tensor_count(&scalar), 1);
    assert_true(attn_tensor_is_contiguous(&scalar));
}

static void contiguous_means_without_gaps(void **state)
{
    (void)state;
    attn_tensor tensor = attn_tensor_wrap(values, ATTN_F32, 3, (const int64_t[]){2, 1, 4});
    tensor.stride[1] = 77; // of a size of 1: never stepped along
    assert_true(attn_tensor_is_contiguous(&tensor));
    tensor.stride[0] = 5;
    assert_false(attn_tensor_is_contiguous(&tensor));
    tensor.shape[2] = 0;
    assert_true(attn_tensor_is_contiguous(&tensor));
}

static void shapes_compare_by_their_dims_only(void **state)
{
    (void)state;
    attn_tensor a = attn_tensor_wrap(values, ATTN_F32, 2, (const int64_t[]){2, 3});
    attn_tensor b = attn_tensor_wrap(values, ATTN_F64, 2, (const int64_t[]){2, 3});
    b.shape[2] = 99;
    assert_true(attn_tensor_same_shape(&a, &b));
    b.shape[1] = 4;
    assert_false(attn_tensor_same_shape(&a, &b));
    b.ndim = 1;
    assert_false(attn_tensor_same_shape(&a, &b));
    a.ndim = b.ndim = 0;
    assert_true(attn_tensor_same_shape(&a, &b));
}

static void malformed_tensors_are_refused(void **state)
{
    (void)state;
    attn_error error;
    const attn_tensor good = attn_tensor_wrap(values, ATTN_F32, 2, (const int64_t[]){2, 3});
    ASSERT_OK(attn_tensor_check(&good, "x", &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "x: the tensor is NULL",
                 attn_tensor_check(NULL, "x", &error));
    attn_tensor bad = good;
    bad.dtype = ATTN_DTYPE_COUNT;
    ASSERT_FAILS(ATTN_ERR_DTYPE, "x: unknown dtype 11", attn_tensor_check(&bad, "x", &error));
    bad = good;
    bad.ndim = 9;
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "x: ndim (9) must be in [0, 8]",
                 attn_tensor_check(&bad, "x", &error));
    bad = good;
    bad.ndim = -1;
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "x: ndim (-1) must be in [0, 8]",
                 attn_tensor_check(&bad, "x", &error));
    bad = good;
    bad.shape[1] = -3;
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "x: shape [2,-3] has a negative size",
                 attn_tensor_check(&bad, "x", &error));
    bad = good;
    bad.data = NULL;
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "x: data of a tensor of shape [2,3] is NULL",
                 attn_tensor_check(&bad, "x", &error));
    bad.shape[0] = 0;
    ASSERT_OK(attn_tensor_check(&bad, "x", &error));
    bad = good;
    bad.data = (char *)values + 2;
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "x: data is not aligned to its 4-byte elements",
                 attn_tensor_check(&bad, "x", &error));
    bad = good;
    bad.flags = 6;
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "x: unknown flags 0x6 or reserved bits 0x0",
                 attn_tensor_check(&bad, "x", &error));
    bad = good;
    bad.reserved = 1;
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "x: unknown flags 0x0 or reserved bits 0x1",
                 attn_tensor_check(&bad, "x", &error));
}

static void sizes_that_wrap_are_refused(void **state)
{
    (void)state;
    attn_error error;
    const int64_t half = INT64_C(1) << 62;
    attn_tensor tensor = attn_tensor_wrap(values, ATTN_F32, 2, (const int64_t[]){half, 4});
    ASSERT_FAILS(ATTN_ERR_OVERFLOW,
                 "x: shape [4611686018427387904,4] with stride [4,1] is too large",
                 attn_tensor_check(&tensor, "x", &error));
    tensor = attn_tensor_wrap(values, ATTN_U8, 2, (const int64_t[]){3, 2});
    tensor.stride[0] = half;
    assert_int_equal(attn_tensor_check(&tensor, "x", &error), ATTN_ERR_OVERFLOW);
    tensor.stride[0] = -half;
    assert_int_equal(attn_tensor_check(&tensor, "x", &error), ATTN_ERR_OVERFLOW);
    tensor.stride[0] = INT64_MIN;
    assert_int_equal(attn_tensor_check(&tensor, "x", &error), ATTN_ERR_OVERFLOW);
    tensor.shape[0] = 2; // one step, to INT64_MIN: the width does not fit
    assert_int_equal(attn_tensor_check(&tensor, "x", &error), ATTN_ERR_OVERFLOW);
    tensor.shape[0] = 1; // never stepped along, but a stride in bytes must be computable
    assert_int_equal(attn_tensor_check(&tensor, "x", &error), ATTN_ERR_OVERFLOW);
    tensor.stride[0] = half;
    ASSERT_OK(attn_tensor_check(&tensor, "x", &error));
    tensor.dtype = ATTN_F32;
    assert_int_equal(attn_tensor_check(&tensor, "x", &error), ATTN_ERR_OVERFLOW);
    tensor.dtype = ATTN_U8;
    tensor.shape[0] = 1 << 20; // many elements at one place
    tensor.stride[0] = tensor.stride[1] = 0;
    ASSERT_OK(attn_tensor_check(&tensor, "x", &error));
    tensor = attn_tensor_wrap(values, ATTN_U8, 1, (const int64_t[]){INT64_MAX});
    tensor.stride[0] = 0;
    assert_int_equal(attn_tensor_check(&tensor, "x", &error), ATTN_ERR_OVERFLOW);
    // No elements: the product of the other sizes must fit all the same.
    tensor = attn_tensor_wrap(NULL, ATTN_F32, 3, (const int64_t[]){half, half, 0});
    assert_int_equal(attn_tensor_check(&tensor, "x", &error), ATTN_ERR_OVERFLOW);
    tensor = attn_tensor_wrap(NULL, ATTN_U8, 2, (const int64_t[]){half, 0});
    ASSERT_OK(attn_tensor_check(&tensor, "x", &error));
    assert_int_equal(attn_tensor_count(&tensor), 0);
}

// ---- create and destroy -------------------------------------------------------------------------

static void created_tensors_are_zero_and_aligned(void **state)
{
    (void)state;
    test_allocator allocator;
    attn_context *context = test_context_on(&allocator);
    for (attn_dtype dtype = ATTN_F32; dtype < ATTN_DTYPE_COUNT; dtype++) {
        attn_tensor tensor;
        attn_error error;
        ASSERT_OK(attn_tensor_create(context, dtype, 2, (const int64_t[]){3, 5}, &tensor, &error));
        assert_int_equal((uintptr_t)tensor.data % 64, 0);
        assert_int_equal(tensor.dtype, dtype);
        assert_true(attn_tensor_is_contiguous(&tensor));
        for (size_t i = 0; i < 15 * attn_dtype_size(dtype); i++) {
            assert_int_equal(((char *)tensor.data)[i], 0);
        }
        // A changed shape does not change what is given back.
        tensor.shape[0] = 1;
        attn_tensor_destroy(context, &tensor);
        assert_null(tensor.data);
        attn_tensor_destroy(context, &tensor);
    }
    attn_tensor_destroy(context, NULL);
    test_context_end(context, &allocator);
}

static void empty_tensors_and_scalars_can_be_created(void **state)
{
    (void)state;
    test_allocator allocator;
    attn_context *context = test_context_on(&allocator);
    attn_tensor tensor;
    attn_error error;
    ASSERT_OK(attn_tensor_create(context, ATTN_F32, 2, (const int64_t[]){3, 0}, &tensor, &error));
    assert_null(tensor.data);
    assert_int_equal(allocator.live, 1);
    attn_tensor_destroy(context, &tensor);
    ASSERT_OK(attn_tensor_create(context, ATTN_F64, 0, NULL, &tensor, &error));
    assert_int_equal(attn_tensor_count(&tensor), 1);
    attn_tensor_destroy(context, &tensor);
    test_context_end(context, &allocator);
}

static void failed_creation_leaves_the_tensor(void **state)
{
    (void)state;
    test_allocator allocator;
    attn_context *context = test_context_on(&allocator);
    attn_tensor tensor = {.ndim = 5};
    const attn_tensor before = tensor;
    attn_error error;
    const int64_t shape[] = {2, 3};
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "tensor_create: context is NULL",
                 attn_tensor_create(NULL, ATTN_F32, 2, shape, &tensor, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "tensor_create: tensor is NULL",
                 attn_tensor_create(context, ATTN_F32, 2, shape, NULL, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "tensor_create: shape is NULL",
                 attn_tensor_create(context, ATTN_F32, 2, NULL, &tensor, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "tensor_create: ndim (9) must be in [0, 8]",
                 attn_tensor_create(context, ATTN_F32, 9, shape, &tensor, &error));
    ASSERT_FAILS(ATTN_ERR_DTYPE, "tensor_create: unknown dtype 0",
                 attn_tensor_create(context, ATTN_DTYPE_NONE, 2, shape, &tensor, &error));
    ASSERT_FAILS(
        ATTN_ERR_INVALID_ARGUMENT, "tensor_create: shape [-1,2] has a negative size",
        attn_tensor_create(context, ATTN_F32, 2, (const int64_t[]){-1, 2}, &tensor, &error));
    ASSERT_FAILS(ATTN_ERR_OVERFLOW,
                 "tensor_create: shape [4611686018427387904,2] with stride [2,1] is too large",
                 attn_tensor_create(context, ATTN_F32, 2, (const int64_t[]){INT64_C(1) << 62, 2},
                                    &tensor, &error));
    allocator.fail_at = allocator.calls;
    ASSERT_FAILS(ATTN_ERR_OUT_OF_MEMORY,
                 "tensor_create: out of memory for float32 of shape [2,3] (88 bytes)",
                 attn_tensor_create(context, ATTN_F32, 2, shape, &tensor, &error));
    assert_memory_equal(&tensor, &before, sizeof tensor);
    test_context_end(context, &allocator);
}

// ---- elements -----------------------------------------------------------------------------------

static void elements_are_read_as_double(void **state)
{
    (void)state;
    float floats[] = {1, 2, 3, 4, 5, 6};
    attn_tensor tensor = attn_tensor_wrap(floats, ATTN_F32, 2, (const int64_t[]){2, 3});
    assert_true(attn_tensor_get(&tensor, (const int64_t[]){1, 2}) == 6);
    assert_true(isnan(attn_tensor_get(&tensor, (const int64_t[]){2, 0})));
    assert_true(isnan(attn_tensor_get(&tensor, (const int64_t[]){0, -1})));
    assert_true(isnan(attn_tensor_get(NULL, (const int64_t[]){0, 0})));
    assert_true(isnan(attn_tensor_get(&tensor, NULL)));
    tensor = attn_tensor_wrap(floats, ATTN_F32, 0, NULL);
    assert_true(attn_tensor_get(&tensor, NULL) == 1);
    uint16_t halves[] = {0x3c00, 0x3f80};
    tensor = attn_tensor_wrap(halves, ATTN_F16, 1, (const int64_t[]){2});
    assert_true(attn_tensor_get(&tensor, (const int64_t[]){0}) == 1);
    tensor.dtype = ATTN_BF16;
    assert_true(attn_tensor_get(&tensor, (const int64_t[]){1}) == 1);
    uint8_t bytes[] = {0, 200, 2};
    tensor = attn_tensor_wrap(bytes, ATTN_U8, 1, (const int64_t[]){3});
    assert_true(attn_tensor_get(&tensor, (const int64_t[]){1}) == 200);
    tensor.dtype = ATTN_I8;
    assert_true(attn_tensor_get(&tensor, (const int64_t[]){1}) == -56);
    tensor.dtype = ATTN_BOOL;
    assert_true(attn_tensor_get(&tensor, (const int64_t[]){2}) == 1);
    int64_t longs[] = {-5};
    tensor = attn_tensor_wrap(longs, ATTN_I64, 1, (const int64_t[]){1});
    assert_true(attn_tensor_get(&tensor, (const int64_t[]){0}) == -5);
}

static void fill_reaches_every_element_and_no_other(void **state)
{
    (void)state;
    float floats[12] = {0};
    attn_tensor tensor = attn_tensor_wrap(floats + 1, ATTN_F32, 2, (const int64_t[]){3, 2});
    tensor.stride[0] = 4;
    attn_error error;
    ASSERT_OK(attn_tensor_fill(&tensor, 0.1, &error));
    for (int i = 0; i < 12; i++) {
        const bool inside = i % 4 == 1 || i % 4 == 2;
        assert_true(floats[i] == (inside ? 0.1f : 0.0f));
    }
}

static void fill_takes_only_values_of_the_dtype(void **state)
{
    (void)state;
    static const struct {
        attn_dtype dtype;
        double fits, too_large;
    } cases[] = {
        {ATTN_I8, -128, 128},
        {ATTN_U8, 255, 256},
        {ATTN_U8, 0, -1},
        {ATTN_I16, -32768, -32769},
        {ATTN_I32, 2147483647, 0x1p31},
        {ATTN_I64, -0x1p63, 0x1p63},
        {ATTN_BOOL, 1, 2},
        {ATTN_I32, 3, 2.5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t element = 0;
        const attn_tensor tensor = attn_tensor_wrap(&element, cases[i].dtype, 0, NULL);
        attn_error error;
        ASSERT_OK(attn_tensor_fill(&tensor, cases[i].fits, &error));
        assert_true(attn_tensor_get(&tensor, NULL) == cases[i].fits);
        assert_int_equal(attn_tensor_fill(&tensor, cases[i].too_large, &error),
                         ATTN_ERR_INVALID_ARGUMENT);
        assert_int_equal(attn_tensor_fill(&tensor, (double)NAN, &error), ATTN_ERR_INVALID_ARGUMENT);
        assert_true(attn_tensor_get(&tensor, NULL) == cases[i].fits);
    }
    uint16_t half;
    attn_tensor tensor = attn_tensor_wrap(&half, ATTN_F16, 0, NULL);
    attn_error error;
    ASSERT_OK(attn_tensor_fill(&tensor, 1e9, &error));
    assert_int_equal(half, 0x7c00);
    tensor.dtype = ATTN_U8;
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "fill: 300 is no value of uint8",
                 attn_tensor_fill(&tensor, 300, &error));
    tensor.flags = ATTN_TENSOR_READ_ONLY;
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "fill: the tensor is read-only",
                 attn_tensor_fill(&tensor, 0, &error));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dtypes_have_names_and_sizes),
        cmocka_unit_test(wrapped_memory_is_row_major),
        cmocka_unit_test(contiguous_means_without_gaps),
        cmocka_unit_test(shapes_compare_by_their_dims_only),
        cmocka_unit_test(malformed_tensors_are_refused),
        cmocka_unit_test(sizes_that_wrap_are_refused),
        cmocka_unit_test(created_tensors_are_zero_and_aligned),
        cmocka_unit_test(empty_tensors_and_scalars_can_be_created),
        cmocka_unit_test(failed_creation_leaves_the_tensor),
        cmocka_unit_test(elements_are_read_as_double),
        cmocka_unit_test(fill_reaches_every_element_and_no_other),
        cmocka_unit_test(fill_takes_only_values_of_the_dtype),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
