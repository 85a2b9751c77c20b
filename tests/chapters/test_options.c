// The command line: languages, mistakes, terminals, key presses.
#include <string.h>

#include "run_chapter.h"
#include "support/unit.h"

static int count(const char *text, const char *what)
{
    int found = 0;
    for (const char *at = strstr(text, what); at; at = strstr(at + 1, what)) {
        ++found;
    }
    return found;
}

static void mistakes_end_with_status_2(void **state)
{
    (void)state;
    static const struct {
        const char *arguments[4];
        const char *message;
    } mistakes[] = {
        {{"--nonsense"}, "option not understood: '--nonsense'"},
        {{"-x"}, "option not understood: '-x'"},
        {{"--saturation=3"}, "option not understood: '--saturation=3'"},
        {{"something"}, "argument not understood: 'something'"},
        {{"--section"}, "option '--section' needs an argument"},
        {{"--section", "3.7.1"}, "there is no section '3.7.1'"},
        {{"--section", ""}, "there is no section ''"},
        {{"--section", "3"}, "there is no section '3'"},
        {{"--section", "3.5.1.1"}, "there is no section '3.5.1.1'"},
        {{"--exercise", "0"}, "'0' is not a number from 1 to 4"},
        {{"--exercise", "5"}, "'5' is not a number from 1 to 4"},
        {{"--exercise", "2x"}, "'2x' is not a number from 1 to 4"},
        {{"--exercise", "99999999999999999999"}, "is not a number from 1 to 4"},
        {{"--pitfall", "4"}, "'4' is not a number from 1 to 3"},
        {{"--pitfall", " 1"}, "' 1' is not a number from 1 to 3"},
        {{"--trace=v3"}, "there is no module 'v3' (v1, v2, causal, wrapper, mha)"},
        {{"--lang", "fr"}, "no such language 'fr' (en or zh)"},
        {{"--history", "--glossary"}, "choose one: --history or --glossary"},
        {{"--answers"}, "--answers is only used together with --selftest"},
        {{"--no-mask", "--glossary"}, "--no-mask is only used together with --train"},
        {{"--resume"}, "--resume is only used together with --train"},
        {{"--checkpoint", "file"}, "--checkpoint is only used together with --train"},
        {{"--steps", "3"}, "--steps is only used together with --train"},
        {{"--train", "--steps", "0"}, "'0' is not a number from 1 to 1000000"},
        {{"--train", "--steps", "-5"}, "'-5' is not a number from 1 to 1000000"},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; ++i) {
        chapter_call call = {.arguments = {NULL}};
        memcpy(call.arguments, mistakes[i].arguments, sizeof mistakes[i].arguments);
        chapter_result result = run_chapter(&call);
        if (result.status != 2 || !strstr(result.errors, mistakes[i].message) ||
            strncmp(result.errors, "chapter03_attention: ", 21) != 0) {
            fail_msg("%s: status %d, '%s'", mistakes[i].arguments[0], result.status, result.errors);
        }
        assert_string_equal(result.output, "");
        chapter_free(&result);
    }
}

static void mistakes_in_chinese(void **state)
{
    (void)state;
    const chapter_call call = {.arguments = {"--pitfall", "4", "--lang", "zh"}};
    chapter_result result = run_chapter(&call);
    assert_int_equal(result.status, 2);
    assert_non_null(strstr(result.errors, "'4' 不是 1 到 3 的数字"));
    chapter_free(&result);
}

