// What the program prints, in both languages, against stored text.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run_chapter.h"
#include "support/unit.h"

typedef struct page {
    const char *name; // expected/<name>.<language>.txt
    const char *arguments[3];
    bool learns; // numbers come from many training steps: only the text around them is compared
} page;

static const page pages[] = {
    {"chapter", {NULL}, false},
    {"exercise1", {"--exercise", "1"}, false},
    {"exercise2", {"--exercise", "2"}, false},
    {"exercise3", {"--exercise", "3"}, false},
    {"exercise4", {"--exercise", "4"}, false},
    {"pitfall1", {"--pitfall", "1"}, false},
    {"pitfall2", {"--pitfall", "2"}, false},
    {"pitfall3", {"--pitfall", "3"}, false},
    {"history", {"--history"}, false},
    {"saturation", {"--saturation"}, true},
    {"selftest", {"--selftest", "--answers"}, false},
    {"glossary", {"--glossary"}, false},
    {"trace_v1", {"--trace=v1"}, false},
    {"trace_v2", {"--trace=v2"}, false},
    {"trace_causal", {"--trace=causal"}, false},
    {"trace_wrapper", {"--trace=wrapper"}, false},
    {"trace_mha", {"--trace"}, false},
    {"help", {"--help"}, false},
};
enum { PAGES = sizeof pages / sizeof pages[0] };

static bool part_of_number(char c)
{
    return (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+';
}

// Every number becomes one '#', and the spaces before it one space.
static void hide_numbers(char *text)
{
    char *to = text;
    for (const char *from = text; *from; ++from) {
        if (part_of_number(*from)) {
            while (to > text + 1 && to[-1] == ' ' && to[-2] == ' ') {
                --to;
            }
            while (part_of_number(from[1])) {
                ++from;
            }
            *to++ = '#';
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
}

static void assert_same_lines(const char *name, const char *printed, const char *expected)
{
    int line = 1;
    const char *start = expected;
    for (; *printed && *printed == *expected; ++printed, ++expected) {
        if (*expected == '\n') {
            ++line;
            start = expected + 1;
        }
    }
    if (*printed != *expected) {
        const int column = (int)(expected - start);
        fail_msg("%s, line %d: expected '%.*s', printed '%.*s'", name, line,
                 (int)strcspn(start, "\n"), start, column + (int)strcspn(printed, "\n"),
                 printed - column);
    }
}

static void check_page(const page *p, const char *language)
{
    char path[512];
    chapter_call call = {.arguments = {"--lang", language, p->arguments[0], p->arguments[1]}};
    chapter_result result = run_chapter(&call);
    assert_int_equal(result.status, 0);
    assert_string_equal(result.errors, "");
    snprintf(path, sizeof path, CHAPTER03_EXPECTED "/%s.%s.txt", p->name, language);
    char *expected = read_text(path);
    assert_non_null(expected);
    if (p->learns) {
        hide_numbers(result.output);
        hide_numbers(expected);
    }
    assert_same_lines(path, result.output, expected);
    free(expected);
    chapter_free(&result);
}

static void english_output_is_as_stored(void **state)
{
    (void)state;
    for (int i = 0; i < PAGES; ++i) {
        check_page(&pages[i], "en");
    }
}

static void chinese_output_is_as_stored(void **state)
{
    (void)state;
    for (int i = 0; i < PAGES; ++i) {
        check_page(&pages[i], "zh");
    }
}

// Both languages show the same numbers and as many checked statements.
static void languages_agree_on_numbers(void **state)
{
    (void)state;
    chapter_result results[2];
    static const char *const languages[] = {"en", "zh"};
    for (int i = 0; i < 2; ++i) {
        const chapter_call call = {.arguments = {"--lang", languages[i]}};
        results[i] = run_chapter(&call);
        assert_int_equal(results[i].status, 0);
    }
    const char *en = results[0].output;
    const char *zh = results[1].output;
    int rows = 0;
    while ((en = strstr(en, " [")) && (zh = strstr(zh, " ["))) {
        const size_t length = strcspn(en, "]\n");
        // Rows of numbers; "[ok]" and "[exercise 3.1]" are text.
        const bool number = en[2] == ' ' || en[2] == '-' || (en[2] >= '0' && en[2] <= '9');
        if (number && en[length] == ']') {
            assert_memory_equal(en, zh, length);
            ++rows;
        }
        ++en;
        ++zh;
    }
    assert_true(rows > 150);
    chapter_free(&results[0]);
    chapter_free(&results[1]);
}

// The sections in the chapter's order, and each of them alone is what it is in the whole.
static void sections_alone_and_together(void **state)
{
    (void)state;
    static const char *const numbers[] = {"3.3.1", "3.3.2", "3.4.1", "3.4.2", "3.5.1",
                                          "3.5.2", "3.5.3", "3.6.1", "3.6.2"};
    const chapter_call all = {.arguments = {NULL}};
    chapter_result whole = run_chapter(&all);
    const char *at = whole.output;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; ++i) {
        const chapter_call call = {.arguments = {"--section", numbers[i]}};
        chapter_result one = run_chapter(&call);
        assert_int_equal(one.status, 0);
        at = strstr(at, one.output);
        assert_non_null(at);
        at += strlen(one.output);
        chapter_free(&one);
    }
    chapter_free(&whole);
}

static void a_group_of_sections(void **state)
{
    (void)state;
    const chapter_call call = {.arguments = {"--section", "3.5"}};
    chapter_result result = run_chapter(&call);
    assert_int_equal(result.status, 0);
    assert_non_null(strstr(result.output, "=== 3.5.1 "));
    assert_non_null(strstr(result.output, "=== 3.5.2 "));
    assert_non_null(strstr(result.output, "=== 3.5.3 "));
    assert_null(strstr(result.output, "=== 3.4."));
    assert_null(strstr(result.output, "=== 3.6."));
    chapter_free(&result);
}

static void times_only_when_asked_for(void **state)
{
    (void)state;
    const chapter_call call = {.arguments = {"--section", "3.6.2", "--time"}};
    chapter_result result = run_chapter(&call);
    assert_int_equal(result.status, 0);
    double wrapper = 0;
    double split = 0;
    const char *line = strstr(result.output, "wrapper ");
    while (line && sscanf(line, "wrapper %lf ms, split %lf ms", &wrapper, &split) != 2) {
        line = strstr(line + 1, "wrapper ");
    }
    assert_true(wrapper > 0 && split > 0);
    chapter_free(&result);
}

// Output that cannot be written is a failure, not silence.
static void a_full_disk_is_reported(void **state)
{
    (void)state;
    const chapter_call call = {.arguments = {"--glossary"}, .output_path = "/dev/full"};
    chapter_result result = run_chapter(&call);
    assert_int_equal(result.status, 1);
    assert_non_null(strstr(result.errors, "standard output"));
    chapter_free(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(english_output_is_as_stored),
        cmocka_unit_test(chinese_output_is_as_stored),
        cmocka_unit_test(languages_agree_on_numbers),
        cmocka_unit_test(sections_alone_and_together),
        cmocka_unit_test(a_group_of_sections),
        cmocka_unit_test(times_only_when_asked_for),
        cmocka_unit_test(a_full_disk_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
