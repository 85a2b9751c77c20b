#include "attention_part.h"

#include "status.h"

struct attention_block attention_entry(const struct attention *whole, int64_t b)
{
    return (struct attention_block){.batch = b,
                                    .head_end = whole->shape.key_heads,
                                    .query_end = whole->shape.queries,
                                    .key_end = whole->shape.keys};
}

// [begin, end) of a dim; a dim of size 1 is shared and stays.
static attn_tensor range(const attn_tensor *tensor, int32_t dim, int64_t begin, int64_t end)
{
    attn_tensor result = *tensor;
    attn_error error;
    if (tensor->data != NULL && tensor->shape[dim] != 1) {
        ASSERT_OK(attn_tensor_slice(tensor, dim, begin, end, 1, &result, &error));
    }
    return result;
}

enum layout { BY_ROWS, BY_KEYS, BY_PAIRS };

// The block's part of a tensor (B, heads, rows or keys, ...) whose heads are `group` to a key head.
static attn_tensor part(const attn_tensor *tensor, const struct attention_block *block,
                        int64_t group, enum layout layout)
{
    attn_tensor t = range(tensor, 0, block->batch, block->batch + 1);
    t = range(&t, 1, block->head_begin * group, block->head_end * group);
    if (layout == BY_KEYS) {
        return range(&t, 2, block->key_begin, block->key_end);
    }
    t = range(&t, 2, block->query_begin, block->query_end);
    return layout == BY_PAIRS ? range(&t, 3, block->key_begin, block->key_end) : t;
}

// The bits [key_begin, key_end) of the rows of a dropout keep-mask.
static attn_tensor bits(struct test_pool *pool, const attn_tensor *mask,
                        const struct attention_block *block, int64_t group)
{
    const attn_tensor rows = part(mask, block, group, BY_ROWS);
    const int64_t keys = block->key_end - block->key_begin;
    const int64_t shape[] = {1, rows.shape[1], rows.shape[2], (keys + 7) / 8};
    const attn_tensor result = test_tensor(pool, ATTN_U8, 4, shape);
    for (int64_t h = 0; h < shape[1]; h++) {
        for (int64_t i = 0; i < shape[2]; i++) {
            for (int64_t j = 0; j < keys; j++) {
                const int64_t at = block->key_begin + j;
                const int byte = (int)test_at(&rows, 0, h, i, at / 8);
                const int before = (int)test_at(&result, 0, h, i, j / 8);
                test_set(&result, 0, h, i, j / 8, before | (byte >> at % 8 & 1) << j % 8);
            }
        }
    }
    return result;
}

static int64_t group_of(const struct attention *a)
{
    return a->shape.query_heads / a->shape.key_heads;
}

void attention_part(struct attention *own, const struct attention *whole,
                    const struct attention_block *block)
{
    const int64_t group = group_of(whole);
    *own = (struct attention){.desc = whole->desc, .shape = whole->shape};
    own->shape.batch = 1;
    own->shape.key_heads = block->head_end - block->head_begin;
    own->shape.query_heads = own->shape.key_heads * group;
    own->shape.queries = block->query_end - block->query_begin;
    own->shape.keys = block->key_end - block->key_begin;
    own->query = part(&whole->query, block, group, BY_ROWS);
    own->key = part(&whole->key, block, 1, BY_KEYS);
    own->value = part(&whole->value, block, 1, BY_KEYS);
    own->grad_output = part(&whole->grad_output, block, group, BY_ROWS);
    own->grad_lse = part(&whole->grad_lse, block, group, BY_ROWS);
    attn_sdpa_desc *desc = &own->desc;
    desc->query_starts = desc->key_starts = desc->query_lengths = desc->key_lengths = NULL;
    if (desc->keep != NULL) {
        own->keep = part(&whole->keep, block, group, BY_PAIRS);
        desc->keep = &own->keep;
    }
    if (desc->bias != NULL) {
        own->bias = part(&whole->bias, block, group, BY_PAIRS);
        desc->bias = &own->bias;
    }
    if (desc->dropout_keep != NULL) {
        own->dropout_keep = bits(&own->pool, &whole->dropout_keep, block, group);
        desc->dropout_keep = &own->dropout_keep;
    }
    const int64_t first_head = block->head_begin * group, last_head = block->head_end * group;
    if (desc->alibi_slopes != NULL) {
        own->alibi_slopes = range(&whole->alibi_slopes, 0, first_head, last_head);
        desc->alibi_slopes = &own->alibi_slopes;
    }
    if (desc->sinks != NULL) {
        own->sinks = range(&whole->sinks, 0, first_head, last_head);
        desc->sinks = &own->sinks;
    }
    desc->dropout_batch += block->batch;
    desc->dropout_head += first_head;
    desc->dropout_row += block->query_begin;
}

// Is every dim of the bias either the block's own or not there to be shared?
static bool bias_is_own(const struct attention *whole, const struct attention_block *block)
{
    const struct attention_shape s = whole->shape;
    const int64_t shared[4] = {s.batch, s.query_heads, s.queries, s.keys};
    const int64_t taken[4] = {1, (block->head_end - block->head_begin) * group_of(whole),
                              block->query_end - block->query_begin,
                              block->key_end - block->key_begin};
    for (int32_t d = 0; d < whole->bias.ndim; d++) {
        if (whole->bias.shape[d] == 1 && shared[d] != taken[d]) {
            return false;
        }
    }
    return true;
}

void assert_attention_part(const struct attention *whole, const struct attention_results *all,
                           const struct attention_results *own, const struct attention_block *block)
{
    const int64_t group = group_of(whole);
    const struct {
        enum attention_result result;
        enum layout layout;
        int64_t group;
        bool sums_rows;
    } laid_out[] = {
        {ATTENTION_OUTPUT, BY_ROWS, group, false},
        {ATTENTION_ROW_MAX, BY_ROWS, group, false},
        {ATTENTION_ROW_SUM, BY_ROWS, group, false},
        {ATTENTION_LSE, BY_ROWS, group, false},
        {ATTENTION_WEIGHTS, BY_PAIRS, group, false},
        {ATTENTION_KEY_SUMS, BY_KEYS, group, true},
        {ATTENTION_GRAD_QUERY, BY_ROWS, group, false},
        {ATTENTION_GRAD_KEY, BY_KEYS, 1, true},
        {ATTENTION_GRAD_VALUE, BY_KEYS, 1, true},
        {ATTENTION_GRAD_BIAS, BY_PAIRS, group, false},
    };
    const bool every_row = whole->desc.query_starts != NULL ||
                           block->query_end - block->query_begin == whole->shape.queries ||
                           whole->desc.query_lengths != NULL;
    for (size_t n = 0; n < sizeof(laid_out) / sizeof(laid_out[0]); n++) {
        const enum attention_result result = laid_out[n].result;
        if (!all->present[result] || (laid_out[n].sums_rows && !every_row) ||
            (result == ATTENTION_GRAD_BIAS && !bias_is_own(whole, block))) {
            continue;
        }
        const attn_tensor expected =
            part(&all->of[result], block, laid_out[n].group, laid_out[n].layout);
        assert_same_bits(attention_result_names[result], &own->of[result], &expected);
    }
}
