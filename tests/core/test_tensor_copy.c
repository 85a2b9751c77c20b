#include <math.h>
#include <string.h>

#include "allocator.h"
#include "attn/tensor.h"
#include "status.h"

enum { COUNT = 48 };
static float numbers[COUNT]; // numbers[i] == i

static int setup(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        numbers[i] = (float)i;
    }
    return 0;
}

static attn_tensor wrap(int32_t ndim, const int64_t *shape)
{
    return attn_tensor_wrap(numbers, ATTN_F32, ndim, shape);
}

static attn_tensor transposed(attn_tensor tensor, int32_t dim0, int32_t dim1)
{
    attn_error error;
    ASSERT_OK(attn_tensor_transpose(&tensor, dim0, dim1, &tensor, &error));
    return tensor;
}

// ---- copy ---------------------------------------------------------------------------------------

static void copies_follow_any_strides(void **state)
{
    (void)state;
    float target[COUNT];
    memset(target, 0, sizeof target);
    const attn_tensor source = transposed(wrap(3, (const int64_t[]){2, 3, 4}), 1, 2);
    attn_tensor backwards = attn_tensor_wrap(target, ATTN_F32, 3, (const int64_t[]){2, 4, 3});
    backwards.data = target + 2;
    backwards.stride[2] = -1;
    attn_error error;
    ASSERT_OK(attn_tensor_copy(&source, &backwards, &error));
    for (int b = 0; b < 2; b++) {
        for (int t = 0; t < 4; t++) {
            for (int d = 0; d < 3; d++) {
                assert_true(target[b * 12 + t * 3 + 2 - d] == (float)(b * 12 + d * 4 + t));
            }
        }
    }
    for (int i = 24; i < COUNT; i++) {
        assert_true(target[i] == 0);
    }
}

static void same_dtype_copies_keep_bits(void **state)
{
    (void)state;
    // A signalling NaN, negative zero, a subnormal.
    const uint32_t source_bits[] = {0x7f800001, 0x80000000, 1, 0xffc12345};
    uint32_t target_bits[4] = {0};
    const int64_t shape[] = {2, 2};
    attn_tensor source = attn_tensor_wrap_const(source_bits, ATTN_F32, 2, shape);
    attn_tensor target = transposed(attn_tensor_wrap(target_bits, ATTN_F32, 2, shape), 0, 1);
    attn_error error;
    ASSERT_OK(attn_tensor_copy(&source, &target, &error));
    assert_int_equal(target_bits[0], source_bits[0]);
    assert_int_equal(target_bits[2], source_bits[1]);
    assert_int_equal(target_bits[1], source_bits[2]);
    assert_int_equal(target_bits[3], source_bits[3]);
}

static void every_element_size_is_copied(void **state)
{
    (void)state;
    for (attn_dtype dtype = ATTN_F32; dtype < ATTN_DTYPE_COUNT; dtype++) {
        const size_t size = attn_dtype_size(dtype);
        _Alignas(8) unsigned char source_bytes[6 * 8], target_bytes[6 * 8] = {0};
        for (size_t i = 0; i < sizeof source_bytes; i++) {
            source_bytes[i] = (unsigned char)(i + 1);
        }
        const attn_tensor source =
            attn_tensor_wrap(source_bytes, dtype, 2, (const int64_t[]){2, 3});
        const attn_tensor target =
            transposed(attn_tensor_wrap(target_bytes, dtype, 2, (const int64_t[]){3, 2}), 0, 1);
        attn_error error;
        ASSERT_OK(attn_tensor_copy(&source, &target, &error));
        for (size_t i = 0; i < 6; i++) {
            assert_memory_equal(target_bytes + (i % 3 * 2 + i / 3) * size, source_bytes + i * size,
                                size);
        }
    }
}

static void floating_dtypes_convert(void **state)
{
    (void)state;
    enum { N = 300 }; // more than the conversion holds at a time
    double doubles[N];
    float floats[N];
    uint16_t halves[N];
    for (int i = 0; i < N; i++) {
        doubles[i] = i == 7 ? (double)INFINITY : 1.0 / (i + 1);
    }
    const int64_t shape[] = {N};
    const attn_tensor f64 = attn_tensor_wrap(doubles, ATTN_F64, 1, shape);
    const attn_tensor f32 = attn_tensor_wrap(floats, ATTN_F32, 1, shape);
    const attn_tensor f16 = attn_tensor_wrap(halves, ATTN_F16, 1, shape);
    attn_error error;
    ASSERT_OK(attn_tensor_copy(&f64, &f32, &error));
    ASSERT_OK(attn_tensor_copy(&f32, &f16, &error));
    for (int i = 0; i < N; i++) {
        assert_true(floats[i] == (float)doubles[i]);
    }
    assert_int_equal(halves[0], 0x3c00);
    assert_int_equal(halves[2], 0x3555); // 1/3
    assert_int_equal(halves[7], 0x7c00);
    ASSERT_OK(attn_tensor_copy(&f16, &f64, &error));
    assert_true(doubles[2] == 0x1.554p-2);
    attn_tensor bf16 = f16;
    bf16.dtype = ATTN_BF16;
    ASSERT_OK(attn_tensor_copy(&f32, &bf16, &error));
    assert_int_equal(halves[2], 0x3eab);
}

