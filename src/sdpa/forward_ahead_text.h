// sdpa/forward_ahead_text.h: what the forward asks for while it computes something else, for one
// element type; after the type names and struct worker of sdpa/forward_text.h.
//
// While a block of keys is at work, the next one is fetched; over the whole job, the lines that its
// output will be written to and the queries of the job after it. All of it is spread evenly over the
// job's multiply-adds.

// In the order in which they are needed.
enum { NEXT_KEYS, NEXT_VALUES, OUTPUTS, NEXT_QUERIES };

// What is smaller comes by itself, before it has been asked for.
static bool worth_looking_ahead(const struct attn_sdpa_problem *p)
{
    enum { LEAST_BYTES = 16 * 1024 };
    return p->keys > LEAST_BYTES / attn_max(attn_bytes_per_key(p), 1);
}

// True where the job before has just read the same keys, and a cache still has them.
static bool keys_are_near(const plan_t *plan, const struct attn_forward_rows *rows)
{
    return rows->again && plan->problem->keys <= plan->near_keys;
}

static void ask_for_keys(const struct attn_sdpa_problem *p,
                         const struct attn_sdpa_sequence *sequence, int64_t key_head, int64_t begin,
                         int64_t end, struct attn_ahead *ahead)
{
    const int64_t first = sequence->key_start + begin;
    ahead->parts[NEXT_KEYS] =
        attn_ahead_of(&p->key, sequence->batch, key_head, first, end - begin, p->head_dim);
    ahead->parts[NEXT_VALUES] =
        attn_ahead_of(&p->value, sequence->batch, key_head, first, end - begin, p->value_dim);
}

// A job's rows of query or output, as far as they are of its first head.
static struct attn_ahead_rows rows_ahead(const struct attn_sdpa_view *view,
                                         const struct attn_sdpa_sequence *sequence,
                                         const struct attn_forward_rows *rows, int64_t columns)
{
    const int64_t head = rows->first / sequence->query_len;
    const int64_t row = rows->first - head * sequence->query_len;
    return attn_ahead_of(view, sequence->batch, rows->head + head, sequence->query_start + row,
                         attn_min(rows->count, sequence->query_len - row), columns);
}

// The first keys that a job will look at.
static void ask_for_first_keys(const plan_t *plan, const struct attn_forward_rows *rows,
                               struct attn_ahead *ahead)
{
    const struct attn_sdpa_problem *p = plan->problem;
    const struct attn_sdpa_sequence sequence = attn_sdpa_sequence_at(p, rows->sequence);
    if (keys_are_near(plan, rows) || rows->first >= rows->heads * sequence.query_len) {
        return;
    }
    int64_t begin, end;
    attn_sdpa_visible_keys(&sequence, rows->first % sequence.query_len, &begin, &end);
    ask_for_keys(p, &sequence, rows->head / p->group, begin,
                 attn_min(begin + plan->key_block, sequence.key_len), ahead);
}

// rows: the job that begins, its strips started, over `keys`. next: what will likely come after it, or
// NULL
static void look_ahead(const plan_t *plan, const struct attn_sdpa_sequence *sequence,
                       const struct attn_forward_rows *rows, const struct attn_forward_rows *next,
                       const struct worker *worker, int64_t strips, struct attn_key_range keys)
{
    const struct attn_sdpa_problem *p = plan->problem;
    struct attn_ahead *const ahead = worker->scratch.ahead;
    if (!ahead) {
        return;
    }
    *ahead = (struct attn_ahead){0};
    ahead->parts[OUTPUTS] = rows_ahead(&p->output, sequence, rows, p->value_dim);
    if (next) {
        const struct attn_sdpa_sequence following = attn_sdpa_sequence_at(p, next->sequence);
        if (next->first < next->heads * following.query_len) {
            ahead->parts[NEXT_QUERIES] = rows_ahead(&p->query, &following, next, p->head_dim);
        }
    }
    double pairs = 0;
    for (int64_t s = 0; s < strips; s++) {
        pairs += REAL_NAME(attn_strip_pairs)(&worker->strips[s], keys);
    }
    const int64_t seen = attn_max(keys.end - keys.begin, 0);
    const int64_t fetched = keys_are_near(plan, rows) ? 0 : seen;
    const double to_come = (double)(fetched + plan->key_block) * (double)attn_bytes_per_key(p);
    double work = pairs * (double)(p->head_dim + p->value_dim);
    if (REAL_NAME(attn_strip_is_few)(plan, worker->strips)) { // keys are transposed
        work += (double)seen * (double)p->head_dim;
    }
    work /= plan->kernels->vector_lanes;
    ahead->rate = attn_ahead_rate((double)attn_ahead_bytes(ahead) + to_come, work);
}

// After `block` comes another one of this job, as long as it is below `highest`; then the next job.
static void look_at_next_block(const plan_t *plan, const struct attn_sdpa_sequence *sequence,
                               const struct attn_forward_rows *rows,
                               const struct attn_forward_rows *next, int64_t block, int64_t highest,
                               struct attn_ahead *ahead)
{
    const struct attn_sdpa_problem *p = plan->problem;
    const int64_t following = block + plan->key_block;
    if (!ahead) {
        return;
    }
    if (following >= highest) {
        if (next) {
            ask_for_first_keys(plan, next, ahead);
        }
    } else if (!keys_are_near(plan, rows)) {
        ask_for_keys(p, sequence, rows->head / p->group, following,
                     attn_min(following + plan->key_block, highest), ahead);
    }
}
