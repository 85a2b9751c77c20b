// The engine's forward pass: jobs of a few hundred query rows, over all sequences and heads.
#include "sdpa/forward.h"

#include <math.h>

#include "core/context.h"
#include "core/error.h"
#include "kernels/kernels.h"
#include "sdpa/engine.h"
#include "sdpa/strip.h"

// How a problem is cut. Bits do not depend on it.
struct grid {
    int64_t heads;        // query heads per unit: a whole group where rows are few, else one
    int64_t units;        // per sequence
    int64_t jobs;         // per unit
    int64_t rows, strips; // per job
    int64_t count;        // jobs in all
    int64_t segments;     // per job, computed apart where jobs are fewer than workers; else 1
};

struct forward_call {
    const attn_context *context;
    const struct attn_sdpa_problem *problem;
    struct grid grid;
    char *memory;
    size_t worker_bytes, part_bytes;
    char *parts; // of all jobs' segments, after the workers' memory
};

static struct grid cut(const attn_context *context, const struct attn_sdpa_problem *problem);
static size_t worker_bytes(const attn_context *context, const struct attn_sdpa_problem *problem,
                           int64_t strips);
static size_t part_bytes(const attn_context *context, const struct attn_sdpa_problem *problem);
static void run_rows(void *argument, int64_t index, int32_t worker);
static void run_segment(void *argument, int64_t index, int32_t worker);
static void merge_segments(void *argument, int64_t index, int32_t worker);
static int64_t weight_jobs(const struct attn_sdpa_problem *problem);
static int64_t sum_jobs(const struct attn_sdpa_problem *problem);
static void write_weights(struct forward_call *call);
static void write_unseen_rows(const attn_context *context, const struct attn_sdpa_problem *problem);

attn_status attn_engine_forward_workspace(const attn_context *context,
                                          const struct attn_sdpa_problem *problem, size_t *bytes,
                                          attn_error *error)
{
    const struct grid grid = cut(context, problem);
    const size_t each = worker_bytes(context, problem, grid.strips);
    const int64_t jobs =
        attn_max(grid.count * grid.segments, attn_max(weight_jobs(problem), sum_jobs(problem)));
    const int64_t workers = attn_min(context->executor.workers, jobs);
    const int64_t parts = grid.segments > 1 ? grid.count * grid.segments : 0;
    size_t of_workers, of_parts;
    if (__builtin_mul_overflow(each, (size_t)workers, &of_workers) ||
        __builtin_mul_overflow(part_bytes(context, problem), (size_t)parts, &of_parts) ||
        __builtin_add_overflow(of_workers, of_parts, bytes)) {
        return attn_fail(error, ATTN_ERR_OVERFLOW,
                         "sdpa: the workspace of %lld workers is too large", (long long)workers);
    }
    return ATTN_OK;
}

attn_status attn_engine_forward(const attn_context *context,
                                const struct attn_sdpa_problem *problem, void *workspace,
                                size_t size, attn_error *error)
{
    (void)error;
    struct forward_call call = {
        .context = context,
        .problem = problem,
        .grid = cut(context, problem),
        .memory = workspace,
    };
    const struct grid *grid = &call.grid;
    call.worker_bytes = worker_bytes(context, problem, grid->strips);
    if (grid->segments > 1) {
        call.part_bytes = part_bytes(context, problem);
        const size_t parts = call.part_bytes * (size_t)(grid->count * grid->segments);
        call.parts = call.memory + (size - parts) / 64 * 64;
        attn_parallel_for(context, grid->count * grid->segments, run_segment, &call);
        attn_parallel_for(context, grid->count, merge_segments, &call);
    } else {
        attn_parallel_for(context, grid->count, run_rows, &call);
    }
    write_unseen_rows(context, problem);
    write_weights(&call);
    return ATTN_OK;
}

// ---- jobs ---------------------------------------------------------------------------------------

static int64_t longest_sequence(const struct attn_sdpa_problem *problem)
{
    if (!problem->packed) {
        return problem->queries;
    }
    int64_t longest = 0;
    for (int64_t n = 0; n < problem->sequences; n++) {
        const struct attn_sdpa_sequence sequence = attn_sdpa_sequence_at(problem, n);
        longest = attn_max(longest, sequence.query_len);
    }
    return longest;
}

static int64_t strip_width(const attn_context *context, const struct attn_sdpa_problem *problem)
{
    const struct attn_kernels *kernels = attn_kernels_select(context->tier);
    return problem->stats == ATTN_F32 ? kernels->f32->tile_lanes : kernels->f64->tile_lanes;
}

