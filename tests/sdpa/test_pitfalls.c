// What users of other attention implementations ran into, one test for each kind. The names in the
// comments are repositories and numbers of public reports.
#include <float.h>
#include <math.h>

#include "support/attention.h"
#include "support/status.h"
#include "support/unit.h"

static struct attention_shape square(int64_t rows, attn_dtype dtype)
{
    return (struct attention_shape){1, 2, 2, rows, rows, 4, 4, dtype};
}

static bool all_finite(const attn_tensor *tensor)
{
    for (int64_t n = 0; n < attn_tensor_count(tensor); n++) {
        if (!isfinite(((const float *)tensor->data)[n])) { // the results are row-major float32
            return false;
        }
    }
    return true;
}

// pytorch 103749, 103963, 41508; mlx 2608; rten 1321: one row that is masked as a whole makes its
// output, and then every gradient, NaN.
static void a_masked_row_spoils_no_gradient(void **state)
{
    (void)state;
    attn_context *context = test_context();
    struct attention a;
    struct attention_results r;
    attention_begin(&a, square(5, ATTN_F32), 61);
    attention_add_keep(&a, (int64_t[]){1, 1, 5, 5}, 1.0);
    for (int64_t j = 0; j < 5; j++) {
        test_set(&a.keep, 0, 0, 3, j, 0.0);
    }
    attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &r);
    assert_true(test_at(&r.of[ATTENTION_OUTPUT], 0, 0, 3, 0) == 0.0);
    assert_true(test_at(&r.of[ATTENTION_LSE], 0, 0, 3, 0) == -(double)INFINITY);
    assert_true(all_finite(&r.of[ATTENTION_OUTPUT]));
    assert_true(all_finite(&r.of[ATTENTION_GRAD_QUERY]));
    assert_true(all_finite(&r.of[ATTENTION_GRAD_KEY]));
    assert_true(all_finite(&r.of[ATTENTION_GRAD_VALUE]));
    attention_results_end(&r);
    attention_end(&a);
    attn_context_destroy(context);
}

// pytorch 109517: a row whose bias is the smallest finite float everywhere turns NaN. It is a row like
// any other: all scores are equal after the addition, so its weights are.
static void a_row_of_smallest_floats_is_finite(void **state)
{
    (void)state;
    attn_context *context = test_context();
    struct attention a;
    struct attention_results r;
    attention_begin(&a, square(4, ATTN_F32), 62);
    attention_add_bias(&a, ATTN_F32, (int64_t[]){1, 1, 4, 4}, 0.0);
    for (int64_t j = 0; j < 4; j++) {
        test_set(&a.bias, 0, 0, 1, j, -(double)FLT_MAX);
    }
    attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &r);
    assert_true(all_finite(&r.of[ATTENTION_OUTPUT]));
    assert_true(all_finite(&r.of[ATTENTION_GRAD_KEY]));
    double sum = 0.0;
    for (int64_t j = 0; j < 4; j++) {
        sum += test_at(&r.of[ATTENTION_WEIGHTS], 0, 1, 1, j);
    }
    assert_true(fabs(sum - 1.0) < 1e-6);
    attention_results_end(&r);
    attention_end(&a);
    attn_context_destroy(context);
}

// cubecl 1070: the reference gave NaN, the kernel a number, and the test passed.
static void comparisons_see_nan(void **state)
{
    (void)state;
    double number = 1.0, not_a_number = NAN;
    const int64_t one = 1;
    const attn_tensor a = attn_tensor_wrap(&number, ATTN_F64, 1, &one);
    const attn_tensor b = attn_tensor_wrap(&not_a_number, ATTN_F64, 1, &one);
    attn_comparison comparison;
    attn_error error;
    ASSERT_OK(attn_tensor_compare(&a, &b, 1e300, 1e300, &comparison, &error));
    assert_int_equal(comparison.differing, 1);
    ASSERT_OK(attn_tensor_compare(&b, &a, 1e300, 1e300, &comparison, &error));
    assert_int_equal(comparison.differing, 1);
    ASSERT_OK(attn_tensor_compare(&b, &b, 0.0, 0.0, &comparison, &error));
    assert_int_equal(comparison.differing, 0);
}

