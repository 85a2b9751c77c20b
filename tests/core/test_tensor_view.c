#include <string.h>

#include "attn/tensor.h"
#include "status.h"

enum { COUNT = 2 * 6 * 4 * 16 };
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

static attn_tensor with_strides(int32_t ndim, const int64_t *shape, const int64_t *stride)
{
    attn_tensor tensor = wrap(ndim, shape);
    memcpy(tensor.stride, stride, (size_t)ndim * sizeof stride[0]);
    return tensor;
}

static attn_tensor transposed(attn_tensor tensor, int32_t dim0, int32_t dim1)
{
    attn_error error;
    ASSERT_OK(attn_tensor_transpose(&tensor, dim0, dim1, &tensor, &error));
    return tensor;
}

static void assert_dims(const int64_t *actual, int32_t ndim, const int64_t *expected)
{
    assert_memory_equal(actual, expected, (size_t)ndim * sizeof actual[0]);
}

static int64_t index_at(const attn_tensor *tensor, int64_t position)
{
    int64_t index[ATTN_MAX_DIMS];
    for (int32_t d = tensor->ndim - 1; d >= 0; d--) {
        index[d] = position % tensor->shape[d];
        position /= tensor->shape[d];
    }
    return (int64_t)attn_tensor_get(tensor, index);
}

static void assert_same_elements(const attn_tensor *a, const attn_tensor *b)
{
    const int64_t count = attn_tensor_count(a);
    assert_int_equal(attn_tensor_count(b), count);
    for (int64_t i = 0; i < count; i++) {
        assert_int_equal(index_at(a, i), index_at(b, i));
    }
}

// ---- view ---------------------------------------------------------------------------------------

static void heads_are_split_without_a_copy(void **state)
{
    (void)state;
    const attn_tensor x = wrap(3, (const int64_t[]){2, 6, 64});
    attn_tensor heads;
    attn_error error;
    ASSERT_OK(attn_tensor_view(&x, 4, (const int64_t[]){2, 6, 4, -1}, &heads, &error));
    assert_int_equal(heads.ndim, 4);
    assert_dims(heads.shape, 4, (const int64_t[]){2, 6, 4, 16});
    assert_dims(heads.stride, 4, (const int64_t[]){384, 64, 16, 1});
    assert_ptr_equal(heads.data, numbers);
}

static void view_after_transpose_is_refused(void **state)
{
    (void)state;
    const attn_tensor context = wrap(4, (const int64_t[]){2, 4, 6, 16}); // (B, H, T, D)
    attn_tensor merged = {.ndim = 7};
    const attn_tensor before = merged;
    attn_error error;
    const attn_tensor swapped = transposed(context, 1, 2);
    ASSERT_FAILS(ATTN_ERR_NOT_CONTIGUOUS,
                 "view: tensor of shape [2,6,4,16] with stride [384,16,96,1] is not contiguous; "
                 "call contiguous first",
                 attn_tensor_view(&swapped, 3, (const int64_t[]){2, 6, 64}, &merged, &error));
    assert_memory_equal(&merged, &before, sizeof merged);
}

// With one element per head, or one head, or one token, a transpose moves nothing.
static void view_after_transpose_is_legal_where_strides_allow_it(void **state)
{
    (void)state;
    attn_error error;
    attn_tensor merged;
    // head_dim 1: the chapter's last view, (B, T, H, 1) as (B, T, H), merges nothing that the
    // transpose has torn apart.
    const attn_tensor torn = transposed(wrap(4, (const int64_t[]){2, 4, 6, 1}), 1, 2);
    ASSERT_OK(attn_tensor_view(&torn, 3, (const int64_t[]){2, 6, 4}, &merged, &error));
    assert_dims(merged.stride, 3, (const int64_t[]){24, 1, 6});
    assert_same_elements(&torn, &merged);
    assert_int_equal(attn_tensor_view(&torn, 2, (const int64_t[]){2, 24}, &merged, &error),
                     ATTN_ERR_NOT_CONTIGUOUS);
    const attn_tensor one_head = transposed(wrap(4, (const int64_t[]){2, 1, 6, 16}), 1, 2);
    ASSERT_OK(attn_tensor_view(&one_head, 3, (const int64_t[]){2, 6, 16}, &merged, &error));
    assert_same_elements(&one_head, &merged);
    const attn_tensor one_token = transposed(wrap(4, (const int64_t[]){2, 4, 1, 16}), 1, 2);
    ASSERT_OK(attn_tensor_view(&one_token, 3, (const int64_t[]){2, 1, 64}, &merged, &error));
    assert_same_elements(&one_token, &merged);
}

