// Writing: the order, the padding, any strides, refusals, and that what was written reads back.
#include <stdlib.h>
#include <string.h>

#include "attn/safetensors.h"
#include "io_support.h"
#include "unit.h"

static test_allocator memory;
static attn_context *context;

static attn_named_tensor named(const char *name, void *data, attn_dtype dtype, int32_t ndim,
                               const int64_t *shape)
{
    return (attn_named_tensor){name, attn_tensor_wrap(data, dtype, ndim, shape)};
}

static attn_status write_all(byte_buffer *out, const attn_named_tensor *tensors, int64_t count,
                             const attn_text_pair *metadata, int64_t metadata_count,
                             attn_error *error)
{
    attn_sink sink = buffer_sink(out);
    return attn_safetensors_write(context, &sink, tensors, count, metadata, metadata_count, error);
}

static void test_bytes_of_a_file(void **state)
{
    (void)state;
    float f[2] = {1, -2};
    double d = 0.5;
    uint8_t u[3] = {7, 8, 9};
    int16_t s = 258;
    const int64_t two[] = {2}, three[] = {3, 1};
    attn_named_tensor tensors[] = {
        named("u", u, ATTN_U8, 2, three),  named("z", f, ATTN_F32, 1, two),
        named("s", &s, ATTN_I16, 0, NULL), named("d", &d, ATTN_F64, 0, NULL),
        named("a", f, ATTN_F32, 1, two),
    };
    attn_text_pair metadata[] = {{"format", "pt"}, {"a\"b", "\xE4\xB8\xAD"}};
    byte_buffer out = {0};
    assert_int_equal(write_all(&out, tensors, 5, metadata, 2, NULL), ATTN_OK);
    static const char header[] =
        "{\"__metadata__\":{\"format\":\"pt\",\"a\\\"b\":\"\xE4\xB8\xAD\"},"
        "\"d\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,8]},"
        "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]},"
        "\"z\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[16,24]},"
        "\"s\":{\"dtype\":\"I16\",\"shape\":[],\"data_offsets\":[24,26]},"
        "\"u\":{\"dtype\":\"U8\",\"shape\":[3,1],\"data_offsets\":[26,29]}}";
    size_t length = strlen(header);
    size_t padded = (length + 7) / 8 * 8;
    assert_int_equal(out.size, 8 + padded + 29);
    assert_int_equal(out.bytes[0] | out.bytes[1] << 8, padded);
    assert_memory_equal(out.bytes + 8, header, length);
    for (size_t i = length; i < padded; i++) {
        assert_int_equal(out.bytes[8 + i], ' ');
    }
    const unsigned char *data = out.bytes + 8 + padded;
    assert_memory_equal(data, &d, 8);
    assert_memory_equal(data + 8, f, 8);
    assert_memory_equal(data + 16, f, 8);
    assert_memory_equal(data + 24, "\x02\x01\x07\x08\x09", 5);
    buffer_free(&out);
}

// What comes in another order, or as a view with other strides, gives the same bytes.
static void test_bytes_do_not_depend_on_order_or_strides(void **state)
{
    (void)state;
    enum { ROWS = 37, COLUMNS = 1001 }; // more than one chunk of the writer
    float *plain = malloc(sizeof(float) * ROWS * COLUMNS);
    float *turned = malloc(sizeof(float) * ROWS * COLUMNS);
    assert_true(plain != NULL && turned != NULL);
    for (int r = 0; r < ROWS; r++) {
        for (int c = 0; c < COLUMNS; c++) {
            plain[r * COLUMNS + c] = turned[c * ROWS + r] = (float)(r * COLUMNS + c);
        }
    }
    const int64_t shape[] = {ROWS, COLUMNS}, reverse[] = {COLUMNS, ROWS};
    attn_named_tensor straight[] = {named("a", plain, ATTN_F32, 2, shape),
                                    named("b", plain, ATTN_F32, 2, shape)};
    attn_named_tensor crooked[2] = {named("b", turned, ATTN_F32, 2, reverse)};
    assert_int_equal(attn_tensor_transpose(&crooked[0].tensor, 0, 1, &crooked[0].tensor, NULL),
                     ATTN_OK);
    crooked[1] = (attn_named_tensor){"a", crooked[0].tensor};
    byte_buffer first = {0}, second = {0};
    assert_int_equal(write_all(&first, straight, 2, NULL, 0, NULL), ATTN_OK);
    assert_int_equal(write_all(&second, crooked, 2, NULL, 0, NULL), ATTN_OK);
    assert_int_equal(first.size, second.size);
    assert_memory_equal(first.bytes, second.bytes, first.size);
    buffer_free(&first);
    buffer_free(&second);
    free(plain);
    free(turned);
}

