// An executor of plain POSIX threads. The calling thread is worker 0; the others wait for loops,
// spinning for some tens of microseconds before they sleep.
//
// A loop is open while jobs are left to take. A thread joins it only while it is open, and the
// caller returns when the loop is closed and everyone who joined has left: a thread that wakes up
// late costs nothing.
#define _POSIX_C_SOURCE 200809L // pthread_sigmask

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/job.h"

struct pool;

struct member {
    struct pool *pool;
    pthread_t thread;
    int32_t worker;
};

struct pool {
    pthread_mutex_t callers; // one loop at a time; further callers wait here
    pthread_mutex_t mutex;   // guards all but `next`; the atomics are also read while spinning
    pthread_cond_t opened, left;
    atomic_uint_fast64_t loops; // opened so far
    atomic_int joined;          // threads, besides the caller, inside the open loop
    bool open, stop;

    attn_job job;
    void *argument;
    int64_t count;
    atomic_int_fast64_t next; // index of the next job to take

    int32_t workers;
    struct member members[]; // workers - 1
};

enum { SPINS = 2000 };

static void pool_parallel_for(void *state, int64_t count, attn_job job, void *argument);
static void pool_destroy(void *state);
static void *member_main(void *argument);
static bool wait_for_loop(struct pool *pool, uint_fast64_t *seen);
static void run_jobs(struct pool *pool, int32_t worker);
static int start_member(struct pool *pool, int32_t worker);

attn_status attn_executor_pthreads(int32_t threads, attn_executor *executor, attn_error *error)
{
    if (!executor) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "executor_pthreads: executor is NULL");
    }
    const attn_status status = attn_resolve_threads("executor_pthreads", &threads, error);
    if (status != ATTN_OK) {
        return status;
    }
    struct pool *pool = calloc(1, sizeof *pool + (size_t)(threads - 1) * sizeof pool->members[0]);
    if (!pool) {
        return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY, "executor_pthreads: out of memory");
    }
    pthread_mutex_init(&pool->callers, NULL);
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->opened, NULL);
    pthread_cond_init(&pool->left, NULL);
    pool->workers = 1;
    while (pool->workers < threads) {
        const int refused = start_member(pool, pool->workers);
        if (refused) {
            const int started = pool->workers;
            char reason[128] = "";
            strerror_r(refused, reason, sizeof reason);
            pool_destroy(pool);
            return attn_fail(error, ATTN_ERR_STATE,
                             "executor_pthreads: the system refused thread %d of %d: %s",
                             started + 1, threads, reason);
        }
        pool->workers++;
    }
    *executor = (attn_executor){.state = pool,
                                .workers = threads,
                                .parallel_for = pool_parallel_for,
                                .destroy = pool_destroy};
    return ATTN_OK;
}

// Signals from outside stay with the program's own threads; those for a thread's own faults do not.
static int start_member(struct pool *pool, int32_t worker)
{
    struct member *member = &pool->members[worker - 1];
    *member = (struct member){.pool = pool, .worker = worker};
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTRAP, SIGABRT};
    sigset_t outside, before;
    sigfillset(&outside);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        sigdelset(&outside, faults[i]);
    }
    pthread_sigmask(SIG_BLOCK, &outside, &before);
    const int refused = pthread_create(&member->thread, NULL, member_main, member);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return refused;
}

static void pool_destroy(void *state)
{
    struct pool *pool = state;
    pthread_mutex_lock(&pool->mutex);
    pool->stop = true;
    atomic_fetch_add_explicit(&pool->loops, 1, memory_order_release);
    pthread_cond_broadcast(&pool->opened);
    pthread_mutex_unlock(&pool->mutex);
    for (int32_t worker = 1; worker < pool->workers; worker++) {
        pthread_join(pool->members[worker - 1].thread, NULL);
    }
    pthread_cond_destroy(&pool->left);
    pthread_cond_destroy(&pool->opened);
    pthread_mutex_destroy(&pool->mutex);
    pthread_mutex_destroy(&pool->callers);
    free(pool);
}

static inline void relax(void)
{
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void pool_parallel_for(void *state, int64_t count, attn_job job, void *argument)
{
    struct pool *pool = state;
    if (attn_job_worker != ATTN_NO_WORKER || pool->workers == 1 || count <= 1) {
        attn_run_serially(pool->workers, count, job, argument);
        return;
    }
    pthread_mutex_lock(&pool->callers);

    pthread_mutex_lock(&pool->mutex);
    pool->job = job;
    pool->argument = argument;
    pool->count = count;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    pool->open = true;
    atomic_fetch_add_explicit(&pool->loops, 1, memory_order_release);
    pthread_cond_broadcast(&pool->opened);
    pthread_mutex_unlock(&pool->mutex);

    run_jobs(pool, 0);

    for (int spin = 0;
         spin < SPINS && atomic_load_explicit(&pool->joined, memory_order_acquire) > 0; spin++) {
        relax();
    }
    pthread_mutex_lock(&pool->mutex);
    pool->open = false;
    while (atomic_load_explicit(&pool->joined, memory_order_relaxed) > 0) {
        pthread_cond_wait(&pool->left, &pool->mutex);
    }
    pthread_mutex_unlock(&pool->mutex);

    pthread_mutex_unlock(&pool->callers);
}

static void *member_main(void *argument)
{
    const struct member *member = argument;
    struct pool *pool = member->pool;
    uint_fast64_t seen = 0;
    while (wait_for_loop(pool, &seen)) {
        run_jobs(pool, member->worker);
        pthread_mutex_lock(&pool->mutex);
        if (atomic_fetch_sub_explicit(&pool->joined, 1, memory_order_release) == 1) {
            pthread_cond_signal(&pool->left);
        }
        pthread_mutex_unlock(&pool->mutex);
    }
    return NULL;
}

// Joins the next loop that is open; false when the pool stops.
static bool wait_for_loop(struct pool *pool, uint_fast64_t *seen)
{
    for (;;) {
        for (int spin = 0;
             spin < SPINS && atomic_load_explicit(&pool->loops, memory_order_acquire) == *seen;
             spin++) {
            relax();
        }
        pthread_mutex_lock(&pool->mutex);
        while (atomic_load_explicit(&pool->loops, memory_order_relaxed) == *seen) {
            pthread_cond_wait(&pool->opened, &pool->mutex);
        }
        *seen = atomic_load_explicit(&pool->loops, memory_order_relaxed);
        const bool stop = pool->stop, join = pool->open && !stop;
        if (join) {
            atomic_fetch_add_explicit(&pool->joined, 1, memory_order_relaxed);
        }
        pthread_mutex_unlock(&pool->mutex);
        if (join || stop) {
            return join;
        }
    }
}

static void run_jobs(struct pool *pool, int32_t worker)
{
    const attn_job_scope scope = attn_job_enter(worker);
    const int64_t count = pool->count;
    int64_t index;
    while ((index = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed)) < count) {
        pool->job(pool->argument, index, worker);
    }
    attn_job_leave(scope);
}
