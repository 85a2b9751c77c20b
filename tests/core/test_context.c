#define _POSIX_C_SOURCE 200809L // setenv

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator.h"
#include "core/context.h"
#include "core/cpu.h"
#include "status.h"

static void the_defaults_make_a_serial_context(void **state)
{
    (void)state;
    unsetenv("ATTN_CPU");
    attn_context *context = NULL;
    attn_error error;
    ASSERT_OK(attn_context_create(NULL, &context, &error));
    assert_int_equal(attn_context_workers(context), 1);
    assert_int_equal(attn_context_tier(context), attn_cpu_best_tier());
    attn_context_destroy(context);
    attn_context_destroy(NULL);
}

static void keep_line(void *state, attn_log_level level, const char *text)
{
    assert_int_equal(level, ATTN_LOG_DEBUG);
    snprintf(state, 80, "%s", text);
}

static void the_logger_hears_of_the_tier(void **state)
{
    (void)state;
    char line[80] = "";
    attn_context_config config;
    attn_context_config_init(&config);
    config.logger = (attn_logger){line, keep_line};
    config.tier = ATTN_TIER_PORTABLE;
    attn_context *context = NULL;
    attn_error error;
    ASSERT_OK(attn_context_create(&config, &context, &error));
    assert_string_equal(line, "context: tier portable, 1 workers");
    attn_context_destroy(context);
}

static void memory_is_aligned_and_counted(void **state)
{
    (void)state;
    test_allocator allocator;
    attn_context *context = test_context_on(&allocator);
    assert_int_equal(allocator.live, 1); // the context itself
    void *memory = attn_allocate(context, 100);
    assert_int_equal((uintptr_t)memory % ATTN_ALIGNMENT, 0);
    assert_int_equal(allocator.live, 2);
    attn_release(context, memory, 100);
    assert_null(attn_allocate(context, 0));
    assert_int_equal(allocator.calls, 2);
    attn_release(context, NULL, 0);
    test_context_end(context, &allocator);
}

static void the_default_allocator_takes_any_size(void **state)
{
    (void)state;
    attn_context *context = NULL;
    attn_error error;
    ASSERT_OK(attn_context_create(NULL, &context, &error));
    for (size_t size = 1; size < 300; size += 37) {
        char *memory = attn_allocate(context, size);
        assert_int_equal((uintptr_t)memory % ATTN_ALIGNMENT, 0);
        memset(memory, 1, size);
        attn_release(context, memory, size);
    }
    assert_null(attn_allocate(context, SIZE_MAX - 8)); // rounding up must not wrap to a small size
    attn_context_destroy(context);
}

static void a_failed_allocation_makes_no_context(void **state)
{
    (void)state;
    test_allocator allocator;
    attn_context_config config;
    attn_context_config_init(&config);
    config.allocator = test_allocator_init(&allocator);
    allocator.fail_at = 0;
    attn_context *context = NULL;
    attn_error error;
    ASSERT_FAILS(ATTN_ERR_OUT_OF_MEMORY, "context: out of memory",
                 attn_context_create(&config, &context, &error));
    assert_null(context);
    assert_int_equal(allocator.live, 0);
}

// ---- configs that are refused -------------------------------------------------------------------

static attn_status create(const attn_context_config *config, attn_error *error)
{
    attn_context *context = NULL;
    const attn_status status = attn_context_create(config, &context, error);
    if (status != ATTN_OK) {
        assert_null(context);
    }
    attn_context_destroy(context);
    return status;
}

static attn_context_config defaults(void)
{
    attn_context_config config;
    attn_context_config_init(&config);
    return config;
}

static void wrong_fields_are_named(void **state)
{
    (void)state;
    attn_error error;
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "context: context is NULL",
                 attn_context_create(NULL, NULL, &error));
    attn_context_config config = defaults();
    config.allocator.allocate = NULL;
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "context: allocator.allocate is NULL",
                 create(&config, &error));
    config = defaults();
    config.allocator.release = NULL;
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "context: allocator.release is NULL",
                 create(&config, &error));
    config = defaults();
    config.executor.parallel_for = NULL;
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "context: executor.parallel_for is NULL",
                 create(&config, &error));
    config = defaults();
    config.executor.workers = 0;
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "context: executor.workers (0) must be in [1, 4096]",
                 create(&config, &error));
    config = defaults();
    config.reserved[7] = 1;
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "context: reserved[7] must be zero",
                 create(&config, &error));
    config = defaults();
    config.tier = ATTN_TIER_COUNT;
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "context: unknown tier 5", create(&config, &error));
    config = defaults();
    config.struct_size = 0;
    assert_int_equal(create(&config, &error), ATTN_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "attn_context_config_init"));
}

static int destroyed;

static void count_destruction(void *opaque)
{
    (void)opaque;
    destroyed++;
}

