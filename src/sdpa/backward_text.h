// sdpa/backward_text.h: gradients of queries, keys and values, for one element type.
#include "sdpa/backward_strip_text.h"

#include "sdpa/backward_ahead_text.h"

// Where a piece's sums over rows stand: row j of each belongs to key j of the sequence.
struct key_sums {
    real *key, *value; // NULL where not wanted
    int64_t key_row, value_row;
    int64_t opened, closed; // keys below are set to 0, and are in the output as they stay
};

static struct row_range piece_rows(const struct attn_sdpa_sequence *sequence,
                                   const struct attn_backward_piece *piece);
static struct row_range rows_after(const plan_t *plan, const struct attn_backward_piece *piece,
                                   const struct row_range *all, const struct row_range *rows);
static int64_t start_rows(struct back_worker *worker, const struct attn_sdpa_sequence *sequence,
                          const struct row_range *rows, bool of_deltas);
static struct key_sums open_key_sums(const struct back_worker *worker,
                                     const struct attn_sdpa_sequence *sequence,
                                     const struct attn_backward_piece *piece);
static void open_keys(const struct back_worker *worker, int64_t end, struct key_sums *sums);
static void close_keys(const struct back_worker *worker, const struct attn_sdpa_sequence *sequence,
                       int64_t key_head, int64_t end, struct key_sums *sums);
static struct upcoming rows_next(const struct back_worker *worker,
                                 const struct attn_sdpa_sequence *sequence,
                                 const struct attn_backward_piece *piece,
                                 const struct row_range *all, const struct row_range *rows,
                                 const struct attn_backward_piece *next);
static void sharpen_deltas(struct back_worker *worker, const struct attn_sdpa_sequence *sequence,
                           int64_t key_head, int64_t strips);
static void walk_keys(const struct back_worker *worker, const struct attn_sdpa_sequence *sequence,
                      const struct attn_backward_piece *piece, int64_t strips,
                      struct attn_key_range keys, struct key_sums *sums,
                      const struct upcoming *next);
static struct attn_key_range keys_of(const struct back_worker *worker,
                                     const struct attn_backward_piece *piece, int64_t strips);
static void store_deltas(const struct back_worker *worker,
                         const struct attn_sdpa_sequence *sequence, const struct back_strip *back);
static void store_query_rows(const struct back_worker *worker,
                             const struct attn_sdpa_sequence *sequence,
                             const struct back_strip *back);

size_t REAL_NAME(attn_backward_worker_bytes)(const attn_context *context,
                                             const struct attn_sdpa_problem *problem)
{
    struct attn_arena arena = {0};
    struct back_worker worker;
    take_worker(context, problem, &arena, &worker);
    return arena.used;
}

void REAL_NAME(attn_backward_run)(const attn_context *context,
                                  const struct attn_sdpa_problem *problem,
                                  const struct attn_backward_piece *piece,
                                  const struct attn_backward_piece *next, void *memory)
{
    struct attn_arena arena = {memory, 0};
    struct back_worker worker;
    take_worker(context, problem, &arena, &worker);
    worker.deltas = piece->deltas;
    worker.scratch.ahead = &worker.ahead;
    const struct attn_sdpa_sequence sequence = attn_sdpa_sequence_at(problem, piece->sequence);
    const int64_t key_end = attn_min(piece->key_end, sequence.key_len);
    struct key_sums sums = open_key_sums(&worker, &sequence, piece);
    const struct row_range all = piece_rows(&sequence, piece);
    struct row_range rows = rows_after(&worker.plan, piece, &all, NULL);
    for (int64_t walk = 0; rows.row < rows.row_end; walk++) {
        const struct upcoming after = rows_next(&worker, &sequence, piece, &all, &rows, next);
        const int64_t strips = start_rows(&worker, &sequence, &rows, piece->of_deltas);
        sharpen_deltas(&worker, &sequence, piece->key_head, strips);
        worker.keys_are_near = walk > 0 && key_end - piece->key <= worker.plan.near_keys;
        const struct attn_key_range keys = keys_of(&worker, piece, strips);
        look_ahead(&worker, &sequence, piece, &rows, strips, keys, &after);
        walk_keys(&worker, &sequence, piece, strips, keys, &sums, &after);
        for (int64_t s = 0; piece->of_query && s < strips; s++) {
            store_query_rows(&worker, &sequence, &worker.strips[s]);
        }
        for (int64_t s = 0; piece->of_deltas && s < strips; s++) {
            store_deltas(&worker, &sequence, &worker.strips[s]);
        }
        rows = rows_after(&worker.plan, piece, &all, &rows);
    }
    open_keys(&worker, key_end, &sums);
    close_keys(&worker, &sequence, piece->key_head, key_end, &sums);
}

