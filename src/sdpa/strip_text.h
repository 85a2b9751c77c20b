// sdpa/strip_text.h: the text of sdpa/strip_real.h for one element type. The including file defines
// ATTN_REAL_BITS.
#include <string.h>

#include "core/context.h"
#include "kernels/real.h"
#include "sdpa/strip.h"

typedef struct REAL_NAME(attn_strip_plan) plan_t;
typedef struct REAL_NAME(attn_strip_scratch) scratch_t;
typedef struct REAL_NAME(attn_strip) strip_t;
typedef struct REAL_NAME(attn_strip_block) block_t;
typedef struct REAL_NAME(attn_rows_view) rows_view_t;

#define NONE ((real)-INFINITY)

// ---- plan and memory ----------------------------------------------------------------------------

// The largest power of two that is neither above 1 nor above |scale|. The query takes it: that
// changes no bit, and products of which only the scaled score is finite do not overflow.
static real query_factor_of(real scale)
{
    const real size = scale < 0 ? -scale : scale;
    real factor = 1;
    while (factor > size && factor > R(0x1p-60)) {
        factor *= R(0.5);
    }
    return scale < 0 ? -factor : factor;
}

void REAL_NAME(attn_strip_plan_init)(const attn_context *context,
                                     const struct attn_sdpa_problem *problem, plan_t *plan)
{
    const struct attn_kernels *tables = attn_kernels_select(context->tier);
    const real scale = (real)problem->scale;
    const real query_factor = scale == 0 ? 1 : query_factor_of(scale);
    const bool by_element = problem->keep.data || problem->bias.data;
    const bool adjusts = by_element || problem->softcap > 0 || problem->alibi_slopes.data ||
                         scale == 0;
    *plan = (plan_t){
        .problem = problem,
        .tables = tables,
        .kernels = tables->REAL_TABLE,
        .dtype = ATTN_REAL_BITS == 32 ? ATTN_F32 : ATTN_F64,
        .key_block = attn_key_block(problem->head_dim, problem->value_dim),
        .width = tables->REAL_TABLE->tile_lanes,
        .query_factor = query_factor,
        .adjusts = adjusts,
        .masks_by_element = by_element,
        .scale = scale / query_factor,
        .near_keys = context->second_level_bytes / 4 / attn_max(attn_bytes_per_key(problem), 1),
    };
}

void REAL_NAME(attn_strip_scratch_take)(const plan_t *plan, struct attn_arena *arena,
                                        scratch_t *scratch)
{
    const struct attn_sdpa_problem *p = plan->problem;
    const int64_t columns = attn_max(attn_max(p->head_dim, p->value_dim), plan->key_block);
    const int64_t strip = plan->key_block * plan->width;
    scratch->score = attn_arena_take(arena, strip, sizeof(real));
    scratch->key = attn_arena_take(arena, plan->key_block * p->head_dim, sizeof(real));
    scratch->value = attn_arena_take(arena, plan->key_block * p->value_dim, sizeof(real));
    scratch->rows = attn_arena_take(arena, plan->width * columns, sizeof(real));
    scratch->bias = attn_arena_take(arena, plan->masks_by_element ? strip : 0, sizeof(real));
    scratch->ahead = NULL;
}

void REAL_NAME(attn_strip_take)(const plan_t *plan, struct attn_arena *arena, strip_t *strip)
{
    const int64_t head_dim = plan->problem->head_dim, value_dim = plan->problem->value_dim;
    real *query = attn_arena_take(arena, head_dim * plan->width, sizeof(real));
    real *accumulator = attn_arena_take(arena, value_dim * plan->width, sizeof(real));
    real *total = attn_arena_take(arena, value_dim * plan->width, sizeof(real));
    if (arena->base) {
        strip->query = query;
        strip->accumulator = accumulator;
        strip->total = total;
    }
}

// ---- rows of the inputs -------------------------------------------------------------------------

static real real_from(const void *element, attn_dtype dtype, const struct attn_kernels *tables)
{
    float single = 0;
    switch (dtype) {
    case ATTN_F32: return (real) * (const float *)element;
    case ATTN_F64: return (real) * (const double *)element;
    case ATTN_F16: tables->convert->f16_to_f32(element, &single, 1); return (real)single;
    default: tables->convert->bf16_to_f32(element, &single, 1); return (real)single;
    }
}

