// Infinities, NaN and numbers near the float limit in what attn/sdpa.h is given, by the public call.
#include <math.h>
#include <string.h>

#include "support/attention.h"
#include "support/unit.h"

static const struct attention_shape small = {.batch = 2,
                                             .query_heads = 4,
                                             .key_heads = 2,
                                             .queries = 6,
                                             .keys = 9,
                                             .head_dim = 5,
                                             .value_dim = 3,
                                             .dtype = ATTN_F32};

// NaN here is NaN there, in every result.
static void assert_same_nan(const attn_context *context, const struct attention *a)
{
    struct attention_results r, reference;
    attention_run(context, a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &r);
    attention_run(context, a, ATTENTION_REFERENCE, ATTN_DTYPE_NONE, &reference);
    int64_t nan = 0;
    for (int n = 0; n < ATTENTION_RESULT_COUNT; n++) {
        const attn_tensor *of = &r.of[n];
        for (int64_t e = 0; r.present[n] && e < attn_tensor_count(of); e++) {
            int64_t at[4] = {0}, left = e;
            for (int d = of->ndim - 1; d >= 0; d--) {
                at[d] = left % of->shape[d];
                left /= of->shape[d];
            }
            const bool is = isnan(test_at(of, at[0], at[1], at[2], at[3]));
            if (is != isnan(test_at(&reference.of[n], at[0], at[1], at[2], at[3]))) {
                fail_msg("%s[%d,%d,%d,%d]: NaN %s", attention_result_names[n], (int)at[0],
                         (int)at[1], (int)at[2], (int)at[3],
                         is ? "here only" : "in the reference only");
            }
            nan += is;
        }
    }
    assert_true(nan > 0);
    attention_results_end(&r);
    attention_results_end(&reference);
}

// A sink of -inf is no sink.
static void infinite_sink(void **state)
{
    (void)state;
    attn_context *context = test_context();
    struct attention a;
    struct attention_results without, with;
    attention_begin(&a, small, 45);
    attention_add_query_lengths(&a, (int64_t[]){6, 4});
    attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &without);
    attention_add_sinks(&a);
    for (int64_t h = 0; h < 4; h++) {
        test_set(&a.sinks, h, 0, 0, 0, -(double)INFINITY);
    }
    attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &with);
    for (int64_t h = 0; h < 4; h++) {
        assert_true(test_at(&with.of[ATTENTION_GRAD_SINKS], h, 0, 0, 0) == 0.0);
    }
    with.present[ATTENTION_GRAD_SINKS] = false;
    assert_attention_same_bits(&with, &without);
    attention_results_end(&with);
    attention_results_end(&without);
    attention_end(&a);
    attn_context_destroy(context);
}

// A row without keys has output 0, even where its sink is NaN.
static void nan_sink(void **state)
{
    (void)state;
    attn_context *context = test_context();
    struct attention a;
    struct attention_results r;
    attention_begin(&a, small, 51);
    attention_add_key_lengths(&a, (int64_t[]){9, 0});
    attention_add_sinks(&a);
    test_set(&a.sinks, 1, 0, 0, 0, NAN);
    attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &r);
    assert_true(isnan(test_at(&r.of[ATTENTION_OUTPUT], 0, 1, 0, 0)));
    assert_true(isnan(test_at(&r.of[ATTENTION_LSE], 1, 1, 0, 0)));
    assert_true(isnan(test_at(&r.of[ATTENTION_ROW_SUM], 1, 1, 0, 0)));
    for (int64_t h = 0; h < 4; h++) {
        assert_true(test_at(&r.of[ATTENTION_OUTPUT], 1, h, 0, 0) == 0.0);
    }
    attention_results_end(&r);
    attention_end(&a);
    attn_context_destroy(context);
}

