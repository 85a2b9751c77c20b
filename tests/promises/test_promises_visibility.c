// Over several key blocks and segments: future keys and masked keys change no bit of a row, whatever
// they hold; a NaN that is seen arrives; rows and sequences that see nothing; logits up to the limit.
#include <math.h>

#include "suite.h"
#include "support/status.h"
#include "support/unit.h"

enum { KEYS = 4500, ROWS = 40 };

static void begin(struct attention *a, attn_dtype dtype)
{
    attention_begin(a, (struct attention_shape){1, 2, 1, ROWS, KEYS, 8, 8, dtype}, 81);
}

static void run(const attn_context *context, const struct attention *a, struct attention_results *r)
{
    attention_run(context, a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, r);
}

static void set_key(struct attention *a, int64_t j, double key, double value)
{
    for (int64_t d = 0; d < 8; d++) {
        test_set(&a->key, 0, 0, j, d, key);
        test_set(&a->value, 0, 0, j, d, value);
    }
}

// What belongs to rows: everything but what sums over them.
static bool belongs_to_rows(int result)
{
    return result != ATTENTION_KEY_SUMS && result != ATTENTION_GRAD_KEY &&
           result != ATTENTION_GRAD_VALUE && result != ATTENTION_GRAD_SINKS;
}

static void check_rows(const struct attention_results *before,
                       const struct attention_results *after, int64_t from, int64_t to,
                       bool changed)
{
    attn_error error;
    for (int n = 0; n < ATTENTION_RESULT_COUNT; n++) {
        if (before->present[n] && belongs_to_rows(n)) {
            attn_tensor rows[2];
            ASSERT_OK(attn_tensor_slice(&before->of[n], 2, from, to, 1, &rows[0], &error));
            ASSERT_OK(attn_tensor_slice(&after->of[n], 2, from, to, 1, &rows[1], &error));
            if (!changed) {
                assert_same_bits(attention_result_names[n], &rows[1], &rows[0]);
            } else if (n == ATTENTION_OUTPUT || n == ATTENTION_LSE) {
                assert_other_bits(attention_result_names[n], &rows[1], &rows[0]);
            }
        }
    }
}

// Row 17 is the first to see the key that changes, at places around the edges of blocks and segments.
static void future_keys(void **state)
{
    (void)state;
    static const int64_t changed[] = {40, 255, 256, 511, 2047, 2048, 2049, 4095, 4096, 4460};
    static const double contents[] = {1.5, 100.0, NAN, INFINITY};
    attn_context *context = test_context();
    struct attention a;
    begin(&a, ATTN_F32);
    a.desc.causal = true;
    a.desc.diagonal = ATTN_DIAGONAL_OFFSET;
    for (size_t n = 0; n < sizeof(changed) / sizeof(changed[0]); n++) {
        struct attention_results before, after;
        a.desc.diagonal_offset = changed[n] - 17;
        run(context, &a, &before);
        const double content = contents[n % 4];
        set_key(&a, changed[n], content, content);
        run(context, &a, &after);
        check_rows(&before, &after, 0, 17, false);
        for (int64_t i = 17; i < ROWS; i += 11) {
            check_rows(&before, &after, i, i + 1, true);
        }
        set_key(&a, changed[n], 0.5, -0.5);
        attention_results_end(&after);
        attention_results_end(&before);
    }
    attention_end(&a);
    attn_context_destroy(context);
}

// One key in three segments each is hidden from all rows but row 5.
static void masked_and_visible_nan(void **state)
{
    (void)state;
    static const int64_t hidden[] = {3, 700, 2300, 4499};
    static const attn_dtype dtypes[] = {ATTN_F32, ATTN_F64, ATTN_F16};
    attn_context *context = test_context();
    for (int n = 0; n < 3; n++) {
        struct attention a;
        struct attention_results before, after;
        begin(&a, dtypes[n]);
        attention_add_keep(&a, (int64_t[]){1, 1, ROWS, KEYS}, 0.9);
        for (int64_t i = 0; i < ROWS; i++) {
            for (int m = 0; m < 4; m++) {
                test_set(&a.keep, 0, 0, i, hidden[m], i == 5);
            }
        }
        run(context, &a, &before);
        for (int m = 0; m < 4; m++) {
            set_key(&a, hidden[m], NAN, NAN);
        }
        run(context, &a, &after);
        check_rows(&before, &after, 0, 5, false);
        check_rows(&before, &after, 6, ROWS, false);
        assert_true(isnan(test_at(&after.of[ATTENTION_OUTPUT], 0, 1, 5, 7)));
        assert_true(isnan(test_at(&after.of[ATTENTION_LSE], 0, 1, 5, 0)));
        assert_true(isnan(test_at(&after.of[ATTENTION_GRAD_QUERY], 0, 1, 5, 0)));
        assert_true(isnan(test_at(&after.of[ATTENTION_GRAD_KEY], 0, 0, hidden[1], 0)));
        attention_results_end(&after);
        attention_results_end(&before);
        attention_end(&a);
    }
    attn_context_destroy(context);
}