static void load_row(const plan_t *plan, const struct attn_sdpa_view *view, int64_t offset,
                     int64_t columns, real *target)
{
    const int64_t step = view->stride[3];
    if (view->dtype == plan->dtype && step == 1) {
        memcpy(target, attn_element_at(view, offset), (size_t)columns * sizeof(real));
        return;
    }
#if ATTN_REAL_BITS == 32
    if (step == 1 && view->dtype == ATTN_F16) {
        plan->tables->convert->f16_to_f32(attn_element_at(view, offset), target, columns);
        return;
    }
    if (step == 1 && view->dtype == ATTN_BF16) {
        plan->tables->convert->bf16_to_f32(attn_element_at(view, offset), target, columns);
        return;
    }
#endif
    for (int64_t c = 0; c < columns; c++) {
        target[c] = real_from(attn_element_at(view, offset + c * step), view->dtype, plan->tables);
    }
}

rows_view_t REAL_NAME(attn_strip_later_rows)(const plan_t *plan, const struct attn_sdpa_view *view,
                                             int64_t batch, int64_t head, int64_t first,
                                             int64_t columns)
{
    const int64_t row = view->stride[2];
    const int64_t offset = attn_row_offset(view, batch, head, first);
    return (rows_view_t){
        .data = view->data && attn_rows_adjacent(view, plan->dtype, columns)
                    ? attn_element_at(view, offset)
                    : NULL,
        .stride = row,
        .stored = view,
        .offset = offset,
    };
}

attn_storage REAL_NAME(attn_strip_storage)(rows_view_t rows)
{
#if ATTN_REAL_BITS == 32
    if (!rows.data && rows.stored->data && rows.stored->stride[3] == 1) {
        const attn_dtype dtype = rows.stored->dtype;
        return dtype == ATTN_F16    ? ATTN_STORED_F16
               : dtype == ATTN_BF16 ? ATTN_STORED_BF16
                                    : ATTN_STORED_REAL;
    }
#endif
    (void)rows;
    return ATTN_STORED_REAL;
}

rows_view_t REAL_NAME(attn_strip_load_some)(const plan_t *plan, rows_view_t rows, int64_t count,
                                            int64_t columns, real *copy)
{
    if (rows.data) {
        return rows;
    }
    const bool one_row = rows.stored->stride[3] == 1 && rows.stride == columns;
    const int64_t loads = one_row ? attn_min(count, 1) : count;
    const int64_t elements = one_row ? count * columns : columns;
    for (int64_t r = 0; r < loads && rows.stored->data; r++) {
        load_row(plan, rows.stored, rows.offset + r * rows.stride, elements, copy + r * columns);
    }
    return (rows_view_t){.data = copy, .stride = columns};
}

rows_view_t REAL_NAME(attn_strip_load_rows)(const plan_t *plan, const struct attn_sdpa_view *view,
                                            int64_t batch, int64_t head, int64_t first,
                                            int64_t count, int64_t columns, bool dense, real *copy)
{
    rows_view_t rows = REAL_NAME(attn_strip_later_rows)(plan, view, batch, head, first, columns);
    if (dense && rows.stride != columns) {
        rows.data = NULL;
    }
    return REAL_NAME(attn_strip_load_some)(plan, rows, count, columns, copy);
}

// ---- start --------------------------------------------------------------------------------------

// Visible keys of rows [from, to), which share a vector.
static struct attn_key_range start_vector(const struct attn_sdpa_sequence *sequence, strip_t *strip,
                                          int64_t from, int64_t to)
{
    struct attn_key_range any = {sequence->key_len, 0}, all = strip->by_all;
    for (int64_t l = from; l < to; l++) {
        int64_t begin, end;
        attn_sdpa_visible_keys(sequence, strip->row[l], &begin, &end);
        strip->begin[l] = begin;
        strip->end[l] = end;
        all.begin = attn_max(all.begin, begin);
        all.end = attn_min(all.end, end);
        if (begin < end) {
            any = attn_key_union(any, (struct attn_key_range){begin, end});
        }
    }
    strip->by_all = all;
    return any;
}