// The same beyond the query length.
static void nan_sink_of_no_row(void **state)
{
    (void)state;
    attn_context *context = test_context();
    struct attention a;
    struct attention_results r;
    attention_begin(&a, small, 51);
    attention_add_query_lengths(&a, (int64_t[]){6, 2});
    attention_add_sinks(&a);
    test_set(&a.sinks, 1, 0, 0, 0, NAN);
    attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &r);
    assert_true(isnan(test_at(&r.of[ATTENTION_ROW_MAX], 1, 1, 4, 0)));
    assert_true(isnan(test_at(&r.of[ATTENTION_ROW_SUM], 1, 1, 4, 0)));
    assert_true(isnan(test_at(&r.of[ATTENTION_LSE], 1, 1, 4, 0)));
    assert_true(test_at(&r.of[ATTENTION_OUTPUT], 1, 1, 4, 0) == 0.0);
    attention_results_end(&r);
    attention_end(&a);
    attn_context_destroy(context);
}

// A sink of +inf is like one that is NaN, beyond the lengths as well; one of -inf hides no NaN of a score.
static void sink_of_infinity(void **state)
{
    (void)state;
    static const double sinks[] = {INFINITY, NAN, -INFINITY, 0.5};
    attn_context *context = test_context();
    for (int n = 0; n < 8; n++) {
        struct attention a;
        attention_begin(&a, small, 53);
        attention_add_query_lengths(&a, (int64_t[]){6, 2});
        attention_add_key_lengths(&a, (int64_t[]){9, n < 4 ? 9 : 0});
        attention_add_sinks(&a);
        attention_add_grad_lse(&a);
        test_set(&a.sinks, 1, 0, 0, 0, sinks[n % 4]);
        if (n % 4 >= 2) {
            test_set(&a.query, 0, 1, 2, 0, NAN);
        }
        assert_same_nan(context, &a);
        attention_end(&a);
    }
    attn_context_destroy(context);
}

// A score of +inf makes its row NaN, whatever else it sees.
static void infinite_score(void **state)
{
    (void)state;
    attn_context *context = test_context();
    for (int n = 0; n < 2; n++) {
        struct attention a;
        attention_begin(&a, small, 54);
        a.desc.causal = n == 1;
        test_set(&a.query, 0, 1, 4, 0, 1.0);
        test_set(&a.key, 0, 0, 2, 0, INFINITY);
        assert_same_nan(context, &a);
        attention_end(&a);
    }
    attn_context_destroy(context);
}

// What keep hides stays hidden, whatever is added to it.
static void infinite_slope(void **state)
{
    (void)state;
    static const double slopes[] = {INFINITY, -INFINITY, NAN};
    attn_context *context = test_context();
    for (int n = 0; n < 3; n++) {
        struct attention a;
        struct attention_results r;
        attention_begin(&a, small, 52);
        attention_add_keep(&a, (int64_t[]){1, 1, 1, 9}, 0.0);
        attention_add_alibi(&a);
        test_set(&a.alibi_slopes, 1, 0, 0, 0, slopes[n]);
        attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &r);
        assert_true(test_at(&r.of[ATTENTION_OUTPUT], 0, 1, 3, 0) == 0.0);
        assert_true(test_at(&r.of[ATTENTION_ROW_SUM], 0, 1, 3, 0) == 0.0);
        assert_true(test_at(&r.of[ATTENTION_LSE], 0, 1, 3, 0) == -(double)INFINITY);
        attention_results_end(&r);
        attention_end(&a);
    }
    attn_context_destroy(context);
}