// mlx 2836, 2967; onnx 8054: where causal masking starts when there are not as many queries as keys.
// Here it has a name, and each means what it says for fewer, as many and more queries.
static void causal_alignment_is_named(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{3, 5}, {4, 4}, {5, 3}};
    attn_context *context = test_context();
    for (int n = 0; n < 6; n++) {
        const int64_t queries = sizes[n / 2][0], keys = sizes[n / 2][1];
        const bool bottom_right = n % 2 == 1;
        struct attention a;
        struct attention_results r;
        attention_begin(&a, (struct attention_shape){1, 1, 1, queries, keys, 2, 2, ATTN_F32}, 63);
        a.desc.causal = true;
        a.desc.diagonal = bottom_right ? ATTN_DIAGONAL_BOTTOM_RIGHT : ATTN_DIAGONAL_TOP_LEFT;
        attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &r);
        for (int64_t i = 0; i < queries; i++) {
            for (int64_t j = 0; j < keys; j++) {
                const bool visible = j <= i + (bottom_right ? keys - queries : 0);
                const double weight = test_at(&r.of[ATTENTION_WEIGHTS], 0, 0, i, j);
                assert_true(visible ? weight > 0.0 : weight == 0.0);
            }
        }
        attention_results_end(&r);
        attention_end(&a);
    }
    attn_context_destroy(context);
}

// pytorch 170415: one interface takes true for "masked", another for "may attend".
static void true_may_attend(void **state)
{
    (void)state;
    attn_context *context = test_context();
    struct attention a;
    struct attention_results r;
    attention_begin(&a, square(3, ATTN_F32), 64);
    attention_add_keep(&a, (int64_t[]){1, 1, 1, 3}, 0.0);
    test_set(&a.keep, 0, 0, 0, 2, 1.0);
    attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &r);
    assert_true(test_at(&r.of[ATTENTION_WEIGHTS], 0, 0, 0, 2) == 1.0);
    assert_true(test_at(&r.of[ATTENTION_WEIGHTS], 0, 0, 0, 0) == 0.0);
    attention_results_end(&r);
    attention_end(&a);
    attn_context_destroy(context);
}

// pytorch 97409, 97605: a mask shape that training takes and evaluation refuses. The shape rule asks
// for nothing but sizes.
static void one_shape_rule(void **state)
{
    (void)state;
    attn_context *context = test_context();
    for (int n = 0; n < 32; n++) {
        struct attention a;
        struct attention_results r;
        const struct attention_shape s = {2, 4, 2, 3, 5, 4, 4, ATTN_F32};
        attention_begin(&a, s, 65);
        const int64_t sizes[] = {n & 1 ? s.batch : 1, n & 2 ? s.query_heads : 1,
                                 n & 4 ? s.queries : 1, n & 8 ? s.keys : 1};
        attention_add_keep(&a, sizes, 0.7);
        attention_add_bias(&a, ATTN_F32, sizes, 1.0);
        if (n & 16) {
            attention_add_philox(&a, 0.5);
        }
        attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &r);
        attention_results_end(&r);
        attention_end(&a);
    }
    attn_context_destroy(context);
}

// pytorch 121595, 84030: the same seed gives another dropout mask on another CPU. (That the
// decisions are those of attn/random.h is tested with dropout.)
static void dropout_is_the_same_everywhere(void **state)
{
    (void)state;
    attn_context *contexts[] = {test_context(), test_context_with(3, ATTN_TIER_PORTABLE)};
    struct attention_results r[2];
    struct attention a;
    attention_begin(&a, square(9, ATTN_F32), 66);
    attention_add_philox(&a, 0.5);
    for (int n = 0; n < 2; n++) {
        attention_results_begin(&r[n], &a, ATTN_DTYPE_NONE);
        attn_sdpa_forward_args args = attention_forward_args(&a, &r[n]);
        args.weights_dropped = true;
        attn_error error;
        ASSERT_OK(attn_sdpa_forward(contexts[n], &a.desc, &args, &error));
    }
    assert_same_bits("weights", &r[0].of[ATTENTION_WEIGHTS], &r[1].of[ATTENTION_WEIGHTS]);
    for (int n = 0; n < 2; n++) {
        attention_results_end(&r[n]);
        attn_context_destroy(contexts[n]);
    }
    attention_end(&a);
}

// flash-attention 1537; pytorch 81077, 141218: a sequence of length 0 in a batch.
static void a_sequence_of_nothing(void **state)
{
    (void)state;
    attn_context *context = test_context();
    struct attention a;
    struct attention_results r;
    struct attention_shape shape = square(4, ATTN_F32);
    shape.batch = 3;
    attention_begin(&a, shape, 67);
    attention_add_query_lengths(&a, (int64_t[]){4, 0, 4});
    attention_add_key_lengths(&a, (int64_t[]){0, 4, 4});
    a.desc.causal = true;
    a.desc.diagonal = ATTN_DIAGONAL_BOTTOM_RIGHT;
    attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &r);
    for (int64_t b = 0; b < 3; b++) {
        const double sum = test_at(&r.of[ATTENTION_ROW_SUM], b, 1, 3, 0);
        assert_true(b == 2 ? sum >= 1.0 : sum == 0.0);
    }
    assert_true(all_finite(&r.of[ATTENTION_OUTPUT]));
    assert_true(all_finite(&r.of[ATTENTION_GRAD_KEY]));
    attention_results_end(&r);
    attention_end(&a);
    attn_context_destroy(context);
}