static void language_comes_from_the_locale(void **state)
{
    (void)state;
    static const struct {
        const char *environment[4];
        const char *arguments[3];
        bool chinese;
    } cases[] = {
        {{NULL}, {NULL}, false},
        {{"LANG=zh_CN.UTF-8"}, {NULL}, true},
        {{"LANG=zh_TW"}, {NULL}, true},
        {{"LANG=en_US.UTF-8"}, {NULL}, false},
        {{"LANG=zh_CN.UTF-8", "LC_MESSAGES=de_DE.UTF-8"}, {NULL}, false},
        {{"LANG=en_US.UTF-8", "LC_MESSAGES=zh_CN.UTF-8"}, {NULL}, true},
        {{"LANG=zh_CN.UTF-8", "LC_ALL=C"}, {NULL}, false},
        {{"LANG=zh_CN.UTF-8", "LC_ALL="}, {NULL}, true},
        {{"LANG=zh_CN.UTF-8"}, {"--lang", "en"}, false},
        {{"LANG=C"}, {"--lang=zh"}, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        chapter_call call = {
            .arguments = {"--glossary", cases[i].arguments[0], cases[i].arguments[1]}};
        memcpy(call.environment, cases[i].environment, sizeof cases[i].environment);
        chapter_result result = run_chapter(&call);
        assert_int_equal(result.status, 0);
        if ((strstr(result.output, "本章术语") != NULL) != cases[i].chinese) {
            fail_msg("case %d: wrong language", (int)i);
        }
        chapter_free(&result);
    }
}

static void help_wins_over_everything(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"-h"}, {"--history", "--help"}, {"--help", "--glossary"}, {"--answers", "--help"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        const chapter_call call = {.arguments = {cases[i][0], cases[i][1], cases[i][2]}};
        chapter_result result = run_chapter(&call);
        assert_int_equal(result.status, 0);
        assert_int_equal(strncmp(result.output, "Usage: chapter03_attention", 26), 0);
        chapter_free(&result);
    }
}

// The questions wait: an answer appears only after its line of input.
static void selftest_waits_for_each_answer(void **state)
{
    (void)state;
    const chapter_call call = {.arguments = {"--selftest"}, .input = "\n\n\n\n\n\n\n\n\n\n"};
    chapter_result result = run_chapter(&call);
    assert_int_equal(result.status, 0);
    assert_int_equal(count(result.output, "press a key"), 10);
    assert_int_equal(count(result.output, "\nAnswer:\n"), 10);
    chapter_free(&result);

    const chapter_call at_once = {.arguments = {"--selftest", "--answers"}};
    chapter_result answers = run_chapter(&at_once);
    assert_int_equal(count(answers.output, "press a key"), 0);
    assert_int_equal(count(answers.output, "\nAnswer:\n"), 10);
    chapter_free(&answers);
}

static void selftest_takes_single_keys_on_a_terminal(void **state)
{
    (void)state;
    const chapter_call call = {
        .arguments = {"--selftest"}, .input = "abcdefghij", .terminal = true};
    chapter_result result = run_chapter(&call);
    assert_int_equal(result.status, 0);
    assert_int_equal(count(result.output, "Answer:"), 10);
    chapter_free(&result);
}

// Ctrl-C at a question ends the program as it ends any other.
static void selftest_can_be_interrupted(void **state)
{
    (void)state;
    const chapter_call call = {.arguments = {"--selftest"}, .input = "a\003", .terminal = true};
    chapter_result result = run_chapter(&call);
    assert_int_equal(result.status, 130);
    assert_int_equal(count(result.output, "Answer:"), 1);
    chapter_free(&result);
}

static void colour_only_on_a_terminal(void **state)
{
    (void)state;
    static const struct {
        const char *environment[2];
        bool terminal, colour;
    } cases[] = {
        {{"TERM=xterm"}, false, false},
        {{"TERM=xterm"}, true, true},
        {{"TERM=dumb"}, true, false},
        {{"TERM=xterm", "NO_COLOR=1"}, true, false},
        {{"TERM=xterm", "NO_COLOR="}, true, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        const chapter_call call = {
            .arguments = {"--pitfall", "1"},
            .environment = {cases[i].environment[0], cases[i].environment[1]},
            .terminal = cases[i].terminal};
        chapter_result result = run_chapter(&call);
        assert_int_equal(result.status, 0);
        if ((strchr(result.output, '\033') != NULL) != cases[i].colour) {
            fail_msg("case %d: wrong colour", (int)i);
        }
        chapter_free(&result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_end_with_status_2),
        cmocka_unit_test(mistakes_in_chinese),
        cmocka_unit_test(language_comes_from_the_locale),
        cmocka_unit_test(help_wins_over_everything),
        cmocka_unit_test(selftest_waits_for_each_answer),
        cmocka_unit_test(selftest_takes_single_keys_on_a_terminal),
        cmocka_unit_test(selftest_can_be_interrupted),
        cmocka_unit_test(colour_only_on_a_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
