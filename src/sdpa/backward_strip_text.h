// sdpa/backward_strip_text.h: one strip of rows against one block of keys, from the output's gradient
// to the scores'. The including file defines ATTN_REAL_BITS.
//
// The forward's steps are taken again (scores, weights, dropout) from the saved row statistics, then
// back: with dO the output's gradient, times the dropout's scale where it meets a weight,
//   dP = V dO^T,  delta = sum over the columns of dO * O - grad_lse,
//   dS = P * (dP - delta) * slope of the softcap
// as in Dao et al. 2022, with keys in the rows and queries in the lanes.
#include <string.h>

#include "kernels/real.h"
#include "sdpa/backward.h"
#include "sdpa/strip.h"

typedef struct REAL_NAME(attn_strip_plan) plan_t;
typedef struct REAL_NAME(attn_strip_scratch) scratch_t;
typedef struct REAL_NAME(attn_strip) strip_t;
typedef struct REAL_NAME(attn_strip_block) block_t;
typedef struct REAL_NAME(attn_rows_view) rows_view_t;

#include "sdpa/store_text.h"

// A strip and what its rows bring along.
struct back_strip {
    strip_t strip;
    real delta[ATTN_STRIP_LANES];
    const real *query;                   // (rows, D)
    const real *grad_output;             // (rows, Dv), times the dropout's scale
    real *grad_lanes;                    // (Dv, width): the same transposed
    real *grad_query;                    // (rows, D): the sum so far, without the scale
    real *query_copy, *grad_output_copy; // where they cannot be used where they are
    bool query_finite, grad_finite;
};

// One worker's scratch.
struct back_worker {
    plan_t plan;
    plan_t cap_plan; // scores without what is added to them: what the softcap gave
    struct attn_sdpa_problem cap_problem;
    scratch_t scratch;
    real *weights;               // key_block x width: before dropout, where there is any
    real *slopes;                // key_block x width: of the softcap
    real *gradient;              // key_block x width: of the weights, then of the scores
    real *grad_key, *grad_value; // (Tk, D), (Tk, Dv): sums that cannot stand in the outputs
    struct back_strip *strips;
    real *deltas; // (B, Hq, Tq), or NULL: from the output
    struct attn_ahead ahead;
    bool keys_are_near; // another walk has read them, and a second-level cache still has them
};

static bool stands_in_output(const plan_t *plan, const struct attn_sdpa_view *view)
{
    return view->dtype == plan->dtype && view->stride[3] == 1;
}

static void take_worker(const attn_context *context, const struct attn_sdpa_problem *problem,
                        struct attn_arena *arena, struct back_worker *worker)
{
    REAL_NAME(attn_strip_plan_init)(context, problem, &worker->plan);
    worker->deltas = NULL;
    worker->plan.key_block = ATTN_BACKWARD_KEYS;
    worker->plan.width = ATTN_STRIP_LANES;
    if (problem->softcap > 0) {
        worker->cap_problem = *problem;
        worker->cap_problem.bias.data = worker->cap_problem.keep.data = NULL;
        worker->cap_problem.alibi_slopes.data = NULL;
        worker->cap_plan = worker->plan;
        worker->cap_plan.problem = &worker->cap_problem;
        worker->cap_plan.masks_by_element = false;
    }
    const plan_t *plan = &worker->plan;
    const int64_t block = plan->key_block * plan->width;
    const int64_t keys = problem->keys;
    const bool own_key = problem->grad_key.data && !stands_in_output(plan, &problem->grad_key);
    const bool own_value = problem->grad_value.data &&
                           !stands_in_output(plan, &problem->grad_value);
    const bool drops = problem->dropout != ATTN_DROPOUT_NONE;
    REAL_NAME(attn_strip_scratch_take)(plan, arena, &worker->scratch);
    worker->weights = attn_arena_take(arena, drops ? block : 0, sizeof(real));
    worker->slopes = attn_arena_take(arena, problem->softcap > 0 ? block : 0, sizeof(real));
    worker->gradient = attn_arena_take(arena, block, sizeof(real));
    worker->grad_key = attn_arena_take(arena, own_key ? keys * problem->head_dim : 0, sizeof(real));
    worker->grad_value =
        attn_arena_take(arena, own_value ? keys * problem->value_dim : 0, sizeof(real));
    worker->strips = attn_arena_take(arena, ATTN_BACKWARD_STRIPS, sizeof(struct back_strip));
    for (int s = 0; s < ATTN_BACKWARD_STRIPS; s++) {
        const int64_t width = plan->width;
        struct back_strip unused;
        struct back_strip *back = arena->base ? &worker->strips[s] : &unused;
        REAL_NAME(attn_strip_take)(plan, arena, &back->strip);
        back->query_copy = attn_arena_take(arena, width * problem->head_dim, sizeof(real));
        back->grad_output_copy = attn_arena_take(arena, width * problem->value_dim, sizeof(real));
        back->grad_lanes = attn_arena_take(arena, width * problem->value_dim, sizeof(real));
        back->grad_query = attn_arena_take(arena, width * problem->head_dim, sizeof(real));
    }
}

