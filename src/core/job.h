// core/job.h: what a thread must know while it runs jobs of a parallel loop.
#ifndef ATTN_CORE_JOB_H
#define ATTN_CORE_JOB_H

#include <stdint.h>

#include "attn/context.h"
#include "core/float_env.h"

enum { ATTN_NO_WORKER = -1, ATTN_MAX_WORKERS = 4096 };

// The worker whose job this thread is running, else ATTN_NO_WORKER.
extern _Thread_local int32_t attn_job_worker;

typedef struct attn_job_scope {
    attn_float_env float_env;
    int32_t outer_worker;
} attn_job_scope;

// Stand around one job, or around all jobs that a thread runs in one loop.
static inline attn_job_scope attn_job_enter(int32_t worker)
{
    const attn_job_scope scope = {attn_float_env_enter(), attn_job_worker};
    attn_job_worker = worker;
    return scope;
}

static inline void attn_job_leave(attn_job_scope scope)
{
    attn_job_worker = scope.outer_worker;
    attn_float_env_leave(scope.float_env);
}

// Runs a loop on the calling thread: from inside a job as the worker that it is there, where
// `workers` has room for it, else as worker 0.
void attn_run_serially(int32_t workers, int64_t count, attn_job job, void *argument);

// Replaces a thread count of 0 by the number of available CPUs and checks its range.
attn_status attn_resolve_threads(const char *name, int32_t *threads, attn_error *error);

#endif
