// What only the backward can get wrong: sums over rows and over keys, cut in two ways among threads;
// rows that are not finite; gradients side by side in one buffer; outputs that were rounded.
//
// The problems have few key/value heads and enough work, so that with three threads the rows are cut
// for the queries' gradients and the keys for the keys' and values'.
#include <math.h>
#include <string.h>

#include "support/allocator.h"
#include "support/attention.h"
#include "support/status.h"
#include "support/unit.h"

enum { ROWS = 200, KEYS = 330, BAD_ROW = 101 };

static const struct attention_shape long_shape = {1, 2, 1, ROWS, KEYS, 24, 20, ATTN_F32};

static void run(const attn_context *context, const struct attention *a, struct attention_results *r)
{
    attention_run(context, a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, r);
}

// ---- rows that are not finite -------------------------------------------------------------------

static bool seen_always(int64_t i, int64_t j)
{
    (void)i, (void)j;
    return true;
}

static void causal(struct attention *a)
{
    a->desc.causal = true;
}

static bool seen_causally(int64_t i, int64_t j)
{
    return j <= i;
}

static void window(struct attention *a)
{
    a->desc.window_left = 50;
    a->desc.window_right = 3;
    a->desc.softcap = 5.0;
}

static bool seen_in_window(int64_t i, int64_t j)
{
    return j >= i - 50 && j <= i + 3;
}

static void keep(struct attention *a)
{
    attention_add_keep(a, (int64_t[]){1, 1, ROWS, KEYS}, 1.0);
    for (int64_t i = 0; i < ROWS; i++) {
        for (int64_t j = 0; j < KEYS; j++) {
            test_set(&a->keep, 0, 0, i, j, (i + 2 * j) % 3 != 0);
        }
    }
    attention_add_dropout_keep(a, (int64_t[]){1, 1, 1, KEYS}, 0.0);
}

static bool kept(int64_t i, int64_t j)
{
    return (i + 2 * j) % 3 != 0;
}

static const struct mask {
    void (*add)(struct attention *a);
    bool (*seen)(int64_t i, int64_t j);
} masks[] = {{NULL, seen_always}, {causal, seen_causally}, {window, seen_in_window}, {keep, kept}};

// Gradients of one head's elements j of a dim: all NaN, or none changed.
static void check_element(const char *what, const attn_tensor *after, const attn_tensor *before,
                          int64_t head, int64_t j, bool spoilt)
{
    for (int64_t d = 0; d < after->shape[3]; d++) {
        const double value = test_at(after, 0, head, j, d);
        if (spoilt ? !isnan(value) : value != test_at(before, 0, head, j, d)) {
            print_error("%s: head %d, %d: %g\n", what, (int)head, (int)j, value);
            fail();
        }
    }
}

// A row of queries or of output gradients that is not finite spoils its own gradient and those of the
// keys that it sees, and nothing else.
static void check_bad_row(const attn_context *context, const struct mask *mask, attn_dtype dtype,
                          bool in_query)
{
    struct attention a;
    struct attention_results before, after;
    struct attention_shape shape = long_shape;
    shape.dtype = dtype;
    attention_begin(&a, shape, 7);
    if (mask->add != NULL) {
        mask->add(&a);
    }
    run(context, &a, &before);
    test_set(in_query ? &a.query : &a.grad_output, 0, 1, BAD_ROW, 5, NAN);
    run(context, &a, &after);
    for (int64_t h = 0; h < 2; h++) {
        for (int64_t i = 0; i < ROWS; i++) {
            check_element("grad_query", &after.of[ATTENTION_GRAD_QUERY],
                          &before.of[ATTENTION_GRAD_QUERY], h, i, h == 1 && i == BAD_ROW);
        }
    }
    for (int64_t j = 0; j < KEYS; j++) {
        const bool seen = mask->seen(BAD_ROW, j);
        check_element("grad_key", &after.of[ATTENTION_GRAD_KEY], &before.of[ATTENTION_GRAD_KEY], 0,
                      j, seen);
        if (!seen || in_query) { // of the output's gradient only column 5 is bad
            check_element("grad_value", &after.of[ATTENTION_GRAD_VALUE],
                          &before.of[ATTENTION_GRAD_VALUE], 0, j, seen);
        } else {
            assert_true(isnan(test_at(&after.of[ATTENTION_GRAD_VALUE], 0, 0, j, 5)));
            assert_true(test_at(&after.of[ATTENTION_GRAD_VALUE], 0, 0, j, 4) ==
                        test_at(&before.of[ATTENTION_GRAD_VALUE], 0, 0, j, 4));
        }
    }
    attention_results_end(&after);
    attention_results_end(&before);
    attention_end(&a);
}