// ---- start --------------------------------------------------------------------------------------

// Row statistics are of the plan's own dtype.
static real stat(const struct attn_sdpa_view *view, const struct attn_sdpa_sequence *sequence,
                 int64_t head, int64_t row)
{
    return ((const real *)view->data)[attn_query_offset(view, sequence, head, row)];
}

static void load_stats(const struct attn_sdpa_problem *p, const struct attn_sdpa_sequence *sequence,
                       strip_t *strip)
{
    for (int64_t l = 0; l < strip->lanes; l++) {
        const bool exists = l < strip->rows;
        strip->max[l] = exists ? stat(&p->row_max, sequence, strip->head[l], strip->row[l]) : 0;
        strip->sum[l] = exists ? stat(&p->row_sum, sequence, strip->head[l], strip->row[l]) : 1;
    }
}

// The strip's rows of a view; they are neighbours.
static rows_view_t strip_rows(const plan_t *plan, const struct attn_sdpa_view *view,
                              const struct attn_sdpa_sequence *sequence, const strip_t *strip,
                              int64_t columns, bool dense, real *copy)
{
    return REAL_NAME(attn_strip_load_rows)(plan, view, sequence->batch, strip->head[0],
                                           sequence->query_start + strip->row[0], strip->rows,
                                           columns, dense, copy);
}

static void clear_lanes(real *lanes, int64_t width, int64_t columns, const strip_t *strip)
{
    for (int64_t c = 0; c < columns; c++) {
        for (int64_t l = strip->rows; l < strip->lanes; l++) {
            lanes[c * width + l] = 0;
        }
    }
}

// Where the strip's first row has its delta.
static real *delta_of(const struct back_worker *worker, const struct attn_sdpa_sequence *sequence,
                      const strip_t *strip)
{
    const struct attn_sdpa_problem *p = worker->plan.problem;
    return worker->deltas + (sequence->batch * p->query_heads + strip->head[0]) * p->queries +
           sequence->query_start + strip->row[0];
}

// grad_lanes: (Dv, width), output: (rows, Dv) -> delta (rows)
static void dot_output(const plan_t *plan, const struct attn_sdpa_sequence *sequence,
                       struct back_strip *back)
{
    const struct attn_sdpa_problem *p = plan->problem;
    const strip_t *strip = &back->strip;
    // The strip's accumulators are the forward's; here they are scratch of the right size.
    real *const output_rows = strip->accumulator, *const output_lanes = strip->total;
    const int64_t columns = p->value_dim;
    const rows_view_t output =
        strip_rows(plan, &p->output, sequence, strip, columns, false, output_rows);
    const struct REAL_NAME(attn_transpose) turn = {
        .source = output.data,
        .source_row = output.stride,
        .factor = 1,
        .target = output_lanes,
        .target_row = plan->width,
    };
    plan->kernels->transpose(&turn, strip->rows, columns);
    clear_lanes(output_lanes, plan->width, columns, strip);
    plan->kernels->lane_dots(back->grad_lanes, output_lanes, plan->width, columns, back->delta,
                             strip->lanes);
}

