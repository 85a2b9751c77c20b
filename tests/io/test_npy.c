// .npy: every dtype, order, version and rank; bytes as numpy writes them; bad files with the reason.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn/npy.h"
#include "io_support.h"
#include "unit.h"

static test_allocator memory;
static attn_context *context;

// A file of version `major` with this dictionary and these bytes after it.
static unsigned char *make_file(int major, const char *dictionary, const void *data,
                                size_t data_size, size_t *size)
{
    size_t length = strlen(dictionary);
    size_t prefix = major == 1 ? 10 : 12;
    *size = prefix + length + data_size;
    unsigned char *bytes = malloc(*size);
    assert_non_null(bytes);
    memcpy(bytes, "\x93NUMPY", 6);
    bytes[6] = (unsigned char)major;
    bytes[7] = 0;
    for (size_t i = 8; i < prefix; i++) {
        bytes[i] = (unsigned char)(length >> 8 * (i - 8));
    }
    memcpy(bytes + prefix, dictionary, length);
    if (data_size > 0) {
        memcpy(bytes + prefix + length, data, data_size);
    }
    return bytes;
}

static attn_npy *parse(const unsigned char *bytes, size_t size, uint32_t flags)
{
    attn_npy *file = NULL;
    attn_error error = {0};
    if (attn_npy_parse(context, bytes, size, flags, &file, &error) != ATTN_OK) {
        fail_msg("%s", error.text);
    }
    return file;
}

static void test_dtypes_in_both_byte_orders(void **state)
{
    (void)state;
    static const struct {
        const char *little, *big;
        attn_dtype dtype;
        uint32_t flags;
    } cases[] = {{"<f2", ">f2", ATTN_F16, 0},
                 {"<f4", ">f4", ATTN_F32, 0},
                 {"<f8", ">f8", ATTN_F64, 0},
                 {"<i2", ">i2", ATTN_I16, 0},
                 {"<i4", ">i4", ATTN_I32, 0},
                 {"<i8", ">i8", ATTN_I64, 0},
                 {"|i1", ">i1", ATTN_I8, 0},
                 {"|u1", ">u1", ATTN_U8, 0},
                 {"|b1", "<b1", ATTN_BOOL, 0},
                 {"<V2", ">V2", ATTN_BF16, ATTN_NPY_BFLOAT16},
                 {"|V2", ">V2", ATTN_BF16, ATTN_NPY_BFLOAT16}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        size_t element = attn_dtype_size(cases[i].dtype);
        unsigned char little[16], big[16];
        for (size_t k = 0; k < 2 * element; k++) {
            little[k] = big[k / element * element + element - 1 - k % element] =
                cases[i].dtype == ATTN_BOOL ? (unsigned char)(k % 2) : (unsigned char)(k + 1);
        }
        for (int swapped = 0; swapped < 2; swapped++) {
            char dictionary[128];
            snprintf(dictionary, sizeof(dictionary),
                     "{'descr': '%s', 'fortran_order': False, 'shape': (2,), }\n",
                     swapped ? cases[i].big : cases[i].little);
            size_t size;
            unsigned char *bytes =
                make_file(1, dictionary, swapped ? big : little, 2 * element, &size);
            attn_npy *file = parse(bytes, size, cases[i].flags);
            const attn_tensor *tensor = attn_npy_tensor(file);
            assert_int_equal(tensor->dtype, cases[i].dtype);
            assert_int_equal((uintptr_t)tensor->data % element, 0);
            assert_memory_equal(tensor->data, little, 2 * element);
            attn_npy_close(file);
            free(bytes);
        }
    }
    assert_int_equal(blocks_left(&memory), 0);
}