static void the_executor_changes_hands_on_success_only(void **state)
{
    (void)state;
    attn_error error;
    attn_context_config config = defaults();
    config.executor.destroy = count_destruction;
    destroyed = 0;
    config.reserved[0] = 1;
    assert_int_equal(create(&config, &error), ATTN_ERR_INVALID_ARGUMENT);
    assert_int_equal(destroyed, 0);
    config.reserved[0] = 0;
    ASSERT_OK(create(&config, &error));
    assert_int_equal(destroyed, 1);
    config.executor.destroy = NULL;
    ASSERT_OK(create(&config, &error));
}

// ---- tiers --------------------------------------------------------------------------------------

static void tiers_have_names(void **state)
{
    (void)state;
    static const char *const names[] = {"auto", "portable", "avx2", "avx512", "neon"};
    for (int i = 0; i < ATTN_TIER_COUNT; i++) {
        assert_string_equal(attn_tier_name((attn_tier)i), names[i]);
    }
    assert_string_equal(attn_tier_name(ATTN_TIER_COUNT), "unknown");
    assert_string_equal(attn_tier_name((attn_tier)-1), "unknown");
    assert_int_equal(attn_tier_available(ATTN_TIER_AUTO), 1);
    assert_int_equal(attn_tier_available(ATTN_TIER_PORTABLE), 1);
    assert_int_equal(attn_tier_available(ATTN_TIER_COUNT), 0);
#if defined(__x86_64__)
    assert_int_equal(attn_tier_available(ATTN_TIER_NEON), 0);
    assert_int_equal(attn_tier_available(ATTN_TIER_AVX2),
                     __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0);
    if (attn_tier_available(ATTN_TIER_AVX512)) {
        assert_true(__builtin_cpu_supports("avx512vl"));
        assert_int_equal(attn_tier_available(ATTN_TIER_AVX2), 1);
    }
#else
    assert_int_equal(attn_tier_available(ATTN_TIER_NEON), 1);
    assert_int_equal(attn_tier_available(ATTN_TIER_AVX2), 0);
#endif
}

static attn_tier tier_of(attn_tier asked)
{
    attn_context_config config = defaults();
    config.tier = asked;
    attn_context *context = NULL;
    attn_error error;
    ASSERT_OK(attn_context_create(&config, &context, &error));
    const attn_tier tier = attn_context_tier(context);
    attn_context_destroy(context);
    return tier;
}

static void the_environment_overrides_auto(void **state)
{
    (void)state;
    attn_error error;
    for (attn_tier tier = ATTN_TIER_PORTABLE; tier < ATTN_TIER_COUNT; tier++) {
        setenv("ATTN_CPU", attn_tier_name(tier), 1);
        if (attn_tier_available(tier)) {
            assert_int_equal(tier_of(ATTN_TIER_AUTO), tier);
        } else {
            char text[100];
            snprintf(text, sizeof text, "context: ATTN_CPU: this machine cannot run tier %s",
                     attn_tier_name(tier));
            ASSERT_FAILS(ATTN_ERR_NOT_SUPPORTED, text, create(NULL, &error));
        }
        assert_int_equal(tier_of(ATTN_TIER_PORTABLE), ATTN_TIER_PORTABLE);
    }
    setenv("ATTN_CPU", "auto", 1);
    assert_int_equal(tier_of(ATTN_TIER_AUTO), attn_cpu_best_tier());
    setenv("ATTN_CPU", "", 1);
    assert_int_equal(tier_of(ATTN_TIER_AUTO), attn_cpu_best_tier());
    setenv("ATTN_CPU", "avx3", 1);
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT,
                 "context: ATTN_CPU is 'avx3'; it must be auto, portable, avx2, avx512 or neon",
                 create(NULL, &error));
    assert_int_equal(tier_of(ATTN_TIER_PORTABLE), ATTN_TIER_PORTABLE); // not looked at
    unsetenv("ATTN_CPU");
}

static void an_impossible_tier_is_refused(void **state)
{
    (void)state;
    unsetenv("ATTN_CPU");
    attn_error error;
    attn_context_config config = defaults();
#if defined(__x86_64__)
    config.tier = ATTN_TIER_NEON;
    ASSERT_FAILS(ATTN_ERR_NOT_SUPPORTED, "context: this machine cannot run tier neon",
                 create(&config, &error));
#else
    config.tier = ATTN_TIER_AVX2;
    ASSERT_FAILS(ATTN_ERR_NOT_SUPPORTED, "context: this machine cannot run tier avx2",
                 create(&config, &error));
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_defaults_make_a_serial_context),
        cmocka_unit_test(the_logger_hears_of_the_tier),
        cmocka_unit_test(memory_is_aligned_and_counted),
        cmocka_unit_test(the_default_allocator_takes_any_size),
        cmocka_unit_test(a_failed_allocation_makes_no_context),
        cmocka_unit_test(wrong_fields_are_named),
        cmocka_unit_test(the_executor_changes_hands_on_success_only),
        cmocka_unit_test(tiers_have_names),
        cmocka_unit_test(the_environment_overrides_auto),
        cmocka_unit_test(an_impossible_tier_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
