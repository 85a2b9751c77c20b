// sdpa/forward_text.h: the forward pass of one group of strips, for one element type.
#include <string.h>

#include "kernels/real.h"
#include "sdpa/forward.h"
#include "sdpa/strip.h"

typedef struct REAL_NAME(attn_strip_plan) plan_t;
typedef struct REAL_NAME(attn_strip_scratch) scratch_t;
typedef struct REAL_NAME(attn_strip) strip_t;
typedef struct REAL_NAME(attn_strip_block) block_t;
typedef struct REAL_NAME(attn_rows_view) rows_view_t;

#include "sdpa/store_text.h"

#define NONE ((real)-INFINITY)

// What the forward adds to a worker's scratch.
struct worker {
    scratch_t scratch;
    strip_t *strips;
    struct attn_ahead ahead;
};

#include "sdpa/forward_ahead_text.h"
#include "sdpa/forward_small_text.h"

static void take_worker(const plan_t *plan, int64_t strips, struct attn_arena *arena,
                        struct worker *worker);
static void run_job(const plan_t *plan, const struct attn_forward_rows *rows,
                    const struct attn_forward_rows *next, struct worker *worker);
static int64_t start_strips(const plan_t *plan, const struct attn_forward_rows *rows,
                            const struct attn_sdpa_sequence *sequence, const struct worker *worker,
                            int64_t count);
static void walk_keys(const plan_t *plan, const struct attn_sdpa_sequence *sequence,
                      const struct attn_forward_rows *rows, const struct attn_forward_rows *next,
                      const struct worker *worker, int64_t strips, struct attn_key_range keys);
static struct attn_key_range keys_of(const struct worker *worker, int64_t strips);
static void finish_strip(const plan_t *plan, const struct attn_sdpa_sequence *sequence,
                         const scratch_t *scratch, strip_t *strip);

size_t REAL_NAME(attn_forward_worker_bytes)(const plan_t *plan, int64_t strips)
{
    struct attn_arena arena = {0};
    struct worker worker;
    take_worker(plan, strips, &arena, &worker);
    return arena.used;
}

void REAL_NAME(attn_forward_jobs)(const plan_t *plan, const struct attn_forward_grid *grid,
                                  int64_t begin, int64_t end, void *memory)
{
    struct attn_arena arena = {memory, 0};
    struct worker worker;
    if (is_small(plan)) {
        for (int64_t job = begin; job < end; job++) {
            const struct attn_forward_rows rows = attn_forward_rows_of(grid, job);
            run_small_job(plan, &rows);
        }
        return;
    }
    take_worker(plan, grid->strips, &arena, &worker);
    worker.scratch.ahead = worth_looking_ahead(plan->problem) ? &worker.ahead : NULL;
    for (int64_t job = begin; job < end; job++) {
        const struct attn_forward_rows rows = attn_forward_rows_of(grid, job);
        const struct attn_forward_rows next = attn_forward_rows_of(grid, job + 1);
        run_job(plan, &rows, job + 1 < grid->count ? &next : NULL, &worker);
    }
}

// next: what is likely to come after, so as to ask for it; or NULL
static void run_job(const plan_t *plan, const struct attn_forward_rows *rows,
                    const struct attn_forward_rows *next, struct worker *worker)
{
    const struct attn_sdpa_sequence sequence = attn_sdpa_sequence_at(plan->problem, rows->sequence);
    const int64_t available = rows->heads * sequence.query_len;
    const int64_t count = attn_min(rows->count, available - rows->first);
    if (count <= 0) {
        return;
    }
    const int64_t strips = start_strips(plan, rows, &sequence, worker, count);
    const struct attn_key_range keys = keys_of(worker, strips);
    look_ahead(plan, &sequence, rows, next, worker, strips, keys);
    walk_keys(plan, &sequence, rows, next, worker, strips, keys);
    for (int64_t s = 0; s < strips; s++) {
        finish_strip(plan, &sequence, &worker->scratch, &worker->strips[s]);
    }
}

static void take_worker(const plan_t *plan, int64_t strips, struct attn_arena *arena,
                        struct worker *worker)
{
    REAL_NAME(attn_strip_scratch_take)(plan, arena, &worker->scratch);
    worker->strips = attn_arena_take(arena, strips, sizeof(strip_t));
    for (int64_t s = 0; s < strips; s++) {
        REAL_NAME(attn_strip_take)(plan, arena, arena->base ? &worker->strips[s] : NULL);
    }
}

