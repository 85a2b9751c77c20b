// run_chapter.h: runs the chapter's program as a user would and keeps what it printed.
#ifndef ATTN_TESTS_CHAPTERS_RUN_CHAPTER_H
#define ATTN_TESTS_CHAPTERS_RUN_CHAPTER_H

#include <stdbool.h>
#include <sys/types.h>

enum { MAX_ARGUMENTS = 16, MAX_VARIABLES = 8 };

typedef struct chapter_call {
    const char *arguments[MAX_ARGUMENTS];   // without the program's name; NULL ends them
    const char *environment[MAX_VARIABLES]; // "LANG=zh_CN.UTF-8"; the language and colour variables
                                            // of the test itself are not passed on
    const char *input;                      // standard input; NULL: empty
    const char *output_path;                // where standard output goes; NULL: into the result
    bool terminal; // standard streams are a terminal; all output is then in `output`
} chapter_call;

typedef struct chapter_result {
    int status;   // exit status; 128 + n after signal n
    char *output; // standard output
    char *errors; // standard error
} chapter_result;

// Runs to the end. Free the result with chapter_free.
chapter_result run_chapter(const chapter_call *call);
void chapter_free(chapter_result *result);

// The same in two parts, for a program that is sent signals: a call without `terminal` and `input`.
typedef struct chapter_process {
    pid_t pid;
    int output, errors; // files
} chapter_process;

chapter_process chapter_start(const chapter_call *call);
char *chapter_output_so_far(const chapter_process *process); // free it
chapter_result chapter_wait(chapter_process *process);

// A whole file as text; NULL when it cannot be read. Free it.
char *read_text(const char *path);

// A fresh path for a file that does not exist, in the build folder; free it.
char *fresh_path(const char *name);

#endif
