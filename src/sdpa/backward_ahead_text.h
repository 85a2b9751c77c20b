// sdpa/backward_ahead_text.h: what the backward asks for while it computes something else, for one
// element type; after sdpa/backward_strip_text.h.
//
// While a block of keys is at work, the next one is fetched with the lines that its gradients are added
// to; over the whole walk, the rows of the walk after it, and the lines that this one's gradients of
// queries will be written to. All of it is spread evenly over the walk's multiply-adds.

// In the order in which they are needed.
enum { NEXT_KEYS, NEXT_VALUES, KEY_SUMS, VALUE_SUMS, QUERY_GRADIENTS, QUERIES, OUTPUTS, UPSTREAM };

// Rows [row, row_end) of a query head.
struct row_range {
    int64_t head, row, row_end;
};

// Keys [begin, end) of a key head.
static void ask_for_keys(const struct attn_sdpa_problem *p,
                         const struct attn_sdpa_sequence *sequence, int64_t head, int64_t begin,
                         int64_t end, struct attn_ahead *ahead)
{
    const int64_t first = sequence->key_start + begin, count = end - begin;
    const struct attn_sdpa_view *views[] = {&p->key, &p->value, &p->grad_key, &p->grad_value};
    for (int v = 0; v < 4; v++) {
        ahead->parts[NEXT_KEYS + v] = attn_ahead_of(views[v], sequence->batch, head, first, count,
                                                    v % 2 == 0 ? p->head_dim : p->value_dim);
    }
}

// What is read of the rows of a walk.
static void ask_for_rows(const struct back_worker *worker,
                         const struct attn_sdpa_sequence *sequence, const struct row_range *rows,
                         struct attn_ahead *ahead)
{
    const struct attn_sdpa_problem *p = worker->plan.problem;
    const int64_t first = sequence->query_start + rows->row, count = rows->row_end - rows->row;
    ahead->parts[QUERIES] =
        attn_ahead_of(&p->query, sequence->batch, rows->head, first, count, p->head_dim);
    ahead->parts[UPSTREAM] =
        attn_ahead_of(&p->grad_output, sequence->batch, rows->head, first, count, p->value_dim);
    if (!worker->deltas) {
        ahead->parts[OUTPUTS] =
            attn_ahead_of(&p->output, sequence->batch, rows->head, first, count, p->value_dim);
    }
}

// True where keys, values and their gradients, once read, stay in a second-level cache.
static bool keys_fit(const struct attn_sdpa_problem *p, const struct attn_backward_piece *piece)
{
    enum { CACHED_BYTES = 1024 * 1024 };
    return 2 * attn_min(p->keys, piece->key_end - piece->key) * attn_bytes_per_key(p) <=
           CACHED_BYTES;
}

// The vector multiply-adds of the five products of a walk.
static int64_t work_of(const struct back_worker *worker, int64_t strips)
{
    int64_t pairs = 0;
    for (int64_t s = 0; s < strips; s++) {
        pairs += worker->strips[s].strip.pairs;
    }
    const struct attn_sdpa_problem *p = worker->plan.problem;
    return pairs * (3 * p->head_dim + 2 * p->value_dim) / worker->plan.kernels->vector_lanes;
}

// The rows that come after a walk, and whose; of another key head where `other`. None where row_end is
// row.
struct upcoming {
    struct attn_sdpa_sequence sequence;
    int64_t key_head;
    struct row_range rows;
    bool other;
};

// The walk of `rows` over `keys` keys begins, its strips started.
static void look_ahead(struct back_worker *worker, const struct attn_sdpa_sequence *sequence,
                       const struct row_range *rows, int64_t strips, int64_t keys,
                       const struct upcoming *next)
{
    enum { MARGIN = 4 }; // a quarter faster, so as to be done in time
    const struct attn_sdpa_problem *p = worker->plan.problem;
    struct attn_ahead *const ahead = &worker->ahead;
    *ahead = (struct attn_ahead){0};
    ahead->parts[QUERY_GRADIENTS] = attn_ahead_of(&p->grad_query, sequence->batch, rows->head,
                                                  sequence->query_start + rows->row,
                                                  rows->row_end - rows->row, p->head_dim);
    if (next->rows.row < next->rows.row_end) {
        ask_for_rows(worker, &next->sequence, &next->rows, ahead);
    }
    const int64_t key_bytes = 2 * attn_bytes_per_key(p);
    const int64_t to_come = (worker->keys_are_near ? 0 : keys) + worker->plan.key_block;
    const int64_t bytes = attn_ahead_bytes(ahead) + to_come * key_bytes;
    ahead->rate = 1024 * (bytes + bytes / MARGIN) / attn_max(work_of(worker, strips), 1);
}

// After the block that ends at `block_end` comes another one, as long as it is below `highest`; then
// those of the next key head.
static void look_at_next_block(const struct back_worker *worker,
                               const struct attn_sdpa_sequence *sequence, int64_t key_head,
                               int64_t block_end, int64_t highest, const struct upcoming *next)
{
    const struct attn_sdpa_problem *p = worker->plan.problem;
    const int64_t keys = worker->plan.key_block;
    if (block_end < highest) {
        if (!worker->keys_are_near) {
            ask_for_keys(p, sequence, key_head, block_end, attn_min(block_end + keys, highest),
                         worker->scratch.ahead);
        }
    } else if (next->other && next->rows.row < next->rows.row_end) {
        int64_t begin, end;
        attn_sdpa_visible_keys(&next->sequence, next->rows.row, &begin, &end);
        ask_for_keys(p, &next->sequence, next->key_head, begin,
                     attn_min(begin + keys, next->sequence.key_len), worker->scratch.ahead);
    }
}