static void a_bad_row_spoils_what_it_sees(void **state)
{
    (void)state;
    static const attn_dtype dtypes[] = {ATTN_F32, ATTN_F64, ATTN_BF16};
    attn_context *const contexts[] = {test_context(), test_context_with(3, ATTN_TIER_AUTO)};
    for (int c = 0; c < 2; c++) {
        for (size_t m = 0; m < sizeof(masks) / sizeof(masks[0]); m++) {
            for (int n = 0; n < 3; n++) {
                check_bad_row(contexts[c], &masks[m], dtypes[n], true);
                check_bad_row(contexts[c], &masks[m], dtypes[n], false);
            }
        }
        attn_context_destroy(contexts[c]);
    }
}

// ---- which gradients, how many threads, whose memory --------------------------------------------

static void everything(struct attention *a, attn_dtype dtype)
{
    struct attention_shape shape = long_shape;
    shape.dtype = dtype;
    attention_begin(a, shape, 8);
    a->desc.causal = true;
    a->desc.diagonal = ATTN_DIAGONAL_BOTTOM_RIGHT;
    attention_add_bias(a, ATTN_F32, (int64_t[]){1, 1, ROWS, KEYS}, 1.0);
    attention_add_sinks(a);
    attention_add_grad_lse(a);
    attention_add_philox(a, 0.2);
}

static void check_gradients(const struct attention *a, const struct attention_results *all,
                            double tolerance)
{
    attn_context *context = test_context();
    struct attention_results reference;
    attention_run(context, a, ATTENTION_REFERENCE, ATTN_F64, &reference);
    for (int m = ATTENTION_GRAD_QUERY; m < ATTENTION_RESULT_COUNT; m++) {
        assert_tensors_close(attention_result_names[m], &all->of[m], &reference.of[m], tolerance,
                             tolerance);
    }
    attention_results_end(&reference);
    attn_context_destroy(context);
}

// All gradients are right, and any choice of them, by one thread or by rows and keys among three, has
// the bits of all of them by one.
static void any_gradients_any_threads(void **state)
{
    (void)state;
    static const attn_dtype dtypes[] = {ATTN_F32, ATTN_F16};
    attn_context *const contexts[] = {test_context(), test_context_with(3, ATTN_TIER_AUTO)};
    for (int n = 0; n < 2; n++) {
        struct attention a;
        struct attention_results all, some;
        everything(&a, dtypes[n]);
        run(contexts[0], &a, &all);
        check_gradients(&a, &all, dtypes[n] == ATTN_F32 ? 2e-5 : 1e-3);
        for (unsigned chosen = 1; chosen < 32; chosen++) {
            attention_results_begin(&some, &a, ATTN_DTYPE_NONE);
            attention_forward(contexts[0], &a, ATTENTION_PUBLIC, &some);
            for (int g = 0; g < 5; g++) {
                some.present[ATTENTION_GRAD_QUERY + g] = (chosen >> g & 1) != 0;
            }
            attention_backward(contexts[chosen % 2], &a, ATTENTION_PUBLIC, &some);
            for (int m = ATTENTION_GRAD_QUERY; m < ATTENTION_RESULT_COUNT; m++) {
                if (some.present[m]) {
                    assert_same_bits(attention_result_names[m], &some.of[m], &all.of[m]);
                }
            }
            attention_results_end(&some);
        }
        attention_results_end(&all);
        attention_end(&a);
    }
    attn_context_destroy(contexts[0]);
    attn_context_destroy(contexts[1]);
}

// Three threads, scratch memory full of NaN: nothing else is allocated, and nothing of it shows.
static void a_given_workspace(void **state)
{
    (void)state;
    static const attn_dtype dtypes[] = {ATTN_F32, ATTN_F64, ATTN_BF16};
    test_allocator counter;
    attn_context_config config;
    attn_context_config_init(&config);
    config.allocator = test_allocator_init(&counter);
    attn_error error;
    attn_context *context = NULL;
    ASSERT_OK(attn_executor_pthreads(3, &config.executor, &error));
    ASSERT_OK(attn_context_create(&config, &context, &error));
    for (int n = 0; n < 3; n++) {
        struct attention a;
        struct attention_results own, given;
        everything(&a, dtypes[n]);
        run(context, &a, &own);
        attention_results_begin(&given, &a, ATTN_DTYPE_NONE);
        attention_forward(context, &a, ATTENTION_PUBLIC, &given);
        attn_sdpa_backward_args args = attention_backward_args(&a, &given);
        ASSERT_OK(
            attn_sdpa_backward_workspace(context, &a.desc, &args, &args.workspace_size, &error));
        args.workspace = test_pool_take(&a.pool, args.workspace_size);
        memset(args.workspace, 0xff, args.workspace_size);
        const long long calls = atomic_load(&counter.calls);
        ASSERT_OK(attn_sdpa_backward(context, &a.desc, &args, &error));
        assert_true(calls == atomic_load(&counter.calls));
        assert_attention_same_bits(&given, &own);
        attention_results_end(&given);
        attention_results_end(&own);
        attention_end(&a);
    }
    test_context_end(context, &counter);
}