// pytorch 121558: a row over about 133,000 bfloat16 keys gives NaN. The values are all 1, so the
// output is.
static void a_long_row_of_bfloat16(void **state)
{
    (void)state;
    attn_context *context = test_context();
    struct attention a;
    attention_begin(&a, (struct attention_shape){1, 1, 1, 1, 140000, 2, 1, ATTN_BF16}, 68);
    attn_error error;
    ASSERT_OK(attn_tensor_fill(&a.value, 1.0, &error));
    float output = 0.0F, lse = 0.0F;
    const int64_t shape[] = {1, 1, 1, 1};
    const attn_tensor o = attn_tensor_wrap(&output, ATTN_F32, 4, shape);
    const attn_tensor l = attn_tensor_wrap(&lse, ATTN_F32, 3, shape);
    attn_sdpa_forward_args args;
    attn_sdpa_forward_args_init(&args);
    args.query = &a.query;
    args.key = &a.key;
    args.value = &a.value;
    args.output = &o;
    args.lse = &l;
    ASSERT_OK(attn_sdpa_forward(context, &a.desc, &args, &error));
    assert_true(fabsf(output - 1.0F) <= 1e-5F);
    assert_true(lse > 11.0F && lse < 16.0F);
    attention_end(&a);
    attn_context_destroy(context);
}

// pytorch 119131: logits near 8e5 overflow float16 arithmetic.
static void large_logits_in_float16(void **state)
{
    (void)state;
    attn_context *context = test_context();
    struct attention a;
    struct attention_results r;
    attention_begin(&a, square(4, ATTN_F16), 69);
    attn_error error;
    ASSERT_OK(attn_tensor_fill(&a.query, 500.0, &error));
    ASSERT_OK(attn_tensor_fill(&a.key, 400.0, &error)); // 4 * 500 * 400 = 8e5
    test_set(&a.key, 0, 0, 2, 0, 401.0);
    a.desc.scale_mode = ATTN_SCALE_GIVEN;
    a.desc.scale = 1.0;
    attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &r);
    assert_true(test_at(&r.of[ATTENTION_LSE], 0, 1, 0, 0) > 8e5 - 1.0);
    assert_true(test_at(&r.of[ATTENTION_WEIGHTS], 0, 1, 0, 0) == 0.25);
    assert_true(test_at(&r.of[ATTENTION_WEIGHTS], 0, 0, 0, 2) == 1.0);
    attention_results_end(&r);
    attention_end(&a);
    attn_context_destroy(context);
}

// long-context-attention 122: wrong log-sum-exp at short lengths.
static void lse_at_short_lengths(void **state)
{
    (void)state;
    attn_context *context = test_context();
    for (int64_t rows = 1; rows <= 20; rows++) {
        struct attention a;
        struct attention_results r;
        attention_begin(&a, square(rows, ATTN_F32), 70);
        attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &r);
        for (int64_t i = 0; i < rows; i++) {
            double sum = 0.0;
            for (int64_t j = 0; j < rows; j++) {
                double s = 0.0;
                for (int64_t d = 0; d < 4; d++) {
                    s += test_at(&a.query, 0, 1, i, d) * test_at(&a.key, 0, 1, j, d);
                }
                sum += exp(s / 2.0);
            }
            assert_true(fabs(test_at(&r.of[ATTENTION_LSE], 0, 1, i, 0) - log(sum)) < 2e-6);
        }
        attention_results_end(&r);
        attention_end(&a);
    }
    attn_context_destroy(context);
}

// flash-attention 1897; vllm 51902: a row changes when its batch neighbour grows by one token.
static void a_growing_neighbour(void **state)
{
    (void)state;
    attn_context *context = test_context();
    struct attention_results r[2];
    struct attention a;
    struct attention_shape shape = square(12, ATTN_F32);
    shape.batch = 2;
    for (int n = 0; n < 2; n++) {
        attention_begin(&a, shape, 71);
        attention_add_key_lengths(&a, (int64_t[]){7, 10 + n});
        attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &r[n]);
        attention_end(&a);
    }
    attn_error error;
    for (int m = 0; m < ATTENTION_RESULT_COUNT; m++) {
        for (int64_t b = 0; b < 2 && r[0].present[m]; b++) {
            attn_tensor entries[2];
            for (int n = 0; n < 2; n++) {
                ASSERT_OK(attn_tensor_select(&r[n].of[m], 0, b, &entries[n], &error));
            }
            if (b == 0) {
                assert_same_bits(attention_result_names[m], &entries[0], &entries[1]);
            } else {
                assert_other_bits(attention_result_names[m], &entries[0], &entries[1]);
            }
        }
    }
    attention_results_end(&r[0]);
    attention_results_end(&r[1]);
    attn_context_destroy(context);
}

