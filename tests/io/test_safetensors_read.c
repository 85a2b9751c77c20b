// The strict reader: every golden file opens, and every kind of bad file is refused with its reason.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn/safetensors.h"
#include "io_support.h"
#include "unit.h"

static test_allocator memory;
static attn_context *context;

// A file in memory: the length, the header, `data_size` bytes counting up from 1.
static unsigned char *make_file(const char *header, size_t data_size, size_t *size)
{
    size_t length = strlen(header);
    *size = 8 + length + data_size;
    unsigned char *bytes = malloc(*size);
    assert_non_null(bytes);
    for (int i = 0; i < 8; i++) {
        bytes[i] = (unsigned char)(length >> 8 * i);
    }
    memcpy(bytes + 8, header, length);
    for (size_t i = 0; i < data_size; i++) {
        bytes[8 + length + i] = (unsigned char)(i + 1);
    }
    return bytes;
}

static void test_golden_files_open(void **state)
{
    (void)state;
    DIR *folder = opendir(ATTN_TEST_DATA "/golden");
    assert_non_null(folder);
    int files = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (strstr(entry->d_name, ".safetensors") == NULL) {
            continue;
        }
        char path[4096];
        snprintf(path, sizeof(path), "%s/golden/%s", ATTN_TEST_DATA, entry->d_name);
        attn_safetensors *file = NULL;
        attn_error error;
        if (attn_safetensors_open(context, path, &file, &error) != ATTN_OK) {
            fail_msg("%s", error.text);
        }
        assert_true(attn_safetensors_count(file) > 0);
        attn_safetensors_close(file);
        files++;
    }
    closedir(folder);
    assert_true(files >= 60);
    assert_int_equal(blocks_left(&memory), 0);
}

static void test_golden_file_holds(void **state)
{
    (void)state;
    attn_safetensors *file = NULL;
    attn_error error;
    if (attn_safetensors_open(context, ATTN_TEST_DATA "/golden/simple_6x3_seed.safetensors", &file,
                              &error) != ATTN_OK) {
        fail_msg("%s", error.text);
    }
    const attn_named_tensor *x = attn_safetensors_find(file, "x");
    assert_non_null(x);
    assert_int_equal(x->tensor.dtype, ATTN_F32);
    assert_int_equal(x->tensor.ndim, 2);
    assert_int_equal(x->tensor.shape[0], 6);
    assert_int_equal(x->tensor.shape[1], 3);
    assert_true((x->tensor.flags & ATTN_TENSOR_READ_ONLY) != 0);
    const int64_t first[] = {0, 0};
    assert_float_equal(attn_tensor_get(&x->tensor, first), 0.43, 1e-7);
    assert_string_equal(attn_safetensors_metadata(file, "variant"), "simple");
    assert_null(attn_safetensors_metadata(file, "nothing"));
    assert_null(attn_safetensors_find(file, "nothing"));
    assert_null(attn_safetensors_entry(file, -1));
    assert_null(attn_safetensors_entry(file, attn_safetensors_count(file)));
    for (int64_t i = 0; i < attn_safetensors_metadata_count(file); i++) {
        assert_non_null(attn_safetensors_metadata(file, attn_safetensors_metadata_key(file, i)));
    }
    assert_null(attn_safetensors_metadata_key(file, attn_safetensors_metadata_count(file)));
    attn_safetensors_close(file);
}

