// The same bits for any number of threads and on every tier.
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_thread_count),
        cmocka_unit_test(any_tier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
