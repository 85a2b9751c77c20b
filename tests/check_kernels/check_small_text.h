// check_kernels/check_small_text.h: the kernel `small` against the table's own kernels in their usual
// order, bit for bit; for one element type, included by check_text.h.

enum { SMALL_LANES = 48 }; // a multiple of every vector

struct small_case {
    int64_t rows, keys, head_dim, value_dim, lanes;
    real query[SMALL_LANES * ATTN_SMALL_DIM], key[ATTN_SMALL_KEYS * ATTN_SMALL_DIM];
    real value[ATTN_SMALL_KEYS * ATTN_SMALL_DIM];
    real begin[SMALL_LANES], end[SMALL_LANES];
};

static void small_inputs(struct check *check, const kernels_t *kernels, struct small_case *s)
{
    const double scale = check_random(check) % 4 == 0 ? 1e18 : 1;
    s->lanes = kernels->vector_lanes;
    s->rows = check_between(check, 1, s->lanes);
    s->keys = check_between(check, 0, ATTN_SMALL_KEYS);
    s->head_dim = check_between(check, 0, ATTN_SMALL_DIM);
    s->value_dim = check_between(check, 1, ATTN_SMALL_DIM);
    fill(check, s->query, SMALL_LANES * ATTN_SMALL_DIM, scale);
    fill(check, s->key, ATTN_SMALL_KEYS * ATTN_SMALL_DIM, scale);
    fill(check, s->value, ATTN_SMALL_KEYS * ATTN_SMALL_DIM, 1);
    if (check_random(check) % 4 == 0) {
        s->key[check_between(check, 0, ATTN_SMALL_KEYS)] = (real)NAN;
        s->value[check_between(check, 0, ATTN_SMALL_KEYS)] = (real)INFINITY;
    }
    for (int64_t l = 0; l < SMALL_LANES; l++) {
        const int64_t begin = check_between(check, 0, s->keys);
        s->begin[l] = (real)begin;
        s->end[l] = (real)check_between(check, begin, s->keys);
    }
}

// transpose, tile, hide_outside, softmax, tile, scale_rows.
static void small_by_steps(const kernels_t *kernels, const struct small_case *s, real factor,
                           real scale, int64_t skipped, real *output, real *max, real *sum)
{
    const int64_t lanes = s->lanes, keys = s->keys;
    real query[ATTN_SMALL_DIM * SMALL_LANES] = {0}, share[SMALL_LANES], unused[SMALL_LANES];
    real score[(ATTN_SMALL_KEYS + 4) * SMALL_LANES];
    const struct REAL_NAME(attn_transpose) turn = {.source = s->query,
                                                   .source_row = s->head_dim,
                                                   .factor = factor,
                                                   .target = query,
                                                   .target_row = lanes};
    kernels->transpose(&turn, s->rows, s->head_dim);
    for (int64_t i = 0; i < skipped * lanes; i++) {
        score[i] = (real)-INFINITY;
    }
    const struct REAL_NAME(attn_tile) scores = {.a = s->key,
                                                .a_row = s->head_dim,
                                                .a_depth = 1,
                                                .b = query,
                                                .b_depth = lanes,
                                                .c = score + skipped * lanes,
                                                .c_row = lanes};
    kernels->tile(&scores, keys, lanes, s->head_dim);
    kernels->hide_outside(score + skipped * lanes, lanes, keys, lanes, s->begin, s->end);
    for (int64_t l = 0; l < lanes; l++) {
        max[l] = (real)-INFINITY;
        sum[l] = 0;
    }
    const struct REAL_NAME(attn_softmax) strip = {.score = score,
                                                  .row = lanes,
                                                  .scale = scale,
                                                  .max = max,
                                                  .sum = sum,
                                                  .factor = unused,
                                                  .hidden = true};
    kernels->softmax(&strip, skipped + keys, lanes);
    const struct REAL_NAME(attn_tile) values = {.a = score + skipped * lanes,
                                                .a_row = 1,
                                                .a_depth = lanes,
                                                .b = s->value,
                                                .b_depth = s->value_dim,
                                                .c = output,
                                                .c_row = s->value_dim,
                                                .select = ATTN_TILE_HIDDEN_A};
    kernels->tile(&values, s->rows, s->value_dim, keys);
    for (int64_t l = 0; l < s->rows; l++) {
        share[l] = sum[l] == 0 ? 0 : 1 / sum[l];
    }
    const struct REAL_NAME(attn_scale)
        scaled = {output, s->value_dim, share, 1, output, s->value_dim};
    kernels->scale_rows(&scaled, s->rows, s->value_dim);
}

static void check_small(struct check *check, const kernels_t *kernels)
{
    struct small_case s;
    small_inputs(check, kernels, &s);
    const int64_t count = s.rows * s.value_dim;
    const real factor = (real)(check_random(check) % 2 ? 0.25 : -0.5);
    const real scale = (real)(fabs(check_uniform(check)) + 0.01);
    const int64_t skipped = check_between(check, 0, 3);
    real expected[SMALL_LANES * ATTN_SMALL_DIM], max[2][SMALL_LANES], sum[2][SMALL_LANES];
    small_by_steps(kernels, &s, factor, scale, skipped, expected, max[0], sum[0]);

    struct guarded output = guarded_take(count * (int64_t)sizeof(real));
    const struct REAL_NAME(attn_small) call = {
        .query = s.query,
        .key = s.key,
        .value = s.value,
        .query_row = s.head_dim,
        .key_row = s.head_dim,
        .value_row = s.value_dim,
        .output = output.data,
        .output_row = s.value_dim,
        .head_dim = s.head_dim,
        .value_dim = s.value_dim,
        .query_factor = factor,
        .scale = scale,
        .begin = s.begin,
        .end = s.end,
        .skipped = skipped,
        .max = max[1],
        .sum = sum[1],
    };
    kernels->small(&call, s.rows, s.keys);
    compare(check, "small: output", output.data, expected, count);
    compare(check, "small: max", max[1], max[0], s.rows);
    compare(check, "small: sum", sum[1], sum[0], s.rows);
    guarded_give(check, "small", &output);
}