static void test_every_dtype(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        attn_dtype dtype;
        int size;
    } dtypes[] = {{"F64", ATTN_F64, 8},   {"F32", ATTN_F32, 4}, {"F16", ATTN_F16, 2},
                  {"BF16", ATTN_BF16, 2}, {"I64", ATTN_I64, 8}, {"I32", ATTN_I32, 4},
                  {"I16", ATTN_I16, 2},   {"I8", ATTN_I8, 1},   {"U8", ATTN_U8, 1},
                  {"BOOL", ATTN_BOOL, 1}};
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(*dtypes); i++) {
        char header[256];
        snprintf(header, sizeof(header),
                 "{\"t\":{\"dtype\":\"%s\",\"shape\":[3],\"data_offsets\":[0,%d]}}", dtypes[i].name,
                 3 * dtypes[i].size);
        size_t size;
        unsigned char *bytes = make_file(header, 3 * (size_t)dtypes[i].size, &size);
        attn_safetensors *file = NULL;
        assert_int_equal(attn_safetensors_parse(context, bytes, size, &file, NULL), ATTN_OK);
        const attn_tensor *tensor = &attn_safetensors_entry(file, 0)->tensor;
        assert_int_equal(tensor->dtype, dtypes[i].dtype);
        assert_memory_equal(tensor->data, bytes + 8 + strlen(header), 3 * (size_t)dtypes[i].size);
        attn_safetensors_close(file);
        free(bytes);
    }
}

// Data at every offset from an aligned address: always readable at its own alignment.
static void test_unaligned_data_is_copied(void **state)
{
    (void)state;
    for (int spaces = 0; spaces < 8; spaces++) {
        char header[256];
        snprintf(header, sizeof(header),
                 "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                 "\"b\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[1,17]},"
                 "\"c\":{\"dtype\":\"F16\",\"shape\":[],\"data_offsets\":[17,19]}}%*s",
                 spaces, "");
        size_t size;
        unsigned char *bytes = make_file(header, 19, &size);
        attn_safetensors *file = NULL;
        assert_int_equal(attn_safetensors_parse(context, bytes, size, &file, NULL), ATTN_OK);
        const unsigned char *data = bytes + 8 + strlen(header);
        const attn_tensor *b = &attn_safetensors_find(file, "b")->tensor;
        const attn_tensor *c = &attn_safetensors_find(file, "c")->tensor;
        assert_int_equal((uintptr_t)b->data % 8, 0);
        assert_int_equal((uintptr_t)c->data % 2, 0);
        assert_memory_equal(b->data, data + 1, 16);
        assert_memory_equal(c->data, data + 17, 2);
        attn_safetensors_close(file);
        free(bytes);
    }
    assert_int_equal(blocks_left(&memory), 0);
}

static void test_order_is_that_of_the_data(void **state)
{
    (void)state;
    const char *header = "{\"late\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]},"
                         "\"empty\":{\"dtype\":\"F64\",\"shape\":[0,7],\"data_offsets\":[1,1]},"
                         "\"early\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]},"
                         "\"__metadata__\":{\"z\":\"1\",\"a\":\"2\"}}   ";
    size_t size;
    unsigned char *bytes = make_file(header, 3, &size);
    attn_safetensors *file = NULL;
    assert_int_equal(attn_safetensors_parse(context, bytes, size, &file, NULL), ATTN_OK);
    assert_int_equal(attn_safetensors_count(file), 3);
    assert_string_equal(attn_safetensors_entry(file, 0)->name, "early");
    assert_string_equal(attn_safetensors_entry(file, 1)->name, "empty");
    assert_string_equal(attn_safetensors_entry(file, 2)->name, "late");
    assert_int_equal(attn_safetensors_entry(file, 0)->tensor.ndim, 0);
    assert_int_equal(attn_safetensors_metadata_count(file), 2);
    assert_string_equal(attn_safetensors_metadata_key(file, 0), "z");
    assert_string_equal(attn_safetensors_metadata_key(file, 1), "a");
    attn_safetensors_close(file);
    free(bytes);
}

static void test_empty_header(void **state)
{
    (void)state;
    size_t size;
    unsigned char *bytes = make_file("{}", 0, &size);
    attn_safetensors *file = NULL;
    assert_int_equal(attn_safetensors_parse(context, bytes, size, &file, NULL), ATTN_OK);
    assert_int_equal(attn_safetensors_count(file), 0);
    assert_int_equal(attn_safetensors_metadata_count(file), 0);
    attn_safetensors_close(file);
    free(bytes);
}

// ---- bad files ----------------------------------------------------------------------------------

#define T(rest) "{\"t\":{" rest "}}"
#define F32_AT(shape, begin, end) \
    "\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end "]"

