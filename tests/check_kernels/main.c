// check_kernels: checks every kernel of every instruction set that this machine runs, and times them.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_kernels/check.h"
#include "core/float_env.h"

static const char help[] =
    "usage: check_kernels [--tier NAME] [--seed N] [--long] [--bench] [--list] [--help]\n"
    "\n"
    "Checks every kernel against its definition, and every instruction set against the portable\n"
    "one, bit for bit. Exit status: 0 all right, 1 a kernel is wrong, 2 wrong usage.\n"
    "\n"
    "  --tier NAME  only tables of this name (see --list)\n"
    "  --seed N     another random stream\n"
    "  --long       exp, log and tanh at every float32 (minutes per table); prints largest errors\n"
    "  --bench      times instead of checks\n"
    "  --list       the tables that this machine runs\n";

struct options {
    const char *tier;
    uint64_t seed;
    bool exhaustive, bench, list;
};

static bool parse(int count, char **arguments, struct options *options)
{
    for (int i = 1; i < count; i++) {
        const char *name = arguments[i];
        char *end = NULL;
        if (!strcmp(name, "--tier") && i + 1 < count) {
            options->tier = arguments[++i];
        } else if (!strcmp(name, "--seed") && i + 1 < count) {
            errno = 0;
            options->seed = strtoull(arguments[++i], &end, 10);
            if (errno || *end || end == arguments[i]) {
                return false;
            }
        } else if (!strcmp(name, "--long")) {
            options->exhaustive = true;
        } else if (!strcmp(name, "--bench")) {
            options->bench = true;
        } else if (!strcmp(name, "--list")) {
            options->list = true;
        } else {
            return false;
        }
    }
    return true;
}

static int64_t run(const struct attn_kernels *table, const struct options *options)
{
    if (options->list) {
        printf("%s\n", table->name);
        return 0;
    }
    if (options->bench) {
        bench_f32(table);
        bench_f64(table);
        return 0;
    }
    struct check check = {
        .table = table,
        .reference = attn_kernels_at(0),
        .state = options->seed * UINT64_C(0x9E3779B97F4A7C15) + 1,
        .exhaustive = options->exhaustive,
    };
    check_f32(&check);
    check_f64(&check);
    check_convert(&check);
    printf("%s: %lld failures\n", table->name, (long long)check.failures);
    return check.failures;
}

int main(int count, char **arguments)
{
    struct options options = {.seed = 1};
    if (count == 2 && !strcmp(arguments[1], "--help")) {
        fputs(help, stdout);
        return 0;
    }
    if (!parse(count, arguments, &options)) {
        fputs(help, stderr);
        return 2;
    }
    const attn_float_env env = attn_float_env_enter();
    int64_t failures = 0, found = 0;
    for (int32_t i = 0; i < attn_kernels_count(); i++) {
        const struct attn_kernels *table = attn_kernels_at(i);
        if (options.tier == NULL || !strcmp(options.tier, table->name)) {
            failures += run(table, &options);
            found++;
        }
    }
    attn_float_env_leave(env);
    if (found == 0) {
        fprintf(stderr, "check_kernels: no table '%s' on this machine\n", options.tier);
        return 2;
    }
    return failures != 0;
}