static void strides_are_those_of_torch(void **state)
{
    (void)state;
    static const struct {
        int32_t old_ndim, new_ndim;
        int64_t old_shape[4], old_stride[4], new_shape[4], new_stride[4];
        bool legal;
    } cases[] = {
        // a gap between rows: columns may be split, rows may be split, they may not be merged
        {2, 3, {4, 6}, {10, 1}, {4, 2, 3}, {10, 3, 1}, true},
        {2, 3, {4, 6}, {10, 1}, {2, 2, 6}, {20, 10, 1}, true},
        {2, 1, {4, 6}, {10, 1}, {24}, {0}, false},
        {2, 2, {4, 6}, {10, 1}, {8, 3}, {0}, false},
        // every second element of a row-major matrix is still evenly spaced
        {2, 1, {4, 5}, {10, 2}, {20}, {2}, true},
        // broadcast dims merge with each other only
        {3, 2, {3, 2, 4}, {0, 0, 1}, {6, 4}, {0, 1}, true},
        {3, 2, {3, 2, 4}, {0, 0, 1}, {3, 8}, {0}, false},
        // sizes of 1 come and go
        {3, 4, {4, 1, 6}, {10, 99, 1}, {1, 4, 6, 1}, {40, 10, 1, 1}, true},
        {1, 3, {6}, {-1}, {2, 1, 3}, {-3, -3, -1}, true},
        {2, 2, {6, 1}, {1, 77}, {2, 3}, {3, 1}, true},
        {4, 1, {1, 1, 1, 1}, {5, 6, 7, 8}, {1}, {8}, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        attn_tensor x = with_strides(cases[i].old_ndim, cases[i].old_shape, cases[i].old_stride);
        x.data = numbers + 100;
        attn_tensor viewed;
        attn_error error;
        const attn_status status =
            attn_tensor_view(&x, cases[i].new_ndim, cases[i].new_shape, &viewed, &error);
        assert_int_equal(status, cases[i].legal ? ATTN_OK : ATTN_ERR_NOT_CONTIGUOUS);
        if (cases[i].legal) {
            assert_dims(viewed.stride, cases[i].new_ndim, cases[i].new_stride);
            assert_same_elements(&x, &viewed);
        }
    }
}

static void scalars_and_empty_tensors_have_views(void **state)
{
    (void)state;
    attn_error error;
    attn_tensor viewed;
    const attn_tensor scalar = wrap(0, NULL);
    ASSERT_OK(attn_tensor_view(&scalar, 2, (const int64_t[]){1, 1}, &viewed, &error));
    assert_same_elements(&scalar, &viewed);
    const attn_tensor one = wrap(2, (const int64_t[]){1, 1});
    ASSERT_OK(attn_tensor_view(&one, 0, NULL, &viewed, &error));
    assert_int_equal(viewed.ndim, 0);
    const attn_tensor empty = wrap(3, (const int64_t[]){2, 0, 4});
    ASSERT_OK(attn_tensor_view(&empty, 2, (const int64_t[]){-1, 5}, &viewed, &error));
    assert_dims(viewed.shape, 2, (const int64_t[]){0, 5});
    // 0 elements, and 0 per unit of the unknown size: any size would do.
    ASSERT_FAILS(ATTN_ERR_SHAPE, "view: shape [-1,0] does not hold the 0 elements of shape [2,0,4]",
                 attn_tensor_view(&empty, 2, (const int64_t[]){-1, 0}, &viewed, &error));
}

static void wrong_view_shapes_are_refused(void **state)
{
    (void)state;
    attn_error error;
    attn_tensor viewed;
    const attn_tensor x = wrap(3, (const int64_t[]){2, 6, 64});
    ASSERT_FAILS(ATTN_ERR_SHAPE,
                 "view: shape [2,6,63] does not hold the 768 elements of shape [2,6,64]",
                 attn_tensor_view(&x, 3, (const int64_t[]){2, 6, 63}, &viewed, &error));
    ASSERT_FAILS(ATTN_ERR_SHAPE,
                 "view: shape [5,-1] does not hold the 768 elements of shape [2,6,64]",
                 attn_tensor_view(&x, 2, (const int64_t[]){5, -1}, &viewed, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT,
                 "view: shape [-1,-1]: one size may be -1, the others must be >= 0",
                 attn_tensor_view(&x, 2, (const int64_t[]){-1, -1}, &viewed, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT,
                 "view: shape [-2,4]: one size may be -1, the others must be >= 0",
                 attn_tensor_view(&x, 2, (const int64_t[]){-2, 4}, &viewed, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "view: ndim (9) must be in [0, 8]",
                 attn_tensor_view(&x, 9, (const int64_t[]){0}, &viewed, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "view: shape is NULL",
                 attn_tensor_view(&x, 1, NULL, &viewed, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "view: result is NULL",
                 attn_tensor_view(&x, 1, (const int64_t[]){768}, NULL, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "view: the tensor is NULL",
                 attn_tensor_view(NULL, 1, (const int64_t[]){768}, &viewed, &error));
    const int64_t huge = INT64_C(1) << 40;
    assert_int_equal(attn_tensor_view(&x, 2, (const int64_t[]){huge, huge}, &viewed, &error),
                     ATTN_ERR_SHAPE);
    const attn_tensor empty = wrap(1, (const int64_t[]){0});
    assert_int_equal(attn_tensor_view(&empty, 3, (const int64_t[]){huge, huge, 0}, &viewed, &error),
                     ATTN_ERR_OVERFLOW);
    assert_int_equal(
        attn_tensor_expand(&empty, 3, (const int64_t[]){huge, huge, 0}, &viewed, &error),
        ATTN_ERR_OVERFLOW);
}

// ---- transpose, slice, select, expand -----------------------------------------------------------

static void transpose_swaps_shape_and_stride(void **state)
{
    (void)state;
    const attn_tensor x = wrap(3, (const int64_t[]){2, 6, 64});
    const attn_tensor swapped = transposed(x, -1, 0);
    assert_dims(swapped.shape, 3, (const int64_t[]){64, 6, 2});
    assert_dims(swapped.stride, 3, (const int64_t[]){1, 64, 384});
    attn_error error;
    attn_tensor result;
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "transpose: dim 3 is out of range for shape [2,6,64]",
                 attn_tensor_transpose(&x, 0, 3, &result, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "transpose: dim -4 is out of range for shape [2,6,64]",
                 attn_tensor_transpose(&x, -4, 0, &result, &error));
}

static void slices_step_through_a_dim(void **state)
{
    (void)state;
    const attn_tensor x = wrap(2, (const int64_t[]){4, 10});
    attn_tensor sliced;
    attn_error error;
    ASSERT_OK(attn_tensor_slice(&x, 1, 2, 9, 3, &sliced, &error));
    assert_dims(sliced.shape, 2, (const int64_t[]){4, 3});
    assert_int_equal(index_at(&sliced, 0), 2);
    assert_int_equal(index_at(&sliced, 2), 8);
    assert_int_equal(index_at(&sliced, 5), 18);
    ASSERT_OK(attn_tensor_slice(&x, -2, 4, 4, 1, &sliced, &error));
    assert_dims(sliced.shape, 2, (const int64_t[]){0, 10});
    ASSERT_OK(attn_tensor_slice(&x, 0, 1, 4, INT64_MAX, &sliced, &error));
    assert_dims(sliced.shape, 2, (const int64_t[]){1, 10});
    assert_int_equal(index_at(&sliced, 3), 13);
    static const struct {
        int64_t start, stop, step;
    } wrong[] = {{-1, 3, 1}, {3, 2, 1}, {0, 11, 1}, {0, 3, 0}, {0, 3, -1}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(
            attn_tensor_slice(&x, 1, wrong[i].start, wrong[i].stop, wrong[i].step, &sliced, &error),
            ATTN_ERR_INVALID_ARGUMENT);
    }
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT,
                 "slice: 0:11:1 along dim 1 of shape [4,10]; 0 <= start <= stop <= size and "
                 "step >= 1 must hold",
                 attn_tensor_slice(&x, -1, 0, 11, 1, &sliced, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "slice: dim 2 is out of range for shape [4,10]",
                 attn_tensor_slice(&x, 2, 0, 1, 1, &sliced, &error));
}

static void select_drops_a_dim(void **state)
{
    (void)state;
    const attn_tensor x = wrap(3, (const int64_t[]){2, 3, 4});
    attn_tensor selected;
    attn_error error;
    ASSERT_OK(attn_tensor_select(&x, 1, 2, &selected, &error));
    assert_int_equal(selected.ndim, 2);
    assert_dims(selected.shape, 2, (const int64_t[]){2, 4});
    assert_int_equal(index_at(&selected, 0), 8);
    assert_int_equal(index_at(&selected, 4), 20);
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT,
                 "select: index 3 is out of range for dim 1 of shape [2,3,4]",
                 attn_tensor_select(&x, 1, 3, &selected, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT,
                 "select: index -1 is out of range for dim 2 of shape [2,3,4]",
                 attn_tensor_select(&x, -1, -1, &selected, &error));
    const attn_tensor scalar = wrap(0, NULL);
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "select: dim 0 is out of range for shape []",
                 attn_tensor_select(&scalar, 0, 0, &selected, &error));
}

static void expand_broadcasts_by_stride_zero(void **state)
{
    (void)state;
    const attn_tensor x = wrap(2, (const int64_t[]){3, 1});
    attn_tensor expanded;
    attn_error error;
    ASSERT_OK(attn_tensor_expand(&x, 3, (const int64_t[]){2, 3, 4}, &expanded, &error));
    assert_dims(expanded.shape, 3, (const int64_t[]){2, 3, 4});
    assert_dims(expanded.stride, 3, (const int64_t[]){0, 1, 0});
    assert_int_equal(index_at(&expanded, 23), 2);
    ASSERT_OK(attn_tensor_expand(&x, 2, (const int64_t[]){3, 0}, &expanded, &error));
    assert_int_equal(attn_tensor_count(&expanded), 0);
    ASSERT_FAILS(ATTN_ERR_SHAPE, "expand: shape [3,1] does not broadcast to [2,4]",
                 attn_tensor_expand(&x, 2, (const int64_t[]){2, 4}, &expanded, &error));
    ASSERT_FAILS(ATTN_ERR_SHAPE, "expand: shape [3,1] does not broadcast to [3]",
                 attn_tensor_expand(&x, 1, (const int64_t[]){3}, &expanded, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "expand: shape [3,-1] has a negative size",
                 attn_tensor_expand(&x, 2, (const int64_t[]){3, -1}, &expanded, &error));
    assert_int_equal(
        attn_tensor_expand(&x, 3, (const int64_t[]){INT64_MAX, 3, 1}, &expanded, &error),
        ATTN_ERR_OVERFLOW);
}

static void views_keep_the_read_only_flag_and_may_replace_their_source(void **state)
{
    (void)state;
    attn_tensor x = attn_tensor_wrap_const(numbers, ATTN_F32, 3, (const int64_t[]){2, 3, 4});
    attn_error error;
    ASSERT_OK(attn_tensor_transpose(&x, 0, 2, &x, &error));
    ASSERT_OK(attn_tensor_slice(&x, 0, 1, 3, 1, &x, &error));
    ASSERT_OK(attn_tensor_select(&x, 2, 1, &x, &error));
    ASSERT_OK(attn_tensor_expand(&x, 3, (const int64_t[]){5, 2, 3}, &x, &error));
    ASSERT_OK(attn_tensor_view(&x, 4, (const int64_t[]){5, 2, 3, 1}, &x, &error));
    assert_int_equal(x.flags, ATTN_TENSOR_READ_ONLY);
    // numbers[select 1 of dim 0, :, slice from 1] transposed: [d][t] = 12 + 4 t + (d + 1)
    assert_int_equal(index_at(&x, 0), 13);
    assert_int_equal(index_at(&x, 5), 22);
}

static void views_of_empty_tensors_need_no_memory(void **state)
{
    (void)state;
    const attn_tensor x = attn_tensor_wrap(NULL, ATTN_F32, 2, (const int64_t[]){4, 0});
    attn_tensor result;
    attn_error error;
    ASSERT_OK(attn_tensor_select(&x, 0, 3, &result, &error));
    assert_null(result.data);
    ASSERT_OK(attn_tensor_slice(&x, 0, 1, 3, 1, &result, &error));
    assert_null(result.data);
    ASSERT_OK(attn_tensor_transpose(&x, 0, 1, &result, &error));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_are_split_without_a_copy),
        cmocka_unit_test(view_after_transpose_is_refused),
        cmocka_unit_test(view_after_transpose_is_legal_where_strides_allow_it),
        cmocka_unit_test(strides_are_those_of_torch),
        cmocka_unit_test(scalars_and_empty_tensors_have_views),
        cmocka_unit_test(wrong_view_shapes_are_refused),
        cmocka_unit_test(transpose_swaps_shape_and_stride),
        cmocka_unit_test(slices_step_through_a_dim),
        cmocka_unit_test(select_drops_a_dim),
        cmocka_unit_test(expand_broadcasts_by_stride_zero),
        cmocka_unit_test(views_keep_the_read_only_flag_and_may_replace_their_source),
        cmocka_unit_test(views_of_empty_tensors_need_no_memory),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