static void test_headers_of_other_writers(void **state)
{
    (void)state;
    static const char *const dictionaries[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
        "{\"shape\":(2,3),\"descr\":\"<f4\",\"fortran_order\":False}",
        "  { 'fortran_order' : False , 'shape' : ( 2 , 3 , ) , 'descr' : 'f4' }  \n",
        "{'descr': '=f4', 'fortran_order': False, 'shape': (2L, 3L)}",
    };
    float data[6] = {1, 2, 3, 4, 5, 6};
    for (size_t i = 0; i < sizeof(dictionaries) / sizeof(*dictionaries); i++) {
        for (int major = 1; major <= 3; major++) {
            size_t size;
            unsigned char *bytes = make_file(major, dictionaries[i], data, sizeof(data), &size);
            attn_npy *file = parse(bytes, size, 0);
            const attn_tensor *tensor = attn_npy_tensor(file);
            assert_int_equal(tensor->ndim, 2);
            const int64_t last[] = {1, 2};
            assert_float_equal(attn_tensor_get(tensor, last), 6, 0);
            assert_true((tensor->flags & ATTN_TENSOR_READ_ONLY) != 0);
            attn_npy_close(file);
            free(bytes);
        }
    }
}

static void test_fortran_order_is_strides(void **state)
{
    (void)state;
    // [[1, 2, 3], [4, 5, 6]] column by column.
    float data[6] = {1, 4, 2, 5, 3, 6};
    size_t size;
    unsigned char *bytes = make_file(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}",
                                     data, sizeof(data), &size);
    attn_npy *file = parse(bytes, size, 0);
    const attn_tensor *tensor = attn_npy_tensor(file);
    assert_int_equal(tensor->shape[0], 2);
    assert_int_equal(tensor->shape[1], 3);
    assert_int_equal(tensor->stride[0], 1);
    assert_int_equal(tensor->stride[1], 2);
    for (int64_t r = 0; r < 2; r++) {
        for (int64_t c = 0; c < 3; c++) {
            const int64_t index[] = {r, c};
            assert_float_equal(attn_tensor_get(tensor, index), (float)(3 * r + c + 1), 0);
        }
    }
    attn_npy_close(file);
    free(bytes);
}

static void test_ranks_0_to_8_come_back(void **state)
{
    (void)state;
    float data[256];
    for (int i = 0; i < 256; i++) {
        data[i] = (float)i;
    }
    const int64_t shape[8] = {2, 2, 2, 2, 2, 2, 2, 2};
    for (int32_t ndim = 0; ndim <= 8; ndim++) {
        attn_tensor tensor = attn_tensor_wrap(data, ATTN_F32, ndim, shape);
        byte_buffer out = {0};
        attn_sink sink = buffer_sink(&out);
        assert_int_equal(attn_npy_write(&sink, &tensor, 0, NULL), ATTN_OK);
        assert_int_equal((out.size - (size_t)attn_tensor_count(&tensor) * 4) % 64, 0);
        attn_npy *file = parse(out.bytes, out.size, 0);
        assert_int_equal(attn_npy_tensor(file)->ndim, ndim);
        attn_comparison comparison;
        assert_int_equal(
            attn_tensor_compare(attn_npy_tensor(file), &tensor, 0, 0, &comparison, NULL), ATTN_OK);
        assert_true(comparison.equal_bits);
        attn_npy_close(file);
        buffer_free(&out);
    }
}

static void test_bytes_as_numpy_writes_them(void **state)
{
    (void)state;
    // numpy.save of numpy.array([[1, 2], [3, 4]], dtype='<i2') and of its transpose.
    static const char plain[] = "\x93NUMPY\x01\x00\x76\x00"
                                "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 2), }"
                                "                                                          \n"
                                "\x01\x00\x02\x00\x03\x00\x04\x00";
    static const char turned[] = "\x93NUMPY\x01\x00\x76\x00"
                                 "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 2), }"
                                 "                                                           \n"
                                 "\x01\x00\x02\x00\x03\x00\x04\x00";
    int16_t data[4] = {1, 2, 3, 4};
    const int64_t shape[] = {2, 2};
    attn_tensor tensor = attn_tensor_wrap(data, ATTN_I16, 2, shape);
    for (int transposed = 0; transposed < 2; transposed++) {
        byte_buffer out = {0};
        attn_sink sink = buffer_sink(&out);
        assert_int_equal(attn_npy_write(&sink, &tensor, 0, NULL), ATTN_OK);
        assert_int_equal(out.size, 136);
        assert_memory_equal(out.bytes, transposed ? turned : plain, 136);
        buffer_free(&out);
        assert_int_equal(attn_tensor_transpose(&tensor, 0, 1, &tensor, NULL), ATTN_OK);
    }
}

