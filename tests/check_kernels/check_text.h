// check_kernels/check_text.h: every kernel of one element type against its definition, or, where that
// leaves room for rounding, against the portable table's bits and a bound.
#include <math.h>
#include <string.h>

#include "attn/random.h"
#include "check_kernels/check.h"
#include "core/half.h"
#include "kernels/real.h"

typedef struct REAL_NAME(attn_kernels) kernels_t;

#if ATTN_REAL_BITS == 32
#define FMA fmaf
typedef uint32_t bits_t;
#else
#define FMA fma
typedef uint64_t bits_t;
#endif
#define HIDDEN R(-0.0)

static bits_t bits_of(real x)
{
    bits_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

// The same bits, where all NaNs count as one.
static bool same(real a, real b)
{
    return bits_of(a) == bits_of(b) || (a != a && b != b);
}

static void fill(struct check *check, real *values, int64_t count, double scale)
{
    for (int64_t i = 0; i < count; i++) {
        values[i] = (real)(check_uniform(check) * scale);
    }
}

static void compare(struct check *check, const char *kernel, const real *actual,
                    const real *expected, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (!same(actual[i], expected[i])) {
            check_failed(check, kernel, "element %lld is %.17g, should be %.17g", (long long)i,
                         (double)actual[i], (double)expected[i]);
            return;
        }
    }
}

#include "check_kernels/check_stored_text.h"

// ---- products -----------------------------------------------------------------------------------

static real tile_element(const struct REAL_NAME(attn_tile) * t, int64_t r, int64_t l, int64_t depth)
{
    real sum = 0;
    if (t->start == ATTN_TILE_ADD) {
        sum = t->c[r * t->c_row + l];
    } else if (t->start == ATTN_TILE_SCALE_ROW) {
        sum = t->c[r * t->c_row + l] * t->factor[r];
    } else if (t->start == ATTN_TILE_LANES) {
        sum = t->factor[l];
    }
    for (int64_t k = 0; k < depth; k++) {
        const real a = t->a[r * t->a_row + k * t->a_depth], b = t->b[k * t->b_depth + l];
        const bool hidden = (t->select == ATTN_TILE_HIDDEN_A && bits_of(a) == bits_of(HIDDEN)) ||
                            (t->select == ATTN_TILE_HIDDEN_B && bits_of(b) == bits_of(HIDDEN));
        sum = hidden ? sum : FMA(a, b, sum);
    }
    return sum;
}

// Hides a third of the operand, and makes the other side NaN somewhere, where that is masked or not.
static void sprinkle(struct check *check, attn_tile_select select, real *a, int64_t a_count,
                     real *b, int64_t b_count)
{
    real *hidden = select == ATTN_TILE_HIDDEN_A ? a : b;
    const int64_t hidden_count = select == ATTN_TILE_HIDDEN_A ? a_count : b_count;
    for (int64_t i = 0; select != ATTN_TILE_ALL && i < hidden_count; i++) {
        hidden[i] = check_random(check) % 3 == 0 ? HIDDEN : hidden[i];
    }
    if (check_random(check) % 4 == 0) {
        a[check_between(check, 0, a_count - 1)] = (real)NAN;
        b[check_between(check, 0, b_count - 1)] = (real)INFINITY;
    }
}

