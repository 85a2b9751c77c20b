// The edge rules of attn/sdpa.h, by the public call: what is masked is never looked at, rows that see
// nothing, sizes of 0.
#define _DEFAULT_SOURCE // MAP_ANONYMOUS
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

// ---- what is masked -----------------------------------------------------------------------------

// Ways to hide key 4 of every head from everybody or, with `some`, from rows 0 .. 2 only.
static void hide_by_keep(struct attention *a)
{
    attention_add_keep(a, (int64_t[]){1, 1, 6, 9}, 1.0);
    for (int64_t i = 0; i < 6; i++) {
        test_set(&a->keep, 0, 0, i, 4, 0.0);
    }
}

static void hide_by_bias(struct attention *a)
{
    attention_add_bias(a, ATTN_F32, (int64_t[]){1, 4, 1, 9}, 1.0);
    for (int64_t h = 0; h < 4; h++) {
        test_set(&a->bias, 0, h, 0, 4, -(double)INFINITY);
    }
}

static void hide_by_length(struct attention *a)
{
    attention_add_key_lengths(a, (int64_t[]){4, 2});
}

static void hide_by_causality(struct attention *a)
{
    a->desc.causal = true;
    a->desc.diagonal = ATTN_DIAGONAL_OFFSET;
    a->desc.diagonal_offset = -2; // row 5 sees key 3 as its last
}

static void hide_by_window(struct attention *a)
{
    a->desc.window_left = 1;
    a->desc.diagonal = ATTN_DIAGONAL_OFFSET;
    a->desc.diagonal_offset = 6; // row 0 sees key 5 as its first
}

static void hide_by_window_right(struct attention *a)
{
    a->desc.window_right = 0;
    a->desc.diagonal = ATTN_DIAGONAL_OFFSET;
    a->desc.diagonal_offset = -2;
}

static void (*const hide[])(struct attention *) = {
    hide_by_keep,      hide_by_bias,   hide_by_length,
    hide_by_causality, hide_by_window, hide_by_window_right,
};

enum { HIDING_COUNT = sizeof(hide) / sizeof(hide[0]) };

static void poison_key(struct attention *a, int64_t j, double key, double value)
{
    for (int64_t b = 0; b < 2; b++) {
        for (int64_t h = 0; h < 2; h++) {
            for (int64_t d = 0; d < a->shape.head_dim; d++) {
                test_set(&a->key, b, h, j, d, key);
            }
            for (int64_t d = 0; d < a->shape.value_dim; d++) {
                test_set(&a->value, b, h, j, d, value);
            }
        }
    }
}

static void masked_nan_changes_nothing(void **state)
{
    (void)state;
    static const attn_dtype dtypes[] = {ATTN_F32, ATTN_F64, ATTN_BF16};
    attn_context *context = test_context();
    for (int n = 0; n < 3 * HIDING_COUNT; n++) {
        struct attention a;
        struct attention_results clean, poisoned;
        struct attention_shape shape = small;
        shape.dtype = dtypes[n % 3];
        attention_begin(&a, shape, 41);
        hide[n / 3](&a);
        attention_add_grad_lse(&a);
        attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &clean);
        poison_key(&a, 4, NAN, NAN);
        attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &poisoned);
        assert_attention_same_bits(&poisoned, &clean);
        attention_results_end(&poisoned);
        poison_key(&a, 4, -(double)INFINITY, INFINITY);
        attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &poisoned);
        assert_attention_same_bits(&poisoned, &clean);
        attention_results_end(&poisoned);
        attention_results_end(&clean);
        attention_end(&a);
    }
    attn_context_destroy(context);
}

// A NaN in a key, or in a value, reaches the rows that see it and no other.
static void check_visible_nan(const attn_context *context, bool in_key, bool dropped)
{
    struct attention a;
    struct attention_results clean, poisoned;
    attention_begin(&a, small, 42);
    a.desc.causal = true; // rows 4 and 5 see key 4
    if (dropped) {
        attention_add_dropout_keep(&a, (int64_t[]){1, 1, 1, 9}, 0.5);
        memset(a.dropout_keep.data, 0, 2); // a key that is dropped is still visible
    }
    attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &clean);
    test_set(in_key ? &a.key : &a.value, 1, 0, 4, 1, NAN);
    attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &poisoned);
    for (int64_t b = 0; b < 2; b++) {
        for (int64_t h = 0; h < 4; h++) {
            for (int64_t i = 0; i < 6; i++) {
                const bool reached = b == 1 && h < 2 && i >= 4;
                // A value's column touches its own column of the output only.
                for (int64_t d = 0; d < 3; d++) {
                    const double now = test_at(&poisoned.of[ATTENTION_OUTPUT], b, h, i, d);
                    const double then = test_at(&clean.of[ATTENTION_OUTPUT], b, h, i, d);
                    assert_true(reached && (in_key || d == 1) ? isnan(now) : now == then);
                }
                const double lse = test_at(&poisoned.of[ATTENTION_LSE], b, h, i, 0);
                assert_true(reached && in_key
                                ? isnan(lse)
                                : lse == test_at(&clean.of[ATTENTION_LSE], b, h, i, 0));
                const double max = test_at(&poisoned.of[ATTENTION_ROW_MAX], b, h, i, 0);
                assert_true(isnan(max) == (reached && in_key));
                const double gradient = test_at(&poisoned.of[ATTENTION_GRAD_QUERY], b, h, i, 0);
                assert_true(reached
                                ? isnan(gradient)
                                : gradient == test_at(&clean.of[ATTENTION_GRAD_QUERY], b, h, i, 0));
            }
        }
    }
    attention_results_end(&poisoned);
    attention_results_end(&clean);
    attention_end(&a);
}

