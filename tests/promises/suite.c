#include "suite.h"

#include <math.h>

#include "support/unit.h"

enum { LONG = 4500 };

static void offset_diagonal(struct attention *a, int64_t offset)
{
    a->desc.diagonal = ATTN_DIAGONAL_OFFSET;
    a->desc.diagonal_offset = offset;
}

static void causal(struct attention *a)
{
    a->desc.causal = true;
}

static void causal_at_end(struct attention *a)
{
    a->desc.causal = true;
    a->desc.diagonal = ATTN_DIAGONAL_BOTTOM_RIGHT;
}

static void terms(struct attention *a)
{
    a->desc.causal = true;
    a->desc.window_left = 2300;
    a->desc.softcap = 6.0;
    offset_diagonal(a, 1990);
    attention_add_alibi(a);
    attention_add_sinks(a);
    attention_add_grad_lse(a);
}

static void masks(struct attention *a)
{
    attention_add_keep(a, (int64_t[]){1, 1, 1, LONG}, 0.8);
    test_set(&a->keep, 0, 0, 0, 0, 1.0); // somebody changes this key
    attention_add_bias(a, ATTN_F32, (int64_t[]){1, 2, 9, LONG}, 2.0);
    attention_add_philox(a, 0.2);
}

static void packed(struct attention *a)
{
    attention_add_starts(a, 6, (int64_t[]){0, 0, 90, 91, 160, 200},
                         (int64_t[]){0, 300, 301, 1001, 1001, 1190});
    attention_add_philox(a, 0.1);
    a->desc.causal = true;
    a->desc.diagonal = ATTN_DIAGONAL_BOTTOM_RIGHT;
}

static void lengths(struct attention *a)
{
    attention_add_query_lengths(a, (int64_t[]){70, 0, 33});
    attention_add_key_lengths(a, (int64_t[]){300, 7, 0});
    attention_add_dropout_keep(a, (int64_t[]){3, 6, 70, 300}, 0.3);
}

static void window(struct attention *a)
{
    a->desc.window_left = 40;
    a->desc.window_right = 17;
    a->desc.scale_mode = ATTN_SCALE_GIVEN;
    a->desc.scale = 0.9;
    offset_diagonal(a, 100);
    attention_add_bias(a, ATTN_F32, (int64_t[]){1, 1, 1, 280}, 1.0);
}

// Keys, values and queries of batch entry 1 that are not finite: for key head 0 a key that is hidden from
// one query head by a score of -inf and makes another's rows NaN; for key head 1 nothing else.
static void not_finite(struct attention *a)
{
    a->desc.causal = true;
    offset_diagonal(a, 256);
    for (int64_t h = 0; h < 8; h++) {
        for (int64_t i = 0; i < 5; i++) {
            test_set(&a->query, 1, h, i, 0, h == 1 ? -1.0 : 1.0);
        }
    }
    test_set(&a->key, 1, 0, 77, 0, -(double)INFINITY);
    test_set(&a->value, 1, 0, 77, 2, NAN);
    test_set(&a->value, 1, 0, 130, 1, INFINITY);
    test_set(&a->query, 1, 2, 3, 1, NAN);
    for (int64_t j = 0; j < 261; j++) {
        test_set(&a->key, 1, 1, j, 0, -(double)INFINITY);
    }
}

const struct suite_problem suite[] = {
    {"small", {2, 4, 2, 5, 7, 8, 8, ATTN_F32}, NULL, 0, true, true},
    {"causal 70", {2, 2, 2, 70, 70, 64, 64, ATTN_F32}, causal, 0, true, true},
    {"causal end of 4500",
     {1, 2, 1, 130, LONG, 8, 8, ATTN_F32},
     causal_at_end,
     LONG - 130,
     true,
     true},
    {"terms at a segment's edge", {1, 2, 1, 130, 2200, 8, 8, ATTN_F32}, terms, 1990, true, true},
    {"masks over 4500", {2, 2, 2, 9, LONG, 8, 6, ATTN_F32}, masks, 0, true, true},
    {"packed", {1, 4, 2, 205, 1200, 16, 16, ATTN_F32}, packed, 0, false, false},
    {"lengths float16", {3, 6, 2, 70, 300, 80, 48, ATTN_F16}, lengths, 0, false, true},
    {"float64 end of 4500",
     {1, 1, 1, 66, LONG, 4, 4, ATTN_F64},
     causal_at_end,
     LONG - 66,
     true,
     true},
    {"bfloat16", {1, 2, 2, 33, 600, 128, 128, ATTN_BF16}, NULL, 0, true, true},
    {"window", {2, 3, 1, 150, 280, 5, 3, ATTN_F32}, window, 100, true, true},
    {"decode", {2, 8, 2, 1, LONG, 16, 16, ATTN_F32}, NULL, 0, true, true},
    {"not finite", {2, 8, 2, 5, 261, 24, 16, ATTN_F32}, not_finite, 256, true, true},
    {"not finite float16", {2, 8, 2, 5, 261, 24, 16, ATTN_F16}, not_finite, 256, true, true},
    {"decode float16", {2, 3, 3, 1, 1300, 80, 80, ATTN_F16}, NULL, 0, true, true},
};

const int suite_count = sizeof(suite) / sizeof(suite[0]);

void suite_begin(struct attention *a, int n)
{
    assert_in_range(n, 0, suite_count - 1);
    attention_begin(a, suite[n].shape, 1000 + (uint64_t)n);
    if (suite[n].add != NULL) {
        suite[n].add(a);
    }
}
