// Packed sequences, lengths and chunks of queries give bit for bit what separate calls on their parts
// give: by the reference and by the public call.
#include <math.h>

#include "support/attention_part.h"
#include "support/status.h"
#include "support/unit.h"

// ---- packed -------------------------------------------------------------------------------------

static const int64_t query_starts[] = {0, 5, 5, 12, 13, 20};
static const int64_t key_starts[] = {0, 7, 10, 19, 19, 26};
enum { SEQUENCES = 5, PACKED_QUERIES = 23, PACKED_KEYS = 29 };

// Sequence n; for n = SEQUENCES the rows outside all of them.
static struct attention_block sequence_block(int n)
{
    const bool outside = n == SEQUENCES;
    return (struct attention_block){.head_end = 2,
                                    .query_begin = query_starts[n],
                                    .query_end = outside ? PACKED_QUERIES : query_starts[n + 1],
                                    .key_begin = key_starts[n],
                                    .key_end = outside ? key_starts[n] : key_starts[n + 1]};
}

static void make_packed(struct attention *a, attn_dtype dtype, attn_dropout_kind dropout)
{
    attention_begin(a,
                    (struct attention_shape){.batch = 1,
                                             .query_heads = 4,
                                             .key_heads = 2,
                                             .queries = PACKED_QUERIES,
                                             .keys = PACKED_KEYS,
                                             .head_dim = 8,
                                             .value_dim = 5,
                                             .dtype = dtype},
                    11);
    attention_add_starts(a, SEQUENCES + 1, query_starts, key_starts);
    attention_add_keep(a, (int64_t[]){1, 1, PACKED_QUERIES, PACKED_KEYS}, 0.8);
    attention_add_bias(a, ATTN_F32, (int64_t[]){1, 4, PACKED_QUERIES, PACKED_KEYS}, 1.0);
    attention_add_alibi(a);
    attention_add_sinks(a);
    attention_add_grad_lse(a);
    a->desc.causal = true;
    a->desc.diagonal = ATTN_DIAGONAL_BOTTOM_RIGHT;
    a->desc.window_left = 6;
    a->desc.softcap = 3.0;
    if (dropout == ATTN_DROPOUT_PHILOX) {
        attention_add_philox(a, 0.3);
        a->desc.dropout_batch = 2;
    } else if (dropout == ATTN_DROPOUT_KEEP) {
        attention_add_dropout_keep(a, (int64_t[]){1, 4, PACKED_QUERIES, PACKED_KEYS}, 0.3);
    }
}

static void check_packed(attn_dtype dtype, enum attention_path path, attn_dropout_kind dropout)
{
    attn_context *context = test_context();
    struct attention whole;
    struct attention_results all;
    make_packed(&whole, dtype, dropout);
    attention_run(context, &whole, path, ATTN_DTYPE_NONE, &all);
    for (int n = 0; n < SEQUENCES; n++) {
        const struct attention_block block = sequence_block(n);
        struct attention own;
        struct attention_results r;
        attention_part(&own, &whole, &block);
        own.desc.dropout_batch += n;
        own.desc.dropout_row = whole.desc.dropout_row; // rows count from the sequence's first
        attention_run(context, &own, path, ATTN_DTYPE_NONE, &r);
        assert_attention_part(&whole, &all, &r, &block);
        attention_results_end(&r);
        attention_end(&own);
    }
    // Between sequences nothing passes.
    assert_true(test_at(&all.of[ATTENTION_GRAD_BIAS], 0, 1, query_starts[1], 0) == 0.0);
    assert_true(test_at(&all.of[ATTENTION_WEIGHTS], 0, 1, 0, key_starts[1]) == 0.0);
    // Rows and keys outside every sequence: output 0, lse the sink, no gradient.
    for (int64_t i = query_starts[SEQUENCES]; i < PACKED_QUERIES; i++) {
        for (int64_t h = 0; h < 4; h++) {
            assert_true(test_at(&all.of[ATTENTION_OUTPUT], 0, h, i, 1) == 0.0);
            assert_true(test_at(&all.of[ATTENTION_LSE], 0, h, i, 0) ==
                        test_at(&whole.sinks, h, 0, 0, 0));
            assert_true(test_at(&all.of[ATTENTION_GRAD_QUERY], 0, h, i, 1) == 0.0);
            assert_true(test_at(&all.of[ATTENTION_GRAD_BIAS], 0, h, i, 3) == 0.0);
        }
    }
    for (int64_t j = key_starts[SEQUENCES]; j < PACKED_KEYS; j++) {
        assert_true(test_at(&all.of[ATTENTION_KEY_SUMS], 0, 1, j, 0) == 0.0);
        assert_true(test_at(&all.of[ATTENTION_GRAD_KEY], 0, 1, j, 2) == 0.0);
        assert_true(test_at(&all.of[ATTENTION_GRAD_VALUE], 0, 1, j, 2) == 0.0);
    }
    attention_results_end(&all);
    attention_end(&whole);
    attn_context_destroy(context);
}

