#define _GNU_SOURCE // sched_getaffinity

#include <sched.h>
#include <stddef.h>

#include "core/error.h"
#include "core/job.h"

_Thread_local int32_t attn_job_worker = ATTN_NO_WORKER;

static void serial_parallel_for(void *state, int64_t count, attn_job job, void *argument)
{
    (void)state;
    attn_run_serially(1, count, job, argument);
}

static void serial_destroy(void *state)
{
    (void)state;
}

attn_status attn_executor_serial(attn_executor *executor, attn_error *error)
{
    if (!executor) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "executor_serial: executor is NULL");
    }
    *executor = (attn_executor){
        .workers = 1, .parallel_for = serial_parallel_for, .destroy = serial_destroy};
    return ATTN_OK;
}

void attn_run_serially(int32_t workers, int64_t count, attn_job job, void *argument)
{
    const int32_t outer = attn_job_worker;
    const int32_t worker = outer != ATTN_NO_WORKER && outer < workers ? outer : 0;
    const attn_job_scope scope = attn_job_enter(worker);
    for (int64_t index = 0; index < count; index++) {
        job(argument, index, worker);
    }
    attn_job_leave(scope);
}

attn_status attn_resolve_threads(const char *name, int32_t *threads, attn_error *error)
{
    if (*threads < 0 || *threads > ATTN_MAX_WORKERS) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "%s: threads (%d) must be in [0, %d]",
                         name, *threads, ATTN_MAX_WORKERS);
    }
    if (*threads == 0) {
        const int32_t cpus = attn_available_cpus();
        *threads = cpus < ATTN_MAX_WORKERS ? cpus : ATTN_MAX_WORKERS;
    }
    return ATTN_OK;
}

int32_t attn_available_cpus(void)
{
    // The kernel refuses a set that is smaller than its own, so try larger ones.
    for (int bits = CPU_SETSIZE; bits <= 1 << 20; bits *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)bits);
        if (!set) {
            break;
        }
        const size_t size = CPU_ALLOC_SIZE((size_t)bits);
        const int refused = sched_getaffinity(0, size, set);
        const int cpus = refused ? 0 : CPU_COUNT_S(size, set);
        CPU_FREE(set);
        if (!refused) {
            return cpus > 0 ? cpus : 1;
        }
    }
    return 1;
}
