// Every executor runs every job exactly once, with workers that exclude each other, and runs nested
// loops on the worker that meets them.
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/context.h"
#include "core/job.h"
#include "status.h"

#if ATTN_HAVE_PTHREADPOOL
#include <pthreadpool.h>
#endif

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREAD_SANITIZER 1
#endif
#elif defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZER 1
#endif
// The pthreadpool library is not built for thread sanitizer, which cannot see how it synchronises.
#if ATTN_HAVE_PTHREADPOOL && !defined(THREAD_SANITIZER)
#define TEST_PTHREADPOOL 1
#endif

enum { MAX_THREADS = 5, JOBS = 200 };

struct log {
    atomic_int runs[JOBS];
    atomic_int inside[MAX_THREADS];
    int32_t workers;
    int unguarded[MAX_THREADS]; // one worker's own: thread sanitizer sees if two threads share it
    atomic_int wrong;
    const attn_context *context;
};

static void count_job(void *argument, int64_t index, int32_t worker)
{
    struct log *log = argument;
    if (worker < 0 || worker >= log->workers || index < 0 || index >= JOBS) {
        atomic_fetch_add(&log->wrong, 1);
        return;
    }
    if (atomic_fetch_add(&log->inside[worker], 1) != 0) {
        atomic_fetch_add(&log->wrong, 1);
    }
    atomic_fetch_add(&log->runs[index], 1);
    log->unguarded[worker]++;
    atomic_fetch_sub(&log->inside[worker], 1);
}

static void check_counts(const attn_executor *executor)
{
    for (int round = 0; round < 30; round++) {
        static const int64_t counts[] = {0, 1, 2, 3, 7, JOBS};
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            struct log log = {.workers = executor->workers};
            executor->parallel_for(executor->state, counts[c], count_job, &log);
            assert_int_equal(log.wrong, 0);
            int total = 0;
            for (int64_t i = 0; i < JOBS; i++) {
                assert_int_equal(log.runs[i], i < counts[c] ? 1 : 0);
            }
            for (int w = 0; w < MAX_THREADS; w++) {
                total += log.unguarded[w];
            }
            assert_int_equal(total, counts[c]);
        }
    }
}

// ---- nesting ------------------------------------------------------------------------------------

struct nest {
    const attn_executor *executor; // called directly, or
    const attn_context *context;   // through the context
    int32_t outer_worker;
    int64_t next;
    atomic_int *wrong, *runs;
};

static void inner_job(void *argument, int64_t index, int32_t worker)
{
    struct nest *nest = argument;
    if (worker != nest->outer_worker || index != nest->next++) {
        atomic_fetch_add(nest->wrong, 1);
    }
    atomic_fetch_add(nest->runs, 1);
}

static void outer_job(void *argument, int64_t index, int32_t worker)
{
    (void)index;
    struct nest nest = *(const struct nest *)argument;
    nest.outer_worker = worker;
    if (nest.context) {
        attn_parallel_for(nest.context, 10, inner_job, &nest);
    } else {
        nest.executor->parallel_for(nest.executor->state, 10, inner_job, &nest);
    }
}

static void check_nesting(const attn_executor *executor)
{
    atomic_int wrong = 0, runs = 0;
    struct nest nest = {.executor = executor, .wrong = &wrong, .runs = &runs};
    executor->parallel_for(executor->state, 20, outer_job, &nest);
    assert_int_equal(wrong, 0);
    assert_int_equal(runs, 200);
    assert_int_equal(attn_job_worker, ATTN_NO_WORKER);
}

static void check_executor(const attn_executor *executor)
{
    check_counts(executor);
    check_nesting(executor);
}

static attn_context *context_with(attn_executor executor)
{
    attn_context_config config;
    attn_context_config_init(&config);
    config.executor = executor;
    attn_context *context = NULL;
    attn_error error;
    ASSERT_OK(attn_context_create(&config, &context, &error));
    return context;
}