static void integers_convert_where_every_value_fits(void **state)
{
    (void)state;
    for (attn_dtype from = ATTN_F32; from < ATTN_DTYPE_COUNT; from++) {
        for (attn_dtype to = ATTN_F32; to < ATTN_DTYPE_COUNT; to++) {
            int64_t a = 0, b = 0;
            const attn_tensor source = attn_tensor_wrap(&a, from, 0, NULL);
            const attn_tensor target = attn_tensor_wrap(&b, to, 0, NULL);
            const bool float_from = from <= ATTN_BF16, float_to = to <= ATTN_BF16;
            bool expected = from == to || (float_from && float_to);
            if (!float_from && !float_to && to != ATTN_BOOL) {
                expected = expected || from == ATTN_BOOL ||
                           attn_dtype_size(from) < attn_dtype_size(to);
            }
            attn_error error;
            const attn_status status = attn_tensor_copy(&source, &target, &error);
            assert_int_equal(status, expected ? ATTN_OK : ATTN_ERR_DTYPE);
        }
    }
    int8_t small[] = {-128, 127, -1};
    int64_t large[3];
    const attn_tensor source = attn_tensor_wrap(small, ATTN_I8, 1, (const int64_t[]){3});
    const attn_tensor target = attn_tensor_wrap(large, ATTN_I64, 1, (const int64_t[]){3});
    attn_error error;
    ASSERT_OK(attn_tensor_copy(&source, &target, &error));
    assert_int_equal(large[0], -128);
    assert_int_equal(large[2], -1);
    ASSERT_FAILS(ATTN_ERR_DTYPE, "copy: int64 does not convert to int8",
                 attn_tensor_copy(&target, &source, &error));
}