// ---- rows ---------------------------------------------------------------------------------------

// The piece's rows of every head: where only keys matter, no others than those that see any.
static struct row_range piece_rows(const struct attn_sdpa_sequence *sequence,
                                   const struct attn_backward_piece *piece)
{
    struct row_range all = {piece->head, piece->row, attn_min(piece->row_end, sequence->query_len)};
    const int64_t key_end = attn_min(piece->key_end, sequence->key_len);
    if (piece->of_keys && !piece->of_query && piece->key >= key_end) {
        all.row_end = all.row;
    } else if (piece->of_keys && !piece->of_query) {
        int64_t first, last, unused;
        attn_sdpa_seeing_rows(sequence, piece->key, &first, &unused);
        attn_sdpa_seeing_rows(sequence, key_end - 1, &unused, &last);
        all.row = attn_max(all.row, first);
        all.row_end = attn_min(all.row_end, last);
    }
    return all;
}

// The rows that walk over the keys after `rows` (NULL: as the first): strips that share every block.
// None after the last.
static struct row_range rows_after(const plan_t *plan, const struct attn_backward_piece *piece,
                                   const struct row_range *all, const struct row_range *rows)
{
    struct row_range next = *all;
    if (rows) {
        const bool same_head = rows->row_end < all->row_end;
        next.head = rows->head + !same_head;
        next.row = same_head ? rows->row_end : all->row;
    }
    next.row_end = next.head < piece->head_end
                       ? attn_min(next.row + ATTN_BACKWARD_STRIPS * plan->width, all->row_end)
                       : next.row;
    return next;
}

// What comes after `rows`: more of the piece, or the first of the piece that is next, if there is one.
static struct upcoming rows_next(const struct back_worker *worker,
                                 const struct attn_sdpa_sequence *sequence,
                                 const struct attn_backward_piece *piece,
                                 const struct row_range *all, const struct row_range *rows,
                                 const struct attn_backward_piece *next)
{
    const plan_t *plan = &worker->plan;
    struct upcoming after = {*sequence, piece, rows_after(plan, piece, all, rows)};
    if (after.rows.row == after.rows.row_end && next) {
        after.sequence = attn_sdpa_sequence_at(plan->problem, next->sequence);
        after.piece = next;
        const struct row_range all_next = piece_rows(&after.sequence, next);
        after.rows = rows_after(plan, next, &all_next, NULL);
    }
    return after;
}

static int64_t start_rows(struct back_worker *worker, const struct attn_sdpa_sequence *sequence,
                          const struct row_range *rows, bool of_deltas)
{
    const int64_t width = worker->plan.width;
    int64_t strips = 0;
    for (int64_t row = rows->row; row < rows->row_end; row += width) {
        start_back_strip(worker, sequence, rows->head, row, attn_min(width, rows->row_end - row),
                         &worker->strips[strips]);
        if (of_deltas) {
            memset(worker->strips[strips].delta, 0, sizeof worker->strips[strips].delta);
        }
        strips++;
    }
    return strips;
}

// ---- products with the scores' gradients and the weights ------------------------------------------

// grad_value (keys, Dv) += weights (keys, rows) grad_output (rows, Dv), and the same for grad_key with
// the scores' gradients and the queries
static void add_to_keys(const plan_t *plan, const block_t *part, const struct key_run *runs,
                        int count, const real *strip, const real *rows, int64_t columns,
                        attn_tile_select select, real *sums, int64_t sums_row,
                        struct attn_ahead *ahead)
{
    for (int r = 0; r < count; r++) {
        const struct REAL_NAME(attn_tile) product = {
            .a = strip + (runs[r].from - part->origin) * plan->width + runs[r].first,
            .a_row = plan->width,
            .a_depth = 1,
            .b = rows + runs[r].first * columns,
            .b_depth = columns,
            .c = sums + runs[r].from * sums_row,
            .c_row = sums_row,
            .start = ATTN_TILE_ADD,
            .select = select,
            .ahead = ahead,
        };
        plan->kernels->tile(&product, runs[r].to - runs[r].from, columns,
                            runs[r].last - runs[r].first);
    }
}