// ---- the ready executors ------------------------------------------------------------------------

static void serial(void **state)
{
    (void)state;
    attn_executor executor;
    attn_error error;
    ASSERT_OK(attn_executor_serial(&executor, &error));
    assert_int_equal(executor.workers, 1);
    check_executor(&executor);
    executor.destroy(executor.state);
}

static void pthreads(void **state)
{
    (void)state;
    for (int32_t threads = 1; threads <= MAX_THREADS; threads++) {
        attn_executor executor;
        attn_error error;
        ASSERT_OK(attn_executor_pthreads(threads, &executor, &error));
        assert_int_equal(executor.workers, threads);
        check_executor(&executor);
        executor.destroy(executor.state);
    }
}

static void an_unused_pool_can_be_destroyed(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        attn_executor executor;
        attn_error error;
        ASSERT_OK(attn_executor_pthreads(3, &executor, &error));
        executor.destroy(executor.state);
    }
}

static void zero_threads_mean_the_affinity_mask(void **state)
{
    (void)state;
    attn_executor executor;
    attn_error error;
    assert_true(attn_available_cpus() >= 1);
    ASSERT_OK(attn_executor_pthreads(0, &executor, &error));
    assert_int_equal(executor.workers, attn_available_cpus());
    executor.destroy(executor.state);
}

static void pthreadpool(void **state)
{
    (void)state;
#if TEST_PTHREADPOOL
    for (int32_t threads = 1; threads <= MAX_THREADS; threads++) {
        attn_executor executor;
        attn_error error;
        ASSERT_OK(attn_executor_pthreadpool(threads, &executor, &error));
        assert_int_equal(executor.workers, threads);
        check_executor(&executor);
        executor.destroy(executor.state);
    }
#else
    skip();
#endif
}

static void the_callers_pthreadpool(void **state)
{
    (void)state;
#if TEST_PTHREADPOOL
    pthreadpool_t pool = pthreadpool_create(3);
    for (int i = 0; i < 2; i++) { // the executor's end leaves the pool alive
        attn_executor executor;
        attn_error error;
        ASSERT_OK(attn_executor_pthreadpool_use(pool, &executor, &error));
        assert_int_equal(executor.workers, 3);
        check_executor(&executor);
        attn_context_destroy(context_with(executor));
    }
    pthreadpool_destroy(pool);
#else
    skip();
#endif
}

// ---- the caller's own executor ------------------------------------------------------------------

static void backwards(void *opaque, int64_t count, attn_job job, void *argument)
{
    const int32_t *workers = opaque;
    for (int64_t i = count - 1; i >= 0; i--) {
        job(argument, i, (int32_t)(i % *workers));
    }
}

static void a_custom_executor_need_not_know_of_nesting(void **state)
{
    (void)state;
    int32_t workers = 3;
    attn_context *context = context_with(
        (attn_executor){.state = &workers, .workers = workers, .parallel_for = backwards});
    struct log log = {.workers = workers};
    attn_parallel_for(context, JOBS, count_job, &log);
    assert_int_equal(log.wrong, 0);
    assert_int_equal(log.unguarded[0], 67); // of 200 jobs dealt to three
    assert_int_equal(log.unguarded[2], 66);
    atomic_int wrong = 0, runs = 0;
    struct nest nest = {.context = context, .wrong = &wrong, .runs = &runs};
    attn_parallel_for(context, 20, outer_job, &nest);
    assert_int_equal(wrong, 0);
    assert_int_equal(runs, 200);
    attn_context_destroy(context);
}

// ---- contexts -----------------------------------------------------------------------------------

static void count_in_context(void *argument, int64_t index, int32_t worker)
{
    struct log *log = argument;
    (void)worker;
    struct log inner = {.workers = attn_context_workers(log->context)};
    attn_parallel_for(log->context, 5, count_job, &inner);
    atomic_fetch_add(&log->wrong, inner.wrong);
    atomic_fetch_add(&log->runs[index], 1);
}

