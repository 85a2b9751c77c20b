// options.h: the command line.
#ifndef CHAPTER03_OPTIONS_H
#define CHAPTER03_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "text.h"

typedef enum action {
    ACTION_CHAPTER = 0, // every section, in order
    ACTION_SECTION,
    ACTION_EXERCISE,
    ACTION_PITFALL,
    ACTION_SATURATION,
    ACTION_HISTORY,
    ACTION_SELFTEST,
    ACTION_GLOSSARY,
    ACTION_TRACE,
    ACTION_TRAIN,
    ACTION_FIGURES,
    ACTION_HELP,
    ACTION_COUNT
} action;

typedef struct options {
    action action;
    const char *action_name; // as the user wrote it, "--section"
    const char *argument;    // of the action: a section's number, a module's name, a folder
    int number;              // of the exercise or pitfall
    const char *const *text;
    bool timing;
    bool answers;
    bool no_mask;
    bool resume;
    const char *checkpoint; // NULL: the default name
    int64_t steps;          // 0: the task's own
} options;

// Reads the command line. On a mistake it prints a message to standard error in the chosen language
// and returns false; the exit status is then 2.
bool options_read(int argc, char **argv, options *o);

// The text table of the locale: Chinese where LC_ALL, LC_MESSAGES or LANG (the first that is set
// and not empty) begins with "zh", else English.
const char *const *text_of_locale(void);

#endif