// ---- where gradients lie ------------------------------------------------------------------------

// Gradients of query, key and value as slices of one (B, T, 3, H, D) buffer, as a projection of all
// three at once wants them.
static void gradients_in_one_buffer(void **state)
{
    (void)state;
    static const attn_dtype dtypes[] = {ATTN_F32, ATTN_F64, ATTN_F16};
    const int64_t batch = 2, heads = 3, rows = 150, dims = 16, width = 3 * heads * dims;
    attn_context *const contexts[] = {test_context(), test_context_with(5, ATTN_TIER_AUTO)};
    for (int n = 0; n < 6; n++) {
        struct attention a;
        struct attention_results apart, together;
        attention_begin(
            &a,
            (struct attention_shape){batch, heads, heads, rows, rows, dims, dims, dtypes[n / 2]},
            9);
        a.desc.causal = true;
        run(contexts[0], &a, &apart);
        attention_results_begin(&together, &a, ATTN_DTYPE_NONE);
        attention_forward(contexts[0], &a, ATTENTION_PUBLIC, &together);
        const size_t size = attn_dtype_size(dtypes[n / 2]);
        char *buffer = test_pool_take(&a.pool, (size_t)(batch * rows * width) * size);
        for (int g = 0; g < 3; g++) {
            attn_tensor *view = &together.of[ATTENTION_GRAD_QUERY + g];
            view->data = buffer + (size_t)(g * heads * dims) * size;
            view->stride[0] = rows * width;
            view->stride[1] = dims;
            view->stride[2] = width;
        }
        attention_backward(contexts[n % 2], &a, ATTENTION_PUBLIC, &together);
        assert_attention_same_bits(&together, &apart);
        attention_results_end(&together);
        attention_results_end(&apart);
        attention_end(&a);
    }
    attn_context_destroy(contexts[0]);
    attn_context_destroy(contexts[1]);
}

// ---- outputs that were rounded ------------------------------------------------------------------

struct distance {
    const attn_tensor *expected;
    double largest_error, largest;
};

static void measure(void *state, const attn_tensor *actual, const int64_t *i)
{
    struct distance *d = state;
    const double expected = test_at(d->expected, i[0], i[1], i[2], i[3]);
    d->largest = fmax(d->largest, fabs(expected));
    d->largest_error =
        fmax(d->largest_error, fabs(test_at(actual, i[0], i[1], i[2], i[3]) - expected));
}

// Values far from 0 and close to each other: an output's rounding is as large as what its row's
// gradients differ by. The gradients do not depend on it: they are right to half a unit in the last
// place of their own storage, and a little from float32.
static void a_rounded_output_spoils_nothing(void **state)
{
    (void)state;
    static const attn_dtype dtypes[] = {ATTN_F16, ATTN_BF16};
    static const double half_unit[] = {0x1p-11, 0x1p-8};
    static const int results[] = {ATTENTION_GRAD_QUERY, ATTENTION_GRAD_KEY, ATTENTION_GRAD_SINKS};
    attn_context *context = test_context_with(3, ATTN_TIER_AUTO);
    for (int n = 0; n < 2; n++) {
        struct attention a;
        struct attention_results r, reference;
        struct attention_shape shape = long_shape;
        shape.dtype = dtypes[n];
        attention_begin(&a, shape, 10);
        attention_add_sinks(&a);
        attn_error error;
        for (int64_t h = 0; h < 2; h++) {
            test_set(&a.sinks, h, 0, 0, 0, -6.0);
        }
        for (int64_t j = 0; j < KEYS; j++) {
            for (int64_t d = 0; d < shape.value_dim; d++) {
                const double value = test_at(&a.value, 0, 0, j, d);
                test_set(&a.value, 0, 0, j, d, 8.0 + 0.25 * value);
            }
        }
        ASSERT_OK(attn_tensor_fill(&a.grad_output, 1.0, &error));
        run(context, &a, &r);
        attention_run(context, &a, ATTENTION_REFERENCE, ATTN_F64, &reference);
        for (int m = 0; m < 3; m++) {
            struct distance d = {&reference.of[results[m]], 0.0, 0.0};
            test_for_each(&r.of[results[m]], measure, &d);
            assert_true(d.largest > 0.0);
            const double bound = results[m] == ATTENTION_GRAD_SINKS ? 2e-5 : half_unit[n] + 2e-5;
            if (!(d.largest_error <= bound * d.largest)) {
                print_error("%s: off by %g of %g\n", attention_result_names[results[m]],
                            d.largest_error, d.largest);
                fail();
            }
        }
        attention_results_end(&reference);
        attention_results_end(&r);
        attention_end(&a);
    }
    attn_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bad_row_spoils_what_it_sees),
        cmocka_unit_test(any_gradients_any_threads),
        cmocka_unit_test(a_given_workspace),
        cmocka_unit_test(gradients_in_one_buffer),
        cmocka_unit_test(a_rounded_output_spoils_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
