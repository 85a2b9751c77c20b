// sdpa/problem.h: one attention call, validated and normalised.
//
// The public entry turns a descriptor and its arguments into an attn_sdpa_problem; the reference and
// the engine read nothing else. Filling one allocates nothing and costs nothing for what is absent.
// The mask's shape lives here too: which keys a row may see by lengths, diagonal, causality and
// window is attn_sdpa_visible_keys, and nowhere else.
#ifndef ATTN_SDPA_PROBLEM_H
#define ATTN_SDPA_PROBLEM_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attn/random.h"
#include "attn/sdpa.h"
#include "attn/status.h"
#include "attn/tensor.h"

// A tensor as the loops address it. All zero where the tensor is absent; `data` may also be NULL
// where it has no elements. Strides count elements and are 0 along a dimension that is broadcast;
// unused ones are 0.
struct attn_sdpa_view {
    void *data;
    int64_t stride[4];
    attn_dtype dtype;
};

#define ATTN_SDPA_ABSENT ((struct attn_sdpa_view){.data = NULL})

enum attn_sdpa_output_rule {
    ATTN_SDPA_OWN_DTYPES,       // outputs have the element types that the header names
    ATTN_SDPA_DTYPES_OR_FLOAT64 // the reference's outputs may be float64 as well
};

struct attn_sdpa_problem {
    // query: (batch, query_heads, queries, head_dim), key: (batch, key_heads, keys, head_dim),
    // value: (batch, key_heads, keys, value_dim), output: (batch, query_heads, queries, value_dim)
    int64_t batch, query_heads, key_heads;
    int64_t group; // query head h reads key/value head h / group; 1 where there are no heads
    int64_t queries, keys, head_dim, value_dim;

    struct attn_sdpa_view query, key, value; // strides: batch, head, row or key, column
    attn_dtype stats;                        // float64 where query, key, value are; else float32

    double scale;   // 1/sqrt(head_dim) or as given; finite in `stats`; 1 where head_dim is 0
    double softcap; // 0: none; else positive and finite in `stats`

    // ---- visibility: through attn_sdpa_sequence_at and attn_sdpa_visible_keys
    int64_t sequences; // packed sequences, or the batch
    bool packed;
    attn_diagonal diagonal;
    int64_t diagonal_offset;
    int64_t reach_left, reach_right; // row i sees keys (i + off) - reach_left .. + reach_right
    struct attn_sdpa_view query_lengths, key_lengths, query_starts, key_starts; // stride[0]

    // ---- what changes a score; strides as the scores': batch, head, row, key
    struct attn_sdpa_view keep;         // bool or uint8: 0 masks
    struct attn_sdpa_view bias;         // float32 or float64: -inf masks, whatever the key holds
    struct attn_sdpa_view alibi_slopes; // float32 or float64, stride[0] over query heads
    struct attn_sdpa_view sinks;        // float32 or float64, stride[0] over query heads

    // ---- dropout
    attn_dropout_kind dropout;           // NONE where p is 0, too
    double dropout_scale;                // 1 / (1 - p): what a kept weight is multiplied by
    uint64_t dropout_threshold;          // PHILOX: kept when the word is below
    attn_philox_address dropout_address; // PHILOX: of sequence 0 and query head 0
    int64_t dropout_row;                 // PHILOX: number of a sequence's row 0
    struct attn_sdpa_view dropout_keep;  // KEEP: strides batch, head, row, byte

    // ---- forward: outputs. backward: `output`, `row_max`, `row_sum` are inputs, the rest absent
    struct attn_sdpa_view output;                    // batch, head, row, column
    struct attn_sdpa_view row_max, row_sum, lse;     // batch, head, row
    struct attn_sdpa_view weights;                   // batch, n, m, key
    struct attn_sdpa_view weight_heads, weight_rows; // stride[0]; absent: n is the head, m the row
    int64_t weight_head_count, weight_row_count;     // extents of n and m; 0 without weights
    bool weights_dropped;
    struct attn_sdpa_view key_sums; // batch, head, key

    // ---- backward
    struct attn_sdpa_view grad_output, grad_lse;
    struct attn_sdpa_view grad_query, grad_key, grad_value;
    struct attn_sdpa_view grad_bias; // stride 0 along the dims to be summed
    int64_t grad_bias_shape[4];      // with size 1 there
    struct attn_sdpa_view grad_sinks;
};

// One sequence of the problem: a batch entry with its lengths, or a packed sequence. Rows and keys
// are counted from the sequence's first: row i stands at row query_start + i of every tensor, key j
// at key_start + j.
struct attn_sdpa_sequence {
    int64_t batch; // entry of the tensors
    int64_t query_start, query_len;
    int64_t key_start, key_len;
    int64_t offset;           // off of the header: the diagonal is key i + offset
    int64_t lowest, highest;  // row i sees keys i + lowest .. i + highest of [0, key_len)
    int64_t dropout_sequence; // added to dropout_address.batch
};

// Positions further away than any row or key: what "no limit" becomes, without overflow.
#define ATTN_SDPA_FAR (INT64_C(1) << 60)

// Checks everything the header asks for and fills *problem. On failure the text names field, shapes
// and what was expected.
attn_status attn_sdpa_problem_of_forward(const attn_sdpa_desc *desc,
                                         const attn_sdpa_forward_args *args,
                                         enum attn_sdpa_output_rule rule,
                                         struct attn_sdpa_problem *problem, attn_error *error);