// The number of strips that `count` rows take.
static int64_t start_strips(const plan_t *plan, const struct attn_forward_rows *rows,
                            const struct attn_sdpa_sequence *sequence, const struct worker *worker,
                            int64_t count)
{
    int64_t head = rows->first / sequence->query_len;
    int64_t row = rows->first - head * sequence->query_len;
    strip_t *strip = worker->strips;
    for (int64_t done = 0; done < count; done += plan->width, strip++) {
        strip->rows = attn_min(count - done, plan->width);
        for (int64_t l = 0; l < strip->rows; l++) {
            strip->head[l] = rows->head + head;
            strip->row[l] = row;
            if (++row == sequence->query_len) {
                row = 0;
                head++;
            }
        }
        REAL_NAME(attn_strip_start)(plan, sequence, &worker->scratch, strip);
    }
    return strip - worker->strips;
}

// ---- one strip, one block -----------------------------------------------------------------------

// Statistics and accumulator of a segment that is complete join those of the segments before it.
static void close_segment(const plan_t *plan, strip_t *strip, bool first)
{
    const int64_t columns = plan->problem->value_dim;
    if (first) {
        real *accumulator = strip->accumulator;
        strip->accumulator = strip->total;
        strip->total = accumulator;
        memcpy(strip->total_max, strip->max, sizeof strip->max);
        memcpy(strip->total_sum, strip->sum, sizeof strip->sum);
        return;
    }
    real part_factor[ATTN_STRIP_LANES];
    const struct REAL_NAME(attn_join) stats = {
        .max = strip->total_max,
        .sum = strip->total_sum,
        .part_max = strip->max,
        .part_sum = strip->sum,
        .factor = strip->factor,
        .part_factor = part_factor,
    };
    plan->kernels->join(&stats, strip->lanes);
    for (int64_t l = 0; l < strip->rows; l++) {
        plan->kernels->merge_row(strip->total + l * columns, strip->factor[l],
                                 strip->accumulator + l * columns, part_factor[l], columns);
    }
}

static void reset_stats(strip_t *strip)
{
    for (int64_t l = 0; l < strip->lanes; l++) {
        strip->max[l] = NONE;
        strip->sum[l] = 0;
    }
}

static void open_segment(const plan_t *plan, strip_t *strip, int64_t segment)
{
    if (strip->segment >= 0) {
        close_segment(plan, strip, strip->segments++ == 0);
        reset_stats(strip);
    }
    strip->segment = segment;
}

static struct REAL_NAME(attn_softmax)
    softmax_call(const plan_t *plan, const scratch_t *scratch, strip_t *strip, const block_t *part)
{
    return (struct REAL_NAME(attn_softmax)){
        .score = scratch->score,
        .row = part->width,
        .scale = plan->adjusts ? 1 : plan->scale,
        .max = strip->max,
        .sum = strip->sum,
        .factor = strip->factor,
        .hidden = part->hidden,
    };
}

static void fold_weights(const plan_t *plan, const scratch_t *scratch, strip_t *strip,
                         const block_t *part)
{
    struct REAL_NAME(attn_softmax) call = softmax_call(plan, scratch, strip, part);
    real first[ATTN_STRIP_LANES], stop[ATTN_STRIP_LANES];
    if (REAL_NAME(attn_strip_is_ragged)(part)) {
        REAL_NAME(attn_strip_lane_ranges)(strip, part, first, stop);
        call.first = first;
        call.stop = stop;
        call.visible_begin = part->visible_begin - part->origin;
        call.visible_end = part->visible_end - part->origin;
    }
    plan->kernels->softmax(&call, part->end - part->origin, strip->lanes);
}

// weights: (keys, lanes), value: (keys, Dv) -> accumulator (rows, Dv), for rows [row, row + rows) and
// keys [begin, end)
static void add_loaded(const plan_t *plan, const scratch_t *scratch, const strip_t *strip,
                       rows_view_t value, const block_t *part, int64_t row, int64_t rows,
                       int64_t begin, int64_t end, attn_tile_start start, attn_tile_select select)
{
    const int64_t columns = plan->problem->value_dim;
    const attn_storage storage = REAL_NAME(attn_strip_storage)(value);
    const struct REAL_NAME(attn_tile) product = {
        .a = scratch->score + (begin - part->origin) * part->width + row,
        .a_row = 1,
        .a_depth = part->width,
        .b = value.data,
        .b_depth = value.stride,
        .narrow_b = storage == ATTN_STORED_REAL ? NULL
                                                : attn_element_at(value.stored, value.offset),
        .b_storage = storage,
        .c = strip->accumulator + row * columns,
        .c_row = columns,
        .factor = strip->factor + row,
        .start = start,
        .select = select,
        .ahead = scratch->ahead,
    };
    plan->kernels->tile(&product, rows, columns, end - begin);
}

