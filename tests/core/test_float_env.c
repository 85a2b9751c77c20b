// Jobs run under round to nearest with subnormals, whatever the calling thread or a pool's threads
// had set; afterwards the thread's own setting is back.
#include <fenv.h>
#include <float.h>
#include <stdatomic.h>

#include "core/context.h"
#include "core/float_env.h"
#include "status.h"

#if defined(__x86_64__)
enum { FLUSH = 0x8040 }; // flush to zero, denormals are zero

static uint64_t read_mode(void)
{
    return _mm_getcsr();
}

static void write_mode(uint64_t mode)
{
    _mm_setcsr((unsigned)mode);
}
#else
enum { FLUSH = 1 << 24 };

static uint64_t read_mode(void)
{
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
}

static void write_mode(uint64_t mode)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(mode) : "memory");
}
#endif

static volatile float smallest_normal = FLT_MIN, half = 0.5f;
static volatile float one = 1, third = 3;

static int subnormals_live(void)
{
    const volatile float result = smallest_normal * half;
    return result == FLT_MIN / 2 && result > 0;
}

static int rounds_to_nearest(void)
{
    const volatile float up = one / third, down = -one / third;
    return up == 0x1.555556p-2f && down == -0x1.555556p-2f;
}

static void check_job(void *argument, int64_t index, int32_t worker)
{
    (void)index;
    (void)worker;
    atomic_fetch_add((atomic_int *)argument, !subnormals_live() || !rounds_to_nearest());
}

static void check_context(attn_executor executor)
{
    attn_context_config config;
    attn_context_config_init(&config);
    config.executor = executor;
    attn_context *context = NULL;
    attn_error error;
    ASSERT_OK(attn_context_create(&config, &context, &error));
    const uint64_t mode = read_mode();
    write_mode(mode | FLUSH);
    fesetround(FE_UPWARD);
    const uint64_t odd = read_mode();
    const int odd_effect = !subnormals_live() && !rounds_to_nearest();
    atomic_int wrong = 0;
    attn_parallel_for(context, 40, check_job, &wrong);
    attn_parallel_for(context, 1, check_job, &wrong);
    const uint64_t after = read_mode();
    write_mode(mode);
    assert_true(odd_effect);
    assert_int_equal(wrong, 0);
#if defined(__x86_64__)
    assert_int_equal(after & ~0x3fu, odd & ~0x3fu);
#else
    assert_int_equal(after, odd);
#endif
    attn_context_destroy(context);
}

static void a_serial_context(void **state)
{
    (void)state;
    attn_executor executor;
    attn_error error;
    ASSERT_OK(attn_executor_serial(&executor, &error));
    check_context(executor);
}

static void new_threads_inherit_nothing_odd(void **state)
{
    (void)state;
    attn_executor executor;
    attn_error error;
    const uint64_t mode = read_mode();
    write_mode(mode | FLUSH); // the pool's threads may start with it
    const attn_status status = attn_executor_pthreads(3, &executor, &error);
    write_mode(mode);
    ASSERT_OK(status);
    check_context(executor);
}

static void spoil(void *opaque, int64_t count, attn_job job, void *argument)
{
    (void)opaque;
    const uint64_t mode = read_mode();
    for (int64_t i = 0; i < count; i++) {
        write_mode(mode | FLUSH);
        job(argument, i, 0);
    }
    write_mode(mode);
}

static void a_custom_executor_that_flushes(void **state)
{
    (void)state;
    check_context((attn_executor){.workers = 1, .parallel_for = spoil});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_serial_context),
        cmocka_unit_test(new_threads_inherit_nothing_odd),
        cmocka_unit_test(a_custom_executor_that_flushes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
