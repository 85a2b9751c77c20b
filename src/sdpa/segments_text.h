// sdpa/segments_text.h: one strip's segments computed apart and merged in order, for one element type.
//
// The walk over the keys already closes a segment and merges it into those before; here the closed
// segments come from memory instead. Included after forward_text.h.

// What one segment gave one strip; `width` rows of value_dim follow.
struct part {
    int64_t seen;
    real max[ATTN_STRIP_LANES], sum[ATTN_STRIP_LANES];
};

enum { PART_HEADER = (sizeof(struct part) + 63) / 64 * 64 };

static int64_t accumulator_bytes(const plan_t *plan)
{
    return plan->width * plan->problem->value_dim * (int64_t)sizeof(real);
}

size_t REAL_NAME(attn_forward_part_bytes)(const plan_t *plan)
{
    return PART_HEADER + (size_t)attn_round_up(accumulator_bytes(plan), 64);
}

// The sequence and a started strip for `rows`; false where there are none.
struct single {
    struct attn_sdpa_sequence sequence;
    struct worker worker;
};

static bool start_single(const plan_t *plan, const struct attn_forward_rows *rows, void *memory,
                         struct single *single)
{
    single->sequence = attn_sdpa_sequence_at(plan->problem, rows->sequence);
    const int64_t available = rows->heads * single->sequence.query_len;
    const int64_t count = attn_min(rows->count, available - rows->first);
    if (count <= 0) {
        return false;
    }
    struct attn_arena arena = {memory, 0};
    take_worker(plan, 1, &arena, &single->worker);
    start_strips(plan, rows, &single->sequence, &single->worker, count);
    return true;
}

void REAL_NAME(attn_forward_segment)(const plan_t *plan, const struct attn_forward_rows *rows,
                                     int64_t segment, void *memory, void *part)
{
    struct part *result = part;
    struct single single;
    result->seen = 0;
    if (!start_single(plan, rows, memory, &single)) {
        return;
    }
    strip_t *strip = single.worker.strips;
    const int64_t keys = plan->key_block * ATTN_SEGMENT_BLOCKS;
    strip->lowest = attn_max(strip->lowest, segment * keys);
    strip->highest = attn_min(strip->highest, (segment + 1) * keys);
    if (strip->lowest < strip->highest) {
        single.worker.scratch.ahead = worth_looking_ahead(plan->problem) ? &single.worker.ahead
                                                                         : NULL;
        const struct attn_key_range range = keys_of(&single.worker, 1);
        look_ahead(plan, &single.sequence, rows, NULL, &single.worker, 1, range);
        walk_keys(plan, &single.sequence, rows, NULL, &single.worker, 1, range);
        result->seen = 1;
        memcpy(result->max, strip->max, sizeof strip->max);
        memcpy(result->sum, strip->sum, sizeof strip->sum);
        memcpy((char *)part + PART_HEADER, strip->accumulator, (size_t)accumulator_bytes(plan));
    }
}

void REAL_NAME(attn_forward_merge)(const plan_t *plan, const struct attn_forward_rows *rows,
                                   int64_t segments, void *memory, const void *parts)
{
    struct single single;
    if (!start_single(plan, rows, memory, &single)) {
        return;
    }
    strip_t *strip = single.worker.strips;
    const size_t bytes = REAL_NAME(attn_forward_part_bytes)(plan);
    for (int64_t s = 0; s < segments; s++) {
        const char *memory_of_part = (const char *)parts + (size_t)s * bytes;
        const struct part *part = (const void *)memory_of_part;
        if (part->seen) {
            open_segment(plan, strip, s);
            memcpy(strip->max, part->max, sizeof strip->max);
            memcpy(strip->sum, part->sum, sizeof strip->sum);
            memcpy(strip->accumulator, memory_of_part + PART_HEADER,
                   (size_t)accumulator_bytes(plan));
        }
    }
    finish_strip(plan, &single.sequence, &single.worker.scratch, strip);
}
