// main.c: the attention chapter in C. Without options it runs every section in order.
#define _POSIX_C_SOURCE 200809L // isatty

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "demo.h"
#include "figures_of_chapter.h"
#include "options.h"
#include "print.h"
#include "sections.h"
#include "train.h"

enum { EXIT_USAGE = 2 };

typedef struct section {
    const char *number;
    void (*run)(demo *d);
} section;

static const section sections[] = {
    {"3.3.1", section_3_3_1}, {"3.3.2", section_3_3_2}, {"3.4.1", section_3_4_1},
    {"3.4.2", section_3_4_2}, {"3.5.1", section_3_5_1}, {"3.5.2", section_3_5_2},
    {"3.5.3", section_3_5_3}, {"3.6.1", section_3_6_1}, {"3.6.2", section_3_6_2},
};
enum { SECTIONS = sizeof sections / sizeof sections[0] };

static int run_chapter(demo *d)
{
    say(d, T_CHAPTER_TITLE);
    say(d, T_CHAPTER_INTRO);
    for (int i = 0; i < SECTIONS; ++i) {
        sections[i].run(d);
    }
    putchar('\n');
    say(d, T_CHAPTER_END);
    return EXIT_SUCCESS;
}

// "3.5.1" itself, or all that a prefix such as "3.5" covers.
static bool covers(const char *asked, const char *number)
{
    const size_t length = strlen(asked);
    return strncmp(asked, number, length) == 0 &&
           (number[length] == '\0' || (length > 1 && number[length] == '.'));
}

// The message lists the names there are.
static int unknown_name(const demo *d, text_id id, const char *name)
{
    fputs("chapter03_attention: ", stderr);
    fprintf(stderr, d->text[id], name);
    fputc('\n', stderr);
    return EXIT_USAGE;
}

static int run_sections(demo *d, const char *asked)
{
    int found = 0;
    for (int i = 0; i < SECTIONS; ++i) {
        if (covers(asked, sections[i].number)) {
            sections[i].run(d);
            ++found;
        }
    }
    return found > 0 ? EXIT_SUCCESS : unknown_name(d, T_OPT_SECTION, asked);
}

static int run_trace(demo *d, const char *name)
{
    return trace(d, name ? name : "mha") ? EXIT_SUCCESS : unknown_name(d, T_OPT_TRACE, name);
}

static int run_train(demo *d, const options *o)
{
    const train_options chosen = {.no_mask = o->no_mask,
                                  .resume = o->resume,
                                  .checkpoint = o->checkpoint ? o->checkpoint
                                                              : "chapter03_attention.checkpoint",
                                  .steps = o->steps};
    return train(d, &chosen);
}

static int run_action(demo *d, const options *o)
{
    switch (o->action) {
    case ACTION_SECTION: return run_sections(d, o->argument);
    case ACTION_EXERCISE: exercise(d, o->number); break;
    case ACTION_PITFALL: pitfall(d, o->number); break;
    case ACTION_SATURATION: saturation(d); break;
    case ACTION_HISTORY: history(d); break;
    case ACTION_SELFTEST: selftest(d, o->answers); break;
    case ACTION_GLOSSARY: glossary(d); break;
    case ACTION_TRACE: return run_trace(d, o->argument);
    case ACTION_TRAIN: return run_train(d, o);
    case ACTION_FIGURES: return figures_of_chapter(d, o->argument);
    case ACTION_CHAPTER:
    case ACTION_HELP:
    case ACTION_COUNT: return run_chapter(d);
    }
    return EXIT_SUCCESS;
}

// Colour on a terminal that can show it, unless NO_COLOR is set to anything.
static bool wants_colour(void)
{
    const char *no_color = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    return isatty(STDOUT_FILENO) && !(no_color && *no_color) &&
           !(terminal && strcmp(terminal, "dumb") == 0);
}

int main(int argc, char **argv)
{
    options o;
    if (!options_read(argc, argv, &o)) {
        return EXIT_USAGE;
    }
    demo d = {.text = o.text, .colour = wants_colour(), .timing = o.timing};
    if (o.action == ACTION_HELP) {
        say(&d, T_HELP);
        return EXIT_SUCCESS;
    }
    demo_open(&d);
    int status = run_action(&d, &o);
    demo_close(&d);
    if (status == EXIT_SUCCESS && d.broken_claims > 0) {
        status = EXIT_FAILURE;
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("chapter03_attention: standard output");
        status = EXIT_FAILURE;
    }
    return status;
}