static void start_lanes(const plan_t *plan, const struct attn_sdpa_sequence *sequence,
                        strip_t *strip)
{
    const int64_t vector = plan->kernels->vector_lanes;
    struct attn_key_range any = {sequence->key_len, 0};
    strip->by_all = (struct attn_key_range){0, sequence->key_len};
    for (int64_t l = 0; l < strip->rows; l += vector) {
        struct attn_key_range *const of = &strip->by_vector[l / vector];
        *of = start_vector(sequence, strip, l, attn_min(l + vector, strip->rows));
        any = attn_key_union(any, *of);
    }
    strip->lowest = any.begin;
    strip->highest = any.end;
    for (int64_t l = strip->rows; l < strip->lanes; l++) {
        strip->begin[l] = strip->begin[l - 1];
        strip->end[l] = strip->end[l - 1];
    }
    for (int64_t l = 0; l < ATTN_STRIP_LANES; l++) {
        strip->max[l] = NONE;
        strip->sum[l] = 0;
    }
    strip->segment = -1;
    strip->segments = 0;
}

// query: rows of (Tq, D) -> (D, width), lane by lane; zeros in the lanes that are not rows
static void start_query(const plan_t *plan, const struct attn_sdpa_sequence *sequence,
                        const scratch_t *scratch, strip_t *strip)
{
    const struct attn_sdpa_problem *p = plan->problem;
    const int64_t width = plan->width, columns = p->head_dim;
    for (int64_t first = 0; first < strip->rows;) {
        int64_t last = first + 1;
        while (last < strip->rows && strip->head[last] == strip->head[first] &&
               strip->row[last] == strip->row[last - 1] + 1) {
            last++;
        }
        const rows_view_t rows = REAL_NAME(attn_strip_load_rows)(
            plan, &p->query, sequence->batch, strip->head[first],
            sequence->query_start + strip->row[first], last - first, columns, false, scratch->rows);
        const struct REAL_NAME(attn_transpose) turn = {
            .source = rows.data,
            .source_row = rows.stride,
            .factor = plan->query_factor,
            .target = strip->query + first,
            .target_row = width,
        };
        plan->kernels->transpose(&turn, last - first, columns);
        first = last;
    }
    for (int64_t d = 0; d < columns && strip->rows < strip->lanes; d++) {
        for (int64_t l = strip->rows; l < strip->lanes; l++) {
            strip->query[d * width + l] = 0;
        }
    }
}

static void start_dropout(const plan_t *plan, const struct attn_sdpa_sequence *sequence,
                          strip_t *strip)
{
    uint32_t head_key[2] = {0, 0};
    for (int64_t l = 0; l < ATTN_STRIP_LANES; l++) {
        const int64_t lane = attn_min(l, strip->rows - 1);
        if (l == 0 || (l < strip->rows && strip->head[l] != strip->head[l - 1])) {
            attn_sdpa_dropout_key(plan->problem, sequence, strip->head[lane], head_key);
        }
        const uint64_t row = (uint64_t)(plan->problem->dropout_row + strip->row[lane]);
        strip->key_low[l] = head_key[0];
        strip->key_high[l] = head_key[1];
        strip->row_low[l] = (uint32_t)(row & UINT32_MAX);
        strip->row_high[l] = (uint32_t)(row >> 32);
    }
}

void REAL_NAME(attn_strip_start)(const plan_t *plan, const struct attn_sdpa_sequence *sequence,
                                 const scratch_t *scratch, strip_t *strip)
{
    strip->lanes = attn_round_up(strip->rows, plan->kernels->vector_lanes);
    start_lanes(plan, sequence, strip);
    start_query(plan, sequence, scratch, strip);
    if (plan->problem->dropout == ATTN_DROPOUT_PHILOX) {
        start_dropout(plan, sequence, strip);
    }
}

double REAL_NAME(attn_strip_pairs)(const strip_t *strip, struct attn_key_range keys)
{
    double pairs = 0;
    for (int64_t l = 0; l < strip->rows; l++) {
        const int64_t begin = attn_max(strip->begin[l], keys.begin);
        pairs += (double)attn_max(attn_min(strip->end[l], keys.end) - begin, 0);
    }
    return pairs;
}

// ---- scores -------------------------------------------------------------------------------------

bool REAL_NAME(attn_strip_meets)(const plan_t *plan, const strip_t *strip, int64_t block,
                                 block_t *part)
{
    part->begin = attn_max(block, strip->lowest);
    part->end = attn_min(block + plan->key_block, strip->highest);
    part->origin = part->begin / 4 * 4;
    part->hidden = false;
    part->width = plan->width;
    return part->begin < part->end;
}

// Fewer keys are not worth telling apart by which lanes see them.
enum { RAGGED_KEYS = 16 };