static void packed_reference(void **state)
{
    (void)state;
    check_packed(ATTN_F64, ATTENTION_REFERENCE, ATTN_DROPOUT_NONE);
    check_packed(ATTN_F32, ATTENTION_REFERENCE, ATTN_DROPOUT_PHILOX);
    check_packed(ATTN_F64, ATTENTION_REFERENCE, ATTN_DROPOUT_KEEP);
}

static void packed_public(void **state)
{
    (void)state;
    static const attn_dtype dtypes[] = {ATTN_F32, ATTN_F64, ATTN_F16, ATTN_BF16};
    for (size_t n = 0; n < sizeof(dtypes) / sizeof(dtypes[0]); n++) {
        check_packed(dtypes[n], ATTENTION_PUBLIC, ATTN_DROPOUT_NONE);
        check_packed(dtypes[n], ATTENTION_PUBLIC, ATTN_DROPOUT_PHILOX);
        check_packed(dtypes[n], ATTENTION_PUBLIC, ATTN_DROPOUT_KEEP);
    }
}

// The gradient of the sinks is the sum over the sequences.
static void packed_sinks(void **state)
{
    (void)state;
    attn_context *context = test_context();
    struct attention whole;
    struct attention_results all;
    make_packed(&whole, ATTN_F64, ATTN_DROPOUT_NONE);
    attention_run(context, &whole, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &all);
    double sum = 0.0;
    for (int n = 0; n <= SEQUENCES; n++) { // the rows outside pass grad_lse to the sink
        const struct attention_block block = sequence_block(n);
        struct attention own;
        struct attention_results r;
        attention_part(&own, &whole, &block);
        attention_run(context, &own, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &r);
        sum += test_at(&r.of[ATTENTION_GRAD_SINKS], 1, 0, 0, 0);
        attention_results_end(&r);
        attention_end(&own);
    }
    const double whole_sum = test_at(&all.of[ATTENTION_GRAD_SINKS], 1, 0, 0, 0);
    assert_true(whole_sum != 0.0);
    assert_true(fabs(whole_sum - sum) <= 1e-12);
    attention_results_end(&all);
    attention_end(&whole);
    attn_context_destroy(context);
}

// ---- lengths ------------------------------------------------------------------------------------

static void check_lengths(attn_dtype dtype, enum attention_path path)
{
    static const int64_t query_lengths[] = {6, 0, 9, 4}, key_lengths[] = {11, 5, 0, 3};
    attn_context *context = test_context();
    struct attention whole;
    struct attention_results all;
    attention_begin(&whole, (struct attention_shape){4, 2, 1, 9, 11, 8, 8, dtype}, 12);
    attention_add_query_lengths(&whole, query_lengths);
    attention_add_key_lengths(&whole, key_lengths);
    attention_add_bias(&whole, ATTN_F32, (int64_t[]){4, 1, 9, 11}, 1.0);
    attention_add_alibi(&whole);
    attention_add_philox(&whole, 0.2);
    whole.desc.diagonal = ATTN_DIAGONAL_BOTTOM_RIGHT;
    whole.desc.window_left = 5;
    whole.desc.window_right = 2;
    attention_run(context, &whole, path, ATTN_DTYPE_NONE, &all);
    for (int64_t b = 0; b < 4; b++) {
        const struct attention_block block = {b, 0, 1, 0, query_lengths[b], 0, key_lengths[b]};
        struct attention own;
        struct attention_results r;
        attention_part(&own, &whole, &block);
        attention_run(context, &own, path, ATTN_DTYPE_NONE, &r);
        assert_attention_part(&whole, &all, &r, &block);
        attention_results_end(&r);
        attention_end(&own);
    }
    attention_results_end(&all);
    attention_end(&whole);
    attn_context_destroy(context);
}

static void lengths(void **state)
{
    (void)state;
    check_lengths(ATTN_F64, ATTENTION_REFERENCE);
    check_lengths(ATTN_F32, ATTENTION_PUBLIC);
    check_lengths(ATTN_F64, ATTENTION_PUBLIC);
}

// A sequence that is changed changes its own results only.
static void neighbours_do_not_matter(void **state)
{
    (void)state;
    attn_context *context = test_context();
    struct attention a;
    struct attention_results results[2];
    attn_error error;
    make_packed(&a, ATTN_F32, ATTN_DROPOUT_NONE);
    attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &results[0]);
    test_set(&a.key, 0, 0, key_starts[2], 0, 5.0);
    attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &results[1]);
    for (int n = 0; n < SEQUENCES; n++) {
        const struct attention_block block = sequence_block(n);
        attn_tensor rows[2];
        for (int m = 0; m < 2; m++) {
            ASSERT_OK(attn_tensor_slice(&results[m].of[ATTENTION_OUTPUT], 2, block.query_begin,
                                        block.query_end, 1, &rows[m], &error));
        }
        if (n == 2) {
            assert_other_bits("the changed sequence", &rows[1], &rows[0]);
        } else {
            assert_same_bits("a neighbour", &rows[1], &rows[0]);
        }
    }
    attention_results_end(&results[1]);
    attention_results_end(&results[0]);
    attention_end(&a);
    attn_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_reference),
        cmocka_unit_test(packed_public),
        cmocka_unit_test(packed_sinks),
        cmocka_unit_test(lengths),
        cmocka_unit_test(neighbours_do_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
