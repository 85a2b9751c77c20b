// Small heads are computed by one kernel, unless more is asked for than output, row_max and row_sum:
// with and without lse, the rest has the same bits. Over random problems that lie on both sides of
// what the kernel takes.
#include <math.h>
#include <stdio.h>

#include "support/attention.h"
#include "support/unit.h"

enum { DRAWS = 600 };

static struct attention_shape draw_shape(uint64_t *random)
{
    const int64_t groups = 1 + test_random_below(random, 2);
    struct attention_shape shape = {
        .batch = 1 + test_random_below(random, 2),
        .key_heads = 1 + test_random_below(random, 2),
        .queries = test_random_below(random, 40),
        .keys = test_random_below(random, 19),
        .head_dim = test_random_below(random, 18),
        .value_dim = test_random_below(random, 18),
        .dtype = test_random_below(random, 3) == 0 ? ATTN_F64 : ATTN_F32,
    };
    shape.query_heads = shape.key_heads * groups;
    return shape;
}

static void draw_options(struct attention *a, uint64_t *random)
{
    static const attn_diagonal diagonals[] = {ATTN_DIAGONAL_TOP_LEFT, ATTN_DIAGONAL_BOTTOM_RIGHT,
                                              ATTN_DIAGONAL_OFFSET};
    a->desc.causal = test_random_below(random, 2) == 0;
    a->desc.diagonal = diagonals[test_random_below(random, 3)];
    if (a->desc.diagonal == ATTN_DIAGONAL_OFFSET) {
        a->desc.diagonal_offset = test_random_below(random, 30) - 15;
    }
    if (test_random_below(random, 2) == 0) {
        a->desc.window_left = test_random_below(random, 8);
    }
    if (test_random_below(random, 3) == 0) {
        a->desc.scale = test_random_normal(random) * 3;
    }
    if (test_random_below(random, 3) == 0) {
        int64_t lengths[2];
        for (int b = 0; b < 2; b++) {
            lengths[b] = test_random_below(random, a->shape.keys + 1);
        }
        attention_add_key_lengths(a, lengths);
    }
}

// The same memory as (B, T, H, D).
static void swap_heads_and_rows(attn_tensor *tensor)
{
    const int64_t heads = tensor->shape[1], rows = tensor->shape[2], columns = tensor->shape[3];
    tensor->stride[0] = heads * rows * columns;
    tensor->stride[1] = columns;
    tensor->stride[2] = heads * columns;
}

// Two sequences in one, or other strides; not both, and not in all problems.
static void draw_layout(struct attention *a, uint64_t *random)
{
    const struct attention_shape *s = &a->shape;
    const int64_t dice = test_random_below(random, 4);
    if (dice == 0 && s->batch == 1 && a->key_lengths.data == NULL) {
        const int64_t query = test_random_below(random, s->queries + 1);
        const int64_t key = test_random_below(random, s->keys + 1);
        attention_add_starts(a, 3, (int64_t[]){0, query, s->queries}, (int64_t[]){0, key, s->keys});
    } else if (dice == 1) {
        swap_heads_and_rows(&a->query);
        swap_heads_and_rows(&a->key);
        swap_heads_and_rows(&a->value);
    }
}

// NaN, infinities and numbers that overflow, in a quarter of the problems.
static void spoil(struct attention *a, uint64_t *random)
{
    static const double contents[] = {NAN, INFINITY, -INFINITY, 1e38, -1e38, 1e-40};
    const struct attention_shape *s = &a->shape;
    for (int n = 0; n < 3 && s->keys > 0; n++) {
        const int64_t key = test_random_below(random, s->keys);
        const double content = contents[test_random_below(random, 6)];
        if (s->head_dim > 0) {
            test_set(&a->key, 0, 0, key, test_random_below(random, s->head_dim), content);
        }
        if (s->value_dim > 0) {
            test_set(&a->value, 0, 0, test_random_below(random, s->keys),
                     test_random_below(random, s->value_dim), content);
        }
    }
}

static void forward(const attn_context *context, const struct attention *a, bool with_lse,
                    struct attention_results *r)
{
    attention_results_begin(r, a, ATTN_DTYPE_NONE);
    attn_sdpa_forward_args args = attention_forward_args(a, r);
    args.weights = args.key_sums = NULL;
    args.weight_heads = args.weight_rows = NULL;
    if (!with_lse) {
        args.lse = NULL;
    }
    attn_error error;
    if (attn_sdpa_forward(context, &a->desc, &args, &error) != ATTN_OK) {
        fail_msg("%s", error.text);
    }
}