static void visible_nan_reaches_its_rows(void **state)
{
    (void)state;
    attn_context *context = test_context();
    check_visible_nan(context, true, false);
    check_visible_nan(context, false, false);
    check_visible_nan(context, false, true);
    attn_context_destroy(context);
}

// The rows at `visible` readable, what lies before and behind them not mapped.
static attn_tensor fenced(const attn_tensor *source, int64_t begin, int64_t end, char **base)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    assert_int_equal(source->shape[0] * source->shape[1], 1);
    const size_t row = (size_t)source->shape[3] * sizeof(float);
    assert_int_equal(page % row, 0);
    *base = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(*base != MAP_FAILED);
    assert_int_equal(mprotect(*base + page, page, PROT_READ | PROT_WRITE), 0);
    // The visible rows end where the page does, or begin where it does.
    const bool at_end = begin == 0;
    char *first = at_end ? *base + 2 * page - (size_t)end * row
                         : *base + page - (size_t)begin * row;
    memcpy(first + (size_t)begin * row, (char *)source->data + (size_t)begin * row,
           (size_t)(end - begin) * row);
    attn_tensor result = *source;
    result.data = first;
    return result;
}

// Runs with keys and values whose invisible part is not mapped: touching it would be a fault.
static void check_fence(const attn_context *context, struct attention *a, int64_t begin,
                        int64_t end)
{
    struct attention_results plain, fenced_results;
    attention_run(context, a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &plain);
    char *bases[2];
    a->key = fenced(&a->key, begin, end, &bases[0]);
    a->value = fenced(&a->value, begin, end, &bases[1]);
    attention_run(context, a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &fenced_results);
    assert_attention_same_bits(&fenced_results, &plain);
    for (int n = 0; n < 2; n++) {
        assert_int_equal(munmap(bases[n], 3 * (size_t)sysconf(_SC_PAGESIZE)), 0);
    }
    attention_results_end(&fenced_results);
    attention_results_end(&plain);
}

static void invisible_memory_is_not_touched(void **state)
{
    (void)state;
    attn_context *context = test_context();
    for (int64_t queries = 1; queries < 20; queries += 6) {
        const struct attention_shape shape = {1, 2, 1, queries, 100, 16, 8, ATTN_F32};
        struct attention a;
        attention_begin(&a, shape, 43);
        attention_add_key_lengths(&a, (int64_t[]){61});
        check_fence(context, &a, 0, 61);
        attention_end(&a);

        attention_begin(&a, shape, 43);
        a.desc.causal = true;
        a.desc.diagonal = ATTN_DIAGONAL_OFFSET;
        a.desc.diagonal_offset = 30;
        check_fence(context, &a, 0, 30 + queries);
        attention_end(&a);

        attention_begin(&a, shape, 43);
        a.desc.window_left = 9;
        a.desc.diagonal = ATTN_DIAGONAL_BOTTOM_RIGHT;
        check_fence(context, &a, 100 - queries - 9, 100);
        attention_end(&a);
    }
    attn_context_destroy(context);
}

// ---- rows that see nothing ----------------------------------------------------------------------

static void check_dead_row(const struct attention *a, const struct attention_results *r, int64_t b,
                           int64_t h, int64_t i)
{
    const bool has_sink = a->desc.sinks != NULL;
    const double nothing = has_sink ? test_at(&a->sinks, h, 0, 0, 0) : -(double)INFINITY;
    for (int64_t d = 0; d < a->shape.value_dim; d++) {
        assert_true(test_at(&r->of[ATTENTION_OUTPUT], b, h, i, d) == 0.0);
    }
    assert_true(test_at(&r->of[ATTENTION_LSE], b, h, i, 0) == nothing);
    assert_true(test_at(&r->of[ATTENTION_ROW_MAX], b, h, i, 0) == nothing);
    assert_true(test_at(&r->of[ATTENTION_ROW_SUM], b, h, i, 0) == (has_sink ? 1.0 : 0.0));
    for (int64_t j = 0; j < a->shape.keys; j++) {
        assert_true(test_at(&r->of[ATTENTION_WEIGHTS], b, h, i, j) == 0.0);
    }
    for (int64_t d = 0; d < a->shape.head_dim; d++) {
        assert_true(test_at(&r->of[ATTENTION_GRAD_QUERY], b, h, i, d) == 0.0);
    }
}