static void load_delta(const struct back_worker *worker, const struct attn_sdpa_sequence *sequence,
                       struct back_strip *back)
{
    const struct attn_sdpa_problem *p = worker->plan.problem;
    const strip_t *strip = &back->strip;
    if (worker->deltas) {
        memset(back->delta, 0, sizeof back->delta);
        memcpy(back->delta, delta_of(worker, sequence, strip), (size_t)strip->rows * sizeof(real));
    } else {
        dot_output(&worker->plan, sequence, back);
    }
    for (int64_t l = 0; l < strip->rows; l++) {
        if (p->grad_lse.data && strip->sum[l] != 0) {
            back->delta[l] -= stat(&p->grad_lse, sequence, strip->head[l], strip->row[l]);
        }
    }
}

// Rows [row, row + rows) of one head.
static void start_back_strip(const struct back_worker *worker,
                             const struct attn_sdpa_sequence *sequence, int64_t head, int64_t row,
                             int64_t rows, struct back_strip *back)
{
    const plan_t *plan = &worker->plan;
    const struct attn_sdpa_problem *p = plan->problem;
    strip_t *strip = &back->strip;
    strip->rows = rows;
    for (int64_t l = 0; l < rows; l++) {
        strip->head[l] = head;
        strip->row[l] = row + l;
    }
    REAL_NAME(attn_strip_start)(plan, sequence, &worker->scratch, strip);
    load_stats(p, sequence, strip);
    back->query =
        strip_rows(plan, &p->query, sequence, strip, p->head_dim, true, back->query_copy).data;
    back->grad_output = strip_rows(plan, &p->grad_output, sequence, strip, p->value_dim, true,
                                   back->grad_output_copy)
                            .data;
    const struct REAL_NAME(attn_transpose) turn = {
        .source = back->grad_output,
        .source_row = p->value_dim,
        .factor = 1,
        .target = back->grad_lanes,
        .target_row = plan->width,
    };
    plan->kernels->transpose(&turn, rows, p->value_dim);
    clear_lanes(back->grad_lanes, plan->width, p->value_dim, strip);
    load_delta(worker, sequence, back);
    if (p->dropout != ATTN_DROPOUT_NONE) {
        const real scale = (real)p->dropout_scale;
        const struct REAL_NAME(attn_scale) of_rows = {
            back->grad_output, p->value_dim, &scale, 0, back->grad_output_copy, p->value_dim};
        const struct REAL_NAME(attn_scale)
            of_lanes = {back->grad_lanes, plan->width, &scale, 0, back->grad_lanes, plan->width};
        plan->kernels->scale_rows(&of_rows, rows, p->value_dim);
        plan->kernels->scale_rows(&of_lanes, p->value_dim, strip->lanes);
        back->grad_output = back->grad_output_copy;
    }
    back->query_finite = plan->kernels->finite(back->query, p->head_dim, rows, p->head_dim);
    back->grad_finite = plan->kernels->finite(back->grad_output, p->value_dim, rows, p->value_dim);
    memset(back->grad_query, 0, (size_t)(rows * p->head_dim) * sizeof(real));
}

// ---- runs of keys -------------------------------------------------------------------------------

// Keys [from, to) of a part and the lanes [first, last) that see any of them.
struct key_run {
    int64_t from, to;
    int64_t first, last;
};

enum { RUN_KEYS = 24, MOST_RUNS = ATTN_BACKWARD_KEYS / RUN_KEYS + 2 };

static int ragged_runs(const strip_t *strip, int64_t from, int64_t to, struct key_run *runs)
{
    int count = 0;
    for (; from < to; from += RUN_KEYS) {
        struct key_run run = {from, attn_min(from + RUN_KEYS, to), strip->rows, 0};
        for (int64_t l = 0; l < strip->rows; l++) {
            if (strip->begin[l] < run.to && run.from < strip->end[l]) {
                run.first = attn_min(run.first, l);
                run.last = l + 1;
            }
        }
        if (run.first < run.last) {
            runs[count++] = run;
        }
    }
    return count;
}

