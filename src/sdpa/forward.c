// The engine's forward pass: jobs of a few hundred query rows, over all sequences and heads.
#include "sdpa/forward.h"

#include <math.h>

#include "core/context.h"
#include "core/error.h"
#include "kernels/kernels.h"
#include "sdpa/engine.h"
#include "sdpa/shared.h"
#include "sdpa/strip.h"

// The plan of the problem's element type.
union plan {
    struct attn_strip_plan_f32 f32;
    struct attn_strip_plan_f64 f64;
};

struct forward_call {
    const attn_context *context;
    const struct attn_sdpa_problem *problem;
    union plan plan;
    struct attn_forward_grid grid;
    char *memory;
    size_t worker_bytes, part_bytes;
    char *parts; // of all jobs' segments, after the workers' memory
};

static void prepare(const attn_context *context, const struct attn_sdpa_problem *problem,
                    struct forward_call *call);
static void measure(struct forward_call *call);
static void run_all_rows(void *argument, int64_t index, int32_t worker);
static void run_parallel(struct forward_call *call, size_t size);
static int64_t weight_jobs(const struct attn_sdpa_problem *problem);
static int64_t sum_jobs(const struct attn_sdpa_problem *problem);
static void write_weights(struct forward_call *call);
static void write_unseen_rows(const attn_context *context, const struct attn_sdpa_problem *problem);

