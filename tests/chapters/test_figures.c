// --figures: the files are there and are what their names say.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run_chapter.h"
#include "support/unit.h"

static const char *const figures[] = {"figure1_weights", "figure2_scaling", "figure3_causal"};

// The first bytes of a file of the folder, which is removed afterwards.
static void assert_begins(const char *folder, const char *name, const char *ending,
                          const char *signature)
{
    char path[1024];
    char start[16] = {0};
    snprintf(path, sizeof path, "%s/%s.%s", folder, name, ending);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_true(fread(start, 1, strlen(signature), file) == strlen(signature));
    assert_string_equal(start, signature);
    fclose(file);
    unlink(path);
}

static void draw_and_check(const char *language)
{
    char *folder = fresh_path("figures");
    const chapter_call call = {.arguments = {"--figures", folder, "--lang", language}};
    chapter_result result = run_chapter(&call);
    assert_int_equal(result.status, 0);
    for (int i = 0; i < 3; ++i) {
        assert_non_null(strstr(result.output, figures[i]));
        assert_begins(folder, figures[i], "png", "\x89PNG\r\n\x1a\n");
        assert_begins(folder, figures[i], "svg", "<?xml");
    }
    rmdir(folder);
    free(folder);
    chapter_free(&result);
}

static void english_figures(void **state)
{
    (void)state;
    draw_and_check("en");
}

// With or without a Chinese font: without one the labels are English.
static void chinese_figures(void **state)
{
    (void)state;
    draw_and_check("zh");
}

static void a_folder_that_cannot_be_made(void **state)
{
    (void)state;
    const chapter_call call = {.arguments = {"--figures", "/nonexistent/folder"}};
    chapter_result result = run_chapter(&call);
    assert_int_equal(result.status, 1);
    assert_non_null(strstr(result.errors, "/nonexistent/folder: No such file or directory"));
    chapter_free(&result);
}

static void a_folder_that_is_a_file(void **state)
{
    (void)state;
    const chapter_call call = {.arguments = {"--figures", "/dev/null"}};
    chapter_result result = run_chapter(&call);
    assert_int_equal(result.status, 1);
    assert_non_null(strstr(result.errors, "/dev/null"));
    chapter_free(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(english_figures),
        cmocka_unit_test(chinese_figures),
        cmocka_unit_test(a_folder_that_cannot_be_made),
        cmocka_unit_test(a_folder_that_is_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