static void logits_to_the_limit(void **state)
{
    (void)state;
    attn_context *context = test_context();
    struct attention a;
    struct attention_results r, reference;
    attention_begin(&a, (struct attention_shape){1, 1, 1, 4, 4, 1, 2, ATTN_F32}, 48);
    a.desc.scale_mode = ATTN_SCALE_GIVEN;
    a.desc.scale = 1.0;
    const double queries[] = {1e19, -1e19, 1.0, 1e-19}, keys[] = {3.4e19, 3.3e19, -3.4e19, 0.0};
    for (int64_t i = 0; i < 4; i++) {
        test_set(&a.query, 0, 0, i, 0, queries[i]);
        test_set(&a.key, 0, 0, i, 0, keys[i]);
    }
    attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &r);
    attention_run(context, &a, ATTENTION_REFERENCE, ATTN_DTYPE_NONE, &reference);
    for (int n = 0; n <= ATTENTION_KEY_SUMS; n++) { // gradients of key may exceed float32
        assert_tensors_close(attention_result_names[n], &r.of[n], &reference.of[n], 1e-6, 1e-6);
    }
    assert_true(test_at(&r.of[ATTENTION_WEIGHTS], 0, 0, 0, 0) == 1.0);
    assert_true(test_at(&r.of[ATTENTION_WEIGHTS], 0, 0, 1, 2) == 1.0);
    assert_true(test_at(&r.of[ATTENTION_ROW_MAX], 0, 0, 0, 0) > 3.3e38);
    assert_true(isfinite(test_at(&r.of[ATTENTION_OUTPUT], 0, 0, 1, 0)));
    attention_results_end(&reference);
    attention_results_end(&r);
    attention_end(&a);
    attn_context_destroy(context);
}

// The product is beyond the float limit, the scaled score is not.
static void product_beyond_the_limit(void **state)
{
    (void)state;
    attn_context *context = test_context();
    struct attention a;
    struct attention_results r, reference;
    attention_begin(&a, (struct attention_shape){1, 1, 1, 2, 3, 64, 2, ATTN_F32}, 49);
    for (int64_t d = 0; d < 64; d++) { // dot products of 8e38, scores of 1e38
        for (int64_t i = 0; i < 2; i++) {
            test_set(&a.query, 0, 0, i, d, i == 0 ? 1e19 : -1e19);
        }
        for (int64_t j = 0; j < 3; j++) {
            test_set(&a.key, 0, 0, j, d, j == 1 ? 1.25e18 : 1.0);
        }
    }
    attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &r);
    attention_run(context, &a, ATTENTION_REFERENCE, ATTN_DTYPE_NONE, &reference);
    for (int n = 0; n <= ATTENTION_KEY_SUMS; n++) {
        assert_tensors_close(attention_result_names[n], &r.of[n], &reference.of[n], 1e-6, 1e-6);
    }
    assert_true(test_at(&r.of[ATTENTION_ROW_MAX], 0, 0, 0, 0) > 9e37);
    attention_results_end(&reference);
    attention_results_end(&r);
    attention_end(&a);
    attn_context_destroy(context);
}

// A score that is -infinity by itself masks its pair as any mask does, in any company.
static void infinite_score_masks(void **state)
{
    (void)state;
    attn_context *context = test_context();
    for (int masked = 0; masked < 2; masked++) {
        struct attention a;
        struct attention_results clean, poisoned;
        attention_begin(&a, small, 50);
        if (masked) {
            a.desc.causal = true; // the block is mixed
        }
        for (int64_t b = 0; b < 2; b++) { // every query's first column is positive
            for (int64_t h = 0; h < 4; h++) {
                for (int64_t i = 0; i < a.shape.queries; i++) {
                    test_set(&a.query, b, h, i, 0, 1.0);
                }
            }
        }
        for (int64_t b = 0; b < 2; b++) {
            for (int64_t h = 0; h < 2; h++) {
                test_set(&a.key, b, h, 2, 0, -(double)INFINITY);
            }
        }
        attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &clean);
        for (int64_t b = 0; b < 2; b++) {
            for (int64_t h = 0; h < 2; h++) {
                for (int64_t d = 0; d < a.shape.value_dim; d++) {
                    test_set(&a.value, b, h, 2, d, NAN);
                }
            }
        }
        attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &poisoned);
        assert_true(isfinite(test_at(&clean.of[ATTENTION_OUTPUT], 0, 0, 5, 0)));
        assert_attention_same_bits(&poisoned, &clean);
        attention_results_end(&poisoned);
        attention_results_end(&clean);
        attention_end(&a);
    }
    attn_context_destroy(context);
}