// grad_query (rows, D) += gradients of scores^T (rows, keys) key (keys, D), for rows [row, row + rows)
static void add_to_rows(const struct back_worker *worker, const struct back_strip *back,
                        rows_view_t key, const block_t *part, int64_t row, int64_t rows,
                        int64_t begin, int64_t end, attn_tile_select select)
{
    const plan_t *plan = &worker->plan;
    const int64_t columns = plan->problem->head_dim;
    const struct REAL_NAME(attn_tile) product = {
        .a = worker->gradient + (begin - part->origin) * plan->width + row,
        .a_row = 1,
        .a_depth = plan->width,
        .b = key.data + (begin - part->begin) * key.stride,
        .b_depth = key.stride,
        .c = back->grad_query + row * columns,
        .c_row = columns,
        .start = ATTN_TILE_ADD,
        .select = select,
        .ahead = worker->scratch.ahead,
    };
    plan->kernels->tile(&product, rows, columns, end - begin);
}

static void add_to_query(const struct back_worker *worker, const struct back_strip *back,
                         rows_view_t key, const block_t *part)
{
    enum { FEW = 12 };
    const plan_t *plan = &worker->plan;
    const strip_t *strip = &back->strip;
    const bool finite = plan->kernels->finite(key.data, key.stride, part->end - part->begin,
                                              plan->problem->head_dim);
    const attn_tile_select select = finite ? ATTN_TILE_ALL : ATTN_TILE_HIDDEN_A;
    if (!part->hidden) {
        add_to_rows(worker, back, key, part, 0, strip->rows, part->begin, part->end, select);
        return;
    }
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
        end = attn_min(end, part->end);
        if (begin < end) {
            add_to_rows(worker, back, key, part, row, rows, begin, end, select);
        }
    }
}

static void go_back(const struct back_worker *worker, const struct attn_sdpa_sequence *sequence,
                    const struct attn_backward_piece *piece, struct back_strip *back,
                    rows_view_t key, rows_view_t value, block_t *part, const struct key_sums *sums)
{
    const plan_t *plan = &worker->plan;
    const struct attn_sdpa_problem *p = plan->problem;
    struct key_run runs[2 * MOST_RUNS];
    const int count = cut_runs(&back->strip, part, runs);
    weights_again(worker, sequence, back, key, part);
    if (piece->of_deltas) {
        const struct REAL_NAME(attn_gradient)
            call = weight_gradients(worker, back, value, part, runs, count);
        plan->kernels->gradient_sums(&call, back->delta, part->end - part->origin,
                                     back->strip.lanes);
        return;
    }
    if (sums->value) {
        add_to_keys(plan, part, runs, count, worker->scratch.score, back->grad_output, p->value_dim,
                    back->grad_finite ? ATTN_TILE_ALL : ATTN_TILE_HIDDEN_A, sums->value,
                    sums->value_row, worker->scratch.ahead);
    }
    if (!sums->key && !piece->of_query) {
        return;
    }
    score_gradients(worker, back, value, part, runs, count, p->softcap > 0 ? worker->slopes : NULL);
    if (sums->key) {
        add_to_keys(plan, part, runs, count, worker->gradient, back->query, p->head_dim,
                    back->query_finite ? ATTN_TILE_ALL : ATTN_TILE_HIDDEN_A, sums->key,
                    sums->key_row, worker->scratch.ahead);
    }
    if (piece->of_query) {
        add_to_query(worker, back, key, part);
    }
}

// One block of keys, of which the piece has [begin, end), and every strip.
static void walk_strips(const struct back_worker *worker, const struct attn_sdpa_sequence *sequence,
                        const struct attn_backward_piece *piece, int64_t strips, int64_t block,
                        int64_t begin, int64_t end, const struct key_sums *sums)
{
    const plan_t *plan = &worker->plan;
    const struct attn_sdpa_problem *p = plan->problem;
    const int64_t first = sequence->key_start + begin;
    const rows_view_t key = REAL_NAME(attn_strip_load_rows)(plan, &p->key, sequence->batch,
                                                            piece->key_head, first, end - begin,
                                                            p->head_dim, true, worker->scratch.key);
    const rows_view_t value =
        REAL_NAME(attn_strip_load_rows)(plan, &p->value, sequence->batch, piece->key_head, first,
                                        end - begin, p->value_dim, true, worker->scratch.value);
    for (int64_t s = 0; s < strips; s++) {
        block_t part;
        if (REAL_NAME(attn_strip_meets)(plan, &worker->strips[s].strip, block, &part)) {
            const int64_t skip = part.begin - begin;
            go_back(worker, sequence, piece, &worker->strips[s],
                    REAL_NAME(attn_strip_rows_from)(key, skip),
                    REAL_NAME(attn_strip_rows_from)(value, skip), &part, sums);
        }
    }
}