// The same for values that are perhaps still to be loaded: a few at a time then, each lot going on with
// the sums of the one before.
static void add_values(const plan_t *plan, const scratch_t *scratch, const strip_t *strip,
                       rows_view_t value, const block_t *part, int64_t row, int64_t rows,
                       int64_t begin, int64_t end, attn_tile_start start, attn_tile_select select)
{
    enum { SOME = 32 };
    const int64_t columns = plan->problem->value_dim;
    const rows_view_t whole = REAL_NAME(attn_strip_rows_from)(value, begin - part->begin);
    if (whole.data || REAL_NAME(attn_strip_storage)(whole) != ATTN_STORED_REAL) {
        add_loaded(plan, scratch, strip, whole, part, row, rows, begin, end, start, select);
        return;
    }
    for (int64_t to; begin < end || start == ATTN_TILE_ZERO; begin = to) {
        to = attn_min(begin + SOME, end);
        const rows_view_t some = REAL_NAME(attn_strip_load_some)(
            plan, REAL_NAME(attn_strip_rows_from)(value, begin - part->begin), to - begin, columns,
            scratch->value);
        add_loaded(plan, scratch, strip, some, part, row, rows, begin, to, start, select);
        start = ATTN_TILE_ADD;
    }
}

// Rows [row, row + rows) where the shape of the mask hides pairs: no further than any of them sees.
// Times a value that is finite, a hidden weight, which is -0, adds nothing; only where a value is not
// does each weight have to be looked at.
static void add_ragged_values(const plan_t *plan, const scratch_t *scratch, const strip_t *strip,
                              rows_view_t value, const block_t *part, attn_tile_start start,
                              attn_tile_select select)
{
    enum { FEW = 12 };
    for (int64_t row = 0; row < strip->rows; row += FEW) {
        const int64_t rows = attn_min(FEW, strip->rows - row);
        int64_t begin = part->end, end = part->begin;
        for (int64_t l = row; l < row + rows; l++) {
            if (strip->begin[l] < strip->end[l]) {
                begin = attn_min(begin, strip->begin[l]);
                end = attn_max(end, strip->end[l]);
            }
        }
        begin = attn_max(begin, part->begin);
        end = attn_max(attn_min(end, part->end), begin);
        if (begin < end || start == ATTN_TILE_ZERO) {
            add_values(plan, scratch, strip, value, part, row, rows, begin, end, start, select);
        }
    }
}

#include "sdpa/forward_few_text.h"

static bool hides_any(const plan_t *plan, const scratch_t *scratch, const strip_t *strip,
                      const block_t *part)
{
    return plan->kernels->any_hidden(scratch->score + (part->begin - part->origin) * plan->width,
                                     plan->width, part->end - part->begin, strip->lanes);
}

// A score that is -inf is masked, whatever made it so. Its weight of 0 adds nothing to a sum of finite
// values; where the block's values are not all finite, weights of masked pairs are marked and left out.
static void fold_block(const plan_t *plan, const struct attn_sdpa_sequence *sequence,
                       const scratch_t *scratch, strip_t *strip, rows_view_t key, rows_view_t value,
                       bool values_finite, block_t *part, int64_t segment)
{
    const bool opens = strip->segment != segment;
    if (opens) {
        open_segment(plan, strip, segment);
    }
    const attn_tile_start start = opens ? ATTN_TILE_ZERO : ATTN_TILE_SCALE_ROW;
    if (folds_in_quads(plan, strip, part)) {
        fold_quads(plan, scratch, strip, key, value, part, start);
        return;
    }
    REAL_NAME(attn_strip_scores)(plan, sequence, scratch, strip, key, part);
    const bool ragged = REAL_NAME(attn_strip_is_ragged)(part);
    part->hidden = part->hidden || !values_finite;
    fold_weights(plan, scratch, strip, part);
    REAL_NAME(attn_strip_drop)(plan, sequence, scratch, strip, part);
    const bool leaves_out = !values_finite && hides_any(plan, scratch, strip, part);
    const attn_tile_select select = leaves_out ? ATTN_TILE_HIDDEN_A : ATTN_TILE_ALL;
    if (ragged) {
        add_ragged_values(plan, scratch, strip, value, part, start, select);
    } else {
        add_values(plan, scratch, strip, value, part, 0, strip->rows, part->begin, part->end, start,
                   select);
    }
}

