// sdpa/forward.h: how the forward pass is cut into jobs.
#ifndef ATTN_SDPA_FORWARD_H
#define ATTN_SDPA_FORWARD_H

#include "sdpa/problem.h"

// Query rows that one job computes. They are numbered through the heads: row n of `heads` heads from
// `head` on is row n % query_len of head n / query_len, so that heads which share keys may share a
// job.
struct attn_forward_rows {
    int64_t sequence;
    int64_t head, heads;
    int64_t first, count; // what lies beyond heads * query_len is left out
};

size_t attn_forward_worker_bytes_f32(const attn_context *context,
                                     const struct attn_sdpa_problem *problem, int64_t strips);
size_t attn_forward_worker_bytes_f64(const attn_context *context,
                                     const struct attn_sdpa_problem *problem, int64_t strips);

void attn_forward_rows_f32(const attn_context *context, const struct attn_sdpa_problem *problem,
                           const struct attn_forward_rows *rows, void *memory);
void attn_forward_rows_f64(const attn_context *context, const struct attn_sdpa_problem *problem,
                           const struct attn_forward_rows *rows, void *memory);

// The same in two steps, for few rows over many keys: what one segment of keys gives one strip
// (rows->count is at most a strip's), and the strip's result from all its segments, which lie `bytes`
// apart. Bits are those of attn_forward_rows.
size_t attn_forward_part_bytes_f32(const attn_context *context,
                                   const struct attn_sdpa_problem *problem);
size_t attn_forward_part_bytes_f64(const attn_context *context,
                                   const struct attn_sdpa_problem *problem);
void attn_forward_segment_f32(const attn_context *context, const struct attn_sdpa_problem *problem,
                              const struct attn_forward_rows *rows, int64_t segment, void *memory,
                              void *part);
void attn_forward_segment_f64(const attn_context *context, const struct attn_sdpa_problem *problem,
                              const struct attn_forward_rows *rows, int64_t segment, void *memory,
                              void *part);
void attn_forward_merge_f32(const attn_context *context, const struct attn_sdpa_problem *problem,
                            const struct attn_forward_rows *rows, int64_t segments, void *memory,
                            const void *parts);
void attn_forward_merge_f64(const attn_context *context, const struct attn_sdpa_problem *problem,
                            const struct attn_forward_rows *rows, int64_t segments, void *memory,
                            const void *parts);

// Weights of one head's chosen rows (entry `index` of the weights tensor), or the sums of its weights
// per key. Zeros are there already.
struct attn_weight_job {
    int64_t sequence;
    int64_t head, index;
    bool sums;
};

void attn_forward_weights_f32(const attn_context *context, const struct attn_sdpa_problem *problem,
                              const struct attn_weight_job *job, void *memory);
void attn_forward_weights_f64(const attn_context *context, const struct attn_sdpa_problem *problem,
                              const struct attn_weight_job *job, void *memory);

#endif
