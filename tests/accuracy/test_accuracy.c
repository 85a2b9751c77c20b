// Random problems over the whole option space: the public call against the float64 reference, beside
// a plain float32 kernel.
//
//   test_accuracy [--draws N] [--seed S]
//
// Draw k of a run uses seed S + k, which decides everything, so that a draw that fails is replayed by
// `--draws 1 --seed <its seed>`. Errors are relative to the largest element of their quantity, or to a
// size that is natural for it where all elements are small.
//
// Two judgements. Each draw: where the reference has an infinity or a NaN so has the call, and the
// largest error is within a small multiple of the plain kernel's. The run as a whole: for every
// quantity and storage type, largest and RMS error are no worse than the plain kernel's, up to what
// chance does to kernels that are equally good: a quarter of the RMS error, half of the largest.
// row_max and row_sum have a meaning together only (a factor may move between exp(max) and the sum):
// they are judged as lse. float64 has no plain kernel here; it has bounds of its own.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "options.h"
#include "plain.h"
#include "support/status.h"
#include "support/unit.h"

// ---- errors -------------------------------------------------------------------------------------

struct errors {
    double largest, squares; // relative to the quantity's largest element
    int64_t count;
    bool misplaced; // a NaN or an infinity where there is none, or the other way round
};

struct measuring {
    const attn_tensor *actual;
    struct errors *errors;
    double scale;
};

static void find_scale(void *state, const attn_tensor *expected, const int64_t *index)
{
    struct measuring *m = state;
    const double value = fabs(test_at(expected, index[0], index[1], index[2], index[3]));
    m->scale = isfinite(value) && value > m->scale ? value : m->scale;
}

static void measure_element(void *state, const attn_tensor *expected, const int64_t *index)
{
    struct measuring *m = state;
    const double e = test_at(expected, index[0], index[1], index[2], index[3]);
    const double a = test_at(m->actual, index[0], index[1], index[2], index[3]);
    if (!isfinite(e) || !isfinite(a)) {
        m->errors->misplaced = m->errors->misplaced || !(a == e || (isnan(a) && isnan(e)));
        return;
    }
    const double error = a == e ? 0.0 : fabs(a - e) / m->scale;
    m->errors->largest = fmax(m->errors->largest, error);
    m->errors->squares += error * error;
    m->errors->count++;
}

// Scores and their log-sum-exp matter by their differences, where 1 is much. A gradient is a sum of
// terms of about 1, however far they cancel.
static double natural_size(enum attention_result result)
{
    const bool of_rows = result == ATTENTION_OUTPUT || result == ATTENTION_ROW_SUM ||
                         result == ATTENTION_WEIGHTS || result == ATTENTION_KEY_SUMS;
    return of_rows ? 0x1p-20 : 1.0;
}

static struct errors measure(const struct attention_results *actual,
                             const struct attention_results *expected, enum attention_result result)
{
    struct errors errors = {.largest = 0.0};
    struct measuring m = {&actual->of[result], &errors, natural_size(result)};
    test_for_each(&expected->of[result], find_scale, &m);
    test_for_each(&expected->of[result], measure_element, &m);
    return errors;
}

static void add(struct errors *total, const struct errors *draw)
{
    total->largest = fmax(total->largest, draw->largest);
    total->squares += draw->squares;
    total->count += draw->count;
}

static double rms(const struct errors *errors)
{
    return errors->count > 0 ? sqrt(errors->squares / (double)errors->count) : 0.0;
}

// ---- draws --------------------------------------------------------------------------------------

enum { DTYPES = 4 };

struct report {
    struct errors engine[ATTENTION_RESULT_COUNT][DTYPES], plain[ATTENTION_RESULT_COUNT][DTYPES];
    int draws, failed;
};

// What a draw may be off where the plain kernel happens to be exact.
static const double floors[DTYPES] = {2e-6, 1e-10, 2e-3, 1.6e-2};

static void forward_only(struct attention_results *r)
{
    for (int n = ATTENTION_FORWARD_COUNT; n < ATTENTION_RESULT_COUNT; n++) {
        r->present[n] = false;
    }
}

static bool judge_draw(struct report *report, const struct attention_results *engine,
                       const struct attention_results *plain,
                       const struct attention_results *reference, int dtype)
{
    bool good = true;
    for (int n = 0; n < ATTENTION_RESULT_COUNT; n++) {
        if (!reference->present[n]) {
            continue;
        }
        const struct errors of_engine = measure(engine, reference, (enum attention_result)n);
        struct errors of_plain = {.largest = 0.0};
        if (dtype != 1) {
            of_plain = measure(plain, reference, (enum attention_result)n);
        }
        add(&report->engine[n][dtype], &of_engine);
        add(&report->plain[n][dtype], &of_plain);
        const double floor = n == ATTENTION_ROW_SUM && dtype != 1 ? 1e-4 : floors[dtype];
        const double bound = 8.0 * of_plain.largest + floor;
        if (of_engine.misplaced || !(of_engine.largest <= bound)) {
            printf("%s: largest error %.3g (plain kernel %.3g, bound %.3g)%s\n",
                   attention_result_names[n], of_engine.largest, of_plain.largest, bound,
                   of_engine.misplaced ? ", or an infinity or a NaN out of place" : "");
            good = false;
        }
    }
    return good;
}

