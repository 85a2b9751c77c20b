// Every command of docs/chapter03.*.md runs; training and drawing are run by tests of their own.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run_chapter.h"
#include "support/unit.h"

// Splits the rest of a command line at spaces, up to a comment.
static chapter_call call_of(char *line)
{
    chapter_call call = {.arguments = {NULL}};
    int count = 0;
    for (char *word = strtok(line, " "); word && *word != '#' && count < MAX_ARGUMENTS - 2;
         word = strtok(NULL, " ")) {
        call.arguments[count++] = word;
    }
    return call;
}

static bool has(const chapter_call *call, const char *argument)
{
    for (int i = 0; call->arguments[i]; ++i) {
        if (strcmp(call->arguments[i], argument) == 0) {
            return true;
        }
    }
    return false;
}

static void run_commands_of(const char *path, int expected)
{
    static const char command[] = "./scripts/run.sh chapter03_attention";
    char *page = read_text(path);
    assert_non_null(page);
    int commands = 0;
    for (const char *at = strstr(page, command); at; at = strstr(at + 1, command)) {
        char line[256];
        const char *arguments = at + sizeof command - 1;
        snprintf(line, sizeof line, "%.*s", (int)strcspn(arguments, "\n"), arguments);
        chapter_call call = call_of(line);
        ++commands;
        if (has(&call, "--figures") || has(&call, "--train")) {
            continue; // test_figures and test_train run these
        }
        chapter_result result = run_chapter(&call);
        if (result.status != 0) {
            fail_msg("%s: '%.*s' ended with %d: %s", path, (int)strcspn(arguments, "\n"), arguments,
                     result.status, result.errors);
        }
        chapter_free(&result);
    }
    assert_int_equal(commands, expected);
    free(page);
}

static void english_page(void **state)
{
    (void)state;
    run_commands_of(CHAPTER03_DOCS "/chapter03.en.md", 27);
}

static void chinese_page(void **state)
{
    (void)state;
    run_commands_of(CHAPTER03_DOCS "/chapter03.zh.md", 27);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(english_page),
        cmocka_unit_test(chinese_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
