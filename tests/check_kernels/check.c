// check_kernels/check.c: random numbers, canaries, reports.
#include "check_kernels/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MARGIN = 256, CANARY = 0xA7, REPORTS = 10 };

void check_failed(struct check *check, const char *kernel, const char *format, ...)
{
    if (check->failures++ < REPORTS) {
        fprintf(stderr, "%s %s: ", check->table->name, kernel);
        va_list arguments;
        va_start(arguments, format);
        vfprintf(stderr, format, arguments);
        va_end(arguments);
        fprintf(stderr, "\n");
    }
}

// Xorshift64*.
uint32_t check_random(struct check *check)
{
    check->state ^= check->state >> 12;
    check->state ^= check->state << 25;
    check->state ^= check->state >> 27;
    return (uint32_t)((check->state * UINT64_C(0x2545F4914F6CDD1D)) >> 32);
}

int64_t check_between(struct check *check, int64_t low, int64_t high)
{
    return low + (int64_t)(check_random(check) % (uint64_t)(high - low + 1));
}

double check_uniform(struct check *check)
{
    return (double)check_random(check) * 0x1p-31 - 1;
}

struct guarded guarded_take(int64_t size)
{
    const size_t all = (size_t)size + 2 * MARGIN;
    struct guarded guarded = {.memory = malloc(all), .size = size};
    if (guarded.memory == NULL) {
        fprintf(stderr, "check_kernels: no memory\n");
        exit(2);
    }
    memset(guarded.memory, CANARY, all);
    guarded.data = guarded.memory + MARGIN;
    return guarded;
}

void guarded_give(struct check *check, const char *kernel, struct guarded *guarded)
{
    for (int64_t i = 0; i < MARGIN; i++) {
        if (guarded->memory[i] != CANARY || guarded->memory[MARGIN + guarded->size + i] != CANARY) {
            check_failed(check, kernel, "wrote outside its memory");
            break;
        }
    }
    free(guarded->memory);
}
