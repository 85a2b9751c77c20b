// sdpa/strip_real.h: strips of one element type; strip.h includes it for float and double.

// What the strips of one call share.
struct ATTN_NAME(attn_strip_plan) {
    const struct attn_sdpa_problem *problem;
    const struct attn_kernels *tables;
    const struct ATTN_NAME(attn_kernels) * kernels;
    attn_dtype dtype;       // of ATTN_REAL
    int64_t key_block;      // keys per block
    int64_t width;          // lanes of a full strip
    ATTN_REAL query_factor; // the query is multiplied by it: sign and power of two of the scale
    bool adjusts;           // softcap, bias, keep, ALiBi, or scale 0
    bool masks_by_element;  // keep or bias: any pair may be masked
    ATTN_REAL scale;        // what is left of the scale, >= 0
    int64_t
        near_keys; // keys and values of so many stay in a second-level cache, with room to spare
};

// Scratch memory of one worker.
struct ATTN_NAME(attn_strip_scratch) {
    ATTN_REAL *score;         // key_block x width
    ATTN_REAL *key;           // key_block x head_dim, where keys are gathered
    ATTN_REAL *value;         // key_block x value_dim
    ATTN_REAL *rows;          // width x max(head_dim, value_dim, key_block), for whatever comes
    ATTN_REAL *bias;          // key_block x width
    struct attn_ahead *ahead; // what the products ask for meanwhile, or NULL
};

// One strip: its rows and how far it got. Lanes from `rows` on repeat the last row's
// visibility, have a query of zeros, and whatever becomes of them goes nowhere.
struct ATTN_NAME(attn_strip) {
    int64_t rows, lanes;          // lanes: rows rounded up to whole vectors
    int64_t lowest, highest;      // keys [lowest, highest) are all that any row may see
    struct attn_key_range by_all; // what all rows see, or empty
    struct attn_key_range by_vector[ATTN_STRIP_MOST_VECTORS]; // what any row of a vector may see
    int64_t segment;  // the open one, -1 where no key was folded in yet
    int64_t segments; // closed ones
    int64_t head[ATTN_STRIP_LANES], row[ATTN_STRIP_LANES];  // in the problem and in the sequence
    int64_t begin[ATTN_STRIP_LANES], end[ATTN_STRIP_LANES]; // visible keys
    ATTN_REAL max[ATTN_STRIP_LANES], sum[ATTN_STRIP_LANES]; // of the open segment
    ATTN_REAL total_max[ATTN_STRIP_LANES], total_sum[ATTN_STRIP_LANES]; // of the closed ones
    ATTN_REAL factor[ATTN_STRIP_LANES];
    uint32_t key_low[ATTN_STRIP_LANES], key_high[ATTN_STRIP_LANES]; // dropout
    uint32_t row_low[ATTN_STRIP_LANES], row_high[ATTN_STRIP_LANES];
    ATTN_REAL *query;       // head_dim x width: the transposed queries
    ATTN_REAL *accumulator; // width x value_dim: of the open segment
    ATTN_REAL *total;       // width x value_dim: of the closed ones
};

// Keys [first, first + count) of one block as rows of reals.
struct ATTN_NAME(attn_rows_view) {
    const ATTN_REAL *data; // of the first; NULL: they are still to be loaded
    int64_t stride;
    const struct attn_sdpa_view *stored; // to be loaded: from element `offset` on
    int64_t offset;
};

void ATTN_NAME(attn_strip_plan_init)(const attn_context *context,
                                     const struct attn_sdpa_problem *problem,
                                     struct ATTN_NAME(attn_strip_plan) * plan);
void ATTN_NAME(attn_strip_scratch_take)(const struct ATTN_NAME(attn_strip_plan) * plan,
                                        struct attn_arena *arena,
                                        struct ATTN_NAME(attn_strip_scratch) * scratch);
void ATTN_NAME(attn_strip_take)(const struct ATTN_NAME(attn_strip_plan) * plan,
                                struct attn_arena *arena, struct ATTN_NAME(attn_strip) * strip);

// Starts a strip whose head[] and row[] are set for `rows` lanes: visibility, transposed queries,
// dropout addresses, empty statistics.
void ATTN_NAME(attn_strip_start)(const struct ATTN_NAME(attn_strip_plan) * plan,
                                 const struct attn_sdpa_sequence *sequence,
                                 const struct ATTN_NAME(attn_strip_scratch) * scratch,
                                 struct ATTN_NAME(attn_strip) * strip);

// Rows [first, first + count) of key, value, query or gradient `view` at (batch, head) as reals: in
// place where they are, else copied to `copy`. `first` counts in the tensor. `dense`: copy rows that
// do not follow each other closely, too.
struct ATTN_NAME(attn_rows_view)
    ATTN_NAME(attn_strip_load_rows)(const struct ATTN_NAME(attn_strip_plan) * plan,
                                    const struct attn_sdpa_view *view, int64_t batch, int64_t head,
                                    int64_t first, int64_t count, int64_t columns, bool dense,
                                    ATTN_REAL *copy);

