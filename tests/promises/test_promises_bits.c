// A row depends only on itself: the same bits alone or in a batch, and for queries in chunks of any
// size.
#include "suite.h"
#include "support/attention_part.h"
#include "support/unit.h"

static void run(const attn_context *context, const struct attention *a, struct attention_results *r)
{
    attention_run(context, a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, r);
}

// Each batch entry, and each key/value head of it with its query heads, as a call of its own.
static void alone_or_in_a_batch(void **state)
{
    (void)state;
    attn_context *context = test_context();
    for (int n = 0; n < suite_count; n++) {
        struct attention whole;
        struct attention_results all;
        suite_begin(&whole, n);
        run(context, &whole, &all);
        for (int64_t b = 0; b < whole.shape.batch && suite[n].divisible; b++) {
            for (int64_t g = 0; g < whole.shape.key_heads; g++) {
                struct attention_block block = attention_entry(&whole, b);
                block.head_begin = g;
                block.head_end = g + 1;
                if (whole.query_lengths.data != NULL) {
                    block.query_end = (int64_t)test_at(&whole.query_lengths, b, 0, 0, 0);
                    block.key_end = (int64_t)test_at(&whole.key_lengths, b, 0, 0, 0);
                }
                struct attention own;
                struct attention_results r;
                attention_part(&own, &whole, &block);
                run(context, &own, &r);
                assert_attention_part(&whole, &all, &r, &block);
                attention_results_end(&r);
                attention_end(&own);
            }
        }
        attention_results_end(&all);
        attention_end(&whole);
    }
    attn_context_destroy(context);
}

// Rows [begin, end) as a call of their own, each at its own place of the diagonal.
static void check_chunk(const attn_context *context, const struct suite_problem *problem,
                        const struct attention *whole, const struct attention_results *all,
                        int64_t begin, int64_t end)
{
    for (int64_t b = 0; b < whole->shape.batch; b++) {
        struct attention_block block = attention_entry(whole, b);
        block.query_begin = begin;
        block.query_end = end;
        struct attention own;
        struct attention_results r;
        attention_part(&own, whole, &block);
        own.desc.diagonal = ATTN_DIAGONAL_OFFSET;
        own.desc.diagonal_offset = problem->offset + begin;
        run(context, &own, &r);
        assert_attention_part(whole, all, &r, &block);
        attention_results_end(&r);
        attention_end(&own);
    }
}

static void queries_in_chunks(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 7, 64};
    attn_context *context = test_context();
    for (int n = 0; n < suite_count; n++) {
        if (!suite[n].whole_rows) {
            continue;
        }
        struct attention whole;
        struct attention_results all;
        suite_begin(&whole, n);
        run(context, &whole, &all);
        const int64_t rows = whole.shape.queries;
        for (int m = 0; m < 3; m++) {
            // Chunks of one row: every seventh, the first and the last. The others: all.
            for (int64_t begin = 0; begin < rows; begin += m == 0 ? 7 : sizes[m]) {
                const int64_t end = begin + sizes[m] < rows ? begin + sizes[m] : rows;
                check_chunk(context, &suite[n], &whole, &all, begin, end);
            }
        }
        check_chunk(context, &suite[n], &whole, &all, rows - 1, rows);
        attention_results_end(&all);
        attention_end(&whole);
    }
    attn_context_destroy(context);
}

// Distances that float32 cannot hold exactly, from a diagonal that is far away.
static void alibi_far_away(void **state)
{
    (void)state;
    attn_context *context = test_context();
    const struct suite_problem problem = {.name = "far", .offset = (INT64_C(1) << 25) + 1};
    struct attention whole;
    struct attention_results all;
    attention_begin(&whole, (struct attention_shape){1, 1, 1, 150, 150, 4, 4, ATTN_F32}, 3);
    attention_add_alibi(&whole);
    whole.desc.diagonal = ATTN_DIAGONAL_OFFSET;
    whole.desc.diagonal_offset = problem.offset;
    whole.desc.window_left = problem.offset - 1; // row i sees keys from i + 1 on
    run(context, &whole, &all);
    for (int64_t row = 0; row < 150; row++) {
        check_chunk(context, &problem, &whole, &all, row, row + 1);
    }
    attention_results_end(&all);
    attention_end(&whole);
    attn_context_destroy(context);
}

// The checks above can fail: a key that rows see changes bits,
// and so does a chunk at a wrong place of the diagonal.
static void these_checks_can_fail(void **state)
{
    (void)state;
    attn_context *context = test_context();
    for (int n = 0; n < suite_count; n++) {
        struct attention a;
        struct attention_results before, after;
        suite_begin(&a, n);
        run(context, &a, &before);
        // Packed: in a sequence with queries. Elsewhere: the first row's last key.
        const int64_t seen = a.query_starts.data != NULL ? 1002 : suite[n].offset;
        const double old = test_at(&a.key, 0, 0, seen, 1);
        test_set(&a.key, 0, 0, seen, 1, old + 0.25);
        run(context, &a, &after);
        assert_other_bits(suite[n].name, &after.of[ATTENTION_LSE], &before.of[ATTENTION_LSE]);
        assert_other_bits(suite[n].name, &after.of[ATTENTION_OUTPUT], &before.of[ATTENTION_OUTPUT]);
        assert_other_bits(suite[n].name, &after.of[ATTENTION_GRAD_VALUE],
                          &before.of[ATTENTION_GRAD_VALUE]);
        test_set(&a.key, 0, 0, seen, 1, old);
        attention_results_end(&after);
        if (a.desc.causal && suite[n].whole_rows) {
            a.desc.diagonal = ATTN_DIAGONAL_OFFSET;
            a.desc.diagonal_offset = suite[n].offset - 1;
            run(context, &a, &after);
            assert_other_bits(suite[n].name, &after.of[ATTENTION_OUTPUT],
                              &before.of[ATTENTION_OUTPUT]);
            attention_results_end(&after);
        }
        attention_results_end(&before);
        attention_end(&a);
    }
    attn_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {

        cmocka_unit_test(alone_or_in_a_batch),
        cmocka_unit_test(queries_in_chunks),
        cmocka_unit_test(alibi_far_away),
        cmocka_unit_test(these_checks_can_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
