// check_kernels/check_quads_text.h: few rows, key by key, against the softmax of a strip, bit for bit; for
// one element type, included by check_text.h.

#if ATTN_REAL_BITS == 32
enum { QUADS_SLACK = 5 };

// score: (rows, keys), row by row -> quads, of which the strip has the same in its first lanes
static void check_layout(struct check *check, const kernels_t *kernels, const struct strip *strip,
                         int64_t rows, int64_t keys, real *quads)
{
    const int64_t row = keys + check_between(check, 0, QUADS_SLACK);
    struct guarded scores = guarded_take(rows * row * (int64_t)sizeof(real));
    real *const of = scores.data;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t k = 0; k < keys; k++) {
            of[r * row + k] = strip->score[k * WIDTH + r];
        }
    }
    kernels->to_quads(of, row, rows, keys, quads);
    for (int64_t k = 0; k < keys; k++) {
        for (int64_t r = 0; r < ATTN_QUAD; r++) {
            if (!same(quads[k * ATTN_QUAD + r], r < rows ? strip->score[k * WIDTH + r] : 0)) {
                check_failed(check, "quads", "%lld x %lld is wrong at %lld, %lld", (long long)rows,
                             (long long)keys, (long long)r, (long long)k);
            }
        }
    }
    guarded_give(check, "quads", &scores);
}

static void check_quads(struct check *check, const kernels_t *kernels)
{
    struct strip strip;
    const int64_t vector = kernels->vector_lanes;
    const int64_t rows = check_between(check, 1, ATTN_QUAD);
    const int64_t keys = check_between(check, 1, KEYS / vector) * vector;
    const real scale = (real)(fabs(check_uniform(check)) + 0.01);
    const bool hidden = check_random(check) % 2;
    fill_strip(check, &strip, KEYS);
    for (int64_t i = 0; i < KEYS * WIDTH; i++) {
        const bool none = strip.score[i] == (real)-INFINITY;
        strip.score[i] = none && !hidden                ? -1
                         : check_random(check) % 8 == 0 ? R(0.0) * strip.score[i]
                                                        : strip.score[i];
    }
    struct guarded quads = guarded_take(keys * ATTN_QUAD * (int64_t)sizeof(real));
    check_layout(check, kernels, &strip, rows, keys, quads.data);
    real max[ATTN_QUAD], sum[ATTN_QUAD], factor[ATTN_QUAD];
    memcpy(max, strip.max, sizeof max);
    memcpy(sum, strip.sum, sizeof sum);
    const struct REAL_NAME(attn_softmax) call = {.score = quads.data,
                                                 .row = ATTN_QUAD,
                                                 .scale = scale,
                                                 .max = max,
                                                 .sum = sum,
                                                 .factor = factor,
                                                 .hidden = hidden};
    const struct REAL_NAME(attn_softmax) usual = softmax_call(&strip, scale, hidden);
    kernels->softmax_quads(&call, keys);
    kernels->softmax(&usual, keys, WIDTH);
    for (int64_t r = 0; r < rows; r++) {
        bool equal = same(max[r], strip.max[r]) && same(sum[r], strip.sum[r]) &&
                     same(factor[r], strip.factor[r]);
        for (int64_t k = 0; k < keys; k++) {
            equal = equal &&
                    same(((real *)quads.data)[k * ATTN_QUAD + r], strip.score[k * WIDTH + r]);
        }
        if (!equal) {
            check_failed(check, "softmax_quads", "row %lld of %lld, %lld keys: not as a strip's",
                         (long long)r, (long long)rows, (long long)keys);
        }
    }
    guarded_give(check, "softmax_quads", &quads);
}
#endif
