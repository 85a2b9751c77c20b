// attn/sdpa.h: scaled dot-product attention, forward and backward.
//
//   O = dropout(softmax(mask(softcap(scale * (Q K^T)) + bias))) V
//
// over views Q (B, Hq, Tq, D), K (B, Hkv, Tk, D), V (B, Hkv, Tk, Dv), O (B, Hq, Tq, Dv), any
// strides. Hq is a multiple of Hkv; query head h reads key/value head h / (Hq / Hkv).
//
// For batch entry b, query head h, query row i and key j the score is built in this order:
//   s = scale * sum_d Q[i,d] K[j,d]
//   s = softcap * tanh(s / softcap)                 where softcap > 0
//   s = s + bias[b,h,i,j] + slope[h] * (j - (i + off))
//   s = -inf where masked
// off is 0 (top-left), klen - qlen (bottom-right), or the given offset. A pair is masked when one of
// these holds: i >= qlen or j >= klen; causal and j > i + off; j < i + off - window_left;
// j > i + off + window_right; keep[b,h,i,j] is false; bias[b,h,i,j] or the biased score is -inf. A
// row's weights are exp(s - max) / sum, where a sink adds exp(sink[h] - max) to the sum and nothing
// to O.
//
// Edge rules. A masked key or value never influences anything, even if it is NaN, and memory beyond
// a key length, or beyond what causality and window let any row see, is never touched. A visible NaN
// reaches exactly the rows that see it (a key that dropout drops is still visible); it makes their
// row_max, row_sum and lse NaN where it is in a score, and so does a score or sink of +inf. A row
// with nothing to see has output 0, lse -inf (or the sink, where there is one: grad_lse then passes
// to the sink) and zero gradients; rows at or beyond a query length count as such. Sizes of 0 are
// legal. Finite logits up to the float limit do not overflow.
//
// Numerics. Scores and sums are float32 for float32, float16 and bfloat16 storage, float64 for
// float64. The bits of a row depend on that row's own problem only: not on threads, batch
// neighbours, query chunking, or tier. docs/numerics.md has the specification.
//
// Sources: Vaswani et al. 2017 (the formula); Dao et al. 2022, 2023 (tiling and row statistics);
// Press et al. 2022 (ALiBi); Ainslie et al. 2023 (grouped queries); Srivastava et al. 2014
// (dropout).
#ifndef ATTN_SDPA_H
#define ATTN_SDPA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attn/context.h"
#include "attn/export.h"
#include "attn/status.h"
#include "attn/tensor.h"

ATTN_BEGIN_DECLS

typedef enum attn_scale_mode {
    ATTN_SCALE_INVERSE_SQRT = 0, // 1 / sqrt(D)
    ATTN_SCALE_GIVEN             // desc.scale
} attn_scale_mode;

typedef enum attn_diagonal {
    ATTN_DIAGONAL_TOP_LEFT = 0, // off = 0
    ATTN_DIAGONAL_BOTTOM_RIGHT, // off = klen - qlen of the actual lengths
    ATTN_DIAGONAL_OFFSET        // off = desc.diagonal_offset
} attn_diagonal;

typedef enum attn_dropout_kind {
    ATTN_DROPOUT_NONE = 0,
    ATTN_DROPOUT_PHILOX, // decided by position, see attn/random.h; no memory
    ATTN_DROPOUT_KEEP    // desc.dropout_keep, one bit per weight
} attn_dropout_kind;