static void check_one_tile(struct check *check, const kernels_t *kernels)
{
    const bool wide = check_random(check) % 8 == 0; // a single row, whose vectors go together
    const int64_t rows = wide ? 1 : check_between(check, 0, 40);
    const int64_t lanes = check_between(check, 0, wide ? 140 : 70);
    const int64_t depth = check_between(check, 0, 40);
    const int64_t layout = wide ? 0 : check_between(check, 0, 2);
    const int64_t a_row = layout == 0 ? 1 : layout == 1 ? depth + 3 : 2 * depth + 1;
    const int64_t a_depth = layout == 0 ? rows + 2 : layout == 1 ? 1 : 2;
    const int64_t b_depth = lanes + check_between(check, 0, 5);
    const int64_t c_row = lanes + check_between(check, 0, 5);
    const int64_t a_count = rows * a_row + depth * a_depth + 1, b_count = depth * b_depth + 1;
    const int64_t c_count = rows * c_row + 1, size = (int64_t)sizeof(real);
    struct guarded a = guarded_take(a_count * size), b = guarded_take(b_count * size);
    struct guarded c = guarded_take(c_count * size), expected = guarded_take(c_count * size);
    struct guarded factor = guarded_take((rows + lanes + 1) * size);
    struct attn_ahead ahead = any_ahead(check);
    struct REAL_NAME(attn_tile) call = {
        .a = a.data,
        .a_row = a_row,
        .a_depth = a_depth,
        .b = b.data,
        .b_depth = b_depth,
        .c = c.data,
        .c_row = c_row,
        .factor = factor.data,
        .start = (attn_tile_start)check_between(check, 0, 3),
        .select = (attn_tile_select)check_between(check, 0, 2),
        .ahead = check_random(check) % 2 ? &ahead : NULL,
    };
    fill(check, a.data, a_count, 2);
    fill(check, b.data, b_count, 2);
    fill(check, c.data, c_count, 2);
    fill(check, factor.data, rows + lanes + 1, 2);
    sprinkle(check, call.select, a.data, a_count, b.data, b_count);
    struct guarded narrow = {0};
    if (a_row == 1 && call.select != ATTN_TILE_HIDDEN_B) {
        call.b_storage = store_narrow(check, b.data, b_count, &narrow);
        call.narrow_b = narrow.data;
    }
    memcpy(expected.data, c.data, (size_t)(c_count * size));
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t l = 0; l < lanes; l++) {
            ((real *)expected.data)[r * c_row + l] = tile_element(&call, r, l, depth);
        }
    }
    if (call.b_storage != ATTN_STORED_REAL) {
        call.b = NULL;
    }
    kernels->tile(&call, rows, lanes, depth);
    compare(check, "tile", c.data, expected.data, c_count);
    guarded_give(check, "tile", &a);
    guarded_give(check, "tile", &b);
    guarded_give(check, "tile", &c);
    guarded_give(check, "tile", &expected);
    guarded_give(check, "tile", &factor);
    if (narrow.data) {
        guarded_give(check, "tile", &narrow);
    }
}

static void check_transpose(struct check *check, const kernels_t *kernels)
{
    const int64_t rows = check_between(check, 0, 40), columns = check_between(check, 0, 40);
    const int64_t source_row = columns + check_between(check, 0, 3);
    const int64_t target_row = rows + check_between(check, 0, 3);
    const int64_t size = (int64_t)sizeof(real);
    struct guarded source = guarded_take((rows * source_row + 1) * size);
    struct guarded target = guarded_take((columns * target_row + 1) * size);
    fill(check, source.data, rows * source_row, 1);
    fill(check, target.data, columns * target_row, 1);
    struct attn_ahead ahead = any_ahead(check);
    const real *from = source.data;
    real *to = target.data;
    const real gap = columns > 0 && target_row > rows ? to[target_row - 1] : 0;
    const real factor = (real)check_between(check, 1, 3);
    const struct REAL_NAME(attn_transpose) turn = {
        .source = from,
        .source_row = source_row,
        .factor = factor,
        .target = to,
        .target_row = target_row,
        .ahead = check_random(check) % 2 ? &ahead : NULL,
    };
    kernels->transpose(&turn, rows, columns);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < columns; c++) {
            if (!same(to[c * target_row + r], from[r * source_row + c] * factor)) {
                check_failed(check, "transpose", "%lld x %lld is wrong at %lld, %lld",
                             (long long)rows, (long long)columns, (long long)r, (long long)c);
            }
        }
    }
    if (columns > 0 && target_row > rows && !same(gap, to[target_row - 1])) {
        check_failed(check, "transpose", "wrote between the rows");
    }
    guarded_give(check, "transpose", &source);
    guarded_give(check, "transpose", &target);
}

// ---- strips -------------------------------------------------------------------------------------

enum { WIDTH = 48, KEYS = 40 };

// One strip and its lanes' statistics, twice: for the table under test and for the portable one.
struct strip {
    real score[KEYS * WIDTH];
    real max[WIDTH], sum[WIDTH], factor[WIDTH], other_max[WIDTH], other_sum[WIDTH];
};