// All of the piece's keys that any of the strips sees; empty as end <= begin.
static struct attn_key_range keys_of(const struct back_worker *worker,
                                     const struct attn_backward_piece *piece, int64_t strips)
{
    struct attn_key_range keys = {INT64_MAX, 0};
    for (int64_t s = 0; s < strips; s++) {
        const strip_t *strip = &worker->strips[s].strip;
        keys = attn_key_union(keys, (struct attn_key_range){strip->lowest, strip->highest});
    }
    return (struct attn_key_range){attn_max(keys.begin, piece->key),
                                   attn_min(keys.end, piece->key_end)};
}

// A block's sums are opened before the first walk adds to them, and closed after the last one did.
static void walk_keys(const struct back_worker *worker, const struct attn_sdpa_sequence *sequence,
                      const struct attn_backward_piece *piece, int64_t strips,
                      struct attn_key_range keys, struct key_sums *sums,
                      const struct upcoming *next)
{
    const int64_t key_block = worker->plan.key_block;
    const bool last = next->piece != piece || next->rows.row == next->rows.row_end;
    int64_t block = keys.begin / key_block * key_block;
    for (; block < keys.end; block += key_block) {
        const int64_t end = attn_min(block + key_block, keys.end);
        open_keys(worker, end, sums);
        if (worker->scratch.ahead) {
            look_at_next_block(worker, sequence, piece, end, keys.end, next);
        }
        walk_strips(worker, sequence, piece, strips, block, attn_max(block, keys.begin), end, sums);
        if (last) {
            close_keys(worker, sequence, piece->key_head, end, sums);
        }
    }
}

// ---- deltas -------------------------------------------------------------------------------------

// One key takes most of such a row's weight, so that dP - delta is a small difference at that key: the
// output's rounding would be most of it.
static bool is_sharp(const strip_t *strip, int64_t lane)
{
    return strip->sum[lane] < (real)1.25;
}

// The keys that sharp rows see; false where there is no such row.
static bool sharp_keys(const strip_t *strip, int64_t *lowest, int64_t *highest)
{
    *lowest = strip->highest;
    *highest = strip->lowest;
    for (int64_t l = 0; l < strip->rows; l++) {
        if (is_sharp(strip, l) && strip->begin[l] < strip->end[l]) {
            *lowest = attn_min(*lowest, strip->begin[l]);
            *highest = attn_max(*highest, strip->end[l]);
        }
    }
    return *lowest < *highest;
}

// Deltas of sharp rows from weights and their gradients, in a walk of their strip's own.
static void sharpen_strip(const struct back_worker *worker,
                          const struct attn_sdpa_sequence *sequence, int64_t key_head,
                          struct back_strip *back)
{
    const struct attn_sdpa_problem *p = worker->plan.problem;
    strip_t *strip = &back->strip;
    const int64_t lowest = strip->lowest, highest = strip->highest;
    if (!sharp_keys(strip, &strip->lowest, &strip->highest)) {
        strip->lowest = lowest;
        strip->highest = highest;
        return;
    }
    const struct attn_backward_piece piece = {
        .key_head = key_head, .key_end = p->keys, .of_deltas = true};
    const struct upcoming nothing = {0};
    struct key_sums none = {0};
    struct back_worker alone = *worker;
    alone.strips = back;
    alone.scratch.ahead = NULL;
    real of_output[ATTN_STRIP_LANES];
    memcpy(of_output, back->delta, sizeof of_output);
    memset(back->delta, 0, sizeof back->delta);
    walk_keys(&alone, sequence, &piece, 1, keys_of(&alone, &piece, 1), &none, &nothing);
    for (int64_t l = 0; l < strip->rows; l++) {
        if (!is_sharp(strip, l)) {
            back->delta[l] = of_output[l];
        } else if (p->grad_lse.data && strip->sum[l] != 0) {
            back->delta[l] -= stat(&p->grad_lse, sequence, strip->head[l], strip->row[l]);
        }
    }
    strip->lowest = lowest;
    strip->highest = highest;
}