// A part's keys as runs in ascending order: those that all rows see are one run.
static int cut_runs(const strip_t *strip, const block_t *part, struct key_run runs[2 * MOST_RUNS])
{
    const int64_t begin = attn_max(part->begin, strip->by_all.begin);
    const int64_t end = attn_min(part->end, strip->by_all.end);
    if (begin >= end) {
        return ragged_runs(strip, part->begin, part->end, runs);
    }
    int count = ragged_runs(strip, part->begin, begin, runs);
    runs[count++] = (struct key_run){begin, end, 0, strip->rows};
    return count + ragged_runs(strip, end, part->end, runs + count);
}

// ---- scores, weights and their gradients ----------------------------------------------------------

// Weights of the part in scratch->score: after dropout where there is any, with those from before it
// in worker->weights.
static void weights_again(const struct back_worker *worker,
                          const struct attn_sdpa_sequence *sequence, struct back_strip *back,
                          rows_view_t key, block_t *part)
{
    const plan_t *plan = &worker->plan;
    const scratch_t *scratch = &worker->scratch;
    strip_t *strip = &back->strip;
    const int64_t keys = part->end - part->origin;
    const size_t bytes = (size_t)(keys * plan->width) * sizeof(real);
    if (plan->problem->softcap > 0) {
        block_t capped = *part;
        REAL_NAME(attn_strip_scores)(&worker->cap_plan, sequence, scratch, strip, key, &capped);
        REAL_NAME(attn_strip_hide)(&worker->cap_plan, scratch, strip, &capped);
        memcpy(worker->slopes, scratch->score, bytes);
        plan->kernels->cap_slope(worker->slopes, plan->width, (real)plan->problem->softcap, keys,
                                 strip->lanes);
    }
    REAL_NAME(attn_strip_scores)(plan, sequence, scratch, strip, key, part);
    REAL_NAME(attn_strip_hide)(plan, scratch, strip, part);
    const struct REAL_NAME(attn_softmax) call = {
        .score = scratch->score,
        .row = plan->width,
        .scale = plan->adjusts ? 1 : plan->scale,
        .max = strip->max,
        .sum = strip->sum,
    };
    plan->kernels->weights(&call, keys, strip->lanes);
    if (plan->problem->dropout != ATTN_DROPOUT_NONE) {
        memcpy(worker->weights, scratch->score, bytes);
        REAL_NAME(attn_strip_drop)(plan, sequence, scratch, strip, part);
    }
}

// value: (keys, Dv), grad_lanes: (Dv, lanes) -> worker->gradient (keys, lanes): of the weights
static struct REAL_NAME(attn_gradient)
    weight_gradients(const struct back_worker *worker, const struct back_strip *back,
                     rows_view_t value, const block_t *part, const struct key_run *runs, int count)
{
    const plan_t *plan = &worker->plan;
    const int64_t vector = plan->kernels->vector_lanes;
    const bool drops = plan->problem->dropout != ATTN_DROPOUT_NONE;
    for (int r = 0; r < count; r++) {
        const int64_t lane = runs[r].first / vector * vector;
        const struct REAL_NAME(attn_tile) product = {
            .a = value.data + (runs[r].from - part->begin) * value.stride,
            .a_row = value.stride,
            .a_depth = 1,
            .b = back->grad_lanes + lane,
            .b_depth = plan->width,
            .c = worker->gradient + (runs[r].from - part->origin) * plan->width + lane,
            .c_row = plan->width,
            .ahead = worker->scratch.ahead,
        };
        plan->kernels->tile(&product, runs[r].to - runs[r].from,
                            attn_round_up(runs[r].last, vector) - lane, plan->problem->value_dim);
    }
    return (struct REAL_NAME(attn_gradient)){
        .weight = drops ? worker->weights : worker->scratch.score,
        .kept = drops ? worker->scratch.score : NULL,
        .delta = back->delta,
        .gradient = worker->gradient,
        .row = plan->width,
    };
}

// The same of the scores before the softcap, or of the biased ones (slopes NULL).
static void score_gradients(const struct back_worker *worker, const struct back_strip *back,
                            rows_view_t value, const block_t *part, const struct key_run *runs,
                            int count, const real *slopes)
{
    struct REAL_NAME(attn_gradient) call = weight_gradients(worker, back, value, part, runs, count);
    call.slope = slopes;
    worker->plan.kernels->score_gradient(&call, part->end - part->origin, back->strip.lanes);
}
