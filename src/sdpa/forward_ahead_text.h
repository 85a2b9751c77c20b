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
    return p->keys * attn_bytes_per_key(p) >= LEAST_BYTES;
}

// True where the job before has just read the same keys, and a second-level cache still has them.
static bool keys_are_near(const struct attn_sdpa_problem *p, const struct attn_forward_rows *rows)
{
    enum { CACHED_BYTES = 512 * 1024 };
    return rows->again && p->keys * attn_bytes_per_key(p) <= CACHED_BYTES;
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
    if (keys_are_near(p, rows) || rows->first >= rows->heads * sequence.query_len) {
        return;
    }
    int64_t begin, end;
    attn_sdpa_visible_keys(&sequence, rows->first % sequence.query_len, &begin, &end);
    ask_for_keys(p, &sequence, rows->head / p->group, begin,
                 attn_min(begin + plan->key_block, sequence.key_len), ahead);
}

// The vector multiply-adds of a job's strips, roughly.
static int64_t work_of(const plan_t *plan, const strip_t *strips, int64_t count)
{
    int64_t pairs = 0;
    for (int64_t s = 0; s < count; s++) {
        pairs += strips[s].pairs;
    }
    return pairs * (plan->problem->head_dim + plan->problem->value_dim) /
           plan->kernels->vector_lanes;
}

// rows: the job that begins, its strips started. next: what will likely come after it, or NULL
static void look_ahead(const plan_t *plan, const struct attn_sdpa_sequence *sequence,
                       const struct attn_forward_rows *rows, const struct attn_forward_rows *next,
                       const struct worker *worker, int64_t strips)
{
    enum { MARGIN = 4 }; // a quarter faster, so as to be done in time
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
    const int64_t keys = keys_are_near(p, rows) ? 0 : worker->strips[strips - 1].highest;
    const int64_t bytes = attn_ahead_bytes(ahead) +
                          (keys + plan->key_block) * attn_bytes_per_key(p);
    const int64_t work = work_of(plan, worker->strips, strips);
    ahead->rate = 1024 * (bytes + bytes / MARGIN) / attn_max(work, 1);
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
    } else if (!keys_are_near(p, rows)) {
        ask_for_keys(p, sequence, rows->head / p->group, following,
                     attn_min(following + plan->key_block, highest), ahead);
    }
}