static void test_golden_round_trip(void **state)
{
    (void)state;
    attn_safetensors *file = NULL;
    attn_error error = {0};
    assert_int_equal(attn_safetensors_open(context,
                                           ATTN_TEST_DATA "/golden/sdpa_kitchen_sink.safetensors",
                                           &file, &error),
                     ATTN_OK);
    int64_t count = attn_safetensors_count(file);
    byte_buffer out = {0};
    assert_int_equal(write_all(&out, attn_safetensors_entry(file, 0), count, NULL, 0, &error),
                     ATTN_OK);
    attn_safetensors *again = NULL;
    assert_int_equal(attn_safetensors_parse(context, out.bytes, out.size, &again, &error), ATTN_OK);
    assert_int_equal(attn_safetensors_count(again), count);
    for (int64_t i = 0; i < count; i++) {
        const attn_named_tensor *before = attn_safetensors_entry(file, i);
        const attn_named_tensor *after = attn_safetensors_find(again, before->name);
        assert_non_null(after);
        assert_int_equal(after->tensor.dtype, before->tensor.dtype);
        assert_true(attn_tensor_same_shape(&after->tensor, &before->tensor));
        size_t size = (size_t)attn_tensor_count(&before->tensor) *
                      attn_dtype_size(before->tensor.dtype);
        assert_memory_equal(after->tensor.data, before->tensor.data, size);
    }
    attn_safetensors_close(again);
    attn_safetensors_close(file);
    buffer_free(&out);
}

static void test_refusals(void **state)
{
    (void)state;
    float f[4] = {0};
    const int64_t four[] = {4}, negative[] = {-1};
    attn_named_tensor good = named("good", f, ATTN_F32, 1, four);
    attn_named_tensor bad = good;
    const struct {
        attn_named_tensor tensors[2];
        attn_text_pair metadata[2];
        int64_t metadata_count;
        attn_status status;
        const char *message;
    } cases[] = {
        {{good, {NULL, bad.tensor}}, {{0}}, 0, ATTN_ERR_INVALID_ARGUMENT, "tensor 1 has no name"},
        {{good, good}, {{0}}, 0, ATTN_ERR_INVALID_ARGUMENT, "tensor \"good\" is given twice"},
        {{good, {"__metadata__", bad.tensor}},
         {{0}},
         0,
         ATTN_ERR_INVALID_ARGUMENT,
         "no tensor may be named __metadata__"},
        {{good, {"\xff", bad.tensor}},
         {{0}},
         0,
         ATTN_ERR_INVALID_ARGUMENT,
         "the name \"?\" is not UTF-8"},
        {{good, named("odd", f, ATTN_F32, 1, negative)},
         {{0}},
         0,
         ATTN_ERR_INVALID_ARGUMENT,
         "odd"},
        {{good, named("b", f, ATTN_F32, 1, four)},
         {{"k", "v"}, {"k", "w"}},
         2,
         ATTN_ERR_INVALID_ARGUMENT,
         "metadata \"k\" is given twice"},
        {{good, named("b", f, ATTN_F32, 1, four)},
         {{"k", "\xff"}},
         1,
         ATTN_ERR_INVALID_ARGUMENT,
         "metadata \"k\" is not UTF-8"},
        {{good, named("b", f, ATTN_F32, 1, four)},
         {{"k", NULL}},
         1,
         ATTN_ERR_INVALID_ARGUMENT,
         "metadata 0 has no key or no value"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        byte_buffer out = {0};
        attn_error error = {0};
        attn_status status = write_all(&out, cases[i].tensors, 2, cases[i].metadata,
                                       cases[i].metadata_count, &error);
        if (status != cases[i].status || strstr(error.text, cases[i].message) == NULL) {
            fail_msg("%zu gave %s: %s\n  not %s", i, attn_status_name(status), error.text,
                     cases[i].message);
        }
        assert_int_equal(out.size, 0);
    }
    assert_int_equal(blocks_left(&memory), 0);
}

static void test_a_full_sink_is_an_error(void **state)
{
    (void)state;
    float f[4] = {1, 2, 3, 4};
    const int64_t four[] = {4};
    attn_named_tensor tensor = named("t", f, ATTN_F32, 1, four);
    byte_buffer out = {0};
    assert_int_equal(write_all(&out, &tensor, 1, NULL, 0, NULL), ATTN_OK);
    for (size_t limit = 1; limit < out.size; limit++) {
        byte_buffer small = {.limit = limit};
        attn_error error = {0};
        assert_int_equal(write_all(&small, &tensor, 1, NULL, 0, &error), ATTN_ERR_IO);
        assert_string_equal(error.text, "No space left on device");
        buffer_free(&small);
    }
    buffer_free(&out);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    char *folder = make_folder();
    float f = 1;
    attn_named_tensor tensor = named("t", &f, ATTN_F32, 0, NULL);
    for (int64_t nth = 1;; nth++) {
        fail_nth(&memory, nth);
        attn_status status =
            attn_safetensors_save(context, in_folder(folder, "f"), &tensor, 1, NULL, 0, NULL);
        assert_int_equal(blocks_left(&memory), 0);
        if (status == ATTN_OK) {
            break;
        }
        assert_int_equal(status, ATTN_ERR_OUT_OF_MEMORY);
        assert_int_equal(count_files(folder), 0);
    }
    fail_nth(&memory, 0);
    assert_int_equal(count_files(folder), 1);
    remove_folder(folder);
}

int main(void)
{
    context = io_context(&memory);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_of_a_file),
        cmocka_unit_test(test_bytes_do_not_depend_on_order_or_strides),
        cmocka_unit_test(test_golden_round_trip),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_a_full_sink_is_an_error),
        cmocka_unit_test(test_out_of_memory),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    test_context_end(context, &memory);
    return failed;
}