static void fill_strip(struct check *check, struct strip *strip, int64_t keys)
{
    static const double scales[] = {1, 10, 300, 1e6, 1e37};
    const double scale = scales[check_between(check, 0, 4)];
    fill(check, strip->score, keys * WIDTH, scale);
    fill(check, strip->max, WIDTH, scale);
    fill(check, strip->other_max, WIDTH, scale);
    for (int64_t l = 0; l < WIDTH; l++) {
        strip->sum[l] = (real)(1 + fabs(check_uniform(check)));
        strip->other_sum[l] = (real)(1 + fabs(check_uniform(check)));
        strip->factor[l] = 0;
        if (check_random(check) % 3 == 0) {
            strip->max[l] = (real)-INFINITY;
            strip->sum[l] = 0;
        }
        if (check_random(check) % 3 == 0) {
            strip->other_max[l] = (real)-INFINITY;
            strip->other_sum[l] = 0;
        }
    }
    for (int64_t i = 0; i < keys * WIDTH; i++) {
        const uint32_t dice = check_random(check) % 64;
        if (dice < 16) {
            strip->score[i] = (real)-INFINITY;
        } else if (dice == 16) {
            strip->score[i] = (real)NAN;
        }
    }
    const bool zeros = check_random(check) % 4 == 0; // of either sign, and nothing larger
    for (int64_t i = 0; zeros && i < keys * WIDTH; i++) {
        const real sign = check_random(check) % 2 ? R(-0.0) : 0;
        strip->score[i] = check_random(check) % 4 ? -(real)fabs(strip->score[i]) : sign;
    }
}

static struct REAL_NAME(attn_softmax) softmax_call(struct strip *strip, real scale, bool hidden)
{
    return (struct REAL_NAME(attn_softmax)){
        .score = strip->score,
        .row = WIDTH,
        .scale = scale,
        .max = strip->max,
        .sum = strip->sum,
        .factor = strip->factor,
        .hidden = hidden,
    };
}

struct sight {
    real first[WIDTH], stop[WIDTH];
};

// In two cases of three lanes see some of the keys only: neighbours much the same, so that whole vectors
// see nothing of some. Half of these have keys that all see, which are told as they are or as less.
static bool see_some(struct check *check, int64_t keys, struct sight *sight,
                     struct REAL_NAME(attn_softmax) * call)
{
    const uint32_t kind = check_random(check) % 6;
    const int64_t low = kind < 3 ? keys : check_between(check, 0, keys);
    const int64_t high = kind < 3 ? 0 : check_between(check, low, keys);
    int64_t begin = 0, end = keys;
    for (int64_t l = 0; l < WIDTH; l++) {
        const int64_t near = l / 8 * 8 * keys / WIDTH + check_between(check, 0, 2);
        int64_t first = kind % 3 == 1 ? near / 2 : 0, stop = near < keys ? near : keys;
        first = first < low ? first : low;
        stop = stop > high ? stop : high;
        sight->first[l] = (real)first;
        sight->stop[l] = (real)stop;
        begin = begin < first ? first : begin;
        end = end < stop ? end : stop;
    }
    if (kind % 3 == 0) {
        return false;
    }
    const bool less = begin < end && check_random(check) % 2;
    call->first = sight->first;
    call->stop = sight->stop;
    call->visible_begin = begin < end ? begin + less : keys;
    call->visible_end = begin < end ? end : keys;
    return true;
}

static void compare_strips(struct check *check, const char *kernel, const struct strip *actual,
                           const struct strip *expected)
{
    compare(check, kernel, (const real *)(const void *)actual, (const real *)(const void *)expected,
            (int64_t)(sizeof *actual / sizeof(real)));
}

