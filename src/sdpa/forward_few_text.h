// sdpa/forward_few_text.h: one block of keys for a strip of a few rows, where nothing comes between scores
// and weights: the usual steps on scores that lie in quads (kernels/text_quads.h). For one element type;
// part of forward_text.h.

// Nothing comes between scores and weights, all rows see the whole part, and its keys are whole pairs of
// vectors.
static bool folds_in_quads(const plan_t *plan, const strip_t *strip, const block_t *part)
{
    return plan->kernels->to_quads && REAL_NAME(attn_strip_is_few)(plan, strip) && !plan->adjusts &&
           plan->problem->dropout == ATTN_DROPOUT_NONE && strip->by_all.begin <= part->begin &&
           part->end <= strip->by_all.end && part->begin == part->origin &&
           (part->end - part->begin) % (2 * plan->kernels->vector_lanes) == 0;
}

static void fold_quads(const plan_t *plan, const scratch_t *scratch, strip_t *strip,
                       rows_view_t key, rows_view_t value, block_t *part, attn_tile_start start)
{
    const int64_t count = part->end - part->begin;
    for (int64_t done = 0, keys; done < count; done += keys) {
        const rows_view_t from = REAL_NAME(attn_strip_rows_from)(key, done);
        keys = REAL_NAME(attn_strip_few_keys)(plan, strip, from, count - done);
        const real *scores = REAL_NAME(attn_strip_few_scores)(plan, scratch, strip, from, keys);
        plan->kernels->to_quads(scores, keys, strip->rows, keys, scratch->score + done * ATTN_QUAD);
    }
    part->width = ATTN_QUAD;
    part->hidden = true; // an infinite key may give a score of -inf
    const struct REAL_NAME(attn_softmax) call = softmax_call(plan, scratch, strip, part);
    plan->kernels->softmax_quads(&call, count);
    const bool hides =
        plan->kernels->any_hidden(scratch->score, ATTN_FOUR_QUADS, count / 4, ATTN_FOUR_QUADS);
    add_values(plan, scratch, strip, value, part, 0, strip->rows, part->begin, part->end, start,
               hides ? ATTN_TILE_HIDDEN_A : ATTN_TILE_ALL);
}
