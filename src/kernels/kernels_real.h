// kernels/kernels_real.h: the kernels of one element type; kernels.h includes it for float and double.

// One rows x lanes product with a chain over depth:
//   c[r*c_row + l] = start(r, l); for k ascending: fma(a[r*a_row + k*a_depth], b[k*b_depth + l], .)
// a is read one element at a time, b and c in vectors along the lanes. b and c need no alignment;
// lanes beyond `lanes` are neither read nor written. c must not overlap a, b or factor. A depth of 0
// leaves the start values in c.
struct ATTN_NAME(attn_tile) {
    const ATTN_REAL *a;
    int64_t a_row, a_depth;
    const ATTN_REAL *b;
    int64_t b_depth;
    ATTN_REAL *c;
    int64_t c_row;
    const ATTN_REAL *factor; // (rows) for SCALE_ROW, (lanes) for LANES
    attn_tile_start start;
    attn_tile_select select;
    struct attn_ahead *ahead; // asked for meanwhile, in proportion to the work; or NULL
    // Where b_storage is not REAL, b is here; for few rows, a_row 1, and not HIDDEN_B.
    const uint16_t *narrow_b;
    attn_storage b_storage;
};

// target[c*target_row + r] = source[r*source_row + c] * factor
struct ATTN_NAME(attn_transpose) {
    const ATTN_REAL *source;
    int64_t source_row;
    ATTN_REAL factor;
    ATTN_REAL *target;
    int64_t target_row;
    struct attn_ahead *ahead; // asked for meanwhile, as much as is read; or NULL
};

// A strip of scores and what is known about its lanes. Sums and maxima have one entry per lane.
struct ATTN_NAME(attn_softmax) {
    ATTN_REAL *score; // keys x lanes: score[k*row + lane]; becomes the weights
    int64_t row;
    ATTN_REAL scale; // >= 0: the natural score is scale * score
    ATTN_REAL *max;  // natural
    ATTN_REAL *sum;
    // For softmax only:
    ATTN_REAL *factor;
    bool hidden; // the strip may hold -inf; such a weight becomes ATTN_HIDDEN
    // Per lane the keys that it sees, of [0, keys); the others' scores do not count, whatever they are, and
    // their weights become ATTN_HIDDEN. All lanes see at least [visible_begin, visible_end). NULL: every
    // lane sees all keys, and visible_* are not looked at.
    const ATTN_REAL *first, *stop;
    int64_t visible_begin, visible_end;
};

// Two (max, sum) per lane, of disjoint sets of keys; the first becomes that of their union.
struct ATTN_NAME(attn_join) {
    ATTN_REAL *max, *sum;
    const ATTN_REAL *part_max, *part_sum;
    ATTN_REAL *factor, *part_factor; // what accumulators under either max are multiplied by
};

// Dropout by position: weight (lane, k) is kept when word first_key + k of the lane's row and head
// key (attn_philox_word) is below the threshold. The per-lane arrays are readable in multiples of 16.
struct ATTN_NAME(attn_dropout) {
    ATTN_REAL *weight;
    int64_t row;
    int64_t first_key;
    uint64_t threshold;
    const uint32_t *key_low, *key_high; // head key
    const uint32_t *row_low, *row_high; // row number
};

// score = scale * score; softcap * tanh(score / softcap) where softcap > 0; + bias; + slope *
// (distance + (first_key + k)). A bias of -inf gives -inf, whatever the rest is.
struct ATTN_NAME(attn_adjust) {
    ATTN_REAL *score;
    int64_t row;
    ATTN_REAL scale, softcap;
    const ATTN_REAL *bias; // keys x lanes, or NULL
    int64_t bias_row;
    const ATTN_REAL *slope; // per lane, or NULL
    const ATTN_REAL *distance;
    int64_t first_key;
};

// One block of the backward: gradients of weights become gradients of scores.
struct ATTN_NAME(attn_gradient) {
    const ATTN_REAL *weight; // keys x lanes, before dropout; hidden where masked
    const ATTN_REAL *kept;   // the same after dropout, or NULL
    const ATTN_REAL *slope;  // keys x lanes: of the softcap, or NULL
    const ATTN_REAL *delta;  // per lane
    ATTN_REAL *gradient;     // keys x lanes: in place
    int64_t row;             // of all of them
};

// target[r*target_row + c] = source[r*source_row + c] * factor[r*factor_step]. target may be source.
struct ATTN_NAME(attn_scale) {
    const ATTN_REAL *source;
    int64_t source_row;
    const ATTN_REAL *factor;
    int64_t factor_step; // 0: one factor for all rows
    ATTN_REAL *target;
    int64_t target_row;
};

// A head's rows (at most vector_lanes) over few keys, all of its attention: at most ATTN_SMALL_KEYS keys
// and ATTN_SMALL_DIM dimensions. Lane l sees keys begin[l] <= k < end[l]; without any its row is 0, its
// max -inf and its sum 0. begin, end, max and sum are whole vectors.
struct ATTN_NAME(attn_small) {
    const ATTN_REAL *query, *key, *value; // (rows, head_dim), (keys, head_dim), (keys, value_dim)
    int64_t query_row, key_row, value_row;
    ATTN_REAL *output; // (rows, value_dim)
    int64_t output_row;
    int64_t head_dim, value_dim;
    ATTN_REAL query_factor, scale; // the natural score is scale * ((query_factor * query) . key)
    const ATTN_REAL *begin, *end;
    int64_t skipped; // keys that come before in the group of four whose sums belong together
    ATTN_REAL *max, *sum;
};

