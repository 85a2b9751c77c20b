// sdpa/weights_text.h: attention weights of chosen rows, and their sums per key, for one element type.
//
// A second walk over the keys: the first finds each row's statistics exactly as the forward does, the
// second recomputes its scores and turns them into weights. Included after forward_text.h.

static void find_stats(const plan_t *plan, const struct attn_sdpa_sequence *sequence,
                       int64_t key_head, const scratch_t *scratch, strip_t *strip);
static void walk_weights(const plan_t *plan, const struct attn_sdpa_sequence *sequence,
                         const struct attn_weight_job *job, const scratch_t *scratch,
                         strip_t *strip, const int64_t *place);

void REAL_NAME(attn_forward_weights)(const plan_t *plan, const struct attn_weight_job *job,
                                     void *memory)
{
    const struct attn_sdpa_problem *problem = plan->problem;
    const struct attn_sdpa_sequence sequence = attn_sdpa_sequence_at(problem, job->sequence);
    struct attn_arena arena = {memory, 0};
    struct worker worker;
    take_worker(plan, 1, &arena, &worker);
    strip_t *strip = worker.strips;
    const int64_t rows = job->sums ? problem->queries : problem->weight_row_count;
    int64_t place[ATTN_STRIP_LANES];
    strip->rows = 0;
    for (int64_t m = 0; m < rows; m++) {
        const bool listed = !job->sums && problem->weight_rows.data;
        const int64_t row = (listed ? attn_sdpa_integer(&problem->weight_rows, m) : m) -
                            sequence.query_start;
        if (row >= 0 && row < sequence.query_len) {
            place[strip->rows] = m;
            strip->head[strip->rows] = job->head;
            strip->row[strip->rows++] = row;
        }
        if (strip->rows == plan->width || (m == rows - 1 && strip->rows > 0)) {
            REAL_NAME(attn_strip_start)(plan, &sequence, &worker.scratch, strip);
            find_stats(plan, &sequence, job->head / problem->group, &worker.scratch, strip);
            walk_weights(plan, &sequence, job, &worker.scratch, strip, place);
            strip->rows = 0;
        }
    }
}

// Scores of the part of `block` that the strip sees; false where it sees none.
static bool scores_of_block(const plan_t *plan, const struct attn_sdpa_sequence *sequence,
                            int64_t key_head, const scratch_t *scratch, const strip_t *strip,
                            int64_t block, block_t *part)
{
    if (!REAL_NAME(attn_strip_meets)(plan, strip, block, part)) {
        return false;
    }
    const rows_view_t key = REAL_NAME(attn_strip_load_rows)(
        plan, &plan->problem->key, sequence->batch, key_head, sequence->key_start + part->begin,
        part->end - part->begin, plan->problem->head_dim, false, scratch->key);
    REAL_NAME(attn_strip_scores)(plan, sequence, scratch, strip, key, part);
    REAL_NAME(attn_strip_hide)(plan, scratch, strip, part);
    return true;
}

static void find_stats(const plan_t *plan, const struct attn_sdpa_sequence *sequence,
                       int64_t key_head, const scratch_t *scratch, strip_t *strip)
{
    real factor[ATTN_STRIP_LANES], part_factor[ATTN_STRIP_LANES];
    const struct REAL_NAME(attn_join)
        stats = {strip->total_max, strip->total_sum, strip->max, strip->sum, factor, part_factor};
    for (int64_t l = 0; l < strip->lanes; l++) {
        strip->total_max[l] = NONE;
        strip->total_sum[l] = 0;
    }
    for (int64_t block = 0; block < strip->highest; block += plan->key_block) {
        const int64_t segment = block / (plan->key_block * ATTN_SEGMENT_BLOCKS);
        block_t part;
        if (scores_of_block(plan, sequence, key_head, scratch, strip, block, &part)) {
            if (strip->segment != segment) {
                plan->kernels->join(&stats, strip->lanes);
                reset_stats(strip);
                strip->segment = segment;
            }
            fold_weights(plan, scratch, strip, &part);
        }
    }
    plan->kernels->join(&stats, strip->lanes);
    memcpy(strip->max, strip->total_max, sizeof strip->max);
    memcpy(strip->sum, strip->total_sum, sizeof strip->sum);
    if (plan->problem->sinks.data) {
        join_sinks(plan, strip, factor);
    }
    spread_nan(strip);
}

// weights: row-major keys of one lane -> weights[b, n, m, key_start + begin ...]
static void store_weights(const plan_t *plan, const struct attn_sdpa_sequence *sequence,
                          const struct attn_weight_job *job, int64_t m, int64_t begin, int64_t keys,
                          const real *values)
{
    const struct attn_sdpa_view *view = &plan->problem->weights;
    const int64_t offset = sequence->batch * view->stride[0] + job->index * view->stride[1] +
                           m * view->stride[2];
    for (int64_t k = 0; k < keys; k++) {
        store_element(plan, view, offset + (sequence->key_start + begin + k) * view->stride[3],
                      &values[k]);
    }
}

// Adds one row's weights to the sums of its keys. Rows come in ascending order.
static void add_to_sums(const plan_t *plan, const struct attn_sdpa_sequence *sequence,
                        const struct attn_weight_job *job, int64_t begin, int64_t keys,
                        const real *values)
{
    const struct attn_sdpa_view *view = &plan->problem->key_sums;
    real *sums = (real *)view->data + sequence->batch * view->stride[0] +
                 job->head * view->stride[1] + (sequence->key_start + begin) * view->stride[2];
    for (int64_t k = 0; k < keys; k++) {
        sums[k * view->stride[2]] += values[k];
    }
}

static void walk_weights(const plan_t *plan, const struct attn_sdpa_sequence *sequence,
                         const struct attn_weight_job *job, const scratch_t *scratch,
                         strip_t *strip, const int64_t *place)
{
    const bool dropped = !job->sums && plan->problem->weights_dropped;
    const real scale = dropped ? (real)plan->problem->dropout_scale : 1;
    for (int64_t block = 0; block < strip->highest; block += plan->key_block) {
        block_t part;
        if (!scores_of_block(plan, sequence, job->head / plan->problem->group, scratch, strip,
                             block, &part)) {
            continue;
        }
        const struct REAL_NAME(attn_softmax) call = softmax_call(plan, scratch, strip, &part);
        const int64_t keys = part.end - part.origin, skip = part.begin - part.origin;
        plan->kernels->weights(&call, keys, strip->lanes);
        if (dropped) {
            REAL_NAME(attn_strip_drop)(plan, sequence, scratch, strip, &part);
        }
        const struct REAL_NAME(attn_transpose) turn = {
            .source = scratch->score,
            .source_row = plan->width,
            .factor = 1,
            .target = scratch->rows,
            .target_row = plan->key_block,
        };
        plan->kernels->transpose(&turn, keys, strip->rows);
        const struct REAL_NAME(attn_scale)
            rows = {scratch->rows, plan->key_block, &scale, 0, scratch->rows, plan->key_block};
        plan->kernels->scale_rows(&rows, strip->rows, keys);
        for (int64_t l = 0; l < strip->rows; l++) {
            const real *values = scratch->rows + l * plan->key_block;
            if (job->sums) {
                add_to_sums(plan, sequence, job, part.begin, keys - skip, values + skip);
            } else {
                store_weights(plan, sequence, job, place[l], part.begin, keys - skip,
                              values + skip);
            }
        }
    }
}
