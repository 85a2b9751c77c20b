// arguments.h: what a command line may hold. One table per command is the source of the parser, the
// help, the man page and the completions.
#ifndef ATTN_TOOL_ARGUMENTS_H
#define ATTN_TOOL_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

// An option. `argument` is NULL for a flag; otherwise what it takes: FILE, DIR, a word in capitals, or
// the choices as "a|b|c".
typedef struct option_row {
    const char *name;
    char letter; // or 0
    const char *argument;
    const char *help;
} option_row;

// Options under one heading; rows end with a name that is NULL.
typedef struct option_group {
    const char *heading;
    const option_row *rows;
} option_group;

typedef struct arguments arguments;

typedef struct command {
    const char *name;
    const char *summary;               // one line
    const char *operands;              // "FILE..." or ""
    int least, most;                   // number of operands; most = -1: any
    const char *description;           // paragraphs, separated by an empty line
    const option_group *const *groups; // end with NULL
    const char *example;               // shell lines
    int (*run)(const arguments *a);
} command;

// What a command line held.
enum { MOST_OPTIONS = 64 };
struct arguments {
    const command *of;
    const option_row *rows[MOST_OPTIONS];
    const char *values[MOST_OPTIONS]; // "" for a flag that was given; NULL where it was not
    int row_count;
    char **operands;
    int operand_count;
};

// Documented exit statuses.
enum { EXIT_OK = 0, EXIT_DIFFERENT = 1, EXIT_USAGE = 2, EXIT_TROUBLE = 3 };

extern const option_group help_group; // --help, which every command has

// Fills *a from argv[1...] (argv[0] is the command's name). Returns -1 to go on, or the status to
// exit with: after --help, or after a message about what is wrong.
int arguments_parse(const command *of, int argc, char **argv, arguments *a);

// The option's value, or NULL; a name that is not in the table ends the program: it is a slip here.
const char *argument_text(const arguments *a, const char *name);
bool argument_given(const arguments *a, const char *name);

// The first option of a group that was given, except the one named `except` (or NULL); NULL: none.
const char *given_in_group(const arguments *a, const option_group *group, const char *except);

// The option's value as a number, or `fallback` where it was not given. False after a message when
// it is no number or is outside of [low, high].
bool argument_integer(const arguments *a, const char *name, int64_t low, int64_t high,
                      int64_t fallback, int64_t *value);
bool argument_real(const arguments *a, const char *name, double low, double high, double fallback,
                   double *value);

// Numbers separated by commas, as many as there are up to `capacity`. False after a message.
bool argument_integers(const arguments *a, const char *name, int64_t *values, int capacity,
                       int *count);
bool argument_reals(const arguments *a, const char *name, double *values, int capacity, int *count);

// The number of the choice that was given, from 0, or `fallback`. arguments_parse has checked it.
int argument_choice(const arguments *a, const char *name, int fallback);

// "attn run: ..." on standard error; returns EXIT_USAGE and EXIT_TROUBLE.
int usage_error(const arguments *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
int trouble(const arguments *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

void print_help(const command *of, FILE *out);

#endif
