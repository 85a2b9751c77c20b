// Overlap is checked against sets of bytes, walked element by element.
#include <string.h>

#include "core/layout.h"
#include "core/rows.h"
#include "status.h"

enum { BYTES = 1 << 16 };
static unsigned char memory[BYTES];

static attn_tensor view_at(int64_t first, int32_t ndim, const int64_t *shape, const int64_t *stride)
{
    attn_tensor tensor = attn_tensor_wrap((float *)(void *)memory + first, ATTN_F32, ndim, shape);
    memcpy(tensor.stride, stride, (size_t)ndim * sizeof stride[0]);
    return tensor;
}

// Counts each element of the view in `touched`; returns whether one was met twice.
static bool touch(const attn_tensor *tensor, unsigned char *touched)
{
    bool twice = false;
    for (attn_rows rows = attn_rows_of(tensor, NULL); rows.left > 0; attn_rows_next(&rows)) {
        for (int64_t i = 0; i < rows.count; i++) {
            const float *element = (const float *)tensor->data + rows.offset[0] +
                                   i * rows.stride[0];
            const int64_t place = element - (const float *)(void *)memory;
            assert_in_range(place, 0, BYTES / 4 - 1);
            twice = twice || touched[place];
            touched[place] = 1;
        }
    }
    return twice;
}

static bool share_an_element(const attn_tensor *a, const attn_tensor *b)
{
    static unsigned char in_a[BYTES / 4], in_b[BYTES / 4];
    memset(in_a, 0, sizeof in_a);
    memset(in_b, 0, sizeof in_b);
    touch(a, in_a);
    touch(b, in_b);
    for (int i = 0; i < BYTES / 4; i++) {
        if (in_a[i] && in_b[i]) {
            return true;
        }
    }
    return false;
}

static void check_overlap(const attn_tensor *a, const attn_tensor *b)
{
    const bool expected = share_an_element(a, b);
    assert_int_equal(attn_overlaps(a, b), expected);
    assert_int_equal(attn_overlaps(b, a), expected);
}

// ---- strides, ranges, dims ----------------------------------------------------------------------

static void row_major_strides(void **state)
{
    (void)state;
    int64_t stride[4];
    attn_row_major(4, (const int64_t[]){2, 3, 4, 5}, stride);
    assert_memory_equal(stride, ((const int64_t[]){60, 20, 5, 1}), sizeof stride);
    attn_row_major(3, (const int64_t[]){2, 0, 5}, stride);
    assert_memory_equal(stride, ((const int64_t[]){5, 5, 1}), 3 * sizeof stride[0]);
    // Sizes whose product cannot be held, of a tensor without elements.
    attn_row_major(3, (const int64_t[]){0, INT64_MAX, INT64_MAX}, stride);
    assert_int_equal(stride[2], 1);
}

static void byte_ranges(void **state)
{
    (void)state;
    int64_t low, high;
    attn_tensor tensor = view_at(100, 3, (const int64_t[]){2, 3, 4}, (const int64_t[]){12, 4, 1});
    attn_byte_range(&tensor, &low, &high);
    assert_int_equal(low, 0);
    assert_int_equal(high, 96);
    tensor = view_at(100, 2, (const int64_t[]){2, 3}, (const int64_t[]){-10, 2});
    attn_byte_range(&tensor, &low, &high);
    assert_int_equal(low, -40);
    assert_int_equal(high, 20);
    tensor = view_at(100, 2, (const int64_t[]){2, 0}, (const int64_t[]){10, 2});
    attn_byte_range(&tensor, &low, &high);
    assert_int_equal(low, 0);
    assert_int_equal(high, 0);
}

static void dims_from_the_end(void **state)
{
    (void)state;
    int32_t dim = -1;
    assert_true(attn_normalize_dim(3, &dim));
    assert_int_equal(dim, 2);
    dim = 0;
    assert_true(attn_normalize_dim(3, &dim));
    static const int32_t wrong[] = {3, -4, INT32_MAX, INT32_MIN};
    for (int i = 0; i < 4; i++) {
        dim = wrong[i];
        assert_false(attn_normalize_dim(3, &dim));
        assert_int_equal(dim, wrong[i]);
    }
    dim = 0;
    assert_false(attn_normalize_dim(0, &dim));
}

