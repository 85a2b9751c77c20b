// Files that appear whole or not at all: killed writers, full disks, links, devices, permissions.
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attn/safetensors.h"
#include "io/atomic_file.h"
#include "io_support.h"
#include "unit.h"

static test_allocator memory;
static attn_context *context;

static void save_text(const char *path, const char *text)
{
    attn_error error = {0};
    if (attn_save_bytes(context, path, text, strlen(text), &error) != ATTN_OK) {
        fail_msg("%s", error.text);
    }
}

static void assert_content(const char *path, const char *text)
{
    byte_buffer content = read_file(path);
    assert_int_equal(content.size, strlen(text));
    assert_memory_equal(content.bytes, text, content.size);
    buffer_free(&content);
}

static void test_replaces(void **state)
{
    (void)state;
    char *folder = make_folder();
    const char *path = in_folder(folder, "f");
    save_text(path, "one");
    assert_content(path, "one");
    save_text(path, "");
    assert_content(path, "");
    save_text(path, "three");
    assert_content(path, "three");
    assert_int_equal(count_files(folder), 1);
    remove_folder(folder);
}

static void test_old_file_stays_until_the_commit(void **state)
{
    (void)state;
    char *folder = make_folder();
    const char *path = in_folder(folder, "f");
    save_text(path, "old");
    for (int commit = 0; commit < 2; commit++) {
        attn_atomic_file *file = NULL;
        assert_int_equal(attn_atomic_file_open(context, path, &file, NULL), ATTN_OK);
        assert_int_equal(attn_atomic_file_write(file, "new", 3, NULL), ATTN_OK);
        assert_content(path, "old");
        assert_int_equal(count_files(folder), 2);
        if (commit) {
            assert_int_equal(attn_atomic_file_commit(file, NULL), ATTN_OK);
        } else {
            attn_atomic_file_discard(file);
        }
        assert_content(path, commit ? "new" : "old");
        assert_int_equal(count_files(folder), 1);
    }
    attn_atomic_file_discard(NULL);
    assert_int_equal(blocks_left(&memory), 0);
    remove_folder(folder);
}

static void test_permissions_links_and_devices(void **state)
{
    (void)state;
    char *folder = make_folder();
    const char *path = in_folder(folder, "f");
    mode_t mask = umask(027);
    save_text(path, "one");
    umask(mask);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
    assert_int_equal(chmod(path, 0600), 0);
    save_text(path, "two");
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);

    const char *link = in_folder(folder, "link");
    assert_int_equal(symlink("f", link), 0);
    save_text(link, "through");
    assert_int_equal(lstat(link, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_content(path, "through");

    save_text("/dev/null", "gone");
    assert_int_equal(stat("/dev/null", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
    assert_int_equal(count_files(folder), 2);
    remove_folder(folder);
}

static void test_says_why_not(void **state)
{
    (void)state;
    char *folder = make_folder();
    attn_error error = {0};
    assert_int_equal(attn_save_bytes(context, folder, "", 0, &error), ATTN_ERR_IO);
    assert_non_null(strstr(error.text, "Is a directory"));
    assert_int_equal(attn_save_bytes(context, in_folder(folder, "no/f"), "", 0, &error),
                     ATTN_ERR_IO);
    assert_non_null(strstr(error.text, "no/f: No such file or directory"));
    assert_int_equal(attn_save_bytes(context, "", "", 0, &error), ATTN_ERR_INVALID_ARGUMENT);
    assert_int_equal(attn_save_bytes(context, NULL, "", 0, &error), ATTN_ERR_INVALID_ARGUMENT);
    char name[300];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    assert_int_equal(attn_save_bytes(context, in_folder(folder, name), "", 0, &error), ATTN_ERR_IO);
    assert_non_null(strstr(error.text, "File name too long"));
    assert_int_equal(count_files(folder), 0);
    assert_int_equal(blocks_left(&memory), 0);
    remove_folder(folder);
}

// A file size limit stands in for the full disk: the write fails in its middle.
static void test_full_disk_leaves_the_old_file(void **state)
{
    (void)state;
    enum { COUNT = 100000, LIMIT = 65536 };
    char *folder = make_folder();
    const char *path = in_folder(folder, "f");
    save_text(path, "old");
    float *values = calloc(COUNT, sizeof(float));
    assert_non_null(values);
    const int64_t shape[] = {COUNT};
    attn_named_tensor tensor = {"t", attn_tensor_wrap(values, ATTN_F32, 1, shape)};

    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit small = {.rlim_cur = LIMIT, .rlim_max = before.rlim_max};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    attn_error error = {0};
    attn_status status = attn_safetensors_save(context, path, &tensor, 1, NULL, 0, &error);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);

    assert_int_equal(status, ATTN_ERR_IO);
    assert_non_null(strstr(error.text, "f: File too large"));
    assert_content(path, "old");
    assert_int_equal(count_files(folder), 1);
    assert_int_equal(blocks_left(&memory), 0);

    // A device that is always full.
    if (access("/dev/full", W_OK) == 0) {
        assert_int_equal(attn_safetensors_save(context, "/dev/full", &tensor, 1, NULL, 0, &error),
                         ATTN_ERR_IO);
        assert_non_null(strstr(error.text, "/dev/full: No space left on device"));
    }
    free(values);
    remove_folder(folder);
}

// Saves the whole number `generation` in every element, again and again, until it is killed.
static void save_for_ever(const char *path)
{
    enum { COUNT = 50000 };
    static float values[COUNT];
    const int64_t shape[] = {COUNT};
    attn_named_tensor tensor = {"t", attn_tensor_wrap(values, ATTN_F32, 1, shape)};
    for (float generation = 1;; generation++) {
        for (int i = 0; i < COUNT; i++) {
            values[i] = generation;
        }
        if (attn_safetensors_save(context, path, &tensor, 1, NULL, 0, NULL) != ATTN_OK) {
            _exit(1);
        }
    }
}

static void test_killed_writers_leave_a_whole_file(void **state)
{
    (void)state;
    enum { KILLS = 100 };
    char *folder = make_folder();
    const char *path = in_folder(folder, "f");
    float one = 0;
    attn_named_tensor tensor = {"t", attn_tensor_wrap(&one, ATTN_F32, 0, NULL)};
    assert_int_equal(attn_safetensors_save(context, path, &tensor, 1, NULL, 0, NULL), ATTN_OK);
    for (int kill_number = 0; kill_number < KILLS; kill_number++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            save_for_ever(path);
        }
        // From at once to some ten saves later.
        struct timespec wait = {.tv_nsec = 200000L * kill_number};
        nanosleep(&wait, NULL);
        assert_int_equal(kill(child, SIGKILL), 0);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);

        attn_safetensors *file = NULL;
        attn_error error = {0};
        if (attn_safetensors_open(context, path, &file, &error) != ATTN_OK) {
            fail_msg("%s", error.text);
        }
        const attn_tensor *read = &attn_safetensors_entry(file, 0)->tensor;
        const float *values = read->data;
        for (int64_t i = 1; i < attn_tensor_count(read); i++) {
            assert_true(values[i] == values[0]);
        }
        attn_safetensors_close(file);
    }
    remove_folder(folder);
}

int main(void)
{
    context = io_context(&memory);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replaces),
        cmocka_unit_test(test_old_file_stays_until_the_commit),
        cmocka_unit_test(test_permissions_links_and_devices),
        cmocka_unit_test(test_says_why_not),
        cmocka_unit_test(test_full_disk_leaves_the_old_file),
        cmocka_unit_test(test_killed_writers_leave_a_whole_file),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    test_context_end(context, &memory);
    return failed;
}