// The same rows, but those that would be copied are left for attn_strip_load_some: a few rows of
// queries do with a few keys at a time, which stay in the first-level cache.
struct ATTN_NAME(attn_rows_view)
    ATTN_NAME(attn_strip_later_rows)(const struct ATTN_NAME(attn_strip_plan) * plan,
                                     const struct attn_sdpa_view *view, int64_t batch, int64_t head,
                                     int64_t first, int64_t columns);
struct ATTN_NAME(attn_rows_view)
    ATTN_NAME(attn_strip_load_some)(const struct ATTN_NAME(attn_strip_plan) * plan,
                                    struct ATTN_NAME(attn_rows_view) rows, int64_t count,
                                    int64_t columns, ATTN_REAL *copy);

// Not REAL where rows that are still to be loaded can be computed with as they lie.
attn_storage ATTN_NAME(attn_strip_storage)(struct ATTN_NAME(attn_rows_view) rows);

// What follows the first `skip` of them.
static inline struct ATTN_NAME(attn_rows_view)
    ATTN_NAME(attn_strip_rows_from)(struct ATTN_NAME(attn_rows_view) rows, int64_t skip)
{
    if (rows.data) {
        rows.data += skip * rows.stride;
    } else {
        rows.offset += skip * rows.stored->stride[2];
    }
    return rows;
}

// Pairs of a row and a key that it sees among the keys [begin, end).
double ATTN_NAME(attn_strip_pairs)(const struct ATTN_NAME(attn_strip) * strip,
                                   struct attn_key_range keys);

// A block's part for one strip: keys [begin, end) of [block, block + key_block), not empty.
struct ATTN_NAME(attn_strip_block) {
    int64_t begin, end;
    int64_t origin; // begin rounded down to a multiple of 4: the key of the score strip's row 0
    int64_t width;  // of the score strip's rows
    // After attn_strip_scores:
    int64_t visible_begin,
        visible_end; // keys that all lanes see, whole groups; both `end` for none
    bool hidden;     // scores may be -inf for another reason than the shape of the mask
};

// Some lanes see less than others, or the score strip starts before the part.
static inline bool ATTN_NAME(attn_strip_is_ragged)(const struct ATTN_NAME(attn_strip_block) * part)
{
    return part->visible_begin != part->origin || part->visible_end != part->end;
}

// Intersects a block with what the strip sees; false where nothing is left.
bool ATTN_NAME(attn_strip_meets)(const struct ATTN_NAME(attn_strip_plan) * plan,
                                 const struct ATTN_NAME(attn_strip) * strip, int64_t block,
                                 struct ATTN_NAME(attn_strip_block) * part);

// scratch->score becomes the part's scores before the softmax, -inf where keep or bias mask. What the shape
// of the mask hides is anything, until attn_strip_hide, or the softmax by what attn_strip_sees gives, hides
// it. `key` views the part's first key.
void ATTN_NAME(attn_strip_scores)(const struct ATTN_NAME(attn_strip_plan) * plan,
                                  const struct attn_sdpa_sequence *sequence,
                                  const struct ATTN_NAME(attn_strip_scratch) * scratch,
                                  const struct ATTN_NAME(attn_strip) * strip,
                                  struct ATTN_NAME(attn_rows_view) key,
                                  struct ATTN_NAME(attn_strip_block) * part);

// The keys that each lane sees, counted from part->origin.
void ATTN_NAME(attn_strip_lane_ranges)(const struct ATTN_NAME(attn_strip) * strip,
                                       const struct ATTN_NAME(attn_strip_block) * part,
                                       ATTN_REAL *first, ATTN_REAL *stop);

// Scores of all other keys become -inf.
void ATTN_NAME(attn_strip_hide)(const struct ATTN_NAME(attn_strip_plan) * plan,
                                const struct ATTN_NAME(attn_strip_scratch) * scratch,
                                const struct ATTN_NAME(attn_strip) * strip,
                                struct ATTN_NAME(attn_strip_block) * part);

// True where keys take the lanes, since the rows would leave most of them idle.
bool ATTN_NAME(attn_strip_is_few)(const struct ATTN_NAME(attn_strip_plan) * plan,
                                  const struct ATTN_NAME(attn_strip) * strip);

// Of `keys` keys, two vectors' or more, how many to take at once.
int64_t ATTN_NAME(attn_strip_few_keys)(const struct ATTN_NAME(attn_strip_plan) * plan,
                                       const struct ATTN_NAME(attn_strip) * strip,
                                       struct ATTN_NAME(attn_rows_view) key, int64_t keys);

// The scores of the first so many keys, (rows, keys), in scratch->rows.
ATTN_REAL *ATTN_NAME(attn_strip_few_scores)(const struct ATTN_NAME(attn_strip_plan) * plan,
                                            const struct ATTN_NAME(attn_strip_scratch) * scratch,
                                            const struct ATTN_NAME(attn_strip) * strip,
                                            struct ATTN_NAME(attn_rows_view) key, int64_t keys);

// Sets dropped weights of the part's strip to 0.
void ATTN_NAME(attn_strip_drop)(const struct ATTN_NAME(attn_strip_plan) * plan,
                                const struct attn_sdpa_sequence *sequence,
                                const struct ATTN_NAME(attn_strip_scratch) * scratch,
                                const struct ATTN_NAME(attn_strip) * strip,
                                const struct ATTN_NAME(attn_strip_block) * part);