static void check_strips(struct check *check, const kernels_t *kernels, const kernels_t *portable)
{
    struct strip actual, expected;
    const int64_t keys = check_between(check, 0, KEYS);
    const real scale = (real)(fabs(check_uniform(check)) + 0.01);
    const bool hidden = check_random(check) % 2;
    fill_strip(check, &actual, KEYS);
    for (int64_t i = 0; i < KEYS * WIDTH && !hidden;
         i++) { // the caller's word that there is no -inf
        actual.score[i] = actual.score[i] == (real)-INFINITY ? -1 : actual.score[i];
    }
    expected = actual;
    struct REAL_NAME(attn_softmax) a = softmax_call(&actual, scale, hidden);
    struct REAL_NAME(attn_softmax) e = softmax_call(&expected, scale, hidden);
    struct sight sight;
    if (see_some(check, keys, &sight, &a)) { // as where the others are hidden beforehand
        portable->hide_outside(expected.score, WIDTH, keys, WIDTH, sight.first, sight.stop);
        e.hidden = true;
    }
    kernels->softmax(&a, keys, WIDTH);
    portable->softmax(&e, keys, WIDTH);
    compare_strips(check, "softmax", &actual, &expected);
    bool any = false;
    for (int64_t i = 0; i < keys * WIDTH; i++) {
        any = any || bits_of(actual.score[i]) == bits_of(HIDDEN);
    }
    if (kernels->any_hidden(actual.score, WIDTH, keys, WIDTH) != any) {
        check_failed(check, "any_hidden", "says %d of %lld keys", !any, (long long)keys);
    }

    fill_strip(check, &actual, KEYS);
    expected = actual;
    kernels->weights(&a, keys, WIDTH);
    portable->weights(&e, keys, WIDTH);
    compare_strips(check, "weights", &actual, &expected);

    fill_strip(check, &actual, KEYS);
    expected = actual;
    real factors[2][WIDTH];
    const struct REAL_NAME(attn_join) join_a = {actual.max,       actual.sum,    actual.other_max,
                                                actual.other_sum, actual.factor, factors[0]};
    const struct REAL_NAME(attn_join)
        join_e = {expected.max,       expected.sum,    expected.other_max,
                  expected.other_sum, expected.factor, factors[1]};
    kernels->join(&join_a, WIDTH);
    portable->join(&join_e, WIDTH);
    compare_strips(check, "join", &actual, &expected);
    compare(check, "join", factors[0], factors[1], WIDTH);
}

// Against the definition in double: the weights and the sum of one block.
static void check_softmax_value(struct check *check, const kernels_t *kernels)
{
    struct strip strip;
    const int64_t keys = check_between(check, 1, KEYS);
    const double scale = 0.125;
    fill(check, strip.score, KEYS * WIDTH, 50);
    real score[KEYS * WIDTH];
    memcpy(score, strip.score, sizeof score);
    for (int64_t l = 0; l < WIDTH; l++) {
        strip.max[l] = (real)-INFINITY;
        strip.sum[l] = 0;
    }
    const struct REAL_NAME(attn_softmax) call = softmax_call(&strip, (real)scale, false);
    kernels->softmax(&call, keys, WIDTH);
    const double tolerance = ATTN_REAL_BITS == 32 ? 2e-6 : 4e-15;
    for (int64_t l = 0; l < WIDTH; l++) {
        double max = (double)-INFINITY, sum = 0;
        for (int64_t k = 0; k < keys; k++) {
            max = fmax(max, scale * (double)score[k * WIDTH + l]);
        }
        for (int64_t k = 0; k < keys; k++) {
            const double weight = exp(scale * (double)score[k * WIDTH + l] - max);
            sum += weight;
            if (!(fabs((double)strip.score[k * WIDTH + l] - weight) <= tolerance)) {
                check_failed(check, "softmax", "weight %.17g should be %.17g",
                             (double)strip.score[k * WIDTH + l], weight);
            }
        }
        if (!(fabs((double)strip.sum[l] / sum - 1) <= tolerance)) {
            check_failed(check, "softmax", "sum %.17g should be %.17g", (double)strip.sum[l], sum);
        }
    }
}