static void test_bfloat16_needs_the_flag(void **state)
{
    (void)state;
    uint16_t data[2] = {0x3F80, 0x4000};
    const int64_t two[] = {2};
    attn_tensor tensor = attn_tensor_wrap(data, ATTN_BF16, 1, two);
    byte_buffer out = {0};
    attn_sink sink = buffer_sink(&out);
    attn_error error = {0};
    assert_int_equal(attn_npy_write(&sink, &tensor, 0, &error), ATTN_ERR_DTYPE);
    assert_non_null(strstr(error.text, "--bfloat16"));
    assert_int_equal(attn_npy_write(&sink, &tensor, ATTN_NPY_BFLOAT16, &error), ATTN_OK);
    attn_npy *file = NULL;
    assert_int_equal(attn_npy_parse(context, out.bytes, out.size, 0, &file, &error),
                     ATTN_ERR_NOT_SUPPORTED);
    assert_non_null(strstr(error.text, "2-byte opaque elements ('V2')"));
    file = parse(out.bytes, out.size, ATTN_NPY_BFLOAT16);
    const int64_t one[] = {1};
    assert_float_equal(attn_tensor_get(attn_npy_tensor(file), one), 2, 0);
    attn_npy_close(file);
    assert_int_equal(attn_npy_parse(context, out.bytes, out.size, 2, &file, &error),
                     ATTN_ERR_INVALID_ARGUMENT);
    buffer_free(&out);
}

// ---- bad files ----------------------------------------------------------------------------------

#define REST ", 'fortran_order': False, 'shape': (2,)}"
#define SHAPE(text) "{'descr': '<f4', 'fortran_order': False, 'shape': " text "}"

