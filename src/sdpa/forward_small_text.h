// sdpa/forward_small_text.h: heads so small that one kernel does all of it, for one element type; after
// the type names of sdpa/forward_text.h.

// True where the plain call is asked for (masks of shape only, no results but the output and the row
// statistics) and nothing is large.
static bool is_small(const plan_t *plan)
{
    const struct attn_sdpa_problem *p = plan->problem;
    return p->keys <= ATTN_SMALL_KEYS && p->head_dim <= ATTN_SMALL_DIM &&
           p->value_dim <= ATTN_SMALL_DIM && !plan->adjusts && p->dropout == ATTN_DROPOUT_NONE &&
           !p->sinks.data && !p->lse.data && p->output.data && p->query.data && p->key.data &&
           p->value.data && attn_rows_adjacent(&p->query, plan->dtype, p->head_dim) &&
           attn_rows_adjacent(&p->key, plan->dtype, p->head_dim) &&
           attn_rows_adjacent(&p->value, plan->dtype, p->value_dim) &&
           attn_rows_adjacent(&p->output, plan->dtype, p->value_dim);
}

static void store_small_stats(const plan_t *plan, const struct attn_sdpa_sequence *sequence,
                              int64_t head, int64_t row, int64_t rows, const real *max,
                              const real *sum)
{
    const struct attn_sdpa_problem *p = plan->problem;
    const struct attn_sdpa_view *views[2] = {&p->row_max, &p->row_sum};
    const real *values[2] = {max, sum};
    for (int v = 0; v < 2; v++) {
        for (int64_t l = 0; l < rows && views[v]->data; l++) {
            const bool spoilt = sum[l] != sum[l]; // a NaN score leaves the largest alone
            ((real *)views[v]->data)[attn_query_offset(views[v], sequence, head, row + l)] =
                spoilt ? (real)NAN : values[v][l];
        }
    }
}

// Rows [row, row + rows) of a head, at most a vector's lanes.
static void run_small_rows(const plan_t *plan, const struct attn_sdpa_sequence *sequence,
                           int64_t head, int64_t row, int64_t rows)
{
    const struct attn_sdpa_problem *p = plan->problem;
    const int64_t batch = sequence->batch, key_head = head / p->group;
    int64_t first, last, begin, end;
    attn_sdpa_visible_keys(sequence, row, &first, &end);
    attn_sdpa_visible_keys(sequence, row + rows - 1, &begin, &last);
    real from[ATTN_STRIP_LANES], to[ATTN_STRIP_LANES], max[ATTN_STRIP_LANES], sum[ATTN_STRIP_LANES];
    for (int64_t l = 0; l < plan->kernels->vector_lanes; l++) {
        attn_sdpa_visible_keys(sequence, row + attn_min(l, rows - 1), &begin, &end);
        from[l] = (real)(begin - first);
        to[l] = (real)(end - first);
    }
    const struct REAL_NAME(attn_small) call = {
        .query = (const real *)p->query.data + attn_query_offset(&p->query, sequence, head, row),
        .query_row = p->query.stride[2],
        .key = (const real *)p->key.data +
               attn_row_offset(&p->key, batch, key_head, sequence->key_start + first),
        .key_row = p->key.stride[2],
        .value = (const real *)p->value.data +
                 attn_row_offset(&p->value, batch, key_head, sequence->key_start + first),
        .value_row = p->value.stride[2],
        .output = (real *)p->output.data + attn_query_offset(&p->output, sequence, head, row),
        .output_row = p->output.stride[2],
        .head_dim = p->head_dim,
        .value_dim = p->value_dim,
        .query_factor = plan->query_factor,
        .scale = plan->scale,
        .begin = from,
        .end = to,
        .skipped = first % 4,
        .max = max,
        .sum = sum,
    };
    plan->kernels->small(&call, rows, last - first);
    store_small_stats(plan, sequence, head, row, rows, max, sum);
}

static void run_small_job(const plan_t *plan, const struct attn_forward_rows *rows)
{
    const struct attn_sdpa_sequence sequence = attn_sdpa_sequence_at(plan->problem, rows->sequence);
    const int64_t last = attn_min(rows->first + rows->count, rows->heads * sequence.query_len);
    for (int64_t n = rows->first, some; n < last; n += some) {
        const int64_t head = n / sequence.query_len, row = n - head * sequence.query_len;
        some = attn_min(attn_min(plan->kernels->vector_lanes, last - n), sequence.query_len - row);
        run_small_rows(plan, &sequence, rows->head + head, row, some);
    }
}
