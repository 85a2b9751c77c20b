// Packed sequences, lengths and chunks of queries give bit for bit what separate calls on their parts
// give: by the reference and by the public call.
#include <math.h>

#include "support/attention.h"
#include "support/status.h"
#include "support/unit.h"

// ---- parts --------------------------------------------------------------------------------------

// Rows [start, stop) of a dim; a dim of size 1 is shared and stays.
static attn_tensor part(const attn_tensor *tensor, int32_t dim, int64_t start, int64_t stop)
{
    attn_tensor result = *tensor;
    attn_error error;
    if (tensor->data != NULL && tensor->shape[dim] != 1) {
        ASSERT_OK(attn_tensor_slice(tensor, dim, start, stop, 1, &result, &error));
    }
    return result;
}

struct block {
    int64_t batch, query_start, query_stop, key_start, key_stop;
};

// The part of a tensor laid out by rows, by keys, or by both.
static attn_tensor rows_of(const attn_tensor *tensor, const struct block *block)
{
    const attn_tensor entry = part(tensor, 0, block->batch, block->batch + 1);
    return part(&entry, 2, block->query_start, block->query_stop);
}

static attn_tensor keys_of(const attn_tensor *tensor, const struct block *block)
{
    const attn_tensor entry = part(tensor, 0, block->batch, block->batch + 1);
    return part(&entry, 2, block->key_start, block->key_stop);
}

static attn_tensor pairs_of(const attn_tensor *tensor, const struct block *block)
{
    const attn_tensor rows = rows_of(tensor, block);
    return part(&rows, 3, block->key_start, block->key_stop);
}

// Bits [start, stop) of every row of a dropout keep-mask.
static attn_tensor bits_of(struct test_pool *pool, const attn_tensor *mask,
                           const struct block *block)
{
    const attn_tensor rows = rows_of(mask, block);
    const int64_t keys = block->key_stop - block->key_start;
    const attn_tensor result = test_tensor(
        pool, ATTN_U8, 4, (int64_t[]){1, mask->shape[1], rows.shape[2], (keys + 7) / 8});
    for (int64_t h = 0; h < mask->shape[1]; h++) {
        for (int64_t i = 0; i < rows.shape[2]; i++) {
            for (int64_t j = 0; j < keys; j++) {
                const int64_t at = block->key_start + j;
                const int byte = (int)test_at(&rows, 0, h, i, at / 8);
                const int before = (int)test_at(&result, 0, h, i, j / 8);
                test_set(&result, 0, h, i, j / 8, before | (byte >> at % 8 & 1) << j % 8);
            }
        }
    }
    return result;
}

// The problem of one block on its own, as views of the whole's tensors. `diagonal_offset` and the
// dropout's numbers are the caller's to set.
static void take_block(struct attention *own, const struct attention *whole,
                       const struct block *block)
{
    *own = (struct attention){.desc = whole->desc};
    own->shape = whole->shape;
    own->shape.batch = 1;
    own->shape.queries = block->query_stop - block->query_start;
    own->shape.keys = block->key_stop - block->key_start;
    own->query = rows_of(&whole->query, block);
    own->key = keys_of(&whole->key, block);
    own->value = keys_of(&whole->value, block);
    own->grad_output = rows_of(&whole->grad_output, block);
    own->grad_lse = rows_of(&whole->grad_lse, block);
    own->sinks = whole->sinks;
    attn_sdpa_desc *desc = &own->desc;
    desc->query_starts = desc->key_starts = desc->query_lengths = desc->key_lengths = NULL;
    if (desc->keep != NULL) {
        own->keep = pairs_of(&whole->keep, block);
        desc->keep = &own->keep;
    }
    if (desc->bias != NULL) {
        own->bias = pairs_of(&whole->bias, block);
        desc->bias = &own->bias;
    }
    if (desc->dropout_keep != NULL) {
        own->dropout_keep = bits_of(&own->pool, &whole->dropout_keep, block);
        desc->dropout_keep = &own->dropout_keep;
    }
}

static void check_block(const struct attention_results *whole, const struct attention_results *own,
                        const struct block *block)
{
    static const struct {
        enum attention_result result;
        attn_tensor (*of)(const attn_tensor *, const struct block *);
    } laid_out[] = {
        {ATTENTION_OUTPUT, rows_of},     {ATTENTION_ROW_MAX, rows_of},
        {ATTENTION_ROW_SUM, rows_of},    {ATTENTION_LSE, rows_of},
        {ATTENTION_WEIGHTS, pairs_of},   {ATTENTION_KEY_SUMS, keys_of},
        {ATTENTION_GRAD_QUERY, rows_of}, {ATTENTION_GRAD_KEY, keys_of},
        {ATTENTION_GRAD_VALUE, keys_of}, {ATTENTION_GRAD_BIAS, pairs_of},
    };
    for (size_t n = 0; n < sizeof(laid_out) / sizeof(laid_out[0]); n++) {
        const enum attention_result result = laid_out[n].result;
        if (whole->present[result]) {
            const attn_tensor expected = laid_out[n].of(&whole->of[result], block);
            assert_same_bits(attention_result_names[result], &own->of[result], &expected);
        }
    }
}

// ---- packed -------------------------------------------------------------------------------------

static const int64_t query_starts[] = {0, 5, 5, 12, 13, 20};
static const int64_t key_starts[] = {0, 7, 10, 19, 19, 26};
enum { SEQUENCES = 5, PACKED_QUERIES = 23, PACKED_KEYS = 29 };

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
        const struct block block = {0, query_starts[n], query_starts[n + 1], key_starts[n],
                                    key_starts[n + 1]};
        struct attention own;
        struct attention_results r;
        take_block(&own, &whole, &block);
        own.desc.dropout_batch += n;
        attention_run(context, &own, path, ATTN_DTYPE_NONE, &r);
        check_block(&all, &r, &block);
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
    for (int n = 0; n <= SEQUENCES; n++) {
        const bool beyond = n == SEQUENCES; // the rows outside pass grad_lse to the sink
        const struct block block = {0, query_starts[n],
                                    beyond ? PACKED_QUERIES : query_starts[n + 1], key_starts[n],
                                    beyond ? key_starts[n] : key_starts[n + 1]};
        struct attention own;
        struct attention_results r;
        take_block(&own, &whole, &block);
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
        const struct block block = {b, 0, query_lengths[b], 0, key_lengths[b]};
        struct attention own;
        struct attention_results r;
        take_block(&own, &whole, &block);
        own.desc.dropout_batch = b;
        attention_run(context, &own, path, ATTN_DTYPE_NONE, &r);
        check_block(&all, &r, &block);
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
    struct attention_results before, after;
    make_packed(&a, ATTN_F32, ATTN_DROPOUT_NONE);
    attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &before);
    test_set(&a.key, 0, 0, key_starts[2], 0, 5.0);
    attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &after);
    for (int n = 0; n < SEQUENCES; n++) {
        const struct block block = {0, query_starts[n], query_starts[n + 1], key_starts[n],
                                    key_starts[n + 1]};
        const attn_tensor old_rows = rows_of(&before.of[ATTENTION_OUTPUT], &block);
        const attn_tensor new_rows = rows_of(&after.of[ATTENTION_OUTPUT], &block);
        if (n == 2) {
            assert_other_bits("the changed sequence", &new_rows, &old_rows);
        } else {
            assert_same_bits("a neighbour", &new_rows, &old_rows);
        }
    }
    attention_results_end(&after);
    attention_results_end(&before);
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