static const struct {
    const char *dictionary;
    size_t data_size;
    attn_status status;
    const char *message;
} bad_files[] = {
    {"", 0, ATTN_ERR_FORMAT, "npy: the header is not a dictionary"},
    {"[1]", 0, ATTN_ERR_FORMAT, "npy: the header is not a dictionary"},
    {"{'descr': '<f4'", 0, ATTN_ERR_FORMAT, "npy: the header is not a dictionary"},
    {"{'descr' '<f4'}", 0, ATTN_ERR_FORMAT, "npy: the header is not a dictionary"},
    {"{'descr': '<f4' 'shape': ()}", 0, ATTN_ERR_FORMAT, "npy: the header is not a dictionary"},
    {"{'descr': '<f4'}", 0, ATTN_ERR_FORMAT,
     "npy: the header lacks 'descr', 'fortran_order' or 'shape'"},
    {"{'descr': '<f4', 'descr': '<f4'" REST, 8, ATTN_ERR_FORMAT,
     "npy: the header gives 'descr' twice"},
    {"{'descr': '<f4', 'more': 1" REST, 8, ATTN_ERR_FORMAT,
     "npy: unknown key 'more' in the header"},
    {"{'descr': '<f4'" REST "x", 8, ATTN_ERR_FORMAT,
     "npy: something follows the header's dictionary"},
    {"{'descr': 4" REST, 8, ATTN_ERR_FORMAT, "npy: 'descr' is not a string"},
    {"{'descr': ''" REST, 8, ATTN_ERR_FORMAT, "npy: 'descr' is empty"},
    {"{'descr': '<f4" REST, 8, ATTN_ERR_NOT_SUPPORTED, "npy: dtype '<f4, ' is not supported"},
    {"{'descr': '|O'" REST, 8, ATTN_ERR_NOT_SUPPORTED,
     "npy: object arrays hold pickled Python objects, which are not read"},
    {"{'descr': [('a', '<f4')]" REST, 8, ATTN_ERR_NOT_SUPPORTED,
     "npy: structured arrays (with fields) are not supported"},
    {"{'descr': '<c8'" REST, 16, ATTN_ERR_NOT_SUPPORTED, "npy: dtype '<c8' is not supported"},
    {"{'descr': '<U4'" REST, 16, ATTN_ERR_NOT_SUPPORTED, "npy: dtype '<U4' is not supported"},
    {"{'descr': '<u4'" REST, 8, ATTN_ERR_NOT_SUPPORTED, "npy: dtype '<u4' is not supported"},
    {"{'descr': '<f16'" REST, 32, ATTN_ERR_NOT_SUPPORTED, "npy: dtype '<f16' is not supported"},
    {"{'descr': '<V2'" REST, 4, ATTN_ERR_NOT_SUPPORTED, "npy: 2-byte opaque elements ('V2')"},
    {"{'descr': '<f4', 'fortran_order': 0, 'shape': ()}", 4, ATTN_ERR_FORMAT,
     "npy: 'fortran_order' is not True or False"},
    {SHAPE("2"), 8, ATTN_ERR_FORMAT, "npy: 'shape' is not a tuple"},
    {SHAPE("(2)"), 8, ATTN_ERR_FORMAT, "npy: 'shape' is a number in brackets, not a tuple"},
    {SHAPE("(2 3)"), 24, ATTN_ERR_FORMAT, "npy: 'shape' is not a tuple of whole numbers"},
    {SHAPE("(2.0,)"), 8, ATTN_ERR_FORMAT, "npy: 'shape' is not a tuple of whole numbers"},
    {SHAPE("(,)"), 4, ATTN_ERR_FORMAT, "npy: 'shape' is not a tuple of whole numbers"},
    {SHAPE("(-2,)"), 8, ATTN_ERR_FORMAT, "npy: 'shape' has a negative size"},
    {SHAPE("(1,1,1,1,1,1,1,1,1)"), 4, ATTN_ERR_NOT_SUPPORTED,
     "npy: more than 8 dimensions are not supported"},
    {SHAPE("(9223372036854775808,)"), 8, ATTN_ERR_FORMAT, "npy: 'shape' overflows"},
    {SHAPE("(4611686018427387904, 2)"), 8, ATTN_ERR_FORMAT, "npy: 'shape' overflows"},
    {SHAPE("(0, 4611686018427387904, 2)"), 0, ATTN_ERR_FORMAT, "npy: 'shape' overflows"},
    {SHAPE("(2, 3)"), 23, ATTN_ERR_FORMAT,
     "npy: shape [2, 3] of float32 takes 24 bytes, but only 23 follow the header"},
    {SHAPE("(2, 3)"), 25, ATTN_ERR_FORMAT,
     "npy: shape [2, 3] of float32 takes 24 bytes, but 25 follow the header"},
    {SHAPE("(1000000000000,)"), 4, ATTN_ERR_FORMAT, "but only 4 follow the header"},
};

static void test_bad_files(void **state)
{
    (void)state;
    static const unsigned char zeros[32] = {0};
    const long long before = memory.calls;
    for (size_t i = 0; i < sizeof(bad_files) / sizeof(*bad_files); i++) {
        size_t size;
        unsigned char *bytes =
            make_file(1, bad_files[i].dictionary, zeros, bad_files[i].data_size, &size);
        attn_npy *file = NULL;
        attn_error error = {0};
        attn_status status = attn_npy_parse(context, bytes, size, 0, &file, &error);
        if (status != bad_files[i].status || strstr(error.text, bad_files[i].message) == NULL) {
            fail_msg("%s\n  gave %s: %s\n  not %s", bad_files[i].dictionary,
                     attn_status_name(status), error.text, bad_files[i].message);
        }
        assert_null(file);
        free(bytes);
    }
    assert_int_equal(blocks_left(&memory), 0);
    assert_int_equal(memory.calls, before); // a size is never believed
}