static void check_adjust(struct check *check, const kernels_t *kernels, const kernels_t *portable)
{
    struct strip actual, expected;
    fill_strip(check, &actual, KEYS);
    expected = actual;
    real bias[KEYS * WIDTH], slope[WIDTH], distance[WIDTH];
    fill(check, bias, KEYS * WIDTH, 3);
    fill(check, slope, WIDTH, 1);
    fill(check, distance, WIDTH, 100);
    bias[check_between(check, 0, KEYS * WIDTH - 1)] = (real)-INFINITY;
    struct REAL_NAME(attn_adjust) call = {
        .score = actual.score,
        .row = WIDTH,
        .scale = (real)0.3,
        .softcap = check_random(check) % 2 ? (real)7 : 0,
        .bias = check_random(check) % 2 ? bias : NULL,
        .bias_row = WIDTH,
        .slope = check_random(check) % 2 ? slope : NULL,
        .distance = distance,
        .first_key = check_between(check, 0, 31),
    };
    const int64_t keys = check_between(check, 0, KEYS);
    kernels->adjust(&call, keys, WIDTH);
    call.score = expected.score;
    portable->adjust(&call, keys, WIDTH);
    compare_strips(check, "adjust", &actual, &expected);

    real begin[WIDTH], end[WIDTH];
    for (int64_t l = 0; l < WIDTH; l++) {
        begin[l] = (real)check_between(check, 0, KEYS);
        end[l] = (real)check_between(check, 0, KEYS);
        for (int64_t k = 0; k < keys; k++) {
            const bool visible = (real)k >= begin[l] && (real)k < end[l];
            expected.score[k * WIDTH + l] = visible ? expected.score[k * WIDTH + l]
                                                    : (real)-INFINITY;
        }
    }
    kernels->hide_outside(actual.score, WIDTH, keys, WIDTH, begin, end);
    compare_strips(check, "hide_outside", &actual, &expected);
}

static void check_dropout(struct check *check, const kernels_t *kernels)
{
    struct strip strip;
    fill(check, strip.score, KEYS * WIDTH, 1);
    for (int64_t i = 0; i < KEYS * WIDTH; i += 3) {
        strip.score[i] = HIDDEN;
    }
    real expected[KEYS * WIDTH];
    uint32_t words[4][WIDTH];
    for (int64_t l = 0; l < 4 * WIDTH; l++) {
        words[l / WIDTH][l % WIDTH] = check_random(check);
    }
    const int64_t keys = check_between(check, 0, KEYS), lanes = check_between(check, 0, WIDTH);
    const struct REAL_NAME(attn_dropout) call = {
        .weight = strip.score,
        .row = WIDTH,
        .first_key = check_between(check, 0, 1) * (INT64_C(1) << 34) + 4,
        .threshold = check_random(check) % 4 == 0 ? UINT64_C(1) << 32 : check_random(check),
        .key_low = words[0],
        .key_high = words[1],
        .row_low = words[2],
        .row_high = words[3],
    };
    memcpy(expected, strip.score, sizeof expected);
    for (int64_t i = 0; i < keys * WIDTH; i++) {
        const int64_t l = i % WIDTH, k = i / WIDTH;
        const uint32_t key[2] = {words[0][l], words[1][l]};
        const int64_t row = (int64_t)((uint64_t)words[3][l] << 32 | words[2][l]);
        const bool kept = attn_philox_word(key, row, call.first_key + k) < call.threshold;
        if (l < lanes && !kept && bits_of(expected[i]) != bits_of(HIDDEN)) {
            expected[i] = 0;
        }
    }
    kernels->dropout(&call, keys, lanes);
    compare(check, "dropout", strip.score, expected, KEYS * WIDTH);
}

// ---- rows ---------------------------------------------------------------------------------------

// Both ways of giving factors; between the rows of the target nothing may be written.
enum { MOST_ROWS_ELEMENTS = 200 };