// ---- all strips, all blocks ---------------------------------------------------------------------

// Folds the keys [begin, begin + count) of a block into every strip that sees some of them.
static void fold_strips(const plan_t *plan, const struct attn_sdpa_sequence *sequence,
                        const scratch_t *scratch, strip_t *strips, int64_t count, int64_t block,
                        int64_t begin, rows_view_t key, rows_view_t value, bool values_finite)
{
    for (int64_t s = 0; s < count; s++) {
        block_t part;
        if (REAL_NAME(attn_strip_meets)(plan, &strips[s], block, &part)) {
            const int64_t skip = part.begin - begin;
            fold_block(plan, sequence, scratch, &strips[s],
                       REAL_NAME(attn_strip_rows_from)(key, skip),
                       REAL_NAME(attn_strip_rows_from)(value, skip), values_finite, &part,
                       block / (plan->key_block * ATTN_SEGMENT_BLOCKS));
        }
    }
}

// Keys [begin, begin + count) and their values: copied where that is worth it for so many strips, left
// for later where a strip has few rows. False: values may not be finite; for few rows it is less work to
// look for weights that are hidden.
static bool load_block(const plan_t *plan, const struct attn_sdpa_sequence *sequence,
                       int64_t key_head, const scratch_t *scratch, const strip_t *strips,
                       int64_t count_strips, int64_t begin, int64_t count, rows_view_t *key,
                       rows_view_t *value)
{
    const struct attn_sdpa_problem *p = plan->problem;
    const int64_t first = sequence->key_start + begin, batch = sequence->batch;
    if (count_strips == 1 && strips->rows <= ATTN_QUAD) {
        *key = REAL_NAME(attn_strip_later_rows)(plan, &p->key, batch, key_head, first, p->head_dim);
        *value =
            REAL_NAME(attn_strip_later_rows)(plan, &p->value, batch, key_head, first, p->value_dim);
        return false;
    }
    const bool dense = count_strips > 2;
    *key = REAL_NAME(attn_strip_load_rows)(plan, &p->key, batch, key_head, first, count,
                                           p->head_dim, dense, scratch->key);
    *value = REAL_NAME(attn_strip_load_rows)(plan, &p->value, batch, key_head, first, count,
                                             p->value_dim, dense, scratch->value);
    return plan->kernels->finite(value->data, value->stride, count, p->value_dim);
}

// All that any of the strips sees; empty as end <= begin.
static struct attn_key_range keys_of(const struct worker *worker, int64_t strips)
{
    struct attn_key_range keys = {worker->strips[0].lowest, worker->strips[0].highest};
    for (int64_t s = 1; s < strips; s++) {
        const strip_t *strip = &worker->strips[s];
        keys = attn_key_union(keys, (struct attn_key_range){strip->lowest, strip->highest});
    }
    return keys;
}

static void walk_keys(const plan_t *plan, const struct attn_sdpa_sequence *sequence,
                      const struct attn_forward_rows *rows, const struct attn_forward_rows *next,
                      const struct worker *worker, int64_t strips, struct attn_key_range keys)
{
    const int64_t key_head = rows->head / plan->problem->group;
    const scratch_t *scratch = &worker->scratch;
    int64_t block = keys.begin & -plan->key_block;
    for (; block < keys.end; block += plan->key_block) {
        const int64_t begin = attn_max(block, keys.begin);
        const int64_t count = attn_min(block + plan->key_block, keys.end) - begin;
        look_at_next_block(plan, sequence, rows, next, block, keys.end, scratch->ahead);
        rows_view_t key, value;
        const bool finite = load_block(plan, sequence, key_head, scratch, worker->strips, strips,
                                       begin, count, &key, &value);
        fold_strips(plan, sequence, scratch, worker->strips, strips, block, begin, key, value,
                    finite);
    }
}

