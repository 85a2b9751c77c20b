// sdpa/backward_bias_text.h: the gradient of the bias, for one element type; after backward_text.h.
//
// The bias may be shared by batch entries, heads, rows or keys; its gradient is summed over them in
// ascending order, and the scores' gradients are made anew for that, so that no T x T memory is
// needed beyond the gradient itself.

// NaN becomes the one quiet NaN, as it does in every gradient.
static void add_element(const struct attn_sdpa_view *view, int64_t offset, real value)
{
    if (view->dtype == ATTN_F32) {
        float *const target = (float *)view->data + offset;
        const float sum = *target + (float)value;
        *target = isnan(sum) ? NAN : sum;
    } else {
        double *const target = (double *)view->data + offset;
        const double sum = *target + (double)value;
        *target = isnan(sum) ? (double)NAN : sum;
    }
}

// The part's gradients row by row: worker->gradient (keys, lanes) -> scratch rows (lanes, keys)
static void add_part(const struct back_worker *worker, const struct attn_sdpa_sequence *sequence,
                     const struct attn_backward_bias_piece *piece, const strip_t *strip,
                     const block_t *part)
{
    const plan_t *plan = &worker->plan;
    const struct attn_sdpa_view *view = &plan->problem->grad_bias;
    const int64_t keys = part->end - part->origin;
    real *const rows = worker->scratch.rows;
    const struct REAL_NAME(attn_transpose) turn = {
        .source = worker->gradient,
        .source_row = plan->width,
        .factor = 1,
        .target = rows,
        .target_row = plan->key_block,
    };
    plan->kernels->transpose(&turn, keys, strip->rows);
    for (int64_t l = 0; l < strip->rows; l++) {
        const int64_t begin = attn_sdpa_clamp(strip->begin[l], part->begin, part->end);
        const int64_t end = attn_sdpa_clamp(strip->end[l], begin, part->end);
        const int64_t at = piece->batch * view->stride[0] + piece->head * view->stride[1] +
                           (sequence->query_start + strip->row[l]) * view->stride[2];
        for (int64_t j = begin; j < end; j++) {
            add_element(view, at + (sequence->key_start + j) * view->stride[3],
                        rows[l * plan->key_block + j - part->origin]);
        }
    }
}

static void add_strip(const struct back_worker *worker, const struct attn_sdpa_sequence *sequence,
                      const struct attn_backward_bias_piece *piece, int64_t key_head,
                      struct back_strip *back)
{
    const plan_t *plan = &worker->plan;
    const struct attn_sdpa_problem *p = plan->problem;
    const strip_t *strip = &back->strip;
    for (int64_t block = strip->lowest / plan->key_block * plan->key_block; block < strip->highest;
         block += plan->key_block) {
        block_t part;
        if (!REAL_NAME(attn_strip_meets)(plan, strip, block, &part)) {
            continue;
        }
        const int64_t first = sequence->key_start + part.begin;
        const int64_t count = part.end - part.begin;
        const rows_view_t key = REAL_NAME(attn_strip_load_rows)(plan, &p->key, sequence->batch,
                                                                key_head, first, count, p->head_dim,
                                                                true, worker->scratch.key);
        const rows_view_t value =
            REAL_NAME(attn_strip_load_rows)(plan, &p->value, sequence->batch, key_head, first,
                                            count, p->value_dim, true, worker->scratch.value);
        struct key_run runs[2 * MOST_RUNS];
        const int runs_count = cut_runs(strip, &part, runs);
        weights_again(worker, sequence, back, key, &part);
        score_gradients(worker, back, value, &part, runs, runs_count, NULL);
        add_part(worker, sequence, piece, strip, &part);
    }
}

// All rows of one sequence and query head that the piece covers.
static void add_sequence(struct back_worker *worker, const struct attn_sdpa_sequence *sequence,
                         const struct attn_backward_bias_piece *piece, int64_t head)
{
    const struct attn_sdpa_problem *p = worker->plan.problem;
    const int64_t row_end = attn_min(piece->row_end - sequence->query_start, sequence->query_len);
    const int64_t width = worker->plan.width;
    for (int64_t row = attn_max(0, piece->row - sequence->query_start); row < row_end;
         row += width) {
        start_back_strip(worker, sequence, head, row, attn_min(width, row_end - row),
                         &worker->strips[0]);
        sharpen_deltas(worker, sequence, head / p->group, 1);
        add_strip(worker, sequence, piece, head / p->group, &worker->strips[0]);
    }
}

static void clear(const struct attn_sdpa_problem *p, const struct attn_backward_bias_piece *piece)
{
    const struct attn_sdpa_view *view = &p->grad_bias;
    const int64_t *shape = p->grad_bias_shape;
    const char zero[8] = {0};
    const size_t size = attn_dtype_size(view->dtype);
    for (int64_t i = piece->row; i < attn_min(piece->row_end, shape[2]); i++) {
        for (int64_t j = 0; j < shape[3]; j++) {
            const int64_t at = piece->batch * view->stride[0] + piece->head * view->stride[1] +
                               i * view->stride[2] + j * view->stride[3];
            memcpy((char *)view->data + at * (int64_t)size, zero, size);
        }
    }
}

void REAL_NAME(attn_backward_bias)(const attn_context *context,
                                   const struct attn_sdpa_problem *problem,
                                   const struct attn_backward_bias_piece *piece, void *memory)
{
    const int64_t *shape = problem->grad_bias_shape;
    const bool all_batches = shape[0] == 1, all_heads = shape[1] == 1;
    struct attn_arena arena = {memory, 0};
    struct back_worker worker;
    take_worker(context, problem, &arena, &worker);
    worker.deltas = piece->deltas;
    clear(problem, piece);
    for (int64_t b = all_batches ? 0 : piece->batch;
         b < (all_batches ? problem->batch : piece->batch + 1); b++) {
        for (int64_t head = all_heads ? 0 : piece->head;
             head < (all_heads ? problem->query_heads : piece->head + 1); head++) {
            const int64_t first = problem->packed ? 0 : b;
            const int64_t last = problem->packed ? problem->sequences : b + 1;
            for (int64_t n = first; n < last; n++) {
                const struct attn_sdpa_sequence sequence = attn_sdpa_sequence_at(problem, n);
                add_sequence(&worker, &sequence, piece, head);
            }
        }
    }
}
