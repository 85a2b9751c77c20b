#include <math.h>
#include <string.h>

#include "attn/tensor.h"
#include "core/text.h"
#include "status.h"

static void assert_formats(attn_tensor tensor, int digits, const char *expected)
{
    char buffer[512];
    memset(buffer, 'x', sizeof buffer);
    const size_t length = attn_tensor_format(&tensor, digits, buffer, sizeof buffer);
    assert_string_equal(buffer, expected);
    assert_int_equal(length, strlen(expected));
}

static void shapes_and_layouts(void **state)
{
    (void)state;
    char buffer[128];
    float value = 0;
    attn_tensor x = attn_tensor_wrap(&value, ATTN_F32, 3, (const int64_t[]){2, 6, 4});
    assert_int_equal(attn_tensor_format_shape(&x, buffer, sizeof buffer), 7);
    assert_string_equal(buffer, "[2,6,4]");
    assert_int_equal(attn_tensor_format_layout(&x, buffer, sizeof buffer), 31);
    assert_string_equal(buffer, "float32 [2,6,4] stride [24,4,1]");
    x.ndim = 0;
    attn_tensor_format_shape(&x, buffer, sizeof buffer);
    assert_string_equal(buffer, "[]");
}

static void the_longest_shape_fits_in_a_message(void **state)
{
    (void)state;
    int64_t dims[ATTN_MAX_DIMS];
    for (int d = 0; d < ATTN_MAX_DIMS; d++) {
        dims[d] = INT64_MIN;
    }
    const attn_dims_text text = attn_dims_as_text(ATTN_MAX_DIMS, dims);
    assert_int_equal(strlen(text.text), 8 * 20 + 7 + 2);
}

static void a_small_buffer_cuts_and_counts(void **state)
{
    (void)state;
    float values[] = {1, 2, 3};
    const attn_tensor x = attn_tensor_wrap(values, ATTN_F32, 1, (const int64_t[]){3});
    const char *const whole = "[1.00, 2.00, 3.00]";
    for (size_t size = 0; size < 25; size++) {
        char buffer[32];
        memset(buffer, 'x', sizeof buffer);
        assert_int_equal(attn_tensor_format(&x, 2, size ? buffer : NULL, size), strlen(whole));
        if (size > 0) {
            const size_t length = size - 1 < strlen(whole) ? size - 1 : strlen(whole);
            assert_int_equal(strlen(buffer), length);
            assert_memory_equal(buffer, whole, length);
        }
        assert_int_equal(buffer[size], 'x');
    }
    char buffer[4];
    assert_int_equal(attn_tensor_format_shape(&x, buffer, sizeof buffer), 3);
    assert_string_equal(buffer, "[3]");
    assert_int_equal(attn_tensor_format_layout(&x, buffer, sizeof buffer), 22);
    assert_string_equal(buffer, "flo");
}

static void elements_stand_in_columns_as_in_torch(void **state)
{
    (void)state;
    float values[] = {0.43f, 0.15f, -0.89f, 10, 0.5f, 0, 1, 2, 3, 4, 5, 6};
    attn_tensor x = attn_tensor_wrap(values, ATTN_F32, 2, (const int64_t[]){2, 3});
    assert_formats(x, 4, "[[ 0.4300,  0.1500, -0.8900],\n [10.0000,  0.5000,  0.0000]]");
    x = attn_tensor_wrap(values, ATTN_F32, 3, (const int64_t[]){2, 3, 2});
    assert_formats(x, 1,
                   "[[[ 0.4,  0.2],\n  [-0.9, 10.0],\n  [ 0.5,  0.0]],\n\n"
                   " [[ 1.0,  2.0],\n  [ 3.0,  4.0],\n  [ 5.0,  6.0]]]");
    attn_error error;
    x = attn_tensor_wrap(values + 6, ATTN_F32, 2, (const int64_t[]){2, 3});
    ASSERT_OK(attn_tensor_transpose(&x, 0, 1, &x, &error));
    assert_formats(x, 0, "[[1., 4.],\n [2., 5.],\n [3., 6.]]");
    x = attn_tensor_wrap(values, ATTN_F32, 0, NULL);
    assert_formats(x, 4, "0.4300");
    x = attn_tensor_wrap(values + 6, ATTN_F32, 1, (const int64_t[]){1});
    assert_formats(x, -5, "[1.]");
    assert_formats(x, 99, "[1.00000000000000000]");
}

static void special_values_and_integers(void **state)
{
    (void)state;
    float values[] = {NAN, INFINITY, -INFINITY, 1};
    attn_tensor x = attn_tensor_wrap(values, ATTN_F32, 1, (const int64_t[]){4});
    assert_formats(x, 2, "[ nan,  inf, -inf, 1.00]");
    double largest = -1.7976931348623157e308;
    x = attn_tensor_wrap(&largest, ATTN_F64, 0, NULL);
    assert_int_equal(attn_tensor_format(&x, 17, NULL, 0), 1 + 309 + 1 + 17);
    int64_t integers[] = {INT64_MIN, 7};
    x = attn_tensor_wrap(integers, ATTN_I64, 1, (const int64_t[]){2});
    assert_formats(x, 4, "[-9223372036854775808,                    7]");
    uint8_t flags[] = {1, 0};
    x = attn_tensor_wrap(flags, ATTN_BOOL, 1, (const int64_t[]){2});
    assert_formats(x, 4, "[ True, False]");
    x.shape[0] = 0;
    assert_formats(x, 4, "[]");
    x.ndim = 99;
    assert_formats(x, 4, "tensor: ndim (99) must be in [0, 8]");
}

static void the_decimal_point_is_a_full_stop_in_every_locale(void **state)
{
    (void)state;
    static const char *const texts[][2] = {
        {"-12,50", "-12.50"},
        {"0.5", "0.5"},
        {"7\xd9\xab"
         "25",
         "7.25"},
        {"1,", "1."},
        {"12", "12"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char text[16];
        strcpy(text, texts[i][0]);
        attn_use_full_stop(text);
        assert_string_equal(text, texts[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_and_layouts),
        cmocka_unit_test(the_longest_shape_fits_in_a_message),
        cmocka_unit_test(a_small_buffer_cuts_and_counts),
        cmocka_unit_test(elements_stand_in_columns_as_in_torch),
        cmocka_unit_test(special_values_and_integers),
        cmocka_unit_test(the_decimal_point_is_a_full_stop_in_every_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