static void run_draw(const attn_context *context, const struct option_row *row, uint64_t seed,
                     struct report *report)
{
    struct attention a;
    struct attention_results engine, plain, reference;
    draw_begin(&a, row, seed);
    const bool backward = row->level[FACTOR_PASS] == 1;
    const int dtype = row->level[FACTOR_DTYPE];
    struct attention_results *const all[] = {&engine, &plain, &reference};
    for (int n = 0; n < 3; n++) {
        attention_results_begin(all[n], &a, n == 2 ? ATTN_F64 : ATTN_DTYPE_NONE);
        if (!backward) {
            forward_only(all[n]);
        }
    }
    attention_forward(context, &a, ATTENTION_PUBLIC, &engine);
    attention_forward(context, &a, ATTENTION_REFERENCE, &reference);
    if (dtype != 1) {
        plain_forward(&a, &plain);
    }
    if (backward) {
        attention_backward(context, &a, ATTENTION_PUBLIC, &engine);
        attention_backward(context, &a, ATTENTION_REFERENCE, &reference);
        if (dtype != 1) {
            plain_backward(&a, &plain);
        }
    }
    if (!judge_draw(report, &engine, &plain, &reference, dtype)) {
        const struct attention_shape s = a.shape;
        printf("  failed: --draws 1 --seed %llu; B %lld Hq %lld Hkv %lld Tq %lld Tk %lld D %lld "
               "Dv %lld\n",
               (unsigned long long)seed, (long long)s.batch, (long long)s.query_heads,
               (long long)s.key_heads, (long long)s.queries, (long long)s.keys,
               (long long)s.head_dim, (long long)s.value_dim);
        options_print(row, 1);
        report->failed++;
    }
    report->draws++;
    for (int n = 0; n < 3; n++) {
        attention_results_end(all[n]);
    }
    attention_end(&a);
}

// ---- the run ------------------------------------------------------------------------------------

// The whole run's errors as a table; the number of quantities where the plain kernel is better.
static int judge_run(const struct report *report)
{
    int worse = 0;
    printf("\n%-11s %-5s %12s %12s %12s %12s\n", "quantity", "dtype", "largest", "plain", "RMS",
           "plain");
    for (int dtype = 0; dtype < DTYPES; dtype++) {
        for (int n = 0; n < ATTENTION_RESULT_COUNT; n++) {
            const struct errors *engine = &report->engine[n][dtype];
            const struct errors *plain = &report->plain[n][dtype];
            if (engine->count == 0) {
                continue;
            }
            const bool good = dtype == 1 ? engine->largest <= floors[1] && rms(engine) <= 1e-13
                                         : engine->largest <= 1.5 * plain->largest &&
                                               rms(engine) <= 1.25 * rms(plain);
            const bool judged = n != ATTENTION_ROW_MAX && n != ATTENTION_ROW_SUM;
            printf("%-11s %-5s %12.3g %12.3g %12.3g %12.3g%s\n", attention_result_names[n],
                   factors[FACTOR_DTYPE].levels[dtype], engine->largest, plain->largest,
                   rms(engine), rms(plain), good ? "" : (judged ? "  worse" : "  (as lse)"));
            worse += judged && !good;
        }
    }
    return worse;
}

static uint64_t number_after(int argc, char **argv, const char *name, uint64_t otherwise)
{
    for (int n = 1; n + 1 < argc; n++) {
        if (strcmp(argv[n], name) == 0) {
            return strtoull(argv[n + 1], NULL, 10);
        }
    }
    return otherwise;
}

int main(int argc, char **argv)
{
    static struct option_row rows[MOST_ROWS];
    const int count = options_cover(rows);
    const int draws = (int)number_after(argc, argv, "--draws", 16 * (uint64_t)count);
    const uint64_t seed = number_after(argc, argv, "--seed", 1);
    printf("%d rows cover every pair of levels (%d missing); %d draws from seed %llu\n", count,
           options_uncovered(rows, count), draws, (unsigned long long)seed);
    options_print(rows, count);
    static struct report report;
    attn_context *context = test_context();
    for (int k = 0; k < draws; k++) {
        const uint64_t own = seed + (uint64_t)k;
        run_draw(context, &rows[own % (uint64_t)count], own, &report);
    }
    attn_context_destroy(context);
    const int worse = judge_run(&report);
    // Whether the plain kernel is better is a question for many draws.
    const bool judged = draws >= count;
    printf("%d draws, %d failed; %d quantities worse than the plain kernel%s\n", report.draws,
           report.failed, worse, judged ? "" : " (not judged)");
    return options_uncovered(rows, count) != 0 || report.failed > 0 || (judged && worse > 0);
}