static const struct {
    const char *header;
    size_t data_size;
    attn_status status;
    const char *message;
} bad_files[] = {
    {"", 0, ATTN_ERR_FORMAT, "safetensors: the header does not start with '{'"},
    {" {}", 0, ATTN_ERR_FORMAT, "safetensors: the header does not start with '{'"},
    {"[]", 0, ATTN_ERR_FORMAT, "safetensors: the header does not start with '{'"},
    {"{", 0, ATTN_ERR_FORMAT,
     "safetensors: header, byte 1: string or '}' expected near end of file"},
    {"{} x", 0, ATTN_ERR_FORMAT, "safetensors: header, byte 4: end of file expected near 'x'"},
    {"{\"a\":1,\"a\":1}", 0, ATTN_ERR_FORMAT,
     "safetensors: header, byte 10: duplicate object key near '\"a\"'"},
    {"{\"\xff\":1}", 0, ATTN_ERR_FORMAT, "unable to decode byte 0xff"},
    {"{\"a\\u0000b\":1}", 0, ATTN_ERR_FORMAT, "NUL byte in object key not supported"},
    {"{\"__metadata__\":[]}", 0, ATTN_ERR_FORMAT, "safetensors: __metadata__ is not an object"},
    {"{\"__metadata__\":{\"k\":1}}", 0, ATTN_ERR_FORMAT,
     "safetensors: __metadata__ \"k\": the value is not a string"},
    {"{\"t\":1}", 0, ATTN_ERR_FORMAT, "safetensors: tensor \"t\" is not an object"},
    {T("\"shape\":[],\"data_offsets\":[0,4]"), 4, ATTN_ERR_FORMAT,
     "safetensors: tensor \"t\": no dtype string"},
    {T("\"dtype\":\"F31\",\"shape\":[],\"data_offsets\":[0,4]"), 4, ATTN_ERR_FORMAT,
     "safetensors: tensor \"t\": unknown dtype \"F31\""},
    {T("\"dtype\":\"U32\",\"shape\":[],\"data_offsets\":[0,4]"), 4, ATTN_ERR_NOT_SUPPORTED,
     "safetensors: tensor \"t\": dtype U32 is not supported"},
    {T("\"dtype\":\"F32\",\"data_offsets\":[0,4]"), 4, ATTN_ERR_FORMAT,
     "safetensors: tensor \"t\": no shape array"},
    {T(F32_AT("[1,1,1,1,1,1,1,1,1]", 0, 4)), 4, ATTN_ERR_NOT_SUPPORTED,
     "safetensors: tensor \"t\": 9 dimensions; at most 8 are supported"},
    {T(F32_AT("[1,-1]", 0, 4)), 4, ATTN_ERR_FORMAT,
     "safetensors: tensor \"t\": shape[1] is not a whole number >= 0"},
    {T(F32_AT("[1.0]", 0, 4)), 4, ATTN_ERR_FORMAT,
     "safetensors: tensor \"t\": shape[0] is not a whole number >= 0"},
    {T(F32_AT("[9223372036854775808]", 0, 4)), 4, ATTN_ERR_FORMAT, "too big integer"},
    {T(F32_AT("[4611686018427387904,4]", 0, 4)), 4, ATTN_ERR_FORMAT,
     "safetensors: tensor \"t\": shape [4611686018427387904, 4] overflows"},
    {T(F32_AT("[0,4611686018427387904,4]", 0, 0)), 0, ATTN_ERR_FORMAT,
     "safetensors: tensor \"t\": shape [0, 4611686018427387904, 4] overflows"},
    {T("\"dtype\":\"F32\",\"shape\":[1]"), 4, ATTN_ERR_FORMAT,
     "safetensors: tensor \"t\": data_offsets is not an array of two"},
    {T("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]"), 4, ATTN_ERR_FORMAT,
     "safetensors: tensor \"t\": data_offsets is not an array of two"},
    {T(F32_AT("[1]", 4, 0)), 4, ATTN_ERR_FORMAT,
     "safetensors: tensor \"t\": data_offsets are not 0 <= begin <= end"},
    {T(F32_AT("[1]", -4, 0)), 4, ATTN_ERR_FORMAT,
     "safetensors: tensor \"t\": data_offsets are not 0 <= begin <= end"},
    {T(F32_AT("[1]", 0, "4")), 4, ATTN_ERR_FORMAT,
     "safetensors: tensor \"t\": data_offsets are not 0 <= begin <= end"},
    {T(F32_AT("[2]", 0, 8)), 4, ATTN_ERR_FORMAT,
     "safetensors: tensor \"t\": its data ends at byte 8, the file's at 4 (cut short?)"},
    {T(F32_AT("[2]", 0, 4)), 4, ATTN_ERR_FORMAT,
     "safetensors: tensor \"t\": shape [2] of F32 takes 8 bytes, data_offsets give 4"},
    {T(F32_AT("[1]", 0, 4) ",\"more\":1"), 4, ATTN_ERR_FORMAT,
     "safetensors: tensor \"t\": only dtype, shape and data_offsets may be given"},
    {T(F32_AT("[1]", 4, 8)), 8, ATTN_ERR_FORMAT,
     "safetensors: bytes 0 to 4 of the data belong to no tensor"},
    {"{\"t\":{" F32_AT("[1]", 0, 4) "},\"u\":{" F32_AT("[1]", 8, 12) "}}", 12, ATTN_ERR_FORMAT,
     "safetensors: bytes 4 to 8 of the data belong to no tensor"},
    {"{\"t\":{" F32_AT("[2]", 0, 8) "},\"u\":{" F32_AT("[1]", 4, 8) "}}", 8, ATTN_ERR_FORMAT,
     "safetensors: tensors \"t\" and \"u\" overlap"},
    {"{\"t\":{" F32_AT("[1]", 0, 4) "},\"u\":{" F32_AT("[1]", 0, 4) "}}", 4, ATTN_ERR_FORMAT,
     "safetensors: tensors \"t\" and \"u\" overlap"},
    {T(F32_AT("[1]", 0, 4)), 5, ATTN_ERR_FORMAT, "safetensors: 1 bytes after the last tensor"},
    {"{}", 3, ATTN_ERR_FORMAT, "safetensors: 3 bytes after the last tensor"},
};