static void sharpen_deltas(struct back_worker *worker, const struct attn_sdpa_sequence *sequence,
                           int64_t key_head, int64_t strips)
{
    for (int64_t s = 0; !worker->deltas && s < strips; s++) {
        sharpen_strip(worker, sequence, key_head, &worker->strips[s]);
    }
}

// ---- results ------------------------------------------------------------------------------------

static void store_deltas(const struct back_worker *worker,
                         const struct attn_sdpa_sequence *sequence, const struct back_strip *back)
{
    memcpy(delta_of(worker, sequence, &back->strip), back->delta,
           (size_t)back->strip.rows * sizeof(real));
}

static void store_query_rows(const struct back_worker *worker,
                             const struct attn_sdpa_sequence *sequence,
                             const struct back_strip *back)
{
    const plan_t *plan = &worker->plan;
    const struct attn_sdpa_problem *p = plan->problem;
    const strip_t *strip = &back->strip;
    const real scale = (real)p->scale;
    store_rows(plan, &worker->scratch, &p->grad_query,
               attn_query_offset(&p->grad_query, sequence, strip->head[0], strip->row[0]),
               strip->rows, p->head_dim, back->grad_query, p->head_dim, &scale, 0);
}

static int64_t key_offset(const struct attn_sdpa_view *view,
                          const struct attn_sdpa_sequence *sequence, int64_t key_head)
{
    return sequence->batch * view->stride[0] + key_head * view->stride[1] +
           sequence->key_start * view->stride[2];
}

// The sums over one side: in the output itself where they can be.
static real *sums_of(const plan_t *plan, const struct attn_sdpa_view *view,
                     const struct attn_sdpa_sequence *sequence,
                     const struct attn_backward_piece *piece, int64_t columns, real *own,
                     int64_t *row)
{
    if (!view->data || !piece->of_keys) {
        return NULL;
    }
    const bool in_place = stands_in_output(plan, view);
    *row = in_place ? view->stride[2] : columns;
    return in_place ? (real *)view->data + key_offset(view, sequence, piece->key_head) : own;
}

static struct key_sums open_key_sums(const struct back_worker *worker,
                                     const struct attn_sdpa_sequence *sequence,
                                     const struct attn_backward_piece *piece)
{
    const struct attn_sdpa_problem *p = worker->plan.problem;
    struct key_sums sums = {.opened = piece->key, .closed = piece->key};
    sums.key = sums_of(&worker->plan, &p->grad_key, sequence, piece, p->head_dim, worker->grad_key,
                       &sums.key_row);
    sums.value = sums_of(&worker->plan, &p->grad_value, sequence, piece, p->value_dim,
                         worker->grad_value, &sums.value_row);
    return sums;
}

// Sums of the keys below `end` that were not open become 0.
static void open_keys(const struct back_worker *worker, int64_t end, struct key_sums *sums)
{
    const struct attn_sdpa_problem *p = worker->plan.problem;
    if (!sums->key && !sums->value) {
        return;
    }
    for (; sums->opened < end; sums->opened++) {
        if (sums->key) {
            memset(sums->key + sums->opened * sums->key_row, 0, (size_t)p->head_dim * sizeof(real));
        }
        if (sums->value) {
            memset(sums->value + sums->opened * sums->value_row, 0,
                   (size_t)p->value_dim * sizeof(real));
        }
    }
}

static void close_sums(const struct back_worker *worker, const struct attn_sdpa_view *view,
                       const struct attn_sdpa_sequence *sequence, int64_t key_head, int64_t begin,
                       int64_t end, int64_t columns, const real *sums, int64_t row, real scale)
{
    const int64_t offset = key_offset(view, sequence, key_head) + begin * view->stride[2];
    if (sums) {
        store_rows(&worker->plan, &worker->scratch, view, offset, end - begin, columns,
                   sums + begin * row, row, &scale, 0);
    }
}

// Sums of the keys below `end` that were open become gradients.
static void close_keys(const struct back_worker *worker, const struct attn_sdpa_sequence *sequence,
                       int64_t key_head, int64_t end, struct key_sums *sums)
{
    const struct attn_sdpa_problem *p = worker->plan.problem;
    if (sums->closed < end) {
        close_sums(worker, &p->grad_key, sequence, key_head, sums->closed, end, p->head_dim,
                   sums->key, sums->key_row, (real)p->scale);
        close_sums(worker, &p->grad_value, sequence, key_head, sums->closed, end, p->value_dim,
                   sums->value, sums->value_row, 1);
        sums->closed = end;
    }
}