static void check_scaling(struct check *check, const kernels_t *kernels, const real *from, real *to,
                          int64_t count)
{
    const int64_t row = check_between(check, 1, MOST_ROWS_ELEMENTS), rows = count / row;
    const int64_t columns = check_between(check, 0, row), step = check_between(check, 0, 1);
    real factor[MOST_ROWS_ELEMENTS], expected[MOST_ROWS_ELEMENTS];
    fill(check, factor, MOST_ROWS_ELEMENTS, 1);
    for (int64_t i = 0; i < count; i++) {
        const real x = from[i] == 0 ? 0 : from[i] * factor[i / row * step];
        const bool inside = i / row < rows && i % row < columns;
        expected[i] = !inside ? to[i] : x != x ? (real)NAN : x;
    }
    const struct REAL_NAME(attn_scale) call = {from, row, factor, step, to, row};
    kernels->scale_rows(&call, rows, columns);
    for (int64_t i = 0; i < count; i++) {
        if (bits_of(to[i]) != bits_of(expected[i])) {
            check_failed(check, "scale_rows", "%.17g should be %.17g, to the bit", (double)to[i],
                         (double)expected[i]);
        }
    }
}

// As one row, and as rows of `columns` that follow each other or have gaps.
static void check_finite(struct check *check, const kernels_t *kernels, real *from, int64_t count)
{
    const int64_t columns = check_between(check, 0, count);
    const int64_t row = columns + check_between(check, 0, 3) * (check_random(check) % 2);
    const int64_t rows = row > 0 ? count / row : 0;
    if (!kernels->finite(from, count, count > 0, count) ||
        !kernels->finite(from, row, rows, columns)) {
        check_failed(check, "finite", "calls %lld finite elements something else",
                     (long long)count);
    }
    if (count == 0) {
        return;
    }
    const int64_t at = check_between(check, 0, count - 1);
    const real before = from[at];
    from[at] = (real)(check_random(check) % 2 ? NAN : -INFINITY);
    const bool inside = row > 0 && at / row < rows && at % row < columns;
    if (kernels->finite(from, count, 1, count) ||
        kernels->finite(from, row, rows, columns) == inside) {
        check_failed(check, "finite", "element %lld of %lld x %lld: not seen, or seen in a gap",
                     (long long)at, (long long)rows, (long long)columns);
    }
    from[at] = before;
    from[0] = HIDDEN;
}

static void check_rows(struct check *check, const kernels_t *kernels)
{
    const int64_t count = check_between(check, 0, MOST_ROWS_ELEMENTS);
    const int64_t size = (int64_t)sizeof(real);
    struct guarded source = guarded_take(count * size), target = guarded_take(count * size);
    real *from = source.data, *to = target.data, expected[MOST_ROWS_ELEMENTS];
    const real f = (real)check_uniform(check), g = (real)check_uniform(check);
    fill(check, from, count, 1);
    fill(check, to, count, 1);
    for (int64_t i = 0; i < count; i++) {
        expected[i] = FMA(from[i], g, to[i] * f);
    }
    kernels->merge_row(to, f, from, g, count);
    compare(check, "merge_row", to, expected, count);

    check_finite(check, kernels, from, count);
    check_scaling(check, kernels, from, to, count);
    guarded_give(check, "merge_row", &source);
    guarded_give(check, "merge_row", &target);
}

#include "check_kernels/check_functions_text.h"
#include "check_kernels/check_quads_text.h"
#include "check_kernels/check_small_text.h"

void REAL_NAME(check)(struct check *check)
{
    const kernels_t *kernels = check->table->REAL_TABLE;
    const kernels_t *portable = check->reference->REAL_TABLE;
    for (int n = 0; n < 600; n++) {
        check_one_tile(check, kernels);
        check_transpose(check, kernels);
        check_transpose_narrow(check, kernels);
        check_rows(check, kernels);
    }
    for (int n = 0; n < 100; n++) {
        check_strips(check, kernels, portable);
        check_softmax_value(check, kernels);
        check_adjust(check, kernels, portable);
        check_dropout(check, kernels);
        check_small(check, kernels);
#if ATTN_REAL_BITS == 32
        check_quads(check, kernels);
#endif
    }
    const double most = ATTN_REAL_BITS == 32 ? 88 : 709;
    const struct function functions[] = {
        {"exp", kernels->exp, portable->exp, WIDE(exp), -most, most, 1.3},
        {"log", kernels->log, portable->log, WIDE(log), 0, 1e4, 0.9},
        {"tanh", kernels->tanh, portable->tanh, WIDE(tanh), -10, 10, 1.6},
    };
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        check_function(check, &functions[i]);
    }
    check_specials(check, kernels);
}
