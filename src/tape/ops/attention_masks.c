// The masks of an attention call written out as tensors.
#include <math.h>
#include <string.h>

#include "attn/random.h"
#include "core/element.h"
#include "tape/ops/attention.h"
#include "tape/tape.h"

static const char op[] = "scaled_dot_product_attention";

static bool make_tensors(attn_tape *tape, const struct attn_sdpa_problem *problem,
                         attn_attention_masks *masks);
static void fill_masked(const struct attn_sdpa_problem *problem, attn_attention_masks *masks);
static void fill_alibi(const struct attn_sdpa_problem *problem, const attn_tensor *alibi);
static void fill_keep_bits(const struct attn_sdpa_problem *problem, const attn_tensor *bits);

bool attn_tape_attention_masks(attn_tape *tape, const struct attn_sdpa_problem *problem,
                               attn_attention_masks *masks)
{
    if (!make_tensors(tape, problem, masks)) {
        return false;
    }
    fill_masked(problem, masks);
    if (masks->alibi.dtype != ATTN_DTYPE_NONE) {
        fill_alibi(problem, &masks->alibi);
    }
    if (problem->dropout == ATTN_DROPOUT_PHILOX) {
        fill_keep_bits(problem, &masks->keep_bits);
    }
    return true;
}

static bool make_tensors(attn_tape *tape, const struct attn_sdpa_problem *problem,
                         attn_attention_masks *masks)
{
    *masks = (attn_attention_masks){0};
    const bool per_head = (problem->keep.data && problem->keep.stride[1] != 0) ||
                          (problem->bias.data && problem->bias.stride[1] != 0);
    const int64_t heads = per_head ? problem->query_heads : 1;
    const int64_t key_heads = per_head ? problem->key_heads : 1;
    const int64_t bytes = problem->keys / 8 + (problem->keys % 8 != 0);
    const int64_t masked[] = {problem->batch, heads, problem->queries, problem->keys};
    const int64_t rows[] = {problem->batch, heads, problem->queries, 1};
    const int64_t keys[] = {problem->batch, key_heads, problem->keys, 1};
    const int64_t scores[] = {problem->batch, problem->query_heads, problem->queries,
                              problem->keys};
    const int64_t bits[] = {problem->batch, problem->query_heads, problem->queries, bytes};
    if (!attn_tape_tensor(tape, op, ATTN_BOOL, 4, masked, &masks->masked) ||
        !attn_tape_tensor(tape, op, ATTN_BOOL, 4, rows, &masks->blind_rows) ||
        !attn_tape_tensor(tape, op, ATTN_BOOL, 4, keys, &masks->unseen_keys)) {
        return false;
    }
    if (problem->alibi_slopes.data &&
        !attn_tape_tensor(tape, op, problem->stats, 4, scores, &masks->alibi)) {
        return false;
    }
    if (problem->dropout == ATTN_DROPOUT_PHILOX) {
        return attn_tape_tensor(tape, op, ATTN_U8, 4, bits, &masks->keep_bits);
    }
    if (problem->dropout == ATTN_DROPOUT_KEEP) {
        masks->keep_bits = attn_tensor_wrap(problem->dropout_keep.data, ATTN_U8, 4, bits);
        memcpy(masks->keep_bits.stride, problem->dropout_keep.stride,
               sizeof problem->dropout_keep.stride);
    }
    return true;
}

// The element of a view that broadcasts to the scores.
static double load(const struct attn_sdpa_view *view, int64_t b, int64_t h, int64_t i, int64_t j)
{
    const int64_t at = b * view->stride[0] + h * view->stride[1] + i * view->stride[2] +
                       j * view->stride[3];
    return attn_element_load(view->dtype,
                             (const char *)view->data + at * (int64_t)attn_dtype_size(view->dtype));
}

// i and j count from the tensors' first row and key.
static bool is_kept(const struct attn_sdpa_problem *problem, int64_t b, int64_t h, int64_t i,
                    int64_t j)
{
    return (!problem->keep.data || load(&problem->keep, b, h, i, j) != 0) &&
           !(problem->bias.data && load(&problem->bias, b, h, i, j) == -INFINITY);
}

