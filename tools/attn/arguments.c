#include "arguments.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

static const option_row help_rows[] = {
    {"help", 'h', NULL, "Show this help and exit."},
    {NULL, 0, NULL, NULL},
};
const option_group help_group = {"Help", help_rows};

static void collect_rows(arguments *a);
static bool is_choice(const option_row *row, const char *value);
static int check_operands(const arguments *a);

// ---- parsing ------------------------------------------------------------------------------------

int arguments_parse(const command *of, int argc, char **argv, arguments *a)
{
    *a = (arguments){.of = of};
    collect_rows(a);
    struct option longs[MOST_OPTIONS + 1] = {{0}};
    char shorts[2 * MOST_OPTIONS + 1];
    int used = 0;
    for (int i = 0; i < a->row_count; i++) {
        const option_row *row = a->rows[i];
        const int has_argument = row->argument == NULL ? no_argument : required_argument;
        longs[i] = (struct option){row->name, has_argument, NULL, 256 + i};
        if (row->letter != 0) {
            shorts[used++] = row->letter;
            if (row->argument != NULL) {
                shorts[used++] = ':';
            }
        }
    }
    shorts[used] = '\0';

    char title[64];
    snprintf(title, sizeof(title), "attn %s", of->name);
    argv[0] = title; // getopt's own messages begin with it
    optind = 1;
    int code;
    while ((code = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
        int index = code - 256;
        for (int i = 0; code < 256 && i < a->row_count; i++) {
            if (a->rows[i]->letter == code) {
                index = i;
            }
        }
        if (index < 0) {
            fprintf(stderr, "Try 'attn %s --help'.\n", of->name);
            return EXIT_USAGE;
        }
        const option_row *row = a->rows[index];
        a->values[index] = row->argument == NULL ? "" : optarg;
        if (!is_choice(row, a->values[index])) {
            return usage_error(a, "--%s: \"%s\" is none of %s", row->name, optarg, row->argument);
        }
    }
    if (argument_given(a, "help")) {
        print_help(of, stdout);
        return EXIT_OK;
    }
    a->operands = argv + optind;
    a->operand_count = argc - optind;
    return check_operands(a);
}

static void collect_rows(arguments *a)
{
    for (const option_group *const *group = a->of->groups; *group != NULL; group++) {
        for (const option_row *row = (*group)->rows; row->name != NULL; row++) {
            if (a->row_count < MOST_OPTIONS) {
                a->rows[a->row_count++] = row;
            }
        }
    }
}

// Rows without choices take anything.
static bool is_choice(const option_row *row, const char *value)
{
    if (row->argument == NULL || strchr(row->argument, '|') == NULL) {
        return true;
    }
    const size_t length = strlen(value);
    for (const char *choice = row->argument; choice != NULL;) {
        const size_t choice_length = strcspn(choice, "|");
        if (choice_length == length && memcmp(choice, value, length) == 0) {
            return true;
        }
        choice = choice[choice_length] == '|' ? choice + choice_length + 1 : NULL;
    }
    return false;
}

static int check_operands(const arguments *a)
{
    const command *of = a->of;
    if (a->operand_count < of->least) {
        return usage_error(a, "missing operand; it takes %s", of->operands);
    }
    if (of->most >= 0 && a->operand_count > of->most) {
        return usage_error(a, "unexpected operand \"%s\"", a->operands[of->most]);
    }
    return -1;
}

// ---- values -------------------------------------------------------------------------------------

static int find_row(const arguments *a, const char *name)
{
    for (int i = 0; i < a->row_count; i++) {
        if (strcmp(a->rows[i]->name, name) == 0) {
            return i;
        }
    }
    fprintf(stderr, "attn %s: no option is named %s\n", a->of->name, name);
    exit(EXIT_TROUBLE);
}

const char *argument_text(const arguments *a, const char *name)
{
    return a->values[find_row(a, name)];
}

bool argument_given(const arguments *a, const char *name)
{
    return argument_text(a, name) != NULL;
}

const char *given_in_group(const arguments *a, const option_group *group, const char *except)
{
    for (const option_row *row = group->rows; row->name != NULL; row++) {
        if (argument_given(a, row->name) && (except == NULL || strcmp(row->name, except) != 0)) {
            return row->name;
        }
    }
    return NULL;
}

// Reads one number that ends at a comma or the end; moves *text behind the comma.
static bool read_integer(const char **text, int64_t *value)
{
    char *end;
    errno = 0;
    const long long read = strtoll(*text, &end, 10);
    if (end == *text || errno != 0 || (*end != '\0' && *end != ',')) {
        return false;
    }
    *value = read;
    *text = *end == ',' ? end + 1 : end;
    return *end == '\0' || **text != '\0';
}

static bool read_real(const char **text, double *value)
{
    char *end;
    const double read = strtod(*text, &end);
    if (end == *text || isnan(read) || (*end != '\0' && *end != ',')) {
        return false;
    }
    *value = read;
    *text = *end == ',' ? end + 1 : end;
    return *end == '\0' || **text != '\0';
}

bool argument_integer(const arguments *a, const char *name, int64_t low, int64_t high,
                      int64_t fallback, int64_t *value)
{
    const char *text = argument_text(a, name);
    *value = fallback;
    if (text == NULL) {
        return true;
    }
    const char *next = text;
    if (!read_integer(&next, value) || *next != '\0' || *value < low || *value > high) {
        if (high == INT64_MAX) {
            usage_error(a, "--%s: \"%s\" is not a whole number >= %lld", name, text,
                        (long long)low);
        } else {
            usage_error(a, "--%s: \"%s\" is not a whole number from %lld to %lld", name, text,
                        (long long)low, (long long)high);
        }
        return false;
    }
    return true;
}

bool argument_real(const arguments *a, const char *name, double low, double high, double fallback,
                   double *value)
{
    const char *text = argument_text(a, name);
    *value = fallback;
    if (text == NULL) {
        return true;
    }
    const char *next = text;
    if (!read_real(&next, value) || *next != '\0' || !(*value >= low && *value <= high)) {
        usage_error(a, "--%s: \"%s\" is not a number from %g to %g", name, text, low, high);
        return false;
    }
    return true;
}

bool argument_integers(const arguments *a, const char *name, int64_t *values, int capacity,
                       int *count)
{
    const char *text = argument_text(a, name);
    *count = 0;
    for (const char *next = text; next != NULL && *next != '\0'; (*count)++) {
        if (*count == capacity || !read_integer(&next, &values[*count])) {
            usage_error(a, "--%s: \"%s\" is not a list of up to %d whole numbers, such as 0,3,7",
                        name, text, capacity);
            return false;
        }
    }
    return true;
}

bool argument_reals(const arguments *a, const char *name, double *values, int capacity, int *count)
{
    const char *text = argument_text(a, name);
    *count = 0;
    for (const char *next = text; next != NULL && *next != '\0'; (*count)++) {
        if (*count == capacity || !read_real(&next, &values[*count])) {
            usage_error(a, "--%s: \"%s\" is not a list of up to %d numbers, such as 0,0.5", name,
                        text, capacity);
            return false;
        }
    }
    return true;
}

int argument_choice(const arguments *a, const char *name, int fallback)
{
    const int row = find_row(a, name);
    if (a->values[row] == NULL) {
        return fallback;
    }
    const size_t length = strlen(a->values[row]);
    int index = 0;
    for (const char *choice = a->rows[row]->argument;; index++) {
        const size_t choice_length = strcspn(choice, "|");
        if ((choice_length == length && memcmp(choice, a->values[row], length) == 0) ||
            choice[choice_length] == '\0') {
            return index;
        }
        choice += choice_length + 1;
    }
}

// ---- messages -----------------------------------------------------------------------------------

int usage_error(const arguments *a, const char *format, ...)
{
    fprintf(stderr, "attn %s: ", a->of->name);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\nTry 'attn %s --help'.\n", a->of->name);
    return EXIT_USAGE;
}

int trouble(const arguments *a, const char *format, ...)
{
    fprintf(stderr, "attn %s: ", a->of->name);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return EXIT_TROUBLE;
}

void print_help(const command *of, FILE *out)
{
    fprintf(out, "Usage: attn %s [OPTION]...%s%s\n\n", of->name, *of->operands == '\0' ? "" : " ",
            of->operands);
    print_wrapped(out, of->description, 0, 0);
    for (const option_group *const *group = of->groups; *group != NULL; group++) {
        fprintf(out, "\n%s:\n", (*group)->heading);
        for (const option_row *row = (*group)->rows; row->name != NULL; row++) {
            char left[80];
            char letter[8] = "    ";
            if (row->letter != 0) {
                snprintf(letter, sizeof(letter), "-%c, ", row->letter);
            }
            const int length = snprintf(left, sizeof(left), "  %s--%s%s%s", letter, row->name,
                                        row->argument == NULL ? "" : "=",
                                        row->argument == NULL ? "" : row->argument);
            fputs(left, out);
            print_wrapped(out, row->help, length, 30);
        }
    }
    fprintf(out, "\nExample:\n%s", of->example);
}