// What attention means in one call. Fill with attn_sdpa_desc_init, then change fields. Tensors are
// borrowed for the call; NULL means absent. "Broadcast to" means: size 1 or stride 0 where shared.
typedef struct attn_sdpa_desc {
    size_t struct_size; // set by attn_sdpa_desc_init

    attn_scale_mode scale_mode; // default INVERSE_SQRT
    double scale;               // finite, also times log2(e); read only with SCALE_GIVEN

    attn_diagonal diagonal;  // default TOP_LEFT; used by causal, window and ALiBi alike
    int64_t diagonal_offset; // -2^53 .. 2^53
    bool causal;             // default false
    int64_t window_left;     // keys before i + off that are visible; -1 (default) = no limit
    int64_t window_right;    // keys after  i + off that are visible; -1 (default) = no limit

    // Lengths per batch entry, (B) of int32 or int64, 0 <= length <= Tq or Tk.
    const attn_tensor *query_lengths;
    const attn_tensor *key_lengths;

    // Packed sequences: (N + 1) of int32 or int64, starting at 0, never decreasing, ending at most
    // at Tq / Tk. Given both or neither; then B must be 1, sequence n owns query rows
    // [query_starts[n], query_starts[n+1]) and keys [key_starts[n], key_starts[n+1]), and rows, keys
    // and lengths in every rule above (and the dropout's batch, row and key) are those of the
    // sequence; lengths above must then be absent. Tensors stay indexed by packed row and packed
    // key: keep, bias, dropout_keep, row statistics, weights and key_sums too.
    // Rows outside every sequence see nothing.
    const attn_tensor *query_starts;
    const attn_tensor *key_starts;

    const attn_tensor *keep; // bool or uint8, broadcast to (B, Hq, Tq, Tk); true = may attend
    const attn_tensor *bias; // float32 or float64, broadcast to (B, Hq, Tq, Tk); -inf masks
    const attn_tensor *alibi_slopes; // float32 or float64, (Hq)
    double softcap;                  // > 0, or 0 (default) = none
    const attn_tensor *sinks;        // float32 or float64, (Hq): one logit per head

    attn_dropout_kind dropout; // default NONE (evaluation)
    double dropout_p;        // in [0, 1); survivors are multiplied by 1 / (1 - p); 0 = NONE's bits
    uint64_t dropout_seed;   // PHILOX
    uint64_t dropout_stream; // PHILOX: which layer
    uint64_t dropout_call;   // PHILOX: which forward pass
    int64_t dropout_batch;   // PHILOX: absolute number of batch entry 0, >= 0
    int64_t dropout_head;    // PHILOX: absolute number of query head 0, >= 0
    int64_t dropout_row;     // PHILOX: absolute number of query row 0, >= 0
    const attn_tensor *dropout_keep; // KEEP: uint8, broadcast to (B, Hq, Tq, ceil(Tk / 8)): bit
                                     // j % 8 (from the lowest) of byte j / 8 keeps key j

    uint64_t reserved[8]; // zero
} attn_sdpa_desc;

// Writes the defaults: full attention, scale 1/sqrt(D), no dropout.
ATTN_API void attn_sdpa_desc_init(attn_sdpa_desc *desc);

// Inputs and outputs of the forward pass. NULL outputs are not computed. Element types: query,
// key, value and output are each float32, float16 or bfloat16, or all float64; `stats` below is
// float64 for float64 and float32 otherwise.
typedef struct attn_sdpa_forward_args {
    size_t struct_size; // set by attn_sdpa_forward_args_init

    const attn_tensor *query;  // (B, Hq, Tq, D)
    const attn_tensor *key;    // (B, Hkv, Tk, D)
    const attn_tensor *value;  // (B, Hkv, Tk, Dv)
    const attn_tensor *output; // (B, Hq, Tq, Dv), or NULL

    // Row statistics, kept for the backward: the largest score of the row (sink included; -inf when
    // nothing is visible) and the sum of exp(score - max) (sink included; 0 when nothing).
    const attn_tensor *row_max; // stats (B, Hq, Tq), or NULL
    const attn_tensor *row_sum; // stats (B, Hq, Tq), or NULL
    const attn_tensor *lse; // stats (B, Hq, Tq) = row_max + log(row_sum), before dropout; or NULL

    // Attention weights of chosen heads and rows, computed from the row statistics: weights[b,n,m,j]
    // for head weight_heads[n] and row weight_rows[m]. Index lists are int32 or int64; NULL = all.
    const attn_tensor *weights;      // stats (B, Nh, Nr, Tk), or NULL
    const attn_tensor *weight_heads; // (Nh)
    const attn_tensor *weight_rows;  // (Nr)
    bool weights_dropped;            // true: after dropout; false (default): after softmax

    // For every key, the sum over rows of its weights after softmax.
    const attn_tensor *key_sums; // stats (B, Hq, Tk), or NULL

    // Scratch memory aligned to 64 bytes, at least attn_sdpa_forward_workspace bytes. NULL: taken
    // from the context's allocator for the duration of the call.
    void *workspace;
    size_t workspace_size;

    uint64_t reserved[8]; // zero
} attn_sdpa_forward_args;

