// The backward's kernels of every table against plain loops, for one element type; the including file
// defines ATTN_REAL_BITS. Each table gives the loops' bits, also the one that no context chooses
// (512-bit text over pairs of 256-bit vectors).
#include <math.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/real.h"
#include "support/tensors.h"
#include "support/unit.h"

#if ATTN_REAL_BITS == 32
#define FMA fmaf
#else
#define FMA fma
#endif

enum { KEYS = 37, ROW = 48, SIZE = KEYS * ROW };

struct strip {
    real weight[SIZE], kept[SIZE], slope[SIZE], gradient[SIZE], delta[ROW], sums[ROW];
};

// NaN differ by instruction set.
static bool same(real a, real b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

static bool is_hidden(real weight)
{
    return weight == 0 && signbit(weight) != 0;
}

// Some weights are hidden (and what meets them is NaN), some dropped (and what meets a few of them is
// infinite), some slopes 0.
static void fill(struct strip *s, uint64_t *random)
{
    for (int i = 0; i < SIZE; i++) {
        s->weight[i] = (real)test_random_uniform(random);
        s->kept[i] = test_random_below(random, 4) == 0 ? 0 : s->weight[i];
        s->slope[i] = (real)test_random_uniform(random);
        s->gradient[i] = (real)test_random_normal(random);
        if (test_random_below(random, 9) == 0) {
            s->slope[i] = 0;
        }
        if (s->kept[i] == 0 && test_random_below(random, 40) == 0) {
            s->gradient[i] = (real)INFINITY;
        }
        if (test_random_below(random, 5) == 0) {
            s->weight[i] = s->kept[i] = R(-0.0);
            s->gradient[i] = (real)NAN;
        }
    }
    for (int l = 0; l < ROW; l++) {
        s->delta[l] = (real)test_random_normal(random);
        s->sums[l] = (real)test_random_normal(random);
    }
}

// The loops' results, in place.
static void plain(struct strip *s, bool drops, bool slopes, int64_t lanes)
{
    for (int64_t l = 0; l < lanes; l++) {
        for (int64_t i = l; i < SIZE; i += ROW) {
            const real weight = s->weight[i];
            const bool dropped = drops && s->kept[i] == 0;
            if (is_hidden(weight)) {
                s->gradient[i] = weight;
                continue;
            }
            const real of_weight = dropped ? s->gradient[i] * 0 : s->gradient[i];
            s->sums[l] = FMA(weight, of_weight, s->sums[l]);
            const real of_score = weight * (of_weight - s->delta[l]);
            s->gradient[i] = (slopes ? of_score * s->slope[i] : of_score) + 0;
        }
    }
}

static void check(const struct REAL_NAME(attn_kernels) * kernels, bool drops, bool slopes,
                  int64_t lanes, uint64_t seed)
{
    static struct strip s, expected;
    fill(&s, &seed);
    expected = s;
    plain(&expected, drops, slopes, lanes);
    const struct REAL_NAME(attn_gradient) call = {
        .weight = s.weight,
        .kept = drops ? s.kept : NULL,
        .slope = slopes ? s.slope : NULL,
        .delta = s.delta,
        .gradient = s.gradient,
        .row = ROW,
    };
    kernels->gradient_sums(&call, s.sums, KEYS, lanes);
    kernels->score_gradient(&call, KEYS, lanes);
    for (int l = 0; l < ROW; l++) {
        assert_true(same(s.sums[l], expected.sums[l]));
    }
    for (int i = 0; i < SIZE; i++) { // lanes beyond are NaN in places
        assert_true(same(s.gradient[i], expected.gradient[i]));
    }
}

static void gradients(void **state)
{
    (void)state;
    assert_true(attn_kernels_count() >= 1);
    for (int32_t n = 0; n < attn_kernels_count(); n++) {
        const struct REAL_NAME(attn_kernels) *kernels = attn_kernels_at(n)->REAL_TABLE;
        for (int64_t lanes = kernels->vector_lanes; lanes <= ROW; lanes += kernels->vector_lanes) {
            for (int options = 0; options < 4; options++) {
                check(kernels, options % 2 != 0, options >= 2, lanes, (uint64_t)(7 + lanes));
            }
        }
    }
}

// Slopes of the softcap and dot products by lane.
static void slopes_and_dots(void **state)
{
    (void)state;
    static struct strip s, expected;
    uint64_t random = 5;
    for (int32_t n = 0; n < attn_kernels_count(); n++) {
        const struct REAL_NAME(attn_kernels) *kernels = attn_kernels_at(n)->REAL_TABLE;
        const int64_t lanes = kernels->vector_lanes;
        fill(&s, &random);
        expected = s;
        memset(expected.sums, 0, (size_t)lanes * sizeof(real));
        for (int64_t i = 0; i < SIZE; i++) {
            if (i % ROW < lanes) {
                const real t = s.slope[i] / 3, a = s.slope[i], b = s.kept[i];
                expected.sums[i % ROW] = FMA(a, b, expected.sums[i % ROW]);
                expected.slope[i] = (1 - t) * (1 + t);
            }
        }
        kernels->lane_dots(s.slope, s.kept, ROW, KEYS, s.sums, lanes);
        kernels->cap_slope(s.slope, ROW, 3, KEYS, lanes);
        assert_memory_equal(s.sums, expected.sums, sizeof s.sums);
        assert_memory_equal(s.slope, expected.slope, sizeof s.slope);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients),
        cmocka_unit_test(slopes_and_dots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