static void test_bad_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bad_files) / sizeof(*bad_files); i++) {
        size_t size;
        unsigned char *bytes = make_file(bad_files[i].header, bad_files[i].data_size, &size);
        attn_safetensors *file = (attn_safetensors *)&size;
        attn_error error = {0};
        attn_status status = attn_safetensors_parse(context, bytes, size, &file, &error);
        if (status != bad_files[i].status || error.status != status ||
            strstr(error.text, bad_files[i].message) == NULL) {
            fail_msg("%s\n  gave %s: %s\n  not %s", bad_files[i].header, attn_status_name(status),
                     error.text, bad_files[i].message);
        }
        assert_ptr_equal(file, &size);
        free(bytes);
    }
    assert_int_equal(blocks_left(&memory), 0);
}

static void test_length_is_checked_before_anything_is_allocated(void **state)
{
    (void)state;
    static const struct {
        unsigned char bytes[16];
        size_t size;
        const char *message;
    } cases[] = {
        {{0}, 0, "0 bytes are too few for a .safetensors file"},
        {{2, 0, 0, 0, 0, 0, 0}, 7, "7 bytes are too few for a .safetensors file"},
        {{3, 0, 0, 0, 0, 0, 0, 0, '{', '}'}, 10, "header of 3 bytes, but only 2 follow"},
        {{0, 0xE1, 0xF5, 5, 0, 0, 0, 0, '{', '}'}, 10, "header of 100000000 bytes, but only 2"},
        {{1, 0xE1, 0xF5, 5, 0, 0, 0, 0, '{', '}'}, 10, "the format allows 100000000"},
        {{255, 255, 255, 255, 255, 255, 255, 255, '{', '}'}, 10, "the format allows 100000000"},
    };
    const long long before = memory.calls;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        attn_safetensors *file = NULL;
        attn_error error = {0};
        assert_int_equal(
            attn_safetensors_parse(context, cases[i].bytes, cases[i].size, &file, &error),
            ATTN_ERR_FORMAT);
        if (strstr(error.text, cases[i].message) == NULL) {
            fail_msg("%s\n  not %s", error.text, cases[i].message);
        }
    }
    assert_int_equal(memory.calls, before);
}

