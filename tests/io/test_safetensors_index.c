// Sharded checkpoints: one list of tensors over files that all lie in the index's folder.
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attn/safetensors.h"
#include "io/safetensors_index.h"
#include "io_support.h"
#include "unit.h"

static test_allocator memory;
static attn_context *context;

static void save_shard(const char *path, const char *first, const char *second)
{
    float values[2] = {1, 2};
    const int64_t two[] = {2};
    attn_named_tensor tensors[] = {{first, attn_tensor_wrap(values, ATTN_F32, 1, two)},
                                   {second, attn_tensor_wrap(values, ATTN_F32, 1, two)}};
    assert_int_equal(
        attn_safetensors_save(context, path, tensors, second == NULL ? 1 : 2, NULL, 0, NULL),
        ATTN_OK);
}

static void save_index(const char *folder, const char *weight_map)
{
    char text[1024];
    int length = snprintf(text, sizeof(text),
                          "{\"metadata\":{\"total_size\":24},\"weight_map\":%s}", weight_map);
    write_file(in_folder(folder, "index.json"), text, (size_t)length);
}

static void test_tensors_of_all_files(void **state)
{
    (void)state;
    char *folder = make_folder();
    save_shard(in_folder(folder, "m-2.safetensors"), "c", NULL);
    save_shard(in_folder(folder, "m-1.safetensors"), "b", "a");
    save_index(folder, "{\"c\":\"m-2.safetensors\",\"a\":\"m-1.safetensors\","
                       "\"b\":\"m-1.safetensors\"}");
    attn_safetensors *file = NULL;
    attn_error error = {0};
    if (attn_safetensors_open_index(context, in_folder(folder, "index.json"), &file, &error) !=
        ATTN_OK) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(attn_safetensors_count(file), 3);
    assert_string_equal(attn_safetensors_entry(file, 0)->name, "a");
    assert_string_equal(attn_safetensors_entry(file, 1)->name, "b");
    assert_string_equal(attn_safetensors_entry(file, 2)->name, "c");
    const int64_t one[] = {1};
    assert_float_equal(attn_tensor_get(&attn_safetensors_find(file, "c")->tensor, one), 2, 0);
    assert_int_equal(attn_safetensors_metadata_count(file), 0);
    attn_safetensors_close(file);
    assert_int_equal(blocks_left(&memory), 0);
    remove_folder(folder);
}

static void test_an_empty_index(void **state)
{
    (void)state;
    char *folder = make_folder();
    save_index(folder, "{}");
    attn_safetensors *file = NULL;
    assert_int_equal(
        attn_safetensors_open_index(context, in_folder(folder, "index.json"), &file, NULL),
        ATTN_OK);
    assert_int_equal(attn_safetensors_count(file), 0);
    attn_safetensors_close(file);
    remove_folder(folder);
}

static void test_bad_indexes(void **state)
{
    (void)state;
    static const struct {
        const char *weight_map;
        attn_status status;
        const char *message;
    } cases[] = {
        {"1", ATTN_ERR_FORMAT, "no \"weight_map\" object"},
        {"{\"a\":1}", ATTN_ERR_FORMAT, "tensor \"a\": no file name"},
        {"{\"a\":\"../m\"}", ATTN_ERR_FORMAT, "the file \"../m\" is not in the index's folder"},
        {"{\"a\":\"/etc/passwd\"}", ATTN_ERR_FORMAT,
         "the file \"/etc/passwd\" is not in the index's folder"},
        {"{\"a\":\"sub/m\"}", ATTN_ERR_FORMAT, "the file \"sub/m\" is not in the index's folder"},
        {"{\"a\":\"..\"}", ATTN_ERR_FORMAT, "is not in the index's folder"},
        {"{\"a\":\"\"}", ATTN_ERR_FORMAT, "is not in the index's folder"},
        {"{\"a\":\"m\",\"a\":\"m\"}", ATTN_ERR_FORMAT, "line 1: duplicate object key"},
        {"{\"a\":\"absent\"}", ATTN_ERR_IO, "absent: No such file or directory"},
        {"{\"a\":\"m\"}", ATTN_ERR_FORMAT,
         "m holds the tensor \"b\", which the index does not put there"},
        {"{\"a\":\"m\",\"b\":\"n\"}", ATTN_ERR_FORMAT,
         "m holds the tensor \"b\", which the index does not put there"},
        {"{\"a\":\"m\",\"b\":\"m\",\"x\":\"m\"}", ATTN_ERR_FORMAT,
         "the file \"m\" has no tensor \"x\""},
    };
    char *folder = make_folder();
    save_shard(in_folder(folder, "m"), "a", "b");
    save_shard(in_folder(folder, "n"), "b", NULL);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        save_index(folder, cases[i].weight_map);
        attn_safetensors *file = NULL;
        attn_error error = {0};
        attn_status status =
            attn_safetensors_open_index(context, in_folder(folder, "index.json"), &file, &error);
        if (status != cases[i].status || strstr(error.text, cases[i].message) == NULL) {
            fail_msg("%s\n  gave %s: %s\n  not %s", cases[i].weight_map, attn_status_name(status),
                     error.text, cases[i].message);
        }
        assert_null(file);
        assert_int_equal(blocks_left(&memory), 0);
    }
    remove_folder(folder);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    char *folder = make_folder();
    save_shard(in_folder(folder, "m"), "a", "b");
    save_index(folder, "{\"a\":\"m\",\"b\":\"m\"}");
    for (int64_t nth = 1;; nth++) {
        fail_nth(&memory, nth);
        attn_safetensors *file = NULL;
        attn_status status =
            attn_safetensors_open_index(context, in_folder(folder, "index.json"), &file, NULL);
        attn_safetensors_close(file);
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
        cmocka_unit_test(test_tensors_of_all_files),
        cmocka_unit_test(test_an_empty_index),
        cmocka_unit_test(test_bad_indexes),
        cmocka_unit_test(test_out_of_memory),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    test_context_end(context, &memory);
    return failed;
}
