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

// Keys [begin, end) of the piece's key head, and where their gradients are summed in the outputs.
static void ask_for_keys(const struct back_worker *worker,
                         const struct attn_sdpa_sequence *sequence,
                         const struct attn_backward_piece *piece, int64_t begin, int64_t end)
{
    const plan_t *plan = &worker->plan;
    const struct attn_sdpa_problem *p = plan->problem;
    struct attn_ahead *const ahead = worker->scratch.ahead;
    const int64_t first = sequence->key_start + begin, count = end - begin;
    const struct attn_sdpa_view *views[] = {&p->key, &p->value, &p->grad_key, &p->grad_value};
    for (int v = 0; v < 4; v++) {
        const bool used = v < 2 || (piece->of_keys && stands_in_output(plan, views[v]));
        ahead->parts[NEXT_KEYS + v] = attn_ahead_of(views[v], sequence->batch, piece->key_head,
                                                    first, used ? count : 0,
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

// The columns that a pair of a row and a key is multiplied over, all products together.
static double columns_of_pair(const struct attn_sdpa_problem *p,
                              const struct attn_backward_piece *piece)
{
    const int of_head = 1 + piece->of_keys + piece->of_query, of_value = 1 + piece->of_keys;
    return (double)of_head * (double)p->head_dim + (double)of_value * (double)p->value_dim;
}

// The rows that come after a walk, and whose piece they are; none where row_end is row.
struct upcoming {
    struct attn_sdpa_sequence sequence;
    const struct attn_backward_piece *piece;
    struct row_range rows;
};

// The walk of the piece's `rows` over `keys` begins, its strips started.
static void look_ahead(struct back_worker *worker, const struct attn_sdpa_sequence *sequence,
                       const struct attn_backward_piece *piece, const struct row_range *rows,
                       int64_t strips, struct attn_key_range keys, const struct upcoming *next)
{
    const plan_t *plan = &worker->plan;
    const struct attn_sdpa_problem *p = plan->problem;
    struct attn_ahead *const ahead = &worker->ahead;
    *ahead = (struct attn_ahead){0};
    if (piece->of_query) {
        ahead->parts[QUERY_GRADIENTS] = attn_ahead_of(&p->grad_query, sequence->batch, rows->head,
                                                      sequence->query_start + rows->row,
                                                      rows->row_end - rows->row, p->head_dim);
    }
    if (next->rows.row < next->rows.row_end) {
        ask_for_rows(worker, &next->sequence, &next->rows, ahead);
    }
    double pairs = 0;
    for (int64_t s = 0; s < strips; s++) {
        pairs += REAL_NAME(attn_strip_pairs)(&worker->strips[s].strip, keys);
    }
    const int64_t fetched = worker->keys_are_near ? 0 : attn_max(keys.end - keys.begin, 0);
    const double to_come = (double)(fetched + plan->key_block) * (double)attn_bytes_per_key(p) *
                           (piece->of_keys ? 2 : 1);
    const double work = pairs * columns_of_pair(p, piece) / plan->kernels->vector_lanes;
    ahead->rate = attn_ahead_rate((double)attn_ahead_bytes(ahead) + to_come, work);
}

// After the piece's block that ends at `block_end` comes another one, as long as it is below `highest`;
// then those of the next piece.
static void look_at_next_block(const struct back_worker *worker,
                               const struct attn_sdpa_sequence *sequence,
                               const struct attn_backward_piece *piece, int64_t block_end,
                               int64_t highest, const struct upcoming *next)
{
    const int64_t keys = worker->plan.key_block;
    if (block_end < highest) {
        if (!worker->keys_are_near) {
            ask_for_keys(worker, sequence, piece, block_end, attn_min(block_end + keys, highest));
        }
    } else if (next->piece != piece && next->rows.row < next->rows.row_end) {
        int64_t begin, end;
        attn_sdpa_visible_keys(&next->sequence, next->rows.row, &begin, &end);
        ask_for_keys(worker, &next->sequence, next->piece, begin,
                     attn_min(begin + keys, next->sequence.key_len));
    }
}