static void test_hostile_names_are_made_fit_for_a_message(void **state)
{
    (void)state;
    char header[1024] = "{\"\\u001b[31m";
    for (int i = 0; i < 100; i++) {
        strcat(header, "\xE4\xB8\xAD");
    }
    strcat(header, "\":1}");
    size_t size;
    unsigned char *bytes = make_file(header, 0, &size);
    attn_safetensors *file = NULL;
    attn_error error = {0};
    assert_int_equal(attn_safetensors_parse(context, bytes, size, &file, &error), ATTN_ERR_FORMAT);
    assert_null(strchr(error.text, '\x1b'));
    assert_non_null(strstr(error.text, "\"?[31m\xE4\xB8\xAD"));
    assert_non_null(strstr(error.text, "\xE4\xB8\xAD...\" is not an object"));
    free(bytes);
}

static void test_opening_says_why_not(void **state)
{
    (void)state;
    char *folder = make_folder();
    attn_safetensors *file = NULL;
    attn_error error;
    assert_int_equal(attn_safetensors_open(context, in_folder(folder, "none"), &file, &error),
                     ATTN_ERR_IO);
    assert_non_null(strstr(error.text, "none: No such file or directory"));
    assert_int_equal(attn_safetensors_open(context, folder, &file, &error), ATTN_ERR_IO);
    assert_non_null(strstr(error.text, "Is a directory"));
    assert_int_equal(attn_safetensors_open(context, "/dev/null", &file, &error), ATTN_ERR_IO);
    assert_non_null(strstr(error.text, "/dev/null: not a regular file"));
    write_file(in_folder(folder, "empty"), "", 0);
    assert_int_equal(attn_safetensors_open(context, in_folder(folder, "empty"), &file, &error),
                     ATTN_ERR_FORMAT);
    assert_non_null(strstr(error.text, "empty: 0 bytes are too few"));
    assert_int_equal(attn_safetensors_open(context, NULL, &file, &error),
                     ATTN_ERR_INVALID_ARGUMENT);
    assert_null(file);
    remove_folder(folder);
}

// Whichever allocation fails, the call says so and gives everything back.
static void test_out_of_memory(void **state)
{
    (void)state;
    const char *header = "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                         "\"b\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[1,17]},"
                         "\"__metadata__\":{\"k\":\"v\"}}";
    size_t size;
    unsigned char *bytes = make_file(header, 17, &size);
    int failures = 0;
    for (int64_t nth = 1;; nth++) {
        fail_nth(&memory, nth);
        attn_safetensors *file = NULL;
        attn_status status = attn_safetensors_parse(context, bytes, size, &file, NULL);
        attn_safetensors_close(file);
        assert_int_equal(blocks_left(&memory), 0);
        if (status == ATTN_OK) {
            break;
        }
        assert_int_equal(status, ATTN_ERR_OUT_OF_MEMORY);
        failures++;
    }
    fail_nth(&memory, 0);
    assert_true(failures >= 4);
    free(bytes);
}

int main(void)
{
    context = io_context(&memory);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_files_open),
        cmocka_unit_test(test_golden_file_holds),
        cmocka_unit_test(test_every_dtype),
        cmocka_unit_test(test_unaligned_data_is_copied),
        cmocka_unit_test(test_order_is_that_of_the_data),
        cmocka_unit_test(test_empty_header),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_length_is_checked_before_anything_is_allocated),
        cmocka_unit_test(test_hostile_names_are_made_fit_for_a_message),
        cmocka_unit_test(test_opening_says_why_not),
        cmocka_unit_test(test_out_of_memory),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    test_context_end(context, &memory);
    return failed;
}