// pytorch 190523; ComfyUI 15135; Depth-Anything-3 268: grouped queries copy keys and values, or every
// head gets its own copy of one mask. The scratch memory knows neither.
static void nothing_is_copied_per_head(void **state)
{
    (void)state;
    attn_context *context = test_context();
    struct attention a;
    struct attention_results r;
    attention_begin(&a, (struct attention_shape){1, 16, 1, 1, 8192, 32, 32, ATTN_F32}, 72);
    attention_add_keep(&a, (int64_t[]){1, 1, 1, 8192}, 0.9);
    attention_results_begin(&r, &a, ATTN_DTYPE_NONE);
    const attn_sdpa_forward_args args = attention_forward_args(&a, &r);
    attn_error error;
    size_t bytes = 0;
    ASSERT_OK(attn_sdpa_forward_workspace(context, &a.desc, &args, &bytes, &error));
    assert_true(bytes < (size_t)2 << 20); // keys and values of one head are 2 MiB
    attention_results_end(&r);
    attention_end(&a);
    attn_context_destroy(context);
}

// flash-attention 414, 2244: gradients that differ from run to run.
static void gradients_repeat(void **state)
{
    (void)state;
    attn_context *context = test_context_with(3, ATTN_TIER_AUTO);
    struct attention a;
    struct attention_results first, again;
    attention_begin(&a, (struct attention_shape){1, 4, 1, 65, 70, 8, 8, ATTN_F32}, 73);
    attention_add_bias(&a, ATTN_F32, (int64_t[]){1, 1, 65, 70}, 1.0);
    attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &first);
    for (int n = 0; n < 5; n++) {
        attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &again);
        assert_attention_same_bits(&again, &first);
        attention_results_end(&again);
    }
    attention_results_end(&first);
    attention_end(&a);
    attn_context_destroy(context);
}

// pytorch 98505, 119811, 143993; xformers 1190: no way to see the weights of the fused kernel. Chosen
// heads and rows, in any order, are those of the whole.
static void weights_on_demand(void **state)
{
    (void)state;
    attn_context *context = test_context();
    struct attention a;
    struct attention_results all;
    attention_begin(&a, (struct attention_shape){2, 4, 2, 7, 9, 4, 4, ATTN_F32}, 74);
    a.desc.causal = true;
    attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &all);
    const int64_t heads[] = {3, 0, 3}, rows[] = {6, 2};
    const attn_tensor head_list = test_list(&a.pool, ATTN_I32, 3, heads);
    const attn_tensor row_list = test_list(&a.pool, ATTN_I64, 2, rows);
    const attn_tensor chosen = test_tensor(&a.pool, ATTN_F32, 4, (int64_t[]){2, 3, 2, 9});
    attn_sdpa_forward_args args;
    attn_sdpa_forward_args_init(&args);
    args.query = &a.query;
    args.key = &a.key;
    args.value = &a.value;
    args.weights = &chosen;
    args.weight_heads = &head_list;
    args.weight_rows = &row_list;
    attn_error error;
    ASSERT_OK(attn_sdpa_forward(context, &a.desc, &args, &error));
    for (int64_t b = 0; b < 2; b++) {
        for (int64_t n = 0; n < 3; n++) {
            for (int64_t m = 0; m < 2; m++) {
                for (int64_t j = 0; j < 9; j++) {
                    assert_true(test_at(&chosen, b, n, m, j) ==
                                test_at(&all.of[ATTENTION_WEIGHTS], b, heads[n], rows[m], j));
                }
            }
        }
    }
    double sum = 0.0;
    for (int64_t i = 0; i < 7; i++) {
        sum += test_at(&all.of[ATTENTION_WEIGHTS], 1, 2, i, 1);
    }
    assert_true(fabs(test_at(&all.of[ATTENTION_KEY_SUMS], 1, 2, 1, 0) - sum) < 1e-6);
    attention_results_end(&all);
    attention_end(&a);
    attn_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_masked_row_spoils_no_gradient),
        cmocka_unit_test(a_row_of_smallest_floats_is_finite),
        cmocka_unit_test(comparisons_see_nan),
        cmocka_unit_test(causal_alignment_is_named),
        cmocka_unit_test(true_may_attend),
        cmocka_unit_test(one_shape_rule),
        cmocka_unit_test(dropout_is_the_same_everywhere),
        cmocka_unit_test(a_sequence_of_nothing),
        cmocka_unit_test(a_long_row_of_bfloat16),
        cmocka_unit_test(large_logits_in_float16),
        cmocka_unit_test(lse_at_short_lengths),
        cmocka_unit_test(a_growing_neighbour),
        cmocka_unit_test(nothing_is_copied_per_head),
        cmocka_unit_test(gradients_repeat),
        cmocka_unit_test(weights_on_demand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