// Capped, an infinite product has slope 0; 0 times an infinite key is NaN whatever the zero's sign is.
static void infinite_key_under_softcap(void **state)
{
    (void)state;
    attn_context *context = test_context();
    for (uint64_t seed = 60; seed < 64; seed++) {
        struct attention a;
        attention_begin(&a, small, seed);
        a.desc.softcap = 2.0;
        a.desc.causal = seed % 2 == 0;
        test_set(&a.key, 1, 0, 2, 3, seed < 62 ? INFINITY : -(double)INFINITY);
        assert_same_nan(context, &a);
        attention_end(&a);
    }
    attn_context_destroy(context);
}

// A value that is not finite reaches the gradients of its rows, although its weight was dropped or is too
// small for float32, and whether a row's delta comes from the output or, with most of the weight at one
// key, from the keys.
static void dropped_value_not_finite(void **state)
{
    (void)state;
    static const double scales[] = {0.1, 40.0}, values[] = {NAN, INFINITY};
    attn_context *context = test_context();
    for (int n = 0; n < 3; n++) { // infinity times a weight too small for float32 is NaN only there
        struct attention a;
        attention_begin(&a, small, 64);
        a.desc.scale_mode = ATTN_SCALE_GIVEN;
        a.desc.scale = scales[n / 2];
        attention_add_dropout_keep(&a, (int64_t[]){1, 1, 1, 9}, 0.5);
        ((uint8_t *)a.dropout_keep.data)[0] = 0x5A; // of keys 0 to 7, 1, 3, 4 and 6 are kept
        for (int64_t key = 1; key < 3; key++) {
            test_set(&a.value, 1, 0, key, 1, values[n % 2]);
            assert_same_nan(context, &a);
            test_set(&a.value, 1, 0, key, 1, 1.0);
        }
        attention_end(&a);
    }
    attn_context_destroy(context);
}

// A NaN has the same bits on every tier.
static void one_quiet_nan(void **state)
{
    (void)state;
    static const float quiet = NAN;
    for (int tier = ATTN_TIER_PORTABLE; tier < ATTN_TIER_COUNT; tier++) {
        if (!attn_tier_available((attn_tier)tier)) {
            continue;
        }
        attn_context *context = test_context_with(1, (attn_tier)tier);
        struct attention a;
        struct attention_results r;
        attention_begin(&a, small, 65);
        attention_add_bias(&a, ATTN_F32, (int64_t[]){1, 4, 6, 9}, 1.0);
        attention_add_sinks(&a);
        attention_add_grad_lse(&a);
        test_set(&a.key, 0, 1, 2, 3, INFINITY);
        test_set(&a.query, 1, 0, 4, 1, -(double)NAN);
        test_set(&a.value, 1, 1, 4, 1, INFINITY);
        attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &r);
        for (int n = 0; n < ATTENTION_RESULT_COUNT; n++) {
            const float *values = r.of[n].data;
            int64_t nan = 0;
            for (int64_t e = 0; e < attn_tensor_count(&r.of[n]); e++) {
                nan += isnan(values[e]) != 0;
                assert_true(!isnan(values[e]) || memcmp(&values[e], &quiet, sizeof quiet) == 0);
            }
            assert_true(nan > 0);
        }
        attention_results_end(&r);
        attention_end(&a);
        attn_context_destroy(context);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(infinite_sink),
        cmocka_unit_test(nan_sink),
        cmocka_unit_test(nan_sink_of_no_row),
        cmocka_unit_test(sink_of_infinity),
        cmocka_unit_test(infinite_score),
        cmocka_unit_test(infinite_slope),
        cmocka_unit_test(logits_to_the_limit),
        cmocka_unit_test(product_beyond_the_limit),
        cmocka_unit_test(infinite_score_masks),
        cmocka_unit_test(infinite_key_under_softcap),
        cmocka_unit_test(dropped_value_not_finite),
        cmocka_unit_test(one_quiet_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
