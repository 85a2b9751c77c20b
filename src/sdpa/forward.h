// sdpa/forward.h: how the forward pass is cut into jobs.
#ifndef ATTN_SDPA_FORWARD_H
#define ATTN_SDPA_FORWARD_H

#include "sdpa/strip.h"

// How a problem is cut. Bits do not depend on it.
struct attn_forward_grid {
    int64_t heads;        // query heads per unit: a whole group where rows are few, else one
    int64_t units;        // per sequence
    int64_t jobs;         // per unit
    int64_t rows, strips; // per job
    int64_t count;        // jobs in all
    int64_t segments;     // per job, computed apart where jobs are fewer than workers; else 1
};

// Query rows that one job computes. They are numbered through the heads: row n of `heads` heads from
// `head` on is row n % query_len of head n / query_len, so that heads which share keys may share a
// job.
struct attn_forward_rows {
    int64_t sequence;
    int64_t head, heads;
    int64_t first, count; // what lies beyond heads * query_len is left out
    bool again;           // the job before looks at the same keys
};

// A unit's last rows come first: under a causal mask they take longest.
static inline struct attn_forward_rows attn_forward_rows_of(const struct attn_forward_grid *grid,
                                                            int64_t job)
{
    const int64_t unit = job / grid->jobs, sequence = unit / grid->units;
    return (struct attn_forward_rows){
        .sequence = sequence,
        .head = (unit - sequence * grid->units) * grid->heads,
        .heads = grid->heads,
        .first = ((unit + 1) * grid->jobs - 1 - job) * grid->rows,
        .count = grid->rows,
        .again = job > unit * grid->jobs,
    };
}

size_t attn_forward_worker_bytes_f32(const struct attn_strip_plan_f32 *plan, int64_t strips);
size_t attn_forward_worker_bytes_f64(const struct attn_strip_plan_f64 *plan, int64_t strips);

// Jobs [begin, end) one after another.
void attn_forward_jobs_f32(const struct attn_strip_plan_f32 *plan,
                           const struct attn_forward_grid *grid, int64_t begin, int64_t end,
                           void *memory);
void attn_forward_jobs_f64(const struct attn_strip_plan_f64 *plan,
                           const struct attn_forward_grid *grid, int64_t begin, int64_t end,
                           void *memory);

// The same in two steps, for few rows over many keys: what one segment of keys gives one strip
// (rows->count is at most a strip's), and the strip's result from all its segments, which lie `bytes`
// apart. Bits are those of attn_forward_jobs.
size_t attn_forward_part_bytes_f32(const struct attn_strip_plan_f32 *plan);
size_t attn_forward_part_bytes_f64(const struct attn_strip_plan_f64 *plan);
void attn_forward_segment_f32(const struct attn_strip_plan_f32 *plan,
                              const struct attn_forward_rows *rows, int64_t segment, void *memory,
                              void *part);
void attn_forward_segment_f64(const struct attn_strip_plan_f64 *plan,
                              const struct attn_forward_rows *rows, int64_t segment, void *memory,
                              void *part);
void attn_forward_merge_f32(const struct attn_strip_plan_f32 *plan,
                            const struct attn_forward_rows *rows, int64_t segments, void *memory,
                            const void *parts);
void attn_forward_merge_f64(const struct attn_strip_plan_f64 *plan,
                            const struct attn_forward_rows *rows, int64_t segments, void *memory,
                            const void *parts);

// Weights of one head's chosen rows (entry `index` of the weights tensor), or the sums of its weights
// per key. Zeros are there already.
struct attn_weight_job {
    int64_t sequence;
    int64_t head, index;
    bool sums;
};

void attn_forward_weights_f32(const struct attn_strip_plan_f32 *plan,
                              const struct attn_weight_job *job, void *memory);
void attn_forward_weights_f64(const struct attn_strip_plan_f64 *plan,
                              const struct attn_weight_job *job, void *memory);

#endif