static void fill_masked(const struct attn_sdpa_problem *problem, attn_attention_masks *masks)
{
    bool *const masked = masks->masked.data, *const blind = masks->blind_rows.data;
    bool *const unseen = masks->unseen_keys.data;
    memset(masked, true, (size_t)attn_tensor_count(&masks->masked));
    memset(blind, true, (size_t)attn_tensor_count(&masks->blind_rows));
    memset(unseen, true, (size_t)attn_tensor_count(&masks->unseen_keys));
    const int64_t heads = masks->masked.shape[1], key_heads = masks->unseen_keys.shape[1];
    for (int64_t n = 0; n < problem->sequences; n++) {
        const struct attn_sdpa_sequence sequence = attn_sdpa_sequence_at(problem, n);
        for (int64_t m = 0; m < heads * sequence.query_len; m++) {
            const int64_t h = m / sequence.query_len, i = m % sequence.query_len;
            const int64_t key_head = key_heads == 1 ? 0 : h / problem->group;
            const int64_t row = (sequence.batch * heads + h) * problem->queries +
                                sequence.query_start + i;
            const int64_t keys_of_head = (sequence.batch * key_heads + key_head) * problem->keys;
            int64_t begin, end;
            attn_sdpa_visible_keys(&sequence, i, &begin, &end);
            for (int64_t j = sequence.key_start + begin; j < sequence.key_start + end; j++) {
                if (is_kept(problem, sequence.batch, h, sequence.query_start + i, j)) {
                    masked[row * problem->keys + j] = false;
                    blind[row] = false;
                    unseen[keys_of_head + j] = false;
                }
            }
        }
    }
}

// slope[h] * (j - (i + off)), both counted within the sequence; 0 for pairs of no sequence.
static void fill_alibi(const struct attn_sdpa_problem *problem, const attn_tensor *alibi)
{
    (void)attn_tensor_fill(alibi, 0, NULL);
    for (int64_t n = 0; n < problem->sequences; n++) {
        const struct attn_sdpa_sequence sequence = attn_sdpa_sequence_at(problem, n);
        for (int64_t h = 0; h < problem->query_heads; h++) {
            const double slope = attn_sdpa_real(&problem->alibi_slopes, h);
            for (int64_t i = 0; i < sequence.query_len; i++) {
                const int64_t row = (sequence.batch * problem->query_heads + h) * problem->queries +
                                    sequence.query_start + i;
                for (int64_t j = 0; j < sequence.key_len; j++) {
                    const int64_t at = row * problem->keys + sequence.key_start + j;
                    const double added = slope * (double)(j - (i + sequence.offset));
                    attn_element_store(
                        alibi->dtype,
                        (char *)alibi->data + at * (int64_t)attn_dtype_size(alibi->dtype), added);
                }
            }
        }
    }
}

static void fill_keep_bits(const struct attn_sdpa_problem *problem, const attn_tensor *bits)
{
    uint8_t *const first = bits->data;
    memset(first, 0, (size_t)attn_tensor_count(bits));
    for (int64_t n = 0; n < problem->sequences; n++) {
        const struct attn_sdpa_sequence sequence = attn_sdpa_sequence_at(problem, n);
        for (int64_t h = 0; h < problem->query_heads; h++) {
            uint32_t head_key[2];
            attn_sdpa_dropout_key(problem, &sequence, h, head_key);
            for (int64_t i = 0; i < sequence.query_len; i++) {
                uint8_t *const row =
                    first + ((sequence.batch * problem->query_heads + h) * problem->queries +
                             sequence.query_start + i) *
                                bits->shape[3];
                for (int64_t j = 0; j < sequence.key_len; j++) {
                    const uint32_t word = attn_philox_word(head_key, problem->dropout_row + i, j);
                    const int64_t key = sequence.key_start + j;
                    row[key / 8] |= (uint8_t)((word < problem->dropout_threshold) << key % 8);
                }
            }
        }
    }
}
