#include "draw.h"

#include <math.h>

#include "support/unit.h"

// In [low, high].
static int64_t between(uint64_t *random, int64_t low, int64_t high)
{
    return low + test_random_below(random, high - low + 1);
}

// Rows and keys are cut until the float64 reference takes some ten milliseconds.
static void bound_work(struct attention_shape *s)
{
    const int64_t most = 1500000;
    while (s->batch * s->query_heads * s->queries * s->keys * (s->head_dim + s->value_dim + 8) >
           most) {
        if (s->batch * s->key_heads > 1 && s->queries <= 80) {
            s->batch = 1;
            s->query_heads /= s->key_heads;
            s->key_heads = 1;
        } else if (s->queries > s->keys / 4) {
            s->queries = s->queries * 3 / 4;
        } else {
            s->keys = s->keys * 3 / 4;
        }
    }
}

static struct attention_shape draw_shape(const int *level, uint64_t *random)
{
    static const attn_dtype dtypes[] = {ATTN_F32, ATTN_F64, ATTN_F16, ATTN_BF16};
    static const int64_t most_rows[] = {8, 80, 300};
    struct attention_shape s = {.dtype = dtypes[level[FACTOR_DTYPE]]};
    s.batch = level[FACTOR_LENGTHS] == 2 ? 1 : between(random, 1, 3);
    s.key_heads = level[FACTOR_HEADS] == 2 ? 1 : between(random, 1, 2);
    s.query_heads = s.key_heads * (level[FACTOR_HEADS] == 0 ? 1 : between(random, 2, 3));
    const int64_t rows = most_rows[level[FACTOR_SIZE]];
    s.queries = between(random, test_random_below(random, 4) == 0 ? 0 : 1, rows);
    s.keys = between(random, test_random_below(random, 8) == 0 ? 0 : 1, rows);
    if (test_random_below(random, 4) == 0) {
        s.keys = s.queries;
    }
    switch (level[FACTOR_HEAD_DIM]) {
    case 0: s.head_dim = s.value_dim = between(random, 1, 8); break;
    case 1: s.head_dim = s.value_dim = 8 * between(random, 1, 16); break;
    case 2: s.head_dim = s.value_dim = between(random, 1, 256); break;
    default:
        s.head_dim = between(random, 1, 100);
        s.value_dim = between(random, 1, 100);
        break;
    }
    bound_work(&s);
    return s;
}

static void draw_logits(struct attention *a, int level)
{
    if (level == 1) { // scores in the hundreds
        uint64_t random = a->random;
        test_fill_normal(&a->query, 60.0 / sqrt((double)a->shape.head_dim + 60.0), &random);
    } else if (level == 2) { // every score shifted by the same large amount
        for (int64_t b = 0; b < a->shape.batch; b++) {
            for (int64_t h = 0; h < a->shape.key_heads; h++) {
                for (int64_t j = 0; j < a->shape.keys; j++) {
                    test_set(&a->key, b, h, j, 0, 30.0 + test_at(&a->key, b, h, j, 0));
                }
            }
        }
    }
}

static void draw_visibility(struct attention *a, const int *level)
{
    uint64_t *random = &a->random;
    const struct attention_shape s = a->shape;
    a->desc.diagonal = (attn_diagonal)level[FACTOR_DIAGONAL];
    a->desc.diagonal_offset = between(random, -s.queries / 2, s.keys);
    a->desc.causal = level[FACTOR_CAUSAL] == 1;
    if (level[FACTOR_WINDOW] == 1 || level[FACTOR_WINDOW] == 3) {
        a->desc.window_left = between(random, 0, s.keys);
    }
    if (level[FACTOR_WINDOW] >= 2) {
        a->desc.window_right = between(random, 0, s.keys);
    }
    if (level[FACTOR_LENGTHS] == 1) {
        int64_t query_lengths[3], key_lengths[3];
        for (int64_t b = 0; b < s.batch; b++) {
            query_lengths[b] = between(random, 0, s.queries);
            key_lengths[b] = between(random, 0, s.keys);
        }
        attention_add_query_lengths(a, query_lengths);
        attention_add_key_lengths(a, key_lengths);
    } else if (level[FACTOR_LENGTHS] == 2) {
        int64_t query_starts[6] = {0}, key_starts[6] = {0};
        const int64_t count = between(random, 0, 5);
        for (int64_t n = 1; n <= count; n++) {
            query_starts[n] = between(random, query_starts[n - 1], s.queries);
            key_starts[n] = between(random, key_starts[n - 1], s.keys);
        }
        attention_add_starts(a, count + 1, query_starts, key_starts);
    }
}

static void draw_terms(struct attention *a, const int *level)
{
    const struct attention_shape s = a->shape;
    const int64_t full[] = {s.batch, s.query_heads, s.queries, s.keys};
    if (level[FACTOR_KEEP] != 0) {
        attention_add_keep(a, level[FACTOR_KEEP] == 1 ? full : (int64_t[]){s.batch, 1, 1, s.keys},
                           test_random_uniform(&a->random));
    }
    if (level[FACTOR_BIAS] != 0) {
        const int64_t per_head[] = {1, s.query_heads, s.queries, s.keys};
        const int64_t per_key[] = {1, 1, 1, s.keys};
        const int64_t *const sizes[] = {full, per_head, per_key};
        attention_add_bias(a, s.dtype == ATTN_F64 ? ATTN_F64 : ATTN_F32,
                           sizes[level[FACTOR_BIAS] - 1], 2.0);
        const int64_t last = attn_tensor_count(&a->bias);
        for (int64_t n = 5; n < last; n += 17) {
            attn_tensor flat = attn_tensor_wrap(a->bias.data, a->bias.dtype, 1, &last);
            test_set(&flat, n, 0, 0, 0, -(double)INFINITY);
        }
    }
    if (level[FACTOR_ALIBI] == 1) {
        attention_add_alibi(a);
    }
    a->desc.softcap = level[FACTOR_SOFTCAP] == 1 ? 5.0 : 0.0;
    if (level[FACTOR_SINKS] == 1) {
        attention_add_sinks(a);
    }
    if (level[FACTOR_DROPOUT] == 1) {
        attention_add_philox(a, 0.3);
    } else if (level[FACTOR_DROPOUT] == 2) {
        attention_add_dropout_keep(a, full, 0.3);
    }
    if (level[FACTOR_GRAD_LSE] == 1) {
        attention_add_grad_lse(a);
    }
}

void draw_begin(struct attention *a, const struct option_row *row, uint64_t seed)
{
    uint64_t random = seed;
    const uint64_t elements = test_random(&random); // in this order with every compiler
    attention_begin(a, draw_shape(row->level, &random), elements);
    draw_logits(a, row->level[FACTOR_LOGITS]);
    draw_visibility(a, row->level);
    draw_terms(a, row->level);
    if (row->level[FACTOR_SCALE] == 1) {
        a->desc.scale_mode = ATTN_SCALE_GIVEN;
        a->desc.scale = 1.3 / sqrt((double)a->shape.head_dim);
    }
}
