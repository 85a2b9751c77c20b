// The same bits for any number of threads and on every tier.
#include <fenv.h>

#include "suite.h"
#include "support/unit.h"

static void run(const attn_context *context, const struct attention *a, struct attention_results *r)
{
    attention_run(context, a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, r);
}

// Each problem under each context gives what it gives under the first.
static void check_contexts(attn_context *const *contexts, int count)
{
    for (int n = 0; n < suite_count; n++) {
        struct attention a;
        struct attention_results first, other;
        suite_begin(&a, n);
        run(contexts[0], &a, &first);
        for (int m = 1; m < count; m++) {
            run(contexts[m], &a, &other);
            assert_attention_same_bits(&other, &first);
            attention_results_end(&other);
        }
        attention_results_end(&first);
        attention_end(&a);
    }
    for (int m = 0; m < count; m++) {
        attn_context_destroy(contexts[m]);
    }
}

static void any_thread_count(void **state)
{
    (void)state;
    attn_context *const contexts[] = {test_context(), test_context_with(2, ATTN_TIER_AUTO),
                                      test_context_with(3, ATTN_TIER_AUTO),
                                      test_context_with(5, ATTN_TIER_AUTO)};
    check_contexts(contexts, 4);
}

static void any_tier(void **state)
{
    (void)state;
    attn_context *contexts[ATTN_TIER_COUNT];
    int count = 0;
    for (int tier = ATTN_TIER_PORTABLE; tier < ATTN_TIER_COUNT; tier++) {
        if (attn_tier_available((attn_tier)tier)) {
            contexts[count++] = test_context_with(1, (attn_tier)tier);
        }
    }
    check_contexts(contexts, count);
}

// The caller's rounding mode: the default scale of 24 dimensions is no power of two.
static void any_rounding_mode(void **state)
{
    (void)state;
    static const int modes[] = {FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
    attn_context *context = test_context();
    struct attention a;
    struct attention_results first, other;
    attention_begin(&a, (struct attention_shape){1, 2, 1, 40, 300, 24, 24, ATTN_F32}, 7);
    attention_add_philox(&a, 0.1);
    run(context, &a, &first);
    for (int m = 0; m < 3; m++) {
        attention_results_begin(&other, &a, ATTN_DTYPE_NONE);
        assert_int_equal(fesetround(modes[m]), 0);
        attention_forward(context, &a, ATTENTION_PUBLIC, &other);
        attention_backward(context, &a, ATTENTION_PUBLIC, &other);
        assert_int_equal(fegetround(), modes[m]);
        assert_int_equal(fesetround(FE_TONEAREST), 0);
        assert_attention_same_bits(&other, &first);
        attention_results_end(&other);
    }
    attention_results_end(&first);
    attention_end(&a);
    attn_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_thread_count),
        cmocka_unit_test(any_tier),
        cmocka_unit_test(any_rounding_mode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
