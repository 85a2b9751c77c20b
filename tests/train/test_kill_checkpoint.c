// A process that saves checkpoints without pause is killed 100 times at random moments. Whatever the
// moment, the file is one that it saved, whole.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attn/attn.h"
#include "support/status.h"
#include "support/unit.h"

enum { KILLS = 100, LONGEST_MICROSECONDS = 6000 };

typedef struct model {
    attn_context *context;
    attn_module *module;
    attn_optimizer *optimizer;
    int64_t number; // of the checkpoint; every parameter holds it
} model;

static model make_model(void)
{
    attn_error error;
    model m = {.number = 0};
    attn_optimizer_config config;
    attn_adamw_config_init(&config);
    ASSERT_OK(attn_context_create(NULL, &m.context, &error));
    ASSERT_OK(attn_linear_create(m.context, 100, 100, true, ATTN_F32, NULL, &m.module, &error));
    ASSERT_OK(attn_optimizer_create(m.context, &config, &m.optimizer, &error));
    ASSERT_OK(attn_optimizer_add_module(m.optimizer, "", m.module, &error));
    return m;
}

static void destroy_model(model *m)
{
    attn_optimizer_destroy(m->optimizer);
    attn_module_destroy(m->module);
    attn_context_destroy(m->context);
}

static attn_checkpoint checkpoint_of(model *m)
{
    attn_checkpoint checkpoint;
    attn_checkpoint_init(&checkpoint);
    checkpoint.optimizer = m->optimizer;
    checkpoint.cursor = &m->number;
    checkpoint.cursor_count = 1;
    return checkpoint;
}

static attn_status save_next(model *m, const char *path)
{
    m->number++;
    for (int64_t i = 0; i < attn_module_parameter_count(m->module); i++) {
        attn_tensor_fill(&attn_module_parameter(m->module, i)->value, (double)m->number, NULL);
    }
    const attn_checkpoint checkpoint = checkpoint_of(m);
    return attn_checkpoint_save(m->context, path, &checkpoint, NULL);
}

// Saves until it is killed.
static void save_forever(const char *path, int64_t from)
{
    model m = make_model();
    m.number = from;
    while (save_next(&m, path) == ATTN_OK) {}
    _exit(1);
}

// The number of the checkpoint at `path`, after checking that it is whole.
static int64_t number_at(model *m, const char *path)
{
    attn_error error;
    const attn_checkpoint checkpoint = checkpoint_of(m);
    ASSERT_OK(attn_checkpoint_load(m->context, path, &checkpoint, &error));
    for (int64_t i = 0; i < attn_module_parameter_count(m->module); i++) {
        const attn_tensor value = attn_module_parameter(m->module, i)->value;
        for (int64_t k = 0; k < attn_tensor_count(&value); k++) {
            assert_true(((const float *)value.data)[k] == (float)m->number);
        }
    }
    return m->number;
}

static void remove_folder(const char *folder)
{
    DIR *directory = opendir(folder);
    assert_non_null(directory);
    for (const struct dirent *entry; (entry = readdir(directory));) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            assert_int_equal(unlinkat(dirfd(directory), entry->d_name, 0), 0);
        }
    }
    closedir(directory);
    assert_int_equal(rmdir(folder), 0);
}

static ino_t file_at(const char *path)
{
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    return status.st_ino;
}

// However busy the machine is: until another file has taken the place of `file`, or for half a minute.
static void wait_for_another(const char *path, ino_t file)
{
    for (int ms = 0; ms < 30000 && file_at(path) == file; ms++) {
        usleep(1000);
    }
}

static void killed_while_saving(void **state)
{
    (void)state;
    char folder[] = "/tmp/attn-kill-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/state.safetensors", folder);
    model m = make_model();
    assert_int_equal(save_next(&m, path), ATTN_OK);
    int64_t number = 1, advanced = 0;
    uint32_t random = 12345;
    for (int n = 0; n < KILLS; n++) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            save_forever(path, number);
        }
        if (n % 2 == 0) {
            wait_for_another(path, file_at(path));
        }
        random = random * 1664525u + 1013904223u;
        usleep(random % LONGEST_MICROSECONDS);
        assert_int_equal(kill(child, SIGKILL), 0);
        int result;
        assert_int_equal(waitpid(child, &result, 0), child);
        assert_true(WIFSIGNALED(result)); // it did not give up before
        const int64_t now = number_at(&m, path);
        assert_true(now >= number);
        advanced += now > number;
        number = now;
    }
    assert_true(advanced > 0); // some were killed after a save, so between two
    destroy_model(&m);
    remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(killed_while_saving)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