static void wrong_copies_are_refused(void **state)
{
    (void)state;
    attn_error error;
    float other[COUNT] = {0};
    const attn_tensor source = wrap(2, (const int64_t[]){4, 6});
    attn_tensor target = attn_tensor_wrap(other, ATTN_F32, 2, (const int64_t[]){6, 4});
    ASSERT_FAILS(ATTN_ERR_SHAPE, "copy: source of shape [4,6], target of shape [6,4]",
                 attn_tensor_copy(&source, &target, &error));
    target = attn_tensor_wrap(other, ATTN_F32, 2, (const int64_t[]){4, 6});
    target.stride[0] = 0;
    ASSERT_FAILS(ATTN_ERR_OVERLAP,
                 "copy: the target of shape [4,6] with stride [0,1] overlaps itself",
                 attn_tensor_copy(&source, &target, &error));
    target = wrap(2, (const int64_t[]){4, 6});
    target.data = numbers + 23;
    ASSERT_FAILS(ATTN_ERR_OVERLAP, "copy: source and target overlap",
                 attn_tensor_copy(&source, &target, &error));
    target.data = numbers + 24;
    target.flags = ATTN_TENSOR_READ_ONLY;
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "copy: the target is read-only",
                 attn_tensor_copy(&source, &target, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "copy: source: the tensor is NULL",
                 attn_tensor_copy(NULL, &target, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "copy: target: the tensor is NULL",
                 attn_tensor_copy(&source, NULL, &error));
    for (int i = 0; i < COUNT; i++) {
        assert_true(numbers[i] == (float)i);
        assert_true(other[i] == 0);
    }
}

// ---- contiguous and reshape ---------------------------------------------------------------------

static void contiguous_then_view_merges_heads(void **state)
{
    (void)state;
    test_allocator allocator;
    attn_context *context = test_context_on(&allocator);
    attn_error error;
    // (B, H, T, D) -> (B, T, H, D) -> (B, T, H * D)
    const attn_tensor swapped = transposed(wrap(4, (const int64_t[]){2, 4, 3, 2}), 1, 2);
    attn_tensor copy, merged;
    ASSERT_OK(attn_tensor_contiguous(context, &swapped, &copy, &error));
    ASSERT_OK(attn_tensor_view(&copy, 3, (const int64_t[]){2, 3, 8}, &merged, &error));
    for (int i = 0; i < COUNT; i++) {
        const int b = i / 24, t = i / 8 % 3, h = i / 2 % 4, d = i % 2;
        const double value = attn_tensor_get(&merged, (const int64_t[]){b, t, h * 2 + d});
        assert_true(value == (double)numbers[b * 24 + h * 6 + t * 2 + d]);
    }
    attn_tensor_destroy(context, &copy);
    const attn_tensor constant = attn_tensor_wrap_const(numbers, ATTN_F32, 1, (const int64_t[]){5});
    ASSERT_OK(attn_tensor_contiguous(context, &constant, &copy, &error));
    assert_ptr_not_equal(copy.data, numbers); // a copy even so, and one that may be written
    assert_int_equal(copy.flags, 0);
    attn_tensor_destroy(context, &copy);
    test_context_end(context, &allocator);
}

static void reshape_copies_only_where_it_must(void **state)
{
    (void)state;
    test_allocator allocator;
    attn_context *context = test_context_on(&allocator);
    attn_error error;
    attn_tensor result;
    bool copied = true;
    const attn_tensor x = wrap(2, (const int64_t[]){4, 6});
    ASSERT_OK(
        attn_tensor_reshape(context, &x, 3, (const int64_t[]){2, -1, 3}, &result, &copied, &error));
    assert_false(copied);
    assert_ptr_equal(result.data, numbers);
    const attn_tensor columns = transposed(x, 0, 1);
    ASSERT_OK(
        attn_tensor_reshape(context, &columns, 1, (const int64_t[]){-1}, &result, &copied, &error));
    assert_true(copied);
    assert_int_equal(result.shape[0], 24);
    for (int64_t i = 0; i < 24; i++) {
        assert_true(attn_tensor_get(&result, &i) == (double)numbers[i % 4 * 6 + i / 4]);
    }
    attn_tensor_destroy(context, &result);
    ASSERT_FAILS(ATTN_ERR_SHAPE,
                 "reshape: shape [5,5] does not hold the 24 elements of shape [6,4]",
                 attn_tensor_reshape(context, &columns, 2, (const int64_t[]){5, 5}, &result,
                                     &copied, &error));
    allocator.fail_at = allocator.calls;
    ASSERT_FAILS(
        ATTN_ERR_OUT_OF_MEMORY,
        "tensor_create: out of memory for float32 of shape [6,4] (160 bytes)",
        attn_tensor_reshape(context, &columns, 1, (const int64_t[]){24}, &result, &copied, &error));
    test_context_end(context, &allocator);
}

// ---- cat and stack ------------------------------------------------------------------------------

static void cat_puts_parts_side_by_side(void **state)
{
    (void)state;
    test_allocator allocator;
    attn_context *context = test_context_on(&allocator);
    attn_error error;
    attn_tensor result;
    const attn_tensor parts[] = {
        wrap(2, (const int64_t[]){2, 3}),
        transposed(wrap(2, (const int64_t[]){2, 2}), 0, 1),
        wrap(2, (const int64_t[]){2, 0}),
    };
    ASSERT_OK(attn_tensor_cat(context, parts, 3, -1, &result, &error));
    static const float expected[] = {0, 1, 2, 0, 2, 3, 4, 5, 1, 3};
    assert_int_equal(result.shape[1], 5);
    assert_memory_equal(result.data, expected, sizeof expected);
    attn_tensor_destroy(context, &result);
    const attn_tensor rows[] = {wrap(2, (const int64_t[]){1, 3}), wrap(2, (const int64_t[]){2, 3})};
    ASSERT_OK(attn_tensor_cat(context, rows, 2, 0, &result, &error));
    static const float stacked[] = {0, 1, 2, 0, 1, 2, 3, 4, 5};
    assert_memory_equal(result.data, stacked, sizeof stacked);
    attn_tensor_destroy(context, &result);
    test_context_end(context, &allocator);
}

static void stack_makes_a_new_dim(void **state)
{
    (void)state;
    test_allocator allocator;
    attn_context *context = test_context_on(&allocator);
    attn_error error;
    attn_tensor result;
    attn_tensor parts[] = {wrap(1, (const int64_t[]){3}), wrap(1, (const int64_t[]){3})};
    parts[1].data = numbers + 10;
    ASSERT_OK(attn_tensor_stack(context, parts, 2, 0, &result, &error));
    static const float by_rows[] = {0, 1, 2, 10, 11, 12};
    assert_int_equal(result.shape[0], 2);
    assert_memory_equal(result.data, by_rows, sizeof by_rows);
    attn_tensor_destroy(context, &result);
    ASSERT_OK(attn_tensor_stack(context, parts, 2, -1, &result, &error));
    static const float by_columns[] = {0, 10, 1, 11, 2, 12};
    assert_int_equal(result.shape[0], 3);
    assert_memory_equal(result.data, by_columns, sizeof by_columns);
    attn_tensor_destroy(context, &result);
    test_context_end(context, &allocator);
}

static void wrong_parts_are_refused(void **state)
{
    (void)state;
    test_allocator allocator;
    attn_context *context = test_context_on(&allocator);
    attn_error error;
    attn_tensor result;
    attn_tensor parts[] = {wrap(2, (const int64_t[]){2, 3}), wrap(2, (const int64_t[]){4, 3})};
    ASSERT_FAILS(ATTN_ERR_SHAPE, "cat: shapes [2,3] and [4,3] must be equal except along dim 1",
                 attn_tensor_cat(context, parts, 2, 1, &result, &error));
    ASSERT_FAILS(ATTN_ERR_SHAPE, "stack: shapes [2,3] and [4,3] must be equal",
                 attn_tensor_stack(context, parts, 2, 0, &result, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "cat: dim 2 is out of range for shape [2,3]",
                 attn_tensor_cat(context, parts, 2, 2, &result, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "stack: a new dim -4 is out of range for shape [2,3]",
                 attn_tensor_stack(context, parts, 2, -4, &result, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "cat: at least one tensor is needed",
                 attn_tensor_cat(context, parts, 0, 0, &result, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "cat: result is NULL",
                 attn_tensor_cat(context, parts, 2, 0, NULL, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "contiguous: result is NULL",
                 attn_tensor_contiguous(context, parts, NULL, &error));
    ASSERT_FAILS(
        ATTN_ERR_INVALID_ARGUMENT, "reshape: copied is NULL",
        attn_tensor_reshape(context, parts, 1, (const int64_t[]){6}, &result, NULL, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "stack: at least one tensor is needed",
                 attn_tensor_stack(context, NULL, 1, 0, &result, &error));
    parts[1] = wrap(1, (const int64_t[]){3});
    ASSERT_FAILS(ATTN_ERR_SHAPE, "cat: shapes [2,3] and [3] must be equal except along dim 0",
                 attn_tensor_cat(context, parts, 2, 0, &result, &error));
    parts[1].dtype = ATTN_I32;
    ASSERT_FAILS(ATTN_ERR_DTYPE, "cat: dtypes float32 and int32 must be equal",
                 attn_tensor_cat(context, parts, 2, 0, &result, &error));
    const attn_tensor full = wrap(8, (const int64_t[]){1, 1, 1, 1, 1, 1, 1, 1});
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT,
                 "stack: a new dim 0 is out of range for shape [1,1,1,1,1,1,1,1]",
                 attn_tensor_stack(context, &full, 1, 0, &result, &error));
    const attn_tensor huge[] = {
        attn_tensor_wrap(NULL, ATTN_U8, 2, (const int64_t[]){INT64_MAX - 1, 0}),
        attn_tensor_wrap(NULL, ATTN_U8, 2, (const int64_t[]){INT64_MAX - 1, 0}),
    };
    ASSERT_FAILS(ATTN_ERR_OVERFLOW, "cat: the size along dim 0 is too large",
                 attn_tensor_cat(context, huge, 2, 0, &result, &error));
    parts[1] = wrap(2, (const int64_t[]){2, 3});
    allocator.fail_at = allocator.calls;
    assert_int_equal(attn_tensor_cat(context, parts, 2, 0, &result, &error),
                     ATTN_ERR_OUT_OF_MEMORY);
    allocator.fail_at = allocator.calls;
    assert_int_equal(attn_tensor_stack(context, parts, 2, 0, &result, &error),
                     ATTN_ERR_OUT_OF_MEMORY);
    allocator.fail_at = allocator.calls;
    assert_int_equal(attn_tensor_contiguous(context, parts, &result, &error),
                     ATTN_ERR_OUT_OF_MEMORY);
    test_context_end(context, &allocator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_follow_any_strides),
        cmocka_unit_test(same_dtype_copies_keep_bits),
        cmocka_unit_test(every_element_size_is_copied),
        cmocka_unit_test(floating_dtypes_convert),
        cmocka_unit_test(integers_convert_where_every_value_fits),
        cmocka_unit_test(wrong_copies_are_refused),
        cmocka_unit_test(contiguous_then_view_merges_heads),
        cmocka_unit_test(reshape_copies_only_where_it_must),
        cmocka_unit_test(cat_puts_parts_side_by_side),
        cmocka_unit_test(stack_makes_a_new_dim),
        cmocka_unit_test(wrong_parts_are_refused),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