// A job of a wide context calls into one with a single worker: the worker's number must fit there.
static void nesting_across_contexts_keeps_workers_in_range(void **state)
{
    (void)state;
    attn_executor executor;
    attn_error error;
    ASSERT_OK(attn_executor_pthreads(4, &executor, &error));
    attn_context *wide = context_with(executor);
    ASSERT_OK(attn_executor_serial(&executor, &error));
    attn_context *narrow = context_with(executor);
    struct log log = {.workers = 4, .context = narrow};
    attn_parallel_for(wide, JOBS, count_in_context, &log);
    assert_int_equal(log.wrong, 0);
    for (int i = 0; i < JOBS; i++) {
        assert_int_equal(log.runs[i], 1);
    }
    attn_context_destroy(narrow);
    attn_context_destroy(wide);
}

static void *use_context(void *argument)
{
    const attn_context *context = argument;
    for (int round = 0; round < 50; round++) {
        struct log log = {.workers = attn_context_workers(context)};
        attn_parallel_for(context, JOBS, count_job, &log);
        for (int i = 0; i < JOBS; i++) {
            atomic_fetch_add(&log.wrong, log.runs[i] != 1);
        }
        if (log.wrong) {
            return argument;
        }
    }
    return NULL;
}

static void a_context_can_be_shared_between_threads(void **state)
{
    (void)state;
    attn_executor executor;
    attn_error error;
    ASSERT_OK(attn_executor_pthreads(3, &executor, &error));
    attn_context *context = context_with(executor);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, use_context, context), 0);
    }
    for (int i = 0; i < 4; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    attn_context_destroy(context);
}

// ---- refusals -----------------------------------------------------------------------------------

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    attn_executor executor;
    attn_error error;
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "executor_serial: executor is NULL",
                 attn_executor_serial(NULL, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "executor_pthreads: executor is NULL",
                 attn_executor_pthreads(1, NULL, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "executor_pthreads: threads (-1) must be in [0, 4096]",
                 attn_executor_pthreads(-1, &executor, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT,
                 "executor_pthreads: threads (4097) must be in [0, 4096]",
                 attn_executor_pthreads(4097, &executor, &error));
#if ATTN_HAVE_PTHREADPOOL
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "executor_pthreadpool: executor is NULL",
                 attn_executor_pthreadpool(1, NULL, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT,
                 "executor_pthreadpool: threads (-3) must be in [0, 4096]",
                 attn_executor_pthreadpool(-3, &executor, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "executor_pthreadpool_use: pool is NULL",
                 attn_executor_pthreadpool_use(NULL, &executor, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "executor_pthreadpool_use: executor is NULL",
                 attn_executor_pthreadpool_use(&executor, NULL, &error));
#else
    ASSERT_FAILS(ATTN_ERR_NOT_SUPPORTED,
                 "executor_pthreadpool: this library was built without pthreadpool",
                 attn_executor_pthreadpool(1, &executor, &error));
    ASSERT_FAILS(ATTN_ERR_NOT_SUPPORTED,
                 "executor_pthreadpool_use: this library was built without pthreadpool",
                 attn_executor_pthreadpool_use(&executor, &executor, &error));
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(serial),
        cmocka_unit_test(pthreads),
        cmocka_unit_test(an_unused_pool_can_be_destroyed),
        cmocka_unit_test(zero_threads_mean_the_affinity_mask),
        cmocka_unit_test(pthreadpool),
        cmocka_unit_test(the_callers_pthreadpool),
        cmocka_unit_test(a_custom_executor_need_not_know_of_nesting),
        cmocka_unit_test(nesting_across_contexts_keeps_workers_in_range),
        cmocka_unit_test(a_context_can_be_shared_between_threads),
        cmocka_unit_test(wrong_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