ATTN_API void attn_sdpa_forward_args_init(attn_sdpa_forward_args *args);

// Errors: INVALID_ARGUMENT, SHAPE, DTYPE (a float `keep`, mixed float64), OVERLAP (an output that
// overlaps itself or an input), OVERFLOW, OUT_OF_MEMORY, WORKSPACE. On an error nothing is written.
ATTN_API attn_status attn_sdpa_forward(const attn_context *context, const attn_sdpa_desc *desc,
                                       const attn_sdpa_forward_args *args, attn_error *error);

// The scratch bytes that attn_sdpa_forward wants for these shapes and this context.
ATTN_API attn_status attn_sdpa_forward_workspace(const attn_context *context,
                                                 const attn_sdpa_desc *desc,
                                                 const attn_sdpa_forward_args *args, size_t *bytes,
                                                 attn_error *error);

// Inputs and outputs of the backward pass for the same descriptor. The element type of a gradient is
// free among those of its forward tensor and `stats`. Every wanted gradient is overwritten.
typedef struct attn_sdpa_backward_args {
    size_t struct_size; // set by attn_sdpa_backward_args_init

    const attn_tensor *query, *key, *value; // as in the forward
    const attn_tensor *output;              // the forward's output
    const attn_tensor *row_max, *row_sum;   // the forward's row statistics
    const attn_tensor *grad_output;         // (B, Hq, Tq, Dv)
    const attn_tensor *grad_lse;            // stats (B, Hq, Tq), or NULL; ignored where lse is -inf

    const attn_tensor *grad_query; // (B, Hq, Tq, D), or NULL
    const attn_tensor *grad_key;   // (B, Hkv, Tk, D), or NULL
    const attn_tensor *grad_value; // (B, Hkv, Tk, Dv), or NULL
    const attn_tensor
        *grad_bias; // shape of desc.bias with its broadcast (stride 0) dims as size 1,
                    // summed over what was broadcast; or NULL
    const attn_tensor *grad_sinks; // (Hq), or NULL

    void *workspace; // as in the forward, attn_sdpa_backward_workspace bytes
    size_t workspace_size;

    uint64_t reserved[8]; // zero
} attn_sdpa_backward_args;

ATTN_API void attn_sdpa_backward_args_init(attn_sdpa_backward_args *args);

// Errors: as attn_sdpa_forward. grad_bias without desc.bias, or grad_sinks without desc.sinks, is
// INVALID_ARGUMENT.
ATTN_API attn_status attn_sdpa_backward(const attn_context *context, const attn_sdpa_desc *desc,
                                        const attn_sdpa_backward_args *args, attn_error *error);
ATTN_API attn_status attn_sdpa_backward_workspace(const attn_context *context,
                                                  const attn_sdpa_desc *desc,
                                                  const attn_sdpa_backward_args *args,
                                                  size_t *bytes, attn_error *error);

// The definition itself, in float64, one row at a time, always available: the oracle. It takes the
// same arguments; inputs are converted to double exactly, outputs are rounded once to their own
// dtype. Any of the outputs may be float64 whatever the inputs are. It needs no workspace beyond
// O(Tk), in the backward O(Tk (D + Dv)), per worker from the context's allocator. The backward
// recomputes its own row statistics (row_max, row_sum and output may be NULL).
ATTN_API attn_status attn_sdpa_reference_forward(const attn_context *context,
                                                 const attn_sdpa_desc *desc,
                                                 const attn_sdpa_forward_args *args,
                                                 attn_error *error);
ATTN_API attn_status attn_sdpa_reference_backward(const attn_context *context,
                                                  const attn_sdpa_desc *desc,
                                                  const attn_sdpa_backward_args *args,
                                                  attn_error *error);

// Changes whenever any output bit of the engine may change.
ATTN_API uint32_t attn_numerics_version(void);

ATTN_END_DECLS

#endif