// A job's strips share a key block while it is in the second-level cache, so they should be several;
// and there should be several jobs per worker.
static struct grid cut(const attn_context *context, const struct attn_sdpa_problem *problem)
{
    enum { JOB_ROWS = 288, JOBS_PER_WORKER = 4 };
    const int64_t width = strip_width(context, problem);
    const int64_t longest = longest_sequence(problem);
    const bool whole_group = longest * 2 < width;
    struct grid grid = {.heads = whole_group ? problem->group : 1};
    grid.units = problem->query_heads / grid.heads;
    const int64_t unit_strips = attn_max(1, (longest * grid.heads + width - 1) / width);
    const int64_t all_strips = unit_strips * grid.units * problem->sequences;
    const int64_t workers = context->executor.workers;
    const int64_t fair = workers == 1 ? JOB_ROWS : all_strips / (workers * JOBS_PER_WORKER);
    grid.strips = attn_sdpa_clamp(attn_min(fair, unit_strips), 1, attn_max(1, JOB_ROWS / width));
    grid.jobs = longest == 0 ? 0 : (unit_strips + grid.strips - 1) / grid.strips;
    grid.rows = grid.strips * width;
    grid.count = grid.jobs * grid.units * problem->sequences;
    const int64_t segment = attn_key_block(problem->head_dim, problem->value_dim) *
                            ATTN_SEGMENT_BLOCKS;
    const bool idle = grid.count > 0 && grid.count < workers && grid.strips == 1;
    grid.segments = idle ? attn_max(1, (problem->keys + segment - 1) / segment) : 1;
    return grid;
}

static size_t worker_bytes(const attn_context *context, const struct attn_sdpa_problem *problem,
                           int64_t strips)
{
    return problem->stats == ATTN_F32 ? attn_forward_worker_bytes_f32(context, problem, strips)
                                      : attn_forward_worker_bytes_f64(context, problem, strips);
}

// With no more jobs than workers each job has memory of its own, whoever runs it.
static void *memory_of(const struct forward_call *call, int64_t jobs, int64_t index, int32_t worker)
{
    const int64_t slot = jobs <= call->context->executor.workers ? index : worker;
    return call->memory + (size_t)slot * call->worker_bytes;
}

// A unit's last rows come first: under a causal mask they take longest.
static struct attn_forward_rows rows_of_job(const struct grid *grid, int64_t index)
{
    const int64_t unit = index / grid->jobs;
    return (struct attn_forward_rows){
        .sequence = unit / grid->units,
        .head = unit % grid->units * grid->heads,
        .heads = grid->heads,
        .first = (grid->jobs - 1 - index % grid->jobs) * grid->rows,
        .count = grid->rows,
    };
}

static void run_rows(void *argument, int64_t index, int32_t worker)
{
    const struct forward_call *call = argument;
    const struct attn_forward_rows rows = rows_of_job(&call->grid, index);
    void *memory = memory_of(call, call->grid.count, index, worker);
    if (call->problem->stats == ATTN_F32) {
        attn_forward_rows_f32(call->context, call->problem, &rows, memory);
    } else {
        attn_forward_rows_f64(call->context, call->problem, &rows, memory);
    }
}

// ---- segments apart -----------------------------------------------------------------------------

static size_t part_bytes(const attn_context *context, const struct attn_sdpa_problem *problem)
{
    return problem->stats == ATTN_F32 ? attn_forward_part_bytes_f32(context, problem)
                                      : attn_forward_part_bytes_f64(context, problem);
}

static void run_segment(void *argument, int64_t index, int32_t worker)
{
    const struct forward_call *call = argument;
    const int64_t segments = call->grid.segments, segment = index % segments;
    const struct attn_forward_rows rows = rows_of_job(&call->grid, index / segments);
    void *memory = memory_of(call, call->grid.count * segments, index, worker);
    void *part = call->parts + (size_t)index * call->part_bytes;
    if (call->problem->stats == ATTN_F32) {
        attn_forward_segment_f32(call->context, call->problem, &rows, segment, memory, part);
    } else {
        attn_forward_segment_f64(call->context, call->problem, &rows, segment, memory, part);
    }
}

static void merge_segments(void *argument, int64_t index, int32_t worker)
{
    const struct forward_call *call = argument;
    const int64_t segments = call->grid.segments;
    const struct attn_forward_rows rows = rows_of_job(&call->grid, index);
    void *memory = memory_of(call, call->grid.count, index, worker);
    const void *parts = call->parts + (size_t)(index * segments) * call->part_bytes;
    if (call->problem->stats == ATTN_F32) {
        attn_forward_merge_f32(call->context, call->problem, &rows, segments, memory, parts);
    } else {
        attn_forward_merge_f64(call->context, call->problem, &rows, segments, memory, parts);
    }
}