// ---- overlap with itself ------------------------------------------------------------------------

static void overlap_with_itself(void **state)
{
    (void)state;
    static const struct {
        int64_t shape[3], stride[3];
        bool overlaps;
    } cases[] = {
        {{2, 3, 4}, {12, 4, 1}, false},  {{2, 3, 4}, {1, 2, 6}, false},
        {{2, 3, 4}, {0, 4, 1}, true},    {{1, 3, 4}, {0, 4, 1}, false},
        {{2, 3, 4}, {12, -4, 1}, false}, {{2, 3, 4}, {12, 3, 1}, true},
        {{2, 0, 4}, {0, 0, 0}, false},   {{2, 3, 4}, {100, 10, 2}, false},
        {{4, 4, 4}, {1, 1, 1}, true},    {{2, 3, 4}, {11, 4, 1}, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static unsigned char touched[BYTES / 4];
        memset(touched, 0, sizeof touched);
        const attn_tensor tensor = view_at(1000, 3, cases[i].shape, cases[i].stride);
        assert_int_equal(touch(&tensor, touched), cases[i].overlaps);
        assert_int_equal(attn_overlaps_itself(&tensor), cases[i].overlaps);
    }
}

// ---- overlap of two views -----------------------------------------------------------------------

enum { B = 2, T = 5, H = 3, D = 4, E = 3 * H * D };

// The queries, keys and values of a fused buffer (B,T,3,H,D) as (B,H,T,D).
static attn_tensor part(int64_t first_column)
{
    return view_at(first_column, 4, (const int64_t[]){B, H, T, D},
                   (const int64_t[]){T * E, D, E, 1});
}

static void parts_of_a_fused_buffer_are_disjoint(void **state)
{
    (void)state;
    for (int64_t a = 0; a < 3; a++) {
        for (int64_t b = 0; b < 3; b++) {
            const attn_tensor first = part(a * H * D), second = part(b * H * D);
            assert_int_equal(share_an_element(&first, &second), a == b);
            check_overlap(&first, &second);
        }
    }
    const attn_tensor queries = part(0), shifted = part(H * D - 1);
    assert_true(share_an_element(&queries, &shifted));
    check_overlap(&queries, &shifted);
}

static void heads_that_hold_query_key_and_value_side_by_side(void **state)
{
    (void)state;
    // (B,T,H,3,D), one of the three as (B,H,T,D)
    attn_tensor parts[3];
    for (int64_t i = 0; i < 3; i++) {
        parts[i] =
            view_at(i * D, 4, (const int64_t[]){B, H, T, D}, (const int64_t[]){T * E, 3 * D, E, 1});
    }
    for (int a = 0; a < 3; a++) {
        for (int b = 0; b < 3; b++) {
            check_overlap(&parts[a], &parts[b]);
        }
    }
}

static void rows_of_one_cache_are_disjoint(void **state)
{
    (void)state;
    // Keys (B,H,32,D): positions 0..4 against 5, and against 4.
    const int64_t stride[] = {H * 32 * D, 32 * D, D, 1};
    const attn_tensor past = view_at(0, 4, (const int64_t[]){B, H, 5, D}, stride);
    for (int64_t position = 4; position <= 5; position++) {
        const attn_tensor next = view_at(position * D, 4, (const int64_t[]){B, H, 1, D}, stride);
        assert_int_equal(share_an_element(&past, &next), position == 4);
        check_overlap(&past, &next);
    }
}

static void interleaved_elements_are_disjoint(void **state)
{
    (void)state;
    const attn_tensor even = view_at(0, 1, (const int64_t[]){10}, (const int64_t[]){2});
    const attn_tensor odd = view_at(1, 1, (const int64_t[]){10}, (const int64_t[]){2});
    const attn_tensor backwards = view_at(19, 1, (const int64_t[]){10}, (const int64_t[]){-2});
    check_overlap(&even, &odd);
    check_overlap(&even, &backwards);
    check_overlap(&odd, &backwards);
}

static void neighbours_and_empty_views_are_disjoint(void **state)
{
    (void)state;
    const int64_t stride[] = {8, 1};
    const attn_tensor a = view_at(0, 2, (const int64_t[]){4, 8}, stride);
    const attn_tensor after = view_at(32, 2, (const int64_t[]){4, 8}, stride);
    const attn_tensor last = view_at(31, 2, (const int64_t[]){4, 8}, stride);
    const attn_tensor empty = view_at(4, 2, (const int64_t[]){0, 8}, stride);
    check_overlap(&a, &after);
    check_overlap(&a, &last);
    check_overlap(&a, &empty);
    check_overlap(&a, &a);
}

// Whatever the views, a shared element must be reported.
static void an_overlap_is_never_missed(void **state)
{
    (void)state;
    uint32_t random = 12345;
    int shared = 0, disjoint_and_said_so = 0;
    for (int round = 0; round < 3000; round++) {
        attn_tensor views[2];
        for (int v = 0; v < 2; v++) {
            int64_t shape[3], stride[3];
            for (int d = 0; d < 3; d++) {
                random = random * 1664525 + 1013904223;
                shape[d] = 1 + (random >> 28) % 5;
                random = random * 1664525 + 1013904223;
                stride[d] = (int64_t)((random >> 24) % 49) - 24;
            }
            random = random * 1664525 + 1013904223;
            views[v] = view_at(1000 + (random >> 24) % 128, 3, shape, stride);
        }
        const bool expected = share_an_element(&views[0], &views[1]);
        const bool reported = attn_overlaps(&views[0], &views[1]);
        assert_int_equal(reported, attn_overlaps(&views[1], &views[0]));
        assert_true(reported || !expected);
        shared += expected;
        disjoint_and_said_so += !reported;
    }
    assert_true(shared > 300); // both outcomes were met
    assert_true(disjoint_and_said_so > 300);
}

// ---- rows ---------------------------------------------------------------------------------------

static void rows_join_what_is_evenly_spaced(void **state)
{
    (void)state;
    const int64_t shape[] = {2, 3, 4};
    const attn_tensor whole = view_at(0, 3, shape, (const int64_t[]){12, 4, 1});
    attn_rows rows = attn_rows_of(&whole, &whole);
    assert_int_equal(rows.left, 1);
    assert_int_equal(rows.count, 24);
    const attn_tensor gaps = view_at(0, 3, shape, (const int64_t[]){20, 4, 1});
    rows = attn_rows_of(&whole, &gaps);
    assert_int_equal(rows.left, 2);
    assert_int_equal(rows.count, 12);
    attn_rows_next(&rows);
    assert_int_equal(rows.offset[0], 12);
    assert_int_equal(rows.offset[1], 20);
    const attn_tensor scalar = view_at(0, 0, shape, shape);
    rows = attn_rows_of(&scalar, NULL);
    assert_int_equal(rows.left, 1);
    assert_int_equal(rows.count, 1);
    const attn_tensor empty = view_at(0, 3, (const int64_t[]){2, 0, 4}, (const int64_t[]){4, 4, 1});
    assert_int_equal(attn_rows_of(&empty, NULL).left, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(row_major_strides),
        cmocka_unit_test(byte_ranges),
        cmocka_unit_test(dims_from_the_end),
        cmocka_unit_test(overlap_with_itself),
        cmocka_unit_test(parts_of_a_fused_buffer_are_disjoint),
        cmocka_unit_test(heads_that_hold_query_key_and_value_side_by_side),
        cmocka_unit_test(rows_of_one_cache_are_disjoint),
        cmocka_unit_test(interleaved_elements_are_disjoint),
        cmocka_unit_test(neighbours_and_empty_views_are_disjoint),
        cmocka_unit_test(an_overlap_is_never_missed),
        cmocka_unit_test(rows_join_what_is_evenly_spaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