// ---- results ------------------------------------------------------------------------------------

// A sink is a segment of one key whose value is nothing.
static void join_sinks(const plan_t *plan, strip_t *strip, real *factor)
{
    real sink[ATTN_STRIP_LANES], one[ATTN_STRIP_LANES], unused[ATTN_STRIP_LANES];
    for (int64_t l = 0; l < strip->lanes; l++) {
        const int64_t lane = attn_min(l, strip->rows - 1);
        sink[l] = (real)attn_sdpa_sink(plan->problem, strip->head[lane]);
        one[l] = 1;
    }
    const struct REAL_NAME(attn_join) stats = {strip->max, strip->sum, sink, one, factor, unused};
    plan->kernels->join(&stats, strip->lanes);
}

static void store_stats(const plan_t *plan, const struct attn_sdpa_sequence *sequence,
                        const strip_t *strip)
{
    const struct attn_sdpa_problem *p = plan->problem;
    const struct attn_sdpa_view *views[3] = {&p->row_max, &p->row_sum, &p->lse};
    real lse[ATTN_STRIP_LANES];
    const real *values[3] = {strip->max, strip->sum, lse};
    if (p->lse.data) {
        plan->kernels->log(strip->sum, lse, strip->rows);
        for (int64_t l = 0; l < strip->rows; l++) {
            lse[l] += strip->max[l];
        }
    }
    for (int v = 0; v < 3; v++) {
        for (int64_t l = 0; views[v]->data && l < strip->rows; l++) {
            const int64_t offset =
                attn_query_offset(views[v], sequence, strip->head[l], strip->row[l]);
            store_element(plan, views[v], offset, &values[v][l]);
        }
    }
}

// The rows of one head at a time.
static void store_output(const plan_t *plan, const struct attn_sdpa_sequence *sequence,
                         const scratch_t *scratch, const strip_t *strip, const real *accumulator,
                         const real *factor)
{
    const struct attn_sdpa_view *view = &plan->problem->output;
    const int64_t columns = plan->problem->value_dim;
    for (int64_t first = 0, last; first < strip->rows; first = last) {
        last = first + 1;
        while (last < strip->rows && strip->head[last] == strip->head[first]) {
            last++;
        }
        const int64_t offset =
            attn_query_offset(view, sequence, strip->head[first], strip->row[first]);
        store_rows(plan, scratch, view, offset, last - first, columns,
                   accumulator + first * columns, columns, factor + first, 1);
    }
}

// A NaN score leaves the largest score alone but not the sum; both say so in the end.
static void spread_nan(strip_t *strip)
{
    for (int64_t l = 0; l < strip->rows; l++) {
        if (strip->sum[l] != strip->sum[l]) {
            strip->max[l] = strip->sum[l] = (real)NAN;
        }
    }
}

static void finish_strip(const plan_t *plan, const struct attn_sdpa_sequence *sequence,
                         const scratch_t *scratch, strip_t *strip)
{
    const struct attn_sdpa_problem *p = plan->problem;
    const bool seen = strip->segment >= 0;
    if (strip->segments > 0) {
        close_segment(plan, strip, false);
        memcpy(strip->max, strip->total_max, sizeof strip->max);
        memcpy(strip->sum, strip->total_sum, sizeof strip->sum);
    }
    const real *accumulator = strip->segments > 0 ? strip->total : strip->accumulator;
    if (!seen) {
        memset(strip->accumulator, 0, (size_t)(strip->rows * p->value_dim) * sizeof(real));
    }
    real factor[ATTN_STRIP_LANES];
    real of_keys[ATTN_STRIP_LANES]; // a sink, whatever it is, has no part in the output
    memcpy(of_keys, strip->sum, sizeof of_keys);
    for (int64_t l = 0; l < ATTN_STRIP_LANES; l++) {
        factor[l] = 1;
    }
    if (p->sinks.data) {
        join_sinks(plan, strip, factor);
    }
    spread_nan(strip);
    store_stats(plan, sequence, strip);
    const real kept = (real)p->dropout_scale;
    for (int64_t l = 0; l < strip->rows; l++) {
        factor[l] = of_keys[l] != 0 ? factor[l] / strip->sum[l] * kept : 0;
    }
    if (p->output.data) {
        store_output(plan, sequence, scratch, strip, accumulator, factor);
    }
}
