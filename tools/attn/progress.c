#define _GNU_SOURCE
#include "progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long long milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void progress_begin(progress *p, const char *what, int64_t total)
{
    enum { PATIENCE = 500 };
    p->what = what;
    p->total = total;
    atomic_init(&p->done, 0);
    atomic_init(&p->next_draw, milliseconds() + PATIENCE);
    p->shown = isatty(STDERR_FILENO) == 1;
    atomic_init(&p->drawn, false);
}

void progress_advance(progress *p, int64_t steps)
{
    enum { INTERVAL = 100, WIDTH = 40 };
    const long long done = atomic_fetch_add(&p->done, steps) + steps;
    if (!p->shown || p->total <= 0) {
        return;
    }
    long long due = p->next_draw;
    const long long now = milliseconds();
    // Of the threads that find it due, one draws.
    if (now < due || !atomic_compare_exchange_strong(&p->next_draw, &due, now + INTERVAL)) {
        return;
    }
    const int filled = (int)(done * WIDTH / p->total);
    char bar[WIDTH + 1];
    for (int i = 0; i < WIDTH; i++) {
        bar[i] = i < filled ? '#' : '.';
    }
    bar[WIDTH] = '\0';
    fprintf(stderr, "\r%s [%s] %3lld%%", p->what, bar, done * 100 / p->total);
    p->drawn = true;
}

void progress_end(progress *p)
{
    if (p->drawn) {
        fprintf(stderr, "\r\x1b[K");
    }
}

// ---- an executor that reports -------------------------------------------------------------------

typedef struct reporting {
    progress *to;
    attn_executor inner;
} reporting;

typedef struct reported_job {
    progress *to;
    attn_job job;
    void *argument;
} reported_job;

static void run_reported(void *argument, int64_t index, int32_t worker)
{
    const reported_job *reported = argument;
    reported->job(reported->argument, index, worker);
    progress_advance(reported->to, 1);
}

static void reporting_for(void *state, int64_t count, attn_job job, void *argument)
{
    const reporting *self = state;
    self->to->total += count;
    reported_job reported = {self->to, job, argument};
    self->inner.parallel_for(self->inner.state, count, run_reported, &reported);
}

static void reporting_destroy(void *state)
{
    reporting *self = state;
    if (self->inner.destroy != NULL) {
        self->inner.destroy(self->inner.state);
    }
    free(self);
}

attn_executor progress_executor(progress *p, attn_executor inner)
{
    reporting *self = malloc(sizeof(*self));
    if (self == NULL) {
        return inner;
    }
    *self = (reporting){p, inner};
    return (attn_executor){self, inner.workers, reporting_for, reporting_destroy};
}