// Keys of a part that all lanes see, as far as whole groups of RAGGED_KEYS leave them: single keys beside
// such a group would be a tile of their own. Empty as *begin == *end == part->end.
static void fully_visible(const strip_t *strip, const block_t *part, int64_t *begin, int64_t *end)
{
    *begin = attn_max(part->begin, strip->by_all.begin);
    *end = attn_min(part->end, strip->by_all.end);
    if (*begin > part->begin) {
        *begin = part->begin + attn_round_up(*begin - part->begin, RAGGED_KEYS);
    }
    if (*end < part->end) {
        *end -= attn_max(*end - part->begin, 0) % RAGGED_KEYS;
    }
    if (*begin >= *end) {
        *begin = *end = part->end;
    }
}

// key: (keys, D), query: (D, lanes) -> scores (keys, lanes) for keys [begin, end) and the given lanes
static void multiply(const plan_t *plan, const scratch_t *scratch, const strip_t *strip,
                     rows_view_t key, const block_t *part, int64_t begin, int64_t end, int64_t lane,
                     int64_t lanes)
{
    const rows_view_t rows = REAL_NAME(attn_strip_load_some)(
        plan, REAL_NAME(attn_strip_rows_from)(key, begin - part->begin), end - begin,
        plan->problem->head_dim, scratch->key);
    const struct REAL_NAME(attn_tile) product = {
        .a = rows.data,
        .a_row = rows.stride,
        .a_depth = 1,
        .b = strip->query + lane,
        .b_depth = plan->width,
        .c = scratch->score + (begin - part->origin) * plan->width + lane,
        .c_row = plan->width,
        .ahead = scratch->ahead,
    };
    plan->kernels->tile(&product, end - begin, lanes, plan->problem->head_dim);
}

#include "sdpa/strip_few_text.h"

// All lanes.
static void multiply_all(const plan_t *plan, const scratch_t *scratch, const strip_t *strip,
                         rows_view_t key, const block_t *part, int64_t begin, int64_t end)
{
    const int64_t vector = plan->kernels->vector_lanes;
    if (REAL_NAME(attn_strip_is_few)(plan, strip)) {
        for (int64_t keys; begin + 2 * vector <= end; begin += keys) {
            keys = REAL_NAME(attn_strip_few_keys)(plan, strip, key, end - begin);
            multiply_few(plan, scratch, strip, key, part, begin, keys);
        }
    }
    if (begin < end) {
        multiply(plan, scratch, strip, key, part, begin, end, 0, strip->lanes);
    }
}

// The same for keys that some lanes do not see: vectors of lanes that see nothing of a few keys are
// left out.
static void multiply_ragged(const plan_t *plan, const scratch_t *scratch, const strip_t *strip,
                            rows_view_t key, const block_t *part, int64_t begin, int64_t end)
{
    const int64_t vector = plan->kernels->vector_lanes, vectors = strip->lanes / vector;
    for (int64_t from = begin; from < end; from += RAGGED_KEYS) {
        const int64_t to = attn_min(from + RAGGED_KEYS, end);
        int64_t first = vectors, last = 0;
        for (int64_t v = 0; v < vectors; v++) {
            if (strip->by_vector[v].begin < to && from < strip->by_vector[v].end) {
                first = attn_min(first, v);
                last = v + 1;
            }
        }
        if (first < last) {
            multiply(plan, scratch, strip, key, part, from, to, first * vector,
                     (last - first) * vector);
        }
    }
}

// The keys of [begin, part->end) that each lane sees, counted from begin. Those before part->begin are
// nobody's.
static void lane_ranges(const strip_t *strip, const block_t *part, int64_t begin, real *first,
                        real *stop)
{
    for (int64_t l = 0; l < strip->lanes; l++) {
        first[l] = (real)(attn_sdpa_clamp(strip->begin[l], part->begin, part->end) - begin);
        stop[l] = (real)(attn_sdpa_clamp(strip->end[l], begin, part->end) - begin);
    }
}

void REAL_NAME(attn_strip_lane_ranges)(const strip_t *strip, const block_t *part, real *first,
                                       real *stop)
{
    lane_ranges(strip, part, part->origin, first, stop);
}

// Keys [begin, end) of them.
static void hide(const plan_t *plan, const scratch_t *scratch, const strip_t *strip,
                 const block_t *part, int64_t begin, int64_t end)
{
    if (begin >= end) {
        return;
    }
    real first[ATTN_STRIP_LANES], stop[ATTN_STRIP_LANES];
    lane_ranges(strip, part, begin, first, stop);
    plan->kernels->hide_outside(scratch->score + (begin - part->origin) * plan->width, plan->width,
                                end - begin, strip->lanes, first, stop);
}