// Rows that see one segment only, another only, or nothing, beside rows that see everything.
static void rows_that_see_little(void **state)
{
    (void)state;
    attn_context *context = test_context();
    struct attention a;
    struct attention_results r, reference;
    begin(&a, ATTN_F32);
    attention_add_keep(&a, (int64_t[]){1, 1, ROWS, KEYS}, 1.0);
    const int64_t seen[ROWS][2] = {
        [1] = {0, 1},     [2] = {2047, 2048}, [3] = {2048, 2049}, [4] = {4499, 4500},
        [5] = {100, 300}, [6] = {2000, 2100}, [7] = {0, KEYS}}; // row 0: nothing
    for (int64_t i = 0; i < 8; i++) {
        for (int64_t j = 0; j < KEYS; j++) {
            test_set(&a.keep, 0, 0, i, j, j >= seen[i][0] && j < seen[i][1]);
        }
    }
    run(context, &a, &r);
    attention_run(context, &a, ATTENTION_REFERENCE, ATTN_F64, &reference);
    assert_attention_close(&r, &reference, 2e-5, 2e-5);
    for (int64_t d = 0; d < 8; d++) {
        assert_true(test_at(&r.of[ATTENTION_OUTPUT], 0, 1, 0, d) == 0.0);
        assert_true(test_at(&r.of[ATTENTION_OUTPUT], 0, 1, 3, d) ==
                    test_at(&a.value, 0, 0, 2048, d)); // the weight of a lone key is 1
        assert_true(test_at(&r.of[ATTENTION_GRAD_QUERY], 0, 1, 0, d) == 0.0);
    }
    assert_true(test_at(&r.of[ATTENTION_LSE], 0, 1, 0, 0) == -(double)INFINITY);
    attention_results_end(&reference);
    attention_results_end(&r);
    attention_end(&a);
    attn_context_destroy(context);
}

static void sequences_of_length_zero(void **state)
{
    (void)state;
    attn_context *context = test_context();
    struct attention a;
    struct attention_results r, reference;
    attention_begin(&a, (struct attention_shape){4, 2, 1, 9, KEYS, 8, 8, ATTN_F32}, 82);
    attention_add_query_lengths(&a, (int64_t[]){9, 0, 9, 0});
    attention_add_key_lengths(&a, (int64_t[]){0, KEYS, 4097, 0});
    run(context, &a, &r);
    attention_run(context, &a, ATTENTION_REFERENCE, ATTN_F64, &reference);
    assert_attention_close(&r, &reference, 2e-5, 2e-5);
    assert_true(test_at(&r.of[ATTENTION_ROW_SUM], 2, 0, 0, 0) >= 1.0);
    assert_true(test_at(&r.of[ATTENTION_ROW_SUM], 0, 0, 0, 0) == 0.0);
    attention_results_end(&reference);
    attention_results_end(&r);
    attention_end(&a);
    attn_context_destroy(context);
}

// The largest scores stand in the first, the middle or the last segment; the others underflow.
static void logits_to_the_limit(void **state)
{
    (void)state;
    static const int64_t largest[] = {1, 2500, 4498};
    attn_context *context = test_context();
    for (int n = 0; n < 6; n++) {
        struct attention a;
        struct attention_results r;
        begin(&a, ATTN_F32);
        attn_error error;
        ASSERT_OK(attn_tensor_fill(&a.query, n < 3 ? 1e18 : -1e18, &error));
        a.desc.scale_mode = ATTN_SCALE_GIVEN;
        a.desc.scale = 1.0;
        for (int64_t d = 0; d < 8; d++) { // 8 * 1e18 * 4.2e19 = 3.4e38
            test_set(&a.key, 0, 0, largest[n % 3], d, n < 3 ? 4.2e19 : -4.2e19);
            test_set(&a.key, 0, 0, 777, d, n < 3 ? -4.2e19 : 4.2e19);
        }
        run(context, &a, &r);
        for (int64_t d = 0; d < 8; d++) {
            assert_true(test_at(&r.of[ATTENTION_OUTPUT], 0, 1, 3, d) ==
                        test_at(&a.value, 0, 0, largest[n % 3], d));
        }
        assert_true(test_at(&r.of[ATTENTION_ROW_SUM], 0, 1, 3, 0) == 1.0);
        assert_true(test_at(&r.of[ATTENTION_LSE], 0, 1, 3, 0) > 3.3e38);
        attention_results_end(&r);
        attention_end(&a);
    }
    attn_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(future_keys),          cmocka_unit_test(masked_and_visible_nan),
        cmocka_unit_test(rows_that_see_little), cmocka_unit_test(sequences_of_length_zero),
        cmocka_unit_test(logits_to_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