struct ATTN_NAME(attn_kernels) {
    // The register tile at its best: tile_rows x tile_lanes for products whose lanes are many. Other
    // sizes are right, and fastest in multiples of vector_lanes.
    int32_t vector_lanes;
    int32_t tile_rows;
    int32_t tile_lanes;
    void (*tile)(const struct ATTN_NAME(attn_tile) * tile, int64_t rows, int64_t lanes,
                 int64_t depth);

    // rows and columns: of source.
    void (*transpose)(const struct ATTN_NAME(attn_transpose) * transpose, int64_t rows,
                      int64_t columns);

    // NULL in float64's tables.
    void (*transpose_narrow)(const struct attn_transpose_narrow *transpose, int64_t rows,
                             int64_t columns);

    // Strips: `lanes` is a multiple of vector_lanes.
    // softmax folds a strip into (max, sum): max becomes the larger, score exp(natural - max), factor
    // exp(old max - max), sum its old value times factor plus the strip's. A NaN score leaves max
    // alone and makes weight and sum NaN.
    void (*softmax)(const struct ATTN_NAME(attn_softmax) * strip, int64_t keys, int64_t lanes);
    // The same of up to ATTN_QUAD rows that lie key by key, score[ATTN_QUAD k + row], for keys in multiples
    // of 4. All ATTN_QUAD entries of max, sum and factor are read and written; row, first, stop and
    // visible_* are not looked at. NULL in float64's tables, as the next one.
    void (*softmax_quads)(const struct ATTN_NAME(attn_softmax) * quads, int64_t keys);
    // Scores (rows, keys), keys a multiple of vector_lanes, key by key; rows that are missing are 0.
    void (*to_quads)(const ATTN_REAL *scores, int64_t scores_row, int64_t rows, int64_t keys,
                     ATTN_REAL *quads);
    // The final weights exp(natural - max) / sum; -inf becomes ATTN_HIDDEN. A sum of 0 gives 0.
    void (*weights)(const struct ATTN_NAME(attn_softmax) * strip, int64_t keys, int64_t lanes);
    void (*join)(const struct ATTN_NAME(attn_join) * stats, int64_t lanes);
    // Weights that are not kept become +0; hidden ones stay hidden. `lanes` is free.
    void (*dropout)(const struct ATTN_NAME(attn_dropout) * strip, int64_t keys, int64_t lanes);
    void (*adjust)(const struct ATTN_NAME(attn_adjust) * strip, int64_t keys, int64_t lanes);
    // -inf where not begin[lane] <= k < end[lane].
    void (*hide_outside)(ATTN_REAL *score, int64_t row, int64_t keys, int64_t lanes,
                         const ATTN_REAL *begin, const ATTN_REAL *end);

    void (*small)(const struct ATTN_NAME(attn_small) * head, int64_t rows, int64_t keys);

    // Per weight: weight * (gradient - delta) * slope, hidden where the weight is and never -0 elsewhere;
    // a gradient whose weight was dropped (kept is 0) counts as 0, or NaN where it is not finite.
    void (*score_gradient)(const struct ATTN_NAME(attn_gradient) * strip, int64_t keys,
                           int64_t lanes);
    // sums[lane] = fma(weight, gradient, .) over keys ascending, from what it holds, with the same
    // gradients; hidden weights are left out.
    void (*gradient_sums)(const struct ATTN_NAME(attn_gradient) * strip, ATTN_REAL *sums,
                          int64_t keys, int64_t lanes);
    // Capped scores become the softcap's slopes 1 - (capped / cap)^2.
    void (*cap_slope)(ATTN_REAL *capped, int64_t row, ATTN_REAL cap, int64_t keys, int64_t lanes);
    // dots[lane] = sum over i of a[i*row + lane] * b[i*row + lane], ascending.
    void (*lane_dots)(const ATTN_REAL *a, const ATTN_REAL *b, int64_t row, int64_t count,
                      ATTN_REAL *dots, int64_t lanes);

    // True where a strip of weights holds ATTN_HIDDEN.
    bool (*any_hidden)(const ATTN_REAL *weight, int64_t row, int64_t keys, int64_t lanes);
    // True where rows x columns elements hold neither NaN nor infinity.
    bool (*finite)(const ATTN_REAL *source, int64_t source_row, int64_t rows, int64_t columns);
    // Every NaN becomes the same one, a zero +0.
    void (*scale_rows)(const struct ATTN_NAME(attn_scale) * scale, int64_t rows, int64_t columns);
    // total = fma(part, part_factor, total * total_factor)
    void (*merge_row)(ATTN_REAL *total, ATTN_REAL total_factor, const ATTN_REAL *part,
                      ATTN_REAL part_factor, int64_t count);

    // Element by element; source may be target. exp and log take and give every value as the C
    // functions do, except that subnormal results (exp) and arguments (log) are not kept.
    void (*exp)(const ATTN_REAL *source, ATTN_REAL *target, int64_t count);
    void (*log)(const ATTN_REAL *source, ATTN_REAL *target, int64_t count);
    void (*tanh)(const ATTN_REAL *source, ATTN_REAL *target, int64_t count);
};