void REAL_NAME(attn_strip_hide)(const plan_t *plan, const scratch_t *scratch, const strip_t *strip,
                                block_t *part)
{
    hide(plan, scratch, strip, part, part->origin, part->visible_begin);
    hide(plan, scratch, strip, part, part->visible_end, part->end);
    part->hidden = part->hidden || REAL_NAME(attn_strip_is_ragged)(part);
    part->visible_begin = part->origin;
    part->visible_end = part->end;
}

static void adjust(const plan_t *plan, const struct attn_sdpa_sequence *sequence,
                   const scratch_t *scratch, const strip_t *strip, const block_t *part);

void REAL_NAME(attn_strip_scores)(const plan_t *plan, const struct attn_sdpa_sequence *sequence,
                                  const scratch_t *scratch, const strip_t *strip, rows_view_t key,
                                  block_t *part)
{
    int64_t begin, end;
    fully_visible(strip, part, &begin, &end);
    if (part->end - part->begin <= RAGGED_KEYS) {
        multiply(plan, scratch, strip, key, part, part->begin, part->end, 0, strip->lanes);
    } else {
        multiply_ragged(plan, scratch, strip, key, part, part->begin, begin);
        if (begin < end) {
            multiply_all(plan, scratch, strip, key, part, begin, end);
        }
        multiply_ragged(plan, scratch, strip, key, part, end, part->end);
    }
    if (plan->adjusts) {
        adjust(plan, sequence, scratch, strip, part);
    }
    part->hidden = plan->masks_by_element;
    part->visible_begin = begin;
    part->visible_end = end;
}

// ---- softcap, bias, keep, ALiBi -----------------------------------------------------------------

// values: bias[b,h,i,j], or 0 without; -inf where keep[b,h,i,j] is false
static void load_bias(const plan_t *plan, const struct attn_sdpa_sequence *sequence,
                      const strip_t *strip, int64_t lane, int64_t first, int64_t keys, real *values)
{
    const struct attn_sdpa_view *bias = &plan->problem->bias, *keep = &plan->problem->keep;
    const int64_t batch = sequence->batch, head = strip->head[lane];
    const int64_t row = sequence->query_start + strip->row[lane];
    const int64_t key = sequence->key_start + first;
    if (bias->data) {
        const int64_t at = batch * bias->stride[0] + head * bias->stride[1] +
                           row * bias->stride[2] + key * bias->stride[3];
        for (int64_t j = 0; j < keys; j++) {
            values[j] = bias->dtype == ATTN_F32
                            ? (real)((const float *)bias->data)[at + j * bias->stride[3]]
                            : (real)((const double *)bias->data)[at + j * bias->stride[3]];
        }
    } else {
        memset(values, 0, (size_t)keys * sizeof(real));
    }
    if (keep->data) {
        const int64_t at = batch * keep->stride[0] + head * keep->stride[1] +
                           row * keep->stride[2] + key * keep->stride[3];
        const uint8_t *bytes = (const uint8_t *)keep->data + at;
        for (int64_t j = 0; j < keys; j++) {
            values[j] = bytes[j * keep->stride[3]] ? values[j] : NONE;
        }
    }
}

// Row by row into a row-major square, then transposed to lie like the scores. Pairs outside a row's
// visible keys are not read.
static void gather_bias(const plan_t *plan, const struct attn_sdpa_sequence *sequence,
                        const scratch_t *scratch, const strip_t *strip, const block_t *part)
{
    const int64_t keys = part->end - part->origin;
    memset(scratch->rows, 0, (size_t)(strip->lanes * plan->key_block) * sizeof(real));
    for (int64_t l = 0; l < strip->rows; l++) {
        real *values = scratch->rows + l * plan->key_block;
        const int64_t begin = attn_sdpa_clamp(strip->begin[l], part->origin, part->end);
        const int64_t end = attn_sdpa_clamp(strip->end[l], begin, part->end);
        if (begin < end) {
            load_bias(plan, sequence, strip, l, begin, end - begin, values + begin - part->origin);
        }
    }
    const struct REAL_NAME(attn_transpose) turn = {
        .source = scratch->rows,
        .source_row = plan->key_block,
        .factor = 1,
        .target = scratch->bias,
        .target_row = plan->width,
    };
    plan->kernels->transpose(&turn, strip->lanes, keys);
}