// ---- rows of no sequence ------------------------------------------------------------------------

static void store(const struct attn_sdpa_view *view, int64_t offset, double value)
{
    char *target = (char *)view->data + offset * (int64_t)attn_dtype_size(view->dtype);
    switch (view->dtype) {
    case ATTN_F32: *(float *)(void *)target = (float)value; break;
    case ATTN_F64: *(double *)(void *)target = value; break;
    default: *(uint16_t *)(void *)target = 0; break; // only outputs are halves, and only zeros here
    }
}

static void write_unseen_row(const struct attn_sdpa_problem *problem, int64_t batch, int64_t head,
                             int64_t row)
{
    const double max = problem->sinks.data ? attn_sdpa_real(&problem->sinks, head)
                                           : (double)-INFINITY;
    const bool has_sink = max > (double)-INFINITY;
    const struct attn_sdpa_view *views[3] = {&problem->row_max, &problem->row_sum, &problem->lse};
    const double values[3] = {max, has_sink ? 1 : 0, max};
    for (int v = 0; v < 3; v++) {
        if (views[v]->data) {
            store(views[v],
                  batch * views[v]->stride[0] + head * views[v]->stride[1] +
                      row * views[v]->stride[2],
                  values[v]);
        }
    }
    const struct attn_sdpa_view *output = &problem->output;
    for (int64_t c = 0; output->data && c < problem->value_dim; c++) {
        store(output,
              batch * output->stride[0] + head * output->stride[1] + row * output->stride[2] +
                  c * output->stride[3],
              0);
    }
}

static void write_unseen_rows(const attn_context *context, const struct attn_sdpa_problem *problem)
{
    (void)context;
    for (int64_t b = 0; b < problem->batch; b++) {
        for (int64_t row = attn_sdpa_live_rows(problem, b); row < problem->queries; row++) {
            for (int64_t h = 0; h < problem->query_heads; h++) {
                write_unseen_row(problem, b, h, row);
            }
        }
    }
}

// ---- weights and their sums ---------------------------------------------------------------------

static int64_t weight_jobs(const struct attn_sdpa_problem *problem)
{
    return problem->weights.data ? problem->sequences * problem->weight_head_count : 0;
}

static int64_t sum_jobs(const struct attn_sdpa_problem *problem)
{
    return problem->key_sums.data ? problem->sequences * problem->query_heads : 0;
}

static void run_weights(const struct forward_call *call, const struct attn_weight_job *job,
                        void *memory)
{
    if (call->problem->stats == ATTN_F32) {
        attn_forward_weights_f32(call->context, call->problem, job, memory);
    } else {
        attn_forward_weights_f64(call->context, call->problem, job, memory);
    }
}

static void run_weight_job(void *argument, int64_t index, int32_t worker)
{
    const struct forward_call *call = argument;
    const struct attn_sdpa_problem *problem = call->problem;
    const int64_t n = index % problem->weight_head_count;
    const struct attn_weight_job job = {
        .sequence = index / problem->weight_head_count,
        .head = problem->weight_heads.data ? attn_sdpa_integer(&problem->weight_heads, n) : n,
        .index = n,
    };
    run_weights(call, &job, memory_of(call, weight_jobs(problem), index, worker));
}

static void run_sum_job(void *argument, int64_t index, int32_t worker)
{
    const struct forward_call *call = argument;
    const struct attn_weight_job job = {
        .sequence = index / call->problem->query_heads,
        .head = index % call->problem->query_heads,
        .sums = true,
    };
    run_weights(call, &job, memory_of(call, sum_jobs(call->problem), index, worker));
}

// shape: batch, n, m, key
static void write_zeros(const struct attn_sdpa_view *view, const int64_t shape[4])
{
    for (int64_t b = 0; view->data && b < shape[0]; b++) {
        for (int64_t n = 0; n < shape[1]; n++) {
            for (int64_t m = 0; m < shape[2]; m++) {
                for (int64_t j = 0; j < shape[3]; j++) {
                    store(view,
                          b * view->stride[0] + n * view->stride[1] + m * view->stride[2] +
                              j * view->stride[3],
                          0);
                }
            }
        }
    }
}

static void write_weights(struct forward_call *call)
{
    const struct attn_sdpa_problem *p = call->problem;
    const int64_t weights[4] = {p->batch, p->weight_head_count, p->weight_row_count, p->keys};
    const int64_t sums[4] = {p->batch, p->query_heads, p->keys, 1};
    write_zeros(&p->weights, weights);
    write_zeros(&p->key_sums, sums);
    attn_parallel_for(call->context, weight_jobs(p), run_weight_job, call);
    attn_parallel_for(call->context, sum_jobs(p), run_sum_job, call);
}
