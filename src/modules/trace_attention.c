// Attention as its definition says, one step after the other, for the trace.
#include <math.h>

#include "modules/dropout.h"
#include "modules/trace.h"
#include "tape/tape.h"

static attn_weights_shape shape_of(const attn_tensor *scores);
static attn_var repeat_heads(attn_var x, int64_t heads);
static bool hidden_pairs(attn_tape *tape, const attn_sdpa_desc *desc, const attn_tensor *scores,
                         attn_tensor *hidden);
static attn_var dropout_factors(attn_tape *tape, const attn_sdpa_desc *desc,
                                const attn_tensor *scores);
static void trace_steps(attn_trace *trace, const char *prefix, const attn_sdpa_desc *desc,
                        attn_var query, attn_var key, attn_var value);

void attn_trace_attention(attn_trace *trace, const char *prefix, const attn_sdpa_desc *desc,
                          attn_var query, attn_var key, attn_var value)
{
    attn_tape *tape = query.tape;
    if (!trace || !attn_tape_healthy(tape)) {
        return;
    }
    // Beside the module's own ops: nothing here is recorded, and all of it is given back.
    const bool recording = attn_tape_recording(tape);
    const attn_tape_mark mark = attn_tape_get_mark(tape);
    attn_tape_set_recording(tape, false);
    trace_steps(trace, prefix, desc, query, key, value);
    attn_tape_set_recording(tape, recording);
    attn_tape_release(tape, mark, NULL);
}

static void trace_steps(attn_trace *trace, const char *prefix, const attn_sdpa_desc *desc,
                        attn_var query, attn_var key, attn_var value)
{
    attn_tape *tape = query.tape;
    const attn_tensor q = attn_value(query);
    if (q.ndim == 4) {
        key = repeat_heads(key, q.shape[1]);
        value = repeat_heads(value, q.shape[1]);
    }

    // 1. scores (..., Tq, Tk)
    attn_var scores = attn_matmul(query, attn_transpose(key, -2, -1));
    attn_trace_record(trace, prefix, "attn_scores", scores);
    if (!attn_tape_healthy(tape)) {
        return;
    }
    const attn_tensor shape = attn_value(scores);

    // 2. mask
    attn_tensor hidden;
    const bool masked = desc->causal || desc->key_lengths;
    if (masked) {
        if (!hidden_pairs(tape, desc, &shape, &hidden)) {
            return;
        }
        scores = attn_masked_fill(scores, &hidden, -INFINITY);
        attn_trace_record(trace, prefix, "attn_scores.masked", scores);
    }

    // 3. weights: softmax over the keys of scores / sqrt(D); a row that sees nothing has weights 0
    attn_var weights = attn_softmax(attn_scale(scores, 1 / sqrt((double)q.shape[q.ndim - 1])), -1);
    if (masked) {
        weights = attn_masked_fill(weights, &hidden, 0);
    }
    attn_trace_record(trace, prefix, "attn_weights", weights);

    // 4. dropout
    if (desc->dropout != ATTN_DROPOUT_NONE) {
        weights = attn_multiply(weights, dropout_factors(tape, desc, &shape));
        attn_trace_record(trace, prefix, "attn_weights.dropped", weights);
    }

    // 5. context (..., Tq, D)
    attn_trace_record(trace, prefix, "context", attn_matmul(weights, value));
}

// (B, Hkv, T, D) -> (B, heads, T, D), each head as often as query heads share it
static attn_var repeat_heads(attn_var x, int64_t heads)
{
    const attn_tensor value = attn_value(x);
    const int64_t batch = value.shape[0], kv_heads = value.shape[1];
    const int64_t length = value.shape[2], head_dim = value.shape[3];
    if (kv_heads == heads) {
        return x;
    }
    x = attn_view(x, 5, (int64_t[]){batch, kv_heads, 1, length, head_dim});
    x = attn_expand(x, 5, (int64_t[]){batch, kv_heads, heads / kv_heads, length, head_dim});
    return attn_view(attn_contiguous(x), 4, (int64_t[]){batch, heads, length, head_dim});
}

// (Tq, Tk), (B, Tq, Tk) or (B, H, Tq, Tk)
static attn_weights_shape shape_of(const attn_tensor *scores)
{
    const int64_t *shape = scores->shape;
    const int32_t n = scores->ndim;
    return (attn_weights_shape){.batch = n > 2 ? shape[0] : 1,
                                .heads = n > 3 ? shape[1] : 1,
                                .queries = shape[n - 2],
                                .keys = shape[n - 1]};
}

// True where a key lies in the future of its query or beyond its sequence's length: (Tq, Tk), with
// the batch in front where lengths differ, to be broadcast to the scores.
static bool hidden_pairs(attn_tape *tape, const attn_sdpa_desc *desc, const attn_tensor *scores,
                         attn_tensor *hidden)
{
    const attn_weights_shape shape = shape_of(scores);
    const int64_t batches = desc->key_lengths ? shape.batch : 1;
    int64_t sizes[4] = {1, 1, 1, 1};
    sizes[0] = batches; // overwritten where scores are (Tq, Tk)
    sizes[scores->ndim - 2] = shape.queries;
    sizes[scores->ndim - 1] = shape.keys;
    if (!attn_tape_tensor(tape, "trace", ATTN_BOOL, scores->ndim, sizes, hidden)) {
        return false;
    }
    bool *element = hidden->data;
    for (int64_t b = 0; b < batches; b++) {
        const int64_t length = desc->key_lengths ? (int64_t)attn_tensor_get(desc->key_lengths, &b)
                                                 : shape.keys;
        for (int64_t query = 0; query < shape.queries; query++) {
            for (int64_t key = 0; key < shape.keys; key++) {
                *element++ = key >= length || (desc->causal && key > query);
            }
        }
    }
    return true;
}

static attn_var dropout_factors(attn_tape *tape, const attn_sdpa_desc *desc,
                                const attn_tensor *scores)
{
    attn_tensor factors;
    if (!attn_tape_tensor(tape, "trace", scores->dtype, scores->ndim, scores->shape, &factors)) {
        return attn_tape_failed(tape);
    }
    attn_dropout_factors(desc, shape_of(scores), &factors);
    return attn_tape_push(tape, NULL, NULL, 0, &factors, NULL, 0);
}
