// attn: attention on tensors from files.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "generate.h"
#include "text.h"
#include "tool.h"

static const command *const commands[] = {
    &run_command,  &inspect_command, &convert_command, &check_command, &oracle_command,
    &plot_command, &bench_command,   &version_command, NULL,
};

static const command *find_command(const char *name);
static void print_overview(FILE *out);
static int run_command_line(const command *of, int argc, char **argv);

int main(int argc, char **argv)
{
    static const char generate_option[] = "--generate=";
    const char *first = argc > 1 ? argv[1] : NULL;
    if (first == NULL) {
        print_overview(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0 || strcmp(first, "help") == 0) {
        const command *about = argc > 2 ? find_command(argv[2]) : NULL;
        if (about != NULL) {
            print_help(about, stdout);
        } else {
            print_overview(stdout);
        }
        return EXIT_OK;
    }
    if (strcmp(first, "--version") == 0) {
        printf("attn %s\n", attn_version());
        return EXIT_OK;
    }
    if (strncmp(first, generate_option, strlen(generate_option)) == 0) {
        return generate(commands, first + strlen(generate_option), stdout);
    }
    const command *of = find_command(first);
    if (of == NULL) {
        fprintf(stderr, "attn: \"%s\" is no command.\nTry 'attn --help'.\n", first);
        return EXIT_USAGE;
    }
    return run_command_line(of, argc - 1, argv + 1);
}

static const command *find_command(const char *name)
{
    for (const command *const *of = commands; *of != NULL; of++) {
        if (strcmp((*of)->name, name) == 0) {
            return *of;
        }
    }
    return NULL;
}

static void print_overview(FILE *out)
{
    fputs("Usage: attn COMMAND [OPTION]... [OPERAND]...\n\n"
          "Attention on tensors from .npy, .npz and .safetensors files.\n\nCommands:\n",
          out);
    for (const command *const *of = commands; *of != NULL; of++) {
        char left[32];
        const int length = snprintf(left, sizeof(left), "  %s", (*of)->name);
        fputs(left, out);
        print_wrapped(out, (*of)->summary, length, 12);
    }
    fputs("\n'attn COMMAND --help' explains a command. Exit status: 0 success, 1 attn check found\n"
          "a difference, 2 wrong command line, 3 a file or tensor does not serve.\n\n"
          "Example:\n  attn run -q q.npy -k k.npy -v v.npy --causal -o out.npy\n",
          out);
}

static int run_command_line(const command *of, int argc, char **argv)
{
    arguments a;
    int status = arguments_parse(of, argc, argv, &a);
    if (status < 0) {
        status = of->run(&a);
    }
    // What was printed must have arrived.
    if ((fflush(stdout) != 0 || ferror(stdout)) && status != EXIT_USAGE) {
        fprintf(stderr, "attn %s: standard output: %s\n", of->name, strerror(errno));
        return EXIT_TROUBLE;
    }
    return status;
}