attn_status attn_sdpa_problem_of_backward(const attn_sdpa_desc *desc,
                                          const attn_sdpa_backward_args *args,
                                          enum attn_sdpa_output_rule rule,
                                          struct attn_sdpa_problem *problem, attn_error *error);

// Element n of an int32 or int64 list.
static inline int64_t attn_sdpa_integer(const struct attn_sdpa_view *view, int64_t n)
{
    const int64_t at = n * view->stride[0];
    return view->dtype == ATTN_I32 ? ((const int32_t *)view->data)[at]
                                   : ((const int64_t *)view->data)[at];
}

// Element n of a float32 or float64 list.
static inline double attn_sdpa_real(const struct attn_sdpa_view *view, int64_t n)
{
    const int64_t at = n * view->stride[0];
    return view->dtype == ATTN_F32 ? (double)((const float *)view->data)[at]
                                   : ((const double *)view->data)[at];
}

// A head's sink; -inf, which is none, without sinks. An infinite one is NaN: the softmax of an infinite
// logit is not defined.
static inline double attn_sdpa_sink(const struct attn_sdpa_problem *problem, int64_t head)
{
    const double sink = problem->sinks.data ? attn_sdpa_real(&problem->sinks, head)
                                            : -(double)INFINITY;
    return sink == (double)INFINITY ? (double)NAN : sink;
}

static inline int64_t attn_sdpa_clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : (value > high ? high : value);
}

// Sequence n of [0, problem->sequences).
static inline struct attn_sdpa_sequence attn_sdpa_sequence_at(
    const struct attn_sdpa_problem *problem, int64_t n)
{
    struct attn_sdpa_sequence sequence = {.dropout_sequence = n};
    if (problem->packed) {
        sequence.query_start = attn_sdpa_integer(&problem->query_starts, n);
        sequence.query_len = attn_sdpa_integer(&problem->query_starts, n + 1) -
                             sequence.query_start;
        sequence.key_start = attn_sdpa_integer(&problem->key_starts, n);
        sequence.key_len = attn_sdpa_integer(&problem->key_starts, n + 1) - sequence.key_start;
    } else {
        sequence.batch = n;
        sequence.query_len = problem->query_lengths.data
                                 ? attn_sdpa_integer(&problem->query_lengths, n)
                                 : problem->queries;
        sequence.key_len = problem->key_lengths.data ? attn_sdpa_integer(&problem->key_lengths, n)
                                                     : problem->keys;
    }
    if (problem->diagonal == ATTN_DIAGONAL_BOTTOM_RIGHT) {
        sequence.offset = sequence.key_len - sequence.query_len;
    } else if (problem->diagonal == ATTN_DIAGONAL_OFFSET) {
        sequence.offset = problem->diagonal_offset;
    }
    sequence.lowest = sequence.offset - problem->reach_left;
    sequence.highest = sequence.offset + problem->reach_right;
    return sequence;
}

// The keys [*begin, *end) that row i of [0, query_len) sees by lengths, causality and window. `keep`
// and -inf in `bias` may mask more of them. Empty as *begin == *end.
static inline void attn_sdpa_visible_keys(const struct attn_sdpa_sequence *sequence, int64_t i,
                                          int64_t *begin, int64_t *end)
{
    *begin = attn_sdpa_clamp(i + sequence->lowest, 0, sequence->key_len);
    *end = attn_sdpa_clamp(i + sequence->highest + 1, *begin, sequence->key_len);
}

// The same asked from the other side: the rows [*begin, *end) that see key j of [0, key_len).
static inline void attn_sdpa_seeing_rows(const struct attn_sdpa_sequence *sequence, int64_t j,
                                         int64_t *begin, int64_t *end)
{
    *begin = attn_sdpa_clamp(j - sequence->highest, 0, sequence->query_len);
    *end = attn_sdpa_clamp(j - sequence->lowest + 1, *begin, sequence->query_len);
}

// The first row of batch entry b that lies beyond its query length, or beyond every packed
// sequence: rows from there to `queries` see nothing. Keys from attn_sdpa_live_keys on are seen by
// nobody.
static inline int64_t attn_sdpa_live_rows(const struct attn_sdpa_problem *problem, int64_t b)
{
    if (problem->packed) {
        return attn_sdpa_integer(&problem->query_starts, problem->sequences);
    }
    return problem->query_lengths.data ? attn_sdpa_integer(&problem->query_lengths, b)
                                       : problem->queries;
}

static inline int64_t attn_sdpa_live_keys(const struct attn_sdpa_problem *problem, int64_t b)
{
    if (problem->packed) {
        return attn_sdpa_integer(&problem->key_starts, problem->sequences);
    }
    return problem->key_lengths.data ? attn_sdpa_integer(&problem->key_lengths, b) : problem->keys;
}

// PHILOX: the key of query head `head` in this sequence. Weight (i, j) is kept when
// attn_philox_word(head_key, dropout_row + i, j) < dropout_threshold.
static inline void attn_sdpa_dropout_key(const struct attn_sdpa_problem *problem,
                                         const struct attn_sdpa_sequence *sequence, int64_t head,
                                         uint32_t head_key[2])
{
    attn_philox_address address = problem->dropout_address;
    address.batch += sequence->dropout_sequence;
    address.head += head;
    attn_philox_head_key(&address, head_key);
}

#endif
