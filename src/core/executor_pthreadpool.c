// Executors on the pthreadpool library: an own pool, or the caller's.
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/job.h"

#if ATTN_HAVE_PTHREADPOOL

#include <pthreadpool.h>

struct loop {
    attn_job job;
    void *argument;
    int64_t count;
    atomic_int_fast64_t next; // index of the next job to take
};

// One of the pool's tasks: takes jobs until none is left. The pool's own thread numbers are not
// asked for; a task's number serves, as a task is run by one thread.
static void run_jobs(void *argument, size_t task)
{
    struct loop *loop = argument;
    const int32_t worker = (int32_t)task;
    const attn_job_scope scope = attn_job_enter(worker);
    int64_t index;
    while ((index = atomic_fetch_add_explicit(&loop->next, 1, memory_order_relaxed)) <
           loop->count) {
        loop->job(loop->argument, index, worker);
    }
    attn_job_leave(scope);
}

static void pool_parallel_for(void *state, int64_t count, attn_job job, void *argument)
{
    pthreadpool_t pool = state;
    const int32_t workers = (int32_t)pthreadpool_get_threads_count(pool);
    if (attn_job_worker != ATTN_NO_WORKER || workers == 1 || count <= 1) {
        attn_run_serially(workers, count, job, argument);
        return;
    }
    struct loop loop = {.job = job, .argument = argument, .count = count};
    const int64_t tasks = count < workers ? count : workers;
    pthreadpool_parallelize_1d(pool, run_jobs, &loop, (size_t)tasks, 0);
}

static void pool_destroy(void *state)
{
    pthreadpool_destroy(state);
}

static void pool_keep(void *state)
{
    (void)state;
}

attn_status attn_executor_pthreadpool(int32_t threads, attn_executor *executor, attn_error *error)
{
    if (!executor) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "executor_pthreadpool: executor is NULL");
    }
    const attn_status status = attn_resolve_threads("executor_pthreadpool", &threads, error);
    if (status != ATTN_OK) {
        return status;
    }
    pthreadpool_t pool = pthreadpool_create((size_t)threads);
    if (!pool) {
        return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY,
                         "executor_pthreadpool: no pool of %d threads", threads);
    }
    *executor = (attn_executor){.state = pool,
                                .workers = threads,
                                .parallel_for = pool_parallel_for,
                                .destroy = pool_destroy};
    return ATTN_OK;
}

attn_status attn_executor_pthreadpool_use(void *pool, attn_executor *executor, attn_error *error)
{
    if (!pool || !executor) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "executor_pthreadpool_use: %s is NULL",
                         pool ? "executor" : "pool");
    }
    const size_t threads = pthreadpool_get_threads_count(pool);
    if (threads > ATTN_MAX_WORKERS) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "executor_pthreadpool_use: a pool of %zu threads; at most %d are possible",
                         threads, ATTN_MAX_WORKERS);
    }
    *executor = (attn_executor){.state = pool,
                                .workers = (int32_t)threads,
                                .parallel_for = pool_parallel_for,
                                .destroy = pool_keep};
    return ATTN_OK;
}

#else

attn_status attn_executor_pthreadpool(int32_t threads, attn_executor *executor, attn_error *error)
{
    (void)threads;
    (void)executor;
    return attn_fail(error, ATTN_ERR_NOT_SUPPORTED,
                     "executor_pthreadpool: this library was built without pthreadpool");
}

attn_status attn_executor_pthreadpool_use(void *pool, attn_executor *executor, attn_error *error)
{
    (void)pool;
    (void)executor;
    return attn_fail(error, ATTN_ERR_NOT_SUPPORTED,
                     "executor_pthreadpool_use: this library was built without pthreadpool");
}

#endif
