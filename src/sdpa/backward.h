// sdpa/backward.h: how the backward pass is cut into jobs.
#ifndef ATTN_SDPA_BACKWARD_H
#define ATTN_SDPA_BACKWARD_H

#include "sdpa/problem.h"

enum {
    ATTN_BACKWARD_KEYS = 96, // keys per block; no bit depends on it
    ATTN_BACKWARD_STRIPS = 3 // strips that share a block while it is in the second-level cache
};

// A part of one sequence and key/value head: gradients of query rows [row, row_end) of query heads
// [head, head_end), or of keys [key, key_end), or of both. Every element is one chain of sums over
// the whole other side, so that a piece never changes a bit. key is a multiple of
// ATTN_BACKWARD_KEYS.
struct attn_backward_piece {
    int64_t sequence, key_head;
    int64_t head, head_end;
    int64_t row, row_end;
    int64_t key, key_end;
    bool of_query, of_keys;
    // Deltas (batch, query_heads, queries) of the element type: each row's sum over its keys of weight
    // times the weight's gradient. NULL: to be had from the output. of_deltas: to be written.
    void *deltas;
    bool of_deltas;
};

// Rows [row, row_end) of one (batch, head) of grad_bias.
struct attn_backward_bias_piece {
    int64_t batch, head; // in grad_bias
    int64_t row, row_end;
    void *deltas;
};

size_t attn_backward_worker_bytes_f32(const attn_context *context,
                                      const struct attn_sdpa_problem *problem);
size_t attn_backward_worker_bytes_f64(const attn_context *context,
                                      const struct attn_sdpa_problem *problem);

// next: the piece that the worker will likely have next, so that its rows can be asked for; or NULL
void attn_backward_run_f32(const attn_context *context, const struct attn_sdpa_problem *problem,
                           const struct attn_backward_piece *piece,
                           const struct attn_backward_piece *next, void *memory);
void attn_backward_run_f64(const attn_context *context, const struct attn_sdpa_problem *problem,
                           const struct attn_backward_piece *piece,
                           const struct attn_backward_piece *next, void *memory);

void attn_backward_bias_f32(const attn_context *context, const struct attn_sdpa_problem *problem,
                            const struct attn_backward_bias_piece *piece, void *memory);
void attn_backward_bias_f64(const attn_context *context, const struct attn_sdpa_problem *problem,
                            const struct attn_backward_bias_piece *piece, void *memory);

// grad_sinks of one head: rows ascending, sequences ascending.
void attn_backward_sink(const attn_context *context, const struct attn_sdpa_problem *problem,
                        const void *deltas, int64_t head);

#endif
