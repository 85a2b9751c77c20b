// sdpa/strip_few_text.h: scores of a strip of a few rows; part of strip_text.h.
//
// A few rows leave most lanes of a vector idle. Here keys take the lanes: they are transposed and
// multiplied, which is the same chain for each score. Memory decides how long this takes, so that the next
// keys have to come meanwhile.

// More rows than half a vector are better off in the lanes themselves.
bool REAL_NAME(attn_strip_is_few)(const plan_t *plan, const strip_t *strip)
{
    return strip->rows <= attn_min(ATTN_QUAD, plan->kernels->vector_lanes / 2);
}

int64_t REAL_NAME(attn_strip_few_keys)(const plan_t *plan, const strip_t *strip, rows_view_t key,
                                       int64_t keys)
{
    const bool narrow = REAL_NAME(attn_strip_storage)(key) != ATTN_STORED_REAL;
    const int64_t two = 2 * plan->kernels->vector_lanes;
    return narrow && strip->rows == 1 && keys >= 2 * two ? 2 * two : two;
}

// key: (keys, D) -> transposed: (D, keys), stored as the keys are where that can be computed with
static attn_storage transpose_keys(const plan_t *plan, const scratch_t *scratch, rows_view_t key,
                                   int64_t keys, real *transposed)
{
    const int64_t columns = plan->problem->head_dim;
    const attn_storage storage = REAL_NAME(attn_strip_storage)(key);
    if (storage != ATTN_STORED_REAL) {
        const struct attn_transpose_narrow turn = {
            .source = attn_element_at(key.stored, key.offset),
            .source_row = key.stride,
            .target = (uint16_t *)transposed,
            .target_row = keys,
            .ahead = scratch->ahead,
        };
        plan->kernels->transpose_narrow(&turn, keys, columns);
        return storage;
    }
    const rows_view_t rows =
        REAL_NAME(attn_strip_load_some)(plan, key, keys, columns, scratch->key);
    const struct REAL_NAME(attn_transpose) turn = {
        .source = rows.data,
        .source_row = rows.stride,
        .factor = 1,
        .target = transposed,
        .target_row = keys,
        .ahead = scratch->ahead,
    };
    plan->kernels->transpose(&turn, keys, columns);
    return storage;
}

// In scratch->rows: `vector` rows of scores, then the keys (keys, D), which take half as much where they are
// narrow: at most 2 V (2 V + D) reals, V being the vector. The least that scratch->rows has is a forward's
// 3 V max(D, Dv, key_block), which is enough since a key block is 128 unless a dimension is larger.
real *REAL_NAME(attn_strip_few_scores)(const plan_t *plan, const scratch_t *scratch,
                                       const strip_t *strip, rows_view_t key, int64_t keys)
{
    real *const scores = scratch->rows;
    real *const transposed = scores + plan->kernels->vector_lanes * keys;
    const attn_storage storage = transpose_keys(plan, scratch, key, keys, transposed);
    const struct REAL_NAME(attn_tile) product = {
        .a = strip->query,
        .a_row = 1,
        .a_depth = plan->width,
        .b = transposed,
        .narrow_b = storage == ATTN_STORED_REAL ? NULL : (const uint16_t *)transposed,
        .b_storage = storage,
        .b_depth = keys,
        .c = scores,
        .c_row = keys,
        .ahead = scratch->ahead,
    };
    plan->kernels->tile(&product, strip->rows, keys, plan->problem->head_dim);
    return scores;
}

// Keys [begin, begin + keys) of all lanes; those of no row get zeros.
static void multiply_few(const plan_t *plan, const scratch_t *scratch, const strip_t *strip,
                         rows_view_t key, const block_t *part, int64_t begin, int64_t keys)
{
    const int64_t vector = plan->kernels->vector_lanes;
    real *const scores = REAL_NAME(attn_strip_few_scores)(
        plan, scratch, strip, REAL_NAME(attn_strip_rows_from)(key, begin - part->begin), keys);
    memset(scores + strip->rows * keys, 0, (size_t)((vector - strip->rows) * keys) * sizeof(real));
    const struct REAL_NAME(attn_transpose) back = {
        .source = scores,
        .source_row = keys,
        .factor = 1,
        .target = scratch->score + (begin - part->origin) * plan->width,
        .target_row = plan->width,
    };
    plan->kernels->transpose(&back, vector, keys);
}