static void dead_rows(void **state)
{
    (void)state;
    attn_context *context = test_context();
    for (int with_sinks = 0; with_sinks < 2; with_sinks++) {
        struct attention a;
        struct attention_results r;
        attention_begin(&a, small, 44);
        attention_add_keep(&a, (int64_t[]){2, 1, 6, 9}, 0.7);
        for (int64_t j = 0; j < 9; j++) {
            test_set(&a.keep, 0, 0, 2, j, 0.0);
        }
        attention_add_query_lengths(&a, (int64_t[]){6, 4});
        attention_add_grad_lse(&a);
        if (with_sinks) {
            attention_add_sinks(&a);
        }
        // What comes from above to a row that sees nothing is not looked at.
        test_set(&a.grad_output, 0, 1, 2, 0, NAN);
        test_set(&a.grad_output, 1, 1, 5, 0, NAN);
        if (!with_sinks) {
            test_set(&a.grad_lse, 0, 1, 2, 0, NAN);
        }
        attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &r);
        for (int64_t h = 0; h < 4; h++) {
            check_dead_row(&a, &r, 0, h, 2);
            check_dead_row(&a, &r, 1, h, 4);
            check_dead_row(&a, &r, 1, h, 5);
            assert_true(test_at(&r.of[ATTENTION_OUTPUT], 1, h, 3, 0) != 0.0);
        }
        for (int64_t j = 0; j < 9; j++) {
            assert_true(isfinite(test_at(&r.of[ATTENTION_GRAD_KEY], 0, 0, j, 0)));
            assert_true(isfinite(test_at(&r.of[ATTENTION_GRAD_VALUE], 1, 1, j, 0)));
        }
        attention_results_end(&r);
        attention_end(&a);
    }
    attn_context_destroy(context);
}

// ---- sizes of 0 ---------------------------------------------------------------------------------

static void empty_sizes(void **state)
{
    (void)state;
    attn_context *context = test_context();
    for (int n = 0; n < 8; n++) {
        struct attention_shape shape = small;
        int64_t *const sizes[] = {&shape.batch,    &shape.queries,   &shape.keys,
                                  &shape.head_dim, &shape.value_dim, &shape.query_heads};
        if (n < 6) {
            *sizes[n] = 0;
        } else if (n == 6) {
            shape.query_heads = shape.key_heads = 0;
        } else {
            shape.batch = shape.queries = shape.keys = shape.head_dim = shape.value_dim = 0;
        }
        struct attention a;
        struct attention_results r, reference;
        attention_begin(&a, shape, 46);
        attention_add_bias(&a, ATTN_F32, (int64_t[]){1, 1, 1, 1}, 1.0);
        attention_add_grad_lse(&a);
        attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &r);
        attention_run(context, &a, ATTENTION_REFERENCE, ATTN_DTYPE_NONE, &reference);
        assert_attention_close(&r, &reference, 1e-5, 1e-5);
        if (shape.queries > 0 && shape.batch > 0 && shape.query_heads > 0 && shape.keys == 0) {
            check_dead_row(&a, &r, 1, 1, 1);
        }
        if (shape.query_heads == 0 && shape.key_heads == 2) {
            assert_true(test_at(&r.of[ATTENTION_GRAD_KEY], 1, 1, 8, 4) == 0.0);
        }
        assert_true(isfinite(test_at(&r.of[ATTENTION_GRAD_BIAS], 0, 0, 0, 0)));
        attention_results_end(&reference);
        attention_results_end(&r);
        attention_end(&a);
    }
    attn_context_destroy(context);
}

// With head_dim 0 every score is 0: each row averages the values.
static void no_head_dim(void **state)
{
    (void)state;
    attn_context *context = test_context();
    struct attention a;
    struct attention_results r;
    attention_begin(&a, (struct attention_shape){1, 1, 1, 2, 3, 0, 1, ATTN_F64}, 47);
    attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &r);
    const double mean = (test_at(&a.value, 0, 0, 0, 0) + test_at(&a.value, 0, 0, 1, 0) +
                         test_at(&a.value, 0, 0, 2, 0)) /
                        3.0;
    assert_true(fabs(test_at(&r.of[ATTENTION_OUTPUT], 0, 0, 1, 0) - mean) < 1e-15);
    assert_true(fabs(test_at(&r.of[ATTENTION_LSE], 0, 0, 1, 0) - log(3.0)) < 1e-15);
    attention_results_end(&r);
    attention_end(&a);
    attn_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masked_nan_changes_nothing),
        cmocka_unit_test(visible_nan_reaches_its_rows),
        cmocka_unit_test(invisible_memory_is_not_touched),
        cmocka_unit_test(dead_rows),
        cmocka_unit_test(empty_sizes),
        cmocka_unit_test(no_head_dim),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
