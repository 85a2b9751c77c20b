// Training: what it reaches, and that stopping and going on changes nothing.
#define _POSIX_C_SOURCE 200809L // kill, nanosleep

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "run_chapter.h"
#include "support/unit.h"

// A sanitized program is slow; two heads have solved the task long before the default's end.
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

// The last number after `label` in the text.
static double number_after(const char *text, const char *label)
{
    double number = -1;
    for (const char *at = strstr(text, label); at; at = strstr(at + 1, label)) {
        number = strtod(at + strlen(label), NULL);
    }
    return number;
}

static void two_heads_solve_it_and_one_cannot(void **state)
{
    (void)state;
    const chapter_call full = {.arguments = {"--train"}};
    const chapter_call short_run = {.arguments = {"--train", "--steps", "60"}};
    chapter_result result = run_chapter(SANITIZED ? &short_run : &full);
    assert_int_equal(result.status, 0);
    assert_string_equal(result.errors, ""); // no progress line: not a terminal
    const char *after = strstr(result.output, "After training");
    assert_non_null(after);
    assert_true(number_after(after, "\ntwo heads: ") > 95);
    assert_true(number_after(after, "\none head: ") < 75);
    if (!SANITIZED) {
        assert_non_null(strstr(after, "[ok] two heads: more than 95 % right"));
        assert_non_null(strstr(after, "[ok] one head: less than 75 % right"));
    }
    chapter_free(&result);
}

static void without_the_mask_the_answer_leaks(void **state)
{
    (void)state;
    const chapter_call full = {.arguments = {"--train", "--no-mask"}};
    const chapter_call short_run = {.arguments = {"--train", "--no-mask", "--steps", "25"}};
    chapter_result result = run_chapter(SANITIZED ? &short_run : &full);
    assert_int_equal(result.status, 0);
    double last[3] = {0}; // step, loss without the mask, loss with it
    for (const char *line = strstr(result.output, "\n      1  "); line;
         line = strchr(line + 1, '\n')) {
        double row[3];
        if (sscanf(line, " %lf %lf |%*[# ]%lf", &row[0], &row[1], &row[2]) == 3) {
            memcpy(last, row, sizeof row);
        }
    }
    assert_true(last[0] == (SANITIZED ? 25 : 100));
    assert_true(last[1] < 0.05);
    assert_true(last[2] > 2.2026 && last[2] < 2.4026); // ln(10) = 2.3026
    chapter_free(&result);
}

// What the training arrived at: everything printed after it.
static const char *outcome(const chapter_result *result)
{
    const char *after = strstr(result->output, "After training");
    assert_non_null(after);
    return after;
}

static void sleep_milliseconds(long milliseconds)
{
    const struct timespec pause = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

// Ctrl-C after the first printed step; returns the step at which it stopped.
static int interrupt(const char *checkpoint)
{
    const chapter_call call = {
        .arguments = {"--train", "--steps", "1000000", "--checkpoint", checkpoint}};
    chapter_process process = chapter_start(&call);
    for (int waited = 0; waited < 6000; ++waited) {
        char *so_far = chapter_output_so_far(&process);
        const bool training = strstr(so_far, "step    1") != NULL;
        free(so_far);
        if (training) {
            break;
        }
        sleep_milliseconds(10);
    }
    kill(process.pid, SIGINT);
    chapter_result result = chapter_wait(&process);
    assert_int_equal(result.status, 130);
    const int stopped = (int)number_after(result.output, "stopped after step ");
    assert_true(stopped >= 1);
    assert_non_null(strstr(result.output, checkpoint));
    chapter_free(&result);
    return stopped;
}

static void going_on_gives_what_never_stopping_gives(void **state)
{
    (void)state;
    char *checkpoint = fresh_path("interrupted");
    char steps[16];
    snprintf(steps, sizeof steps, "%d", interrupt(checkpoint) + 5);

    const chapter_call resume = {
        .arguments = {"--train", "--resume", "--checkpoint", checkpoint, "--steps", steps}};
    const chapter_call straight = {.arguments = {"--train", "--steps", steps}};
    chapter_result resumed = run_chapter(&resume);
    chapter_result never_stopped = run_chapter(&straight);
    assert_int_equal(resumed.status, 0);
    assert_int_equal(never_stopped.status, 0);
    assert_non_null(strstr(resumed.output, "going on after step"));
    assert_string_equal(outcome(&resumed), outcome(&never_stopped));
    chapter_free(&resumed);
    chapter_free(&never_stopped);

    // The other task's models do not fit: nothing is loaded.
    const chapter_call other = {
        .arguments = {"--train", "--no-mask", "--resume", "--checkpoint", checkpoint}};
    chapter_result refused = run_chapter(&other);
    assert_int_equal(refused.status, 1);
    assert_true(strncmp(refused.errors, "chapter03_attention: ", 21) == 0);
    chapter_free(&refused);
    unlink(checkpoint);
    free(checkpoint);
}

static void a_checkpoint_that_is_not_there(void **state)
{
    (void)state;
    char *path = fresh_path("missing");
    const chapter_call call = {.arguments = {"--train", "--resume", "--checkpoint", path}};
    chapter_result result = run_chapter(&call);
    assert_int_equal(result.status, 1);
    assert_non_null(strstr(result.errors, path));
    chapter_free(&result);
    free(path);
}

static void progress_on_a_terminal_only(void **state)
{
    (void)state;
    const chapter_call call = {.arguments = {"--train", "--no-mask", "--steps", "3"},
                               .environment = {"TERM=xterm", "NO_COLOR=1"},
                               .terminal = true};
    chapter_result result = run_chapter(&call);
    assert_int_equal(result.status, 0);
    assert_non_null(strstr(result.output, "step 2 of 3, loss "));
    assert_non_null(strstr(result.output, " s left"));
    chapter_free(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_heads_solve_it_and_one_cannot),
        cmocka_unit_test(without_the_mask_the_answer_leaks),
        cmocka_unit_test(going_on_gives_what_never_stopping_gives),
        cmocka_unit_test(a_checkpoint_that_is_not_there),
        cmocka_unit_test(progress_on_a_terminal_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