// Distances so large that they are rounded must not depend on where a part begins: they count from
// multiples of this many keys, which divides every block.
enum { DISTANCE_KEYS = 32 };

// Keys [begin, end) of a part; slope: per lane, or NULL.
static void adjust_keys(const plan_t *plan, const struct attn_sdpa_sequence *sequence,
                        const scratch_t *scratch, const strip_t *strip, const block_t *part,
                        const real *slope, int64_t begin, int64_t end)
{
    const int64_t skip = (begin - part->origin) * plan->width;
    const int64_t group = begin / DISTANCE_KEYS * DISTANCE_KEYS;
    real distance[ATTN_STRIP_LANES] = {0};
    for (int64_t l = 0; slope && l < strip->rows; l++) {
        distance[l] = (real)(group - (strip->row[l] + sequence->offset));
    }
    const struct REAL_NAME(attn_adjust) call = {
        .score = scratch->score + skip,
        .row = plan->width,
        .scale = plan->scale,
        .softcap = (real)plan->problem->softcap,
        .bias = plan->masks_by_element ? scratch->bias + skip : NULL,
        .bias_row = plan->width,
        .slope = slope,
        .distance = distance,
        .first_key = begin - group,
    };
    plan->kernels->adjust(&call, end - begin, strip->lanes);
}

static void adjust(const plan_t *plan, const struct attn_sdpa_sequence *sequence,
                   const scratch_t *scratch, const strip_t *strip, const block_t *part)
{
    const struct attn_sdpa_problem *p = plan->problem;
    if (plan->masks_by_element) {
        gather_bias(plan, sequence, scratch, strip, part);
    }
    if (!p->alibi_slopes.data) {
        adjust_keys(plan, sequence, scratch, strip, part, NULL, part->origin, part->end);
        return;
    }
    real slope[ATTN_STRIP_LANES] = {0};
    for (int64_t l = 0; l < strip->rows; l++) {
        slope[l] = (real)attn_sdpa_real(&p->alibi_slopes, strip->head[l]);
    }
    for (int64_t begin = part->origin, end; begin < part->end; begin = end) {
        end = attn_min(begin / DISTANCE_KEYS * DISTANCE_KEYS + DISTANCE_KEYS, part->end);
        adjust_keys(plan, sequence, scratch, strip, part, slope, begin, end);
    }
}

// ---- dropout ------------------------------------------------------------------------------------

// Bit j % 8 of byte j / 8 of the row keeps key j, where j counts in the tensor.
static void drop_by_mask(const plan_t *plan, const struct attn_sdpa_sequence *sequence,
                         const scratch_t *scratch, const strip_t *strip, const block_t *part)
{
    const struct attn_sdpa_view *mask = &plan->problem->dropout_keep;
    const real hidden = R(-0.0);
    for (int64_t l = 0; l < strip->rows; l++) {
        const int64_t begin = attn_sdpa_clamp(strip->begin[l], part->begin, part->end);
        const int64_t end = attn_sdpa_clamp(strip->end[l], begin, part->end);
        const uint8_t *bytes = (const uint8_t *)mask->data + sequence->batch * mask->stride[0] +
                               strip->head[l] * mask->stride[1] +
                               (sequence->query_start + strip->row[l]) * mask->stride[2];
        for (int64_t j = begin; j < end; j++) {
            const int64_t key = sequence->key_start + j;
            const bool keep = (bytes[key / 8 * mask->stride[3]] >> (key % 8)) & 1;
            real *weight = scratch->score + (j - part->origin) * plan->width + l;
            if (!keep && memcmp(weight, &hidden, sizeof(real)) != 0) {
                *weight = 0;
            }
        }
    }
}

void REAL_NAME(attn_strip_drop)(const plan_t *plan, const struct attn_sdpa_sequence *sequence,
                                const scratch_t *scratch, const strip_t *strip, const block_t *part)
{
    if (plan->problem->dropout == ATTN_DROPOUT_KEEP) {
        drop_by_mask(plan, sequence, scratch, strip, part);
    } else if (plan->problem->dropout == ATTN_DROPOUT_PHILOX) {
        const struct REAL_NAME(attn_dropout) call = {
            .weight = scratch->score,
            .row = plan->width,
            .first_key = part->origin,
            .threshold = plan->problem->dropout_threshold,
            .key_low = strip->key_low,
            .key_high = strip->key_high,
            .row_low = strip->row_low,
            .row_high = strip->row_high,
        };
        plan->kernels->dropout(&call, part->end - part->origin, strip->lanes);
    }
}