attn_status attn_engine_forward_workspace(const attn_context *context,
                                          const struct attn_sdpa_problem *problem, size_t *bytes,
                                          attn_error *error)
{
    struct forward_call call;
    prepare(context, problem, &call);
    measure(&call);
    const struct attn_forward_grid *grid = &call.grid;
    const int64_t jobs =
        attn_max(grid->count * grid->segments, attn_max(weight_jobs(problem), sum_jobs(problem)));
    const int64_t workers = attn_min(context->executor.workers, jobs);
    const int64_t parts = grid->segments > 1 ? grid->count * grid->segments : 0;
    size_t of_workers, of_parts;
    if (__builtin_mul_overflow(call.worker_bytes, (size_t)workers, &of_workers) ||
        __builtin_mul_overflow(call.part_bytes, (size_t)parts, &of_parts) ||
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
    struct forward_call call;
    prepare(context, problem, &call);
    call.memory = workspace;
    const bool alone = context->executor.workers == 1;
    if (!alone) { // a single worker has all of the memory
        measure(&call);
    }
    if (alone || !attn_sdpa_is_shared(problem)) {
        attn_parallel_for(context, call.grid.count > 0, run_all_rows, &call);
    } else {
        run_parallel(&call, size);
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

// A job's strips share a key block while it is in the second-level cache, so they should be several;
// and there should be several jobs per worker. Small problems do without the divisions.
static void cut(const attn_context *context, const struct attn_sdpa_problem *problem, int64_t width,
                int64_t key_block, struct attn_forward_grid *grid)
{
    enum { JOB_ROWS = 288, JOBS_PER_WORKER = 4 };
    const int64_t longest = longest_sequence(problem), workers = context->executor.workers;
    const bool whole_group = longest * 2 < width;
    grid->heads = whole_group ? problem->group : 1;
    grid->strips = grid->segments = 1;
    grid->units = grid->heads == 1 ? problem->query_heads : problem->key_heads;
    grid->jobs = longest > 0;
    if (longest * grid->heads > width) {
        const int64_t unit_strips = (longest * grid->heads + width - 1) / width;
        const int64_t all_strips = unit_strips * grid->units * problem->sequences;
        const int64_t fair = workers == 1 ? JOB_ROWS : all_strips / (workers * JOBS_PER_WORKER);
        grid->strips =
            attn_sdpa_clamp(attn_min(fair, unit_strips), 1, attn_max(1, JOB_ROWS / width));
        grid->jobs = (unit_strips + grid->strips - 1) / grid->strips;
    }
    grid->rows = grid->strips * width;
    grid->count = grid->jobs * grid->units * problem->sequences;
    if (grid->count > 0 && grid->count < workers && grid->strips == 1) {
        const int64_t segment = key_block * ATTN_SEGMENT_BLOCKS;
        grid->segments = attn_max(1, (problem->keys + segment - 1) / segment);
    }
}

static void prepare(const attn_context *context, const struct attn_sdpa_problem *problem,
                    struct forward_call *call)
{
    call->context = context;
    call->problem = problem;
    call->worker_bytes = call->part_bytes = 0;
    if (problem->stats == ATTN_F32) {
        struct attn_strip_plan_f32 *const plan = &call->plan.f32;
        attn_strip_plan_init_f32(context, problem, plan);
        cut(context, problem, plan->width, plan->key_block, &call->grid);
    } else {
        struct attn_strip_plan_f64 *const plan = &call->plan.f64;
        attn_strip_plan_init_f64(context, problem, plan);
        cut(context, problem, plan->width, plan->key_block, &call->grid);
    }
}

static void measure(struct forward_call *call)
{
    if (call->problem->stats == ATTN_F32) {
        call->worker_bytes = attn_forward_worker_bytes_f32(&call->plan.f32, call->grid.strips);
        call->part_bytes = attn_forward_part_bytes_f32(&call->plan.f32);
    } else {
        call->worker_bytes = attn_forward_worker_bytes_f64(&call->plan.f64, call->grid.strips);
        call->part_bytes = attn_forward_part_bytes_f64(&call->plan.f64);
    }
}

// With no more jobs than workers each job has memory of its own, whoever runs it.
static void *memory_of(const struct forward_call *call, int64_t jobs, int64_t index, int32_t worker)
{
    const int64_t slot = jobs <= call->context->executor.workers ? index : worker;
    return call->memory + (size_t)slot * call->worker_bytes;
}

static void run_jobs(const struct forward_call *call, int64_t begin, int64_t end, void *memory)
{
    if (call->problem->stats == ATTN_F32) {
        attn_forward_jobs_f32(&call->plan.f32, &call->grid, begin, end, memory);
    } else {
        attn_forward_jobs_f64(&call->plan.f64, &call->grid, begin, end, memory);
    }
}

static void run_rows(void *argument, int64_t index, int32_t worker)
{
    const struct forward_call *call = argument;
    const int64_t count = call->grid.count, workers = call->context->executor.workers;
    const int64_t job = attn_sdpa_in_turns(index, count, call->grid.jobs, workers);
    run_jobs(call, job, job + 1, memory_of(call, count, index, worker));
}

static void run_all_rows(void *argument, int64_t index, int32_t worker)
{
    const struct forward_call *call = argument;
    (void)worker;
    run_jobs(call, index, call->grid.count, call->memory);
}

// ---- segments apart -----------------------------------------------------------------------------

static void run_segment(void *argument, int64_t index, int32_t worker)
{
    const struct forward_call *call = argument;
    const int64_t segments = call->grid.segments, segment = index % segments;
    const struct attn_forward_rows rows = attn_forward_rows_of(&call->grid, index / segments);
    void *memory = memory_of(call, call->grid.count * segments, index, worker);
    void *part = call->parts + (size_t)index * call->part_bytes;
    if (call->problem->stats == ATTN_F32) {
        attn_forward_segment_f32(&call->plan.f32, &rows, segment, memory, part);
    } else {
        attn_forward_segment_f64(&call->plan.f64, &rows, segment, memory, part);
    }
}

static void merge_segments(void *argument, int64_t index, int32_t worker)
{
    const struct forward_call *call = argument;
    const int64_t segments = call->grid.segments;
    const struct attn_forward_rows rows = attn_forward_rows_of(&call->grid, index);
    void *memory = memory_of(call, call->grid.count, index, worker);
    const void *parts = call->parts + (size_t)(index * segments) * call->part_bytes;
    if (call->problem->stats == ATTN_F32) {
        attn_forward_merge_f32(&call->plan.f32, &rows, segments, memory, parts);
    } else {
        attn_forward_merge_f64(&call->plan.f64, &rows, segments, memory, parts);
    }
}

static void run_parallel(struct forward_call *call, size_t size)
{
    const struct attn_forward_grid *grid = &call->grid;
    if (grid->segments > 1) {
        const size_t parts = call->part_bytes * (size_t)(grid->count * grid->segments);
        call->parts = call->memory + (size - parts) / 64 * 64;
        attn_parallel_for(call->context, grid->count * grid->segments, run_segment, call);
        attn_parallel_for(call->context, grid->count, merge_segments, call);
    } else {
        attn_parallel_for(call->context, grid->count, run_rows, call);
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
    const double max = attn_sdpa_sink(problem, head);
    const double sum = isnan(max) ? max : max > (double)-INFINITY ? 1 : 0;
    const struct attn_sdpa_view *views[3] = {&problem->row_max, &problem->row_sum, &problem->lse};
    const double values[3] = {max, sum, max};
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
        attn_forward_weights_f32(&call->plan.f32, job, memory);
    } else {
        attn_forward_weights_f64(&call->plan.f64, job, memory);
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
    for (int64_t b = 0; b < shape[0]; b++) {
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
    if (p->weights.data) {
        const int64_t shape[4] = {p->batch, p->weight_head_count, p->weight_row_count, p->keys};
        write_zeros(&p->weights, shape);
        attn_sdpa_for_each(call->context, p, weight_jobs(p), run_weight_job, call);
    }
    if (p->key_sums.data) {
        const int64_t shape[4] = {p->batch, p->query_heads, p->keys, 1};
        write_zeros(&p->key_sums, shape);
        attn_sdpa_for_each(call->context, p, sum_jobs(p), run_sum_job, call);
    }
}
