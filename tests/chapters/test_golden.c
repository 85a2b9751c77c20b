// Every tensor of chapter03_expected_bits.txt, which holds torch's float32 bits, stands in the
// program's output with the same four decimals.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run_chapter.h"
#include "support/unit.h"

enum { MAX_VALUES = 256, LINE_SIZE = 8192, RUNS = 4 };

typedef struct golden {
    char key[64];
    int count;
    float values[MAX_VALUES];
} golden;

// Where a key is printed, if not in section "3.3.1" under the rest of a key "331.rest".
typedef struct place {
    const char *key, *option, *argument, *section, *name;
} place;

static const place places[] = {
    {"342.v2.W_query.weight", NULL, NULL, "3.4.2", "W_query.weight"},
    {"342.v2.W_key.weight", NULL, NULL, "3.4.2", "W_key.weight"},
    {"342.v2.W_value.weight", NULL, NULL, "3.4.2", "W_value.weight"},
    {"353.ex2.dropout0.5_train", "--exercise", "2", "--exercise 2", "dropout0.5_train"},
    {"353.ex2.dropout0.5_eval", "--exercise", "2", "--exercise 2", "dropout0.5_eval"},
    {"361.ex32", NULL, NULL, "3.6.1", "context_vecs, d_out = 1"},
    {"362.param.W_query.weight", NULL, NULL, "3.6.2", "W_query.weight"},
    {"362.param.W_key.weight", NULL, NULL, "3.6.2", "W_key.weight"},
    {"362.param.W_value.weight", NULL, NULL, "3.6.2", "W_value.weight"},
    {"362.param.out_proj.weight", NULL, NULL, "3.6.2", "out_proj.weight"},
    {"362.param.out_proj.bias", NULL, NULL, "3.6.2", "out_proj.bias"},
    {"362.ex4.attn_weights", "--exercise", "4", "--exercise 4", "attn_weights"},
    {"362.ex4.without_out_proj", "--exercise", "4", "--exercise 4", "without_out_proj"},
    {"362.gpt2.out[0,0,:8].H12", "--exercise", "1", "--exercise 1", "out[0, 0, :8], H = 12"},
    {"362.gpt2.out[0,0,:8].H8", "--exercise", "1", "--exercise 1", "out[0, 0, :8], H = 8"},
    {"362.gpt2.out[0,0,:8].H16", "--exercise", "1", "--exercise 1", "out[0, 0, :8], H = 16"},
};

// "331.attn_scores_2 [6]: 3f745390 ..."
static bool parse_line(const char *line, golden *g)
{
    const char *colon = strstr(line, "]: ");
    const char *end_of_key = strchr(line, ' ');
    if (!colon || !end_of_key) {
        return false;
    }
    snprintf(g->key, sizeof g->key, "%.*s", (int)(end_of_key - line), line);
    g->count = 0;
    const char *rest = colon + 3;
    for (char *end = NULL;; rest = end) {
        const uint32_t bits = (uint32_t)strtoul(rest, &end, 16);
        if (end == rest) {
            return true;
        }
        assert_true(g->count < MAX_VALUES);
        memcpy(&g->values[g->count++], &bits, sizeof bits);
    }
}

static place place_of(const char *key, char section[8])
{
    for (size_t i = 0; i < sizeof places / sizeof places[0]; ++i) {
        if (strcmp(places[i].key, key) == 0) {
            return places[i];
        }
    }
    snprintf(section, 8, "%c.%c.%c", key[0], key[1], key[2]);
    return (place){key, NULL, NULL, section, key + 4};
}

// The program's output without options, or for one option with an argument; each is run once.
static const char *output_of(const char *option, const char *argument)
{
    static struct {
        const char *option, *argument;
        char *output;
    } runs[RUNS];
    const chapter_call call = {.arguments = {option, argument}};
    for (int i = 0; i < RUNS; ++i) {
        if (!runs[i].output) {
            chapter_result result = run_chapter(&call);
            assert_int_equal(result.status, 0);
            free(result.errors);
            runs[i].option = option;
            runs[i].argument = argument;
            runs[i].output = result.output;
        }
        const bool same_kind = !runs[i].option == !option;
        if (same_kind && (!option || strcmp(runs[i].argument, argument) == 0)) {
            return runs[i].output;
        }
    }
    fail_msg("more than %d different runs", RUNS);
    return NULL;
}

// Where the numbers of "  name (6, 6) =" or "  name =" start, between two section headings.
static const char *numbers_of(const char *output, const char *section, const char *name)
{
    char heading[64];
    char line_start[128];
    snprintf(heading, sizeof heading, "\n=== %s  ", section);
    const char *start = strstr(output, heading);
    assert_non_null(start);
    const char *end = strstr(start + 1, "\n=== ");
    snprintf(line_start, sizeof line_start, "\n  %s ", name);
    for (const char *at = strstr(start, line_start); at && (!end || at < end);
         at = strstr(at + 1, line_start)) {
        const char *rest = at + strlen(line_start);
        if (*rest == '(' || *rest == '=') {
            return strchr(rest, '=') + 1;
        }
    }
    fail_msg("section %s prints no '%s'", section, name);
    return NULL;
}

// The next number of the text, skipping brackets, commas, token names and block indices, which
// stand outside brackets. `*inside` says whether the text is inside brackets.
static double next_number(const char **text, bool *inside, bool scalar)
{
    for (;; ++*text) {
        assert_true(**text != '\0');
        if (**text == '[') {
            *inside = true;
        } else if (**text == ']') {
            *inside = false;
        } else if ((*inside || scalar) && strchr("-0123456789in", **text)) {
            char *end = NULL;
            const double number = strtod(*text, &end);
            assert_true(end > *text);
            *text = end;
            return number;
        }
    }
}

static void check(const golden *g)
{
    char section[8];
    const place where = place_of(g->key, section);
    const char *text =
        numbers_of(output_of(where.option, where.argument), where.section, where.name);
    bool inside = false;
    for (int i = 0; i < g->count; ++i) {
        char decimals[32];
        const double printed = next_number(&text, &inside, g->count == 1);
        snprintf(decimals, sizeof decimals, "%.4f", (double)g->values[i]);
        if (printed != strtod(decimals, NULL)) {
            fail_msg("%s, element %d: printed %.4f, torch %s", g->key, i, printed, decimals);
        }
    }
}

static void every_number_is_torchs(void **state)
{
    (void)state;
    FILE *file = fopen(ATTN_TEST_DATA "/golden/chapter03_expected_bits.txt", "r");
    assert_non_null(file);
    static char line[LINE_SIZE];
    static golden g;
    int tensors = 0;
    while (fgets(line, sizeof line, file)) {
        assert_true(parse_line(line, &g));
        check(&g);
        ++tensors;
    }
    fclose(file);
    assert_int_equal(tensors, 53);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_number_is_torchs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
