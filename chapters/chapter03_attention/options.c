// options.c: the command line, with getopt_long.
#define _GNU_SOURCE // getopt_long

#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPTION_LANG = 256,
    OPTION_TIME,
    OPTION_ANSWERS,
    OPTION_NO_MASK,
    OPTION_RESUME,
    OPTION_CHECKPOINT,
    OPTION_STEPS,
    OPTION_ACTION // + action
};

static const struct option long_options[] = {
    {"section", required_argument, NULL, OPTION_ACTION + ACTION_SECTION},
    {"exercise", required_argument, NULL, OPTION_ACTION + ACTION_EXERCISE},
    {"pitfall", required_argument, NULL, OPTION_ACTION + ACTION_PITFALL},
    {"saturation", no_argument, NULL, OPTION_ACTION + ACTION_SATURATION},
    {"history", no_argument, NULL, OPTION_ACTION + ACTION_HISTORY},
    {"selftest", no_argument, NULL, OPTION_ACTION + ACTION_SELFTEST},
    {"glossary", no_argument, NULL, OPTION_ACTION + ACTION_GLOSSARY},
    {"trace", optional_argument, NULL, OPTION_ACTION + ACTION_TRACE},
    {"train", no_argument, NULL, OPTION_ACTION + ACTION_TRAIN},
    {"figures", required_argument, NULL, OPTION_ACTION + ACTION_FIGURES},
    {"help", no_argument, NULL, OPTION_ACTION + ACTION_HELP},
    {"lang", required_argument, NULL, OPTION_LANG},
    {"time", no_argument, NULL, OPTION_TIME},
    {"answers", no_argument, NULL, OPTION_ANSWERS},
    {"no-mask", no_argument, NULL, OPTION_NO_MASK},
    {"resume", no_argument, NULL, OPTION_RESUME},
    {"checkpoint", required_argument, NULL, OPTION_CHECKPOINT},
    {"steps", required_argument, NULL, OPTION_STEPS},
    {NULL, 0, NULL, 0}};

const char *const *text_of_locale(void)
{
    static const char *const variables[] = {"LC_ALL", "LC_MESSAGES", "LANG"};
    for (int i = 0; i < 3; ++i) {
        const char *value = getenv(variables[i]);
        if (value && *value) {
            return strncmp(value, "zh", 2) == 0 ? text_zh : text_en;
        }
    }
    return text_en;
}

// "chapter03_attention: <message>" and where to find help.
static bool refuse(const options *o, text_id id, const char *first, const char *second)
{
    fputs("chapter03_attention: ", stderr);
    fprintf(stderr, o->text[id], first, second);
    fprintf(stderr, "\n%s\n", o->text[T_OPT_TRY_HELP]);
    return false;
}

// A decimal number from 1 to `most`; 0 for anything else.
static int64_t positive_number(const char *text, int64_t most)
{
    char *end;
    errno = 0;
    const long long number = strtoll(text, &end, 10);
    const bool digits = *text >= '0' && *text <= '9' && *end == '\0';
    return digits && errno == 0 && number >= 1 && number <= most ? number : 0;
}

static bool read_language(const char *name, options *o)
{
    if (strcmp(name, "en") == 0) {
        o->text = text_en;
    } else if (strcmp(name, "zh") == 0) {
        o->text = text_zh;
    } else {
        return refuse(o, T_OPT_LANG, name, "");
    }
    return true;
}

static bool read_action(action chosen, const char *name, const char *argument, options *o)
{
    if (o->action == ACTION_HELP) {
        return true; // help was asked for: nothing else matters
    }
    if (chosen != ACTION_HELP && o->action != ACTION_CHAPTER) {
        return refuse(o, T_OPT_TWO_ACTIONS, o->action_name, name);
    }
    o->action = chosen;
    o->action_name = name;
    o->argument = argument;
    if (chosen == ACTION_EXERCISE || chosen == ACTION_PITFALL) {
        const bool exercises = chosen == ACTION_EXERCISE;
        o->number = (int)positive_number(argument, exercises ? 4 : 3);
        if (o->number == 0) {
            return refuse(o, exercises ? T_OPT_EXERCISE : T_OPT_PITFALL, argument, "");
        }
    }
    return true;
}

static bool read_option(int option, const char *name, options *o)
{
    switch (option) {
    case OPTION_LANG: return read_language(optarg, o);
    case OPTION_TIME: o->timing = true; return true;
    case OPTION_ANSWERS: o->answers = true; return true;
    case OPTION_NO_MASK: o->no_mask = true; return true;
    case OPTION_RESUME: o->resume = true; return true;
    case OPTION_CHECKPOINT: o->checkpoint = optarg; return true;
    case OPTION_STEPS:
        o->steps = positive_number(optarg, 1000000);
        return o->steps > 0 || refuse(o, T_OPT_STEPS, optarg, "");
    default: return read_action((action)(option - OPTION_ACTION), name, optarg, o);
    }
}

// Options that change an action must come with that action.
static bool check_together(const options *o)
{
    const struct {
        bool given;
        const char *name;
        action with;
        const char *with_name;
    } rules[] = {
        {o->answers, "--answers", ACTION_SELFTEST, "--selftest"},
        {o->no_mask, "--no-mask", ACTION_TRAIN, "--train"},
        {o->resume, "--resume", ACTION_TRAIN, "--train"},
        {o->checkpoint != NULL, "--checkpoint", ACTION_TRAIN, "--train"},
        {o->steps != 0, "--steps", ACTION_TRAIN, "--train"},
    };
    if (o->action == ACTION_HELP) {
        return true;
    }
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; ++i) {
        if (rules[i].given && o->action != rules[i].with) {
            return refuse(o, T_OPT_NEEDS, rules[i].name, rules[i].with_name);
        }
    }
    return true;
}

// The language of every message is the one asked for, wherever --lang stands.
static void find_language_first(int argc, char **argv, options *o)
{
    for (int i = 1; i < argc; ++i) {
        const bool joined = strncmp(argv[i], "--lang=", 7) == 0;
        const bool apart = strcmp(argv[i], "--lang") == 0 && i + 1 < argc;
        const char *name = joined ? argv[i] + 7 : apart ? argv[i + 1] : "";
        if (strcmp(name, "zh") == 0 || strcmp(name, "en") == 0) {
            o->text = strcmp(name, "zh") == 0 ? text_zh : text_en;
        }
    }
}

bool options_read(int argc, char **argv, options *o)
{
    *o = (options){.text = text_of_locale()};
    find_language_first(argc, argv, o);
    opterr = 0;
    for (;;) {
        int index = -1;
        const int current = optind;
        const int option = getopt_long(argc, argv, ":h", long_options, &index);
        if (option == -1) {
            break;
        }
        if (option == ':') {
            return refuse(o, T_OPT_MISSING_ARGUMENT, argv[current], "");
        }
        if (option == '?') {
            return refuse(o, T_OPT_UNKNOWN, argv[current], "");
        }
        char *name = argv[current];
        const bool taken = option == 'h' ? read_action(ACTION_HELP, name, NULL, o)
                                         : read_option(option, name, o);
        if (!taken) {
            return false;
        }
    }
    if (optind < argc) {
        return refuse(o, T_OPT_EXTRA, argv[optind], "");
    }
    return check_together(o);
}