static void test_bad_prefixes(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        attn_status status;
        const char *message;
    } cases[] = {
        {"", 0, ATTN_ERR_FORMAT, "npy: not a .npy file"},
        {"\x93NUMPY\x01", 7, ATTN_ERR_FORMAT, "npy: not a .npy file"},
        {"\x93NUMPX\x01\x00\x00\x00", 10, ATTN_ERR_FORMAT, "npy: not a .npy file"},
        {"\x93NUMPY\x04\x00\x00\x00", 10, ATTN_ERR_NOT_SUPPORTED, "npy: .npy version 4.0"},
        {"\x93NUMPY\x01\x01\x00\x00", 10, ATTN_ERR_NOT_SUPPORTED, "npy: .npy version 1.1"},
        {"\x93NUMPY\x01\x00\x05", 9, ATTN_ERR_FORMAT, "npy: the file ends in the header"},
        {"\x93NUMPY\x01\x00\x05\x00{", 11, ATTN_ERR_FORMAT, "npy: the file ends in the header"},
        {"\x93NUMPY\x02\x00\x05\x00\x00", 11, ATTN_ERR_FORMAT, "npy: the file ends in the header"},
        {"\x93NUMPY\x02\x00\x11\x27\x00\x00", 12, ATTN_ERR_FORMAT,
         "npy: header of 10001 bytes; more than 10000 are refused"},
        {"\x93NUMPY\x02\x00\xff\xff\xff\xff", 12, ATTN_ERR_FORMAT,
         "npy: header of 4294967295 bytes; more than 10000 are refused"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        attn_npy *file = NULL;
        attn_error error = {0};
        attn_status status =
            attn_npy_parse(context, cases[i].bytes, cases[i].size, 0, &file, &error);
        if (status != cases[i].status || strstr(error.text, cases[i].message) == NULL) {
            fail_msg("%zu gave %s: %s\n  not %s", i, attn_status_name(status), error.text,
                     cases[i].message);
        }
    }
}

static void test_saves_and_opens(void **state)
{
    (void)state;
    char *folder = make_folder();
    double data[3] = {1, 2, 3};
    const int64_t three[] = {3};
    attn_tensor tensor = attn_tensor_wrap(data, ATTN_F64, 1, three);
    const char *path = in_folder(folder, "x.npy");
    for (int64_t nth = 1;; nth++) {
        fail_nth(&memory, nth);
        attn_npy *file = NULL;
        attn_status status = attn_npy_save(context, path, &tensor, 0, NULL);
        if (status == ATTN_OK) {
            status = attn_npy_open(context, path, 0, &file, NULL);
        }
        if (status == ATTN_OK) {
            assert_memory_equal(attn_npy_tensor(file)->data, data, sizeof(data));
        }
        attn_npy_close(file);
        assert_int_equal(blocks_left(&memory), 0);
        if (status == ATTN_OK) {
            break;
        }
        assert_int_equal(status, ATTN_ERR_OUT_OF_MEMORY);
    }
    fail_nth(&memory, 0);
    remove_folder(folder);
}

int main(void)
{
    context = io_context(&memory);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dtypes_in_both_byte_orders),
        cmocka_unit_test(test_headers_of_other_writers),
        cmocka_unit_test(test_fortran_order_is_strides),
        cmocka_unit_test(test_ranks_0_to_8_come_back),
        cmocka_unit_test(test_bytes_as_numpy_writes_them),
        cmocka_unit_test(test_bfloat16_needs_the_flag),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_bad_prefixes),
        cmocka_unit_test(test_saves_and_opens),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    test_context_end(context, &memory);
    return failed;
}