static void same_bits_as_the_usual_steps(void **state)
{
    (void)state;
    static const enum attention_result compared[] = {ATTENTION_OUTPUT, ATTENTION_ROW_MAX,
                                                     ATTENTION_ROW_SUM};
    for (int tier = ATTN_TIER_PORTABLE; tier < ATTN_TIER_COUNT; tier++) {
        if (!attn_tier_available((attn_tier)tier)) {
            continue;
        }
        attn_context *context = test_context_with(1, (attn_tier)tier);
        uint64_t random = 20;
        for (int n = 0; n < DRAWS; n++) {
            struct attention a;
            struct attention_results small, usual;
            attention_begin(&a, draw_shape(&random), random);
            draw_options(&a, &random);
            draw_layout(&a, &random);
            if (n % 4 == 0) {
                spoil(&a, &random);
            }
            forward(context, &a, false, &small);
            forward(context, &a, true, &usual);
            char what[80];
            for (int c = 0; c < 3; c++) {
                snprintf(what, sizeof what, "draw %d, %s: %s", n, attn_tier_name((attn_tier)tier),
                         attention_result_names[compared[c]]);
                assert_same_bits(what, &small.of[compared[c]], &usual.of[compared[c]]);
            }
            attention_results_end(&small);
            attention_results_end(&usual);
            attention_end(&a);
        }
        attn_context_destroy(context);
    }
}

// Products that underflow to zeros of both signs: which of them is the largest must not depend on the
// keys that other rows of the call see.
static void largest_of_two_zeros(void **state)
{
    (void)state;
    static const double keys[] = {-1e30, -1e-30, 0, -1e10, 1e-30, -1e-20, 0, -1e30, 1e-25, -1e-30};
    for (int tier = ATTN_TIER_PORTABLE; tier < ATTN_TIER_COUNT; tier++) {
        if (!attn_tier_available((attn_tier)tier)) {
            continue;
        }
        attn_context *context = test_context_with(1, (attn_tier)tier);
        struct attention a;
        struct attention_results small, usual;
        attention_begin(&a, (struct attention_shape){1, 1, 1, 9, 10, 1, 1, ATTN_F32}, 3);
        for (int64_t i = 0; i < 9; i++) {
            test_set(&a.query, 0, 0, i, 0, 1e-30);
        }
        for (int64_t j = 0; j < 10; j++) {
            test_set(&a.key, 0, 0, j, 0, keys[j]);
        }
        a.desc.causal = true;
        for (int64_t offset = -9; offset < 3; offset++) {
            a.desc.diagonal = ATTN_DIAGONAL_OFFSET;
            a.desc.diagonal_offset = offset;
            forward(context, &a, false, &small);
            forward(context, &a, true, &usual);
            assert_same_bits("row_max", &small.of[ATTENTION_ROW_MAX], &usual.of[ATTENTION_ROW_MAX]);
            attention_results_end(&small);
            attention_results_end(&usual);
        }
        attention_end(&a);
        attn_context_destroy(context);
    }
}

// The row_max of the last of `rows` rows, each of which sees one key more than the one before, of keys
// that give -1 but for zeros of either sign: key 0's and, in the ragged part, key 36's.
static float largest_of_last(const attn_context *context, int64_t rows, double first, double second)
{
    enum { ALL = 40 };
    struct attention a;
    struct attention_results r;
    attention_begin(&a, (struct attention_shape){1, 1, 1, rows, ALL, 1, 1, ATTN_F32}, 4);
    for (int64_t i = 0; i < rows; i++) {
        test_set(&a.query, 0, 0, i, 0, 1e-30);
    }
    for (int64_t j = 0; j < ALL; j++) {
        test_set(&a.key, 0, 0, j, 0, j == 0 ? first : j == 36 ? second : -1e30);
    }
    a.desc.causal = true;
    a.desc.diagonal = ATTN_DIAGONAL_BOTTOM_RIGHT;
    forward(context, &a, true, &r);
    const float largest = ((const float *)r.of[ATTENTION_ROW_MAX].data)[rows - 1];
    attention_results_end(&r);
    attention_end(&a);
    return largest;
}

static void largest_of_two_zeros_in_company(void **state)
{
    (void)state;
    for (int tier = ATTN_TIER_PORTABLE; tier < ATTN_TIER_COUNT; tier++) {
        if (!attn_tier_available((attn_tier)tier)) {
            continue;
        }
        attn_context *context = test_context_with(1, (attn_tier)tier);
        for (int64_t rows = 1; rows <= 20; rows++) {
            const float minus = largest_of_last(context, rows, -1e-30, 1e-30);
            const float plus = largest_of_last(context, rows, 1e-30, -1e-30);
            assert_true(minus == 0 && signbit(minus) && plus == 0 && !signbit(plus));
        }
        attn_context_destroy(context);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_as_the_usual_steps),
        cmocka_unit_test(largest_of_two_zeros),
        cmocka_unit_test(largest_of_two_zeros_in_company),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
