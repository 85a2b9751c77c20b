// The reference's gradients against central differences of its forward, in float64: every element of
// every input, for every kind of option and for all of them at once.
#include <math.h>
#include <stdio.h>

#include "support/attention.h"
#include "support/unit.h"

static const struct attention_shape grouped = {.batch = 2,
                                               .query_heads = 4,
                                               .key_heads = 2,
                                               .queries = 4,
                                               .keys = 5,
                                               .head_dim = 3,
                                               .value_dim = 2,
                                               .dtype = ATTN_F64};

// ---- what is differentiated ---------------------------------------------------------------------

struct weighing {
    const attn_tensor *factors;
    double sum;
};

static void weigh(void *state, const attn_tensor *tensor, const int64_t *index)
{
    struct weighing *weighing = state;
    const double value = test_at(tensor, index[0], index[1], index[2], index[3]);
    if (value != -(double)INFINITY) { // grad_lse counts where lse is finite
        weighing->sum += value * test_at(weighing->factors, index[0], index[1], index[2], index[3]);
    }
}

// sum(grad_output * output) + sum(grad_lse * lse)
static double loss(const attn_context *context, const struct attention *a,
                   struct attention_results *r)
{
    attention_forward(context, a, ATTENTION_REFERENCE, r);
    struct weighing weighing = {&a->grad_output, 0.0};
    test_for_each(&r->of[ATTENTION_OUTPUT], weigh, &weighing);
    if (a->grad_lse.data != NULL) {
        weighing.factors = &a->grad_lse;
        test_for_each(&r->of[ATTENTION_LSE], weigh, &weighing);
    }
    return weighing.sum;
}

// ---- the check ----------------------------------------------------------------------------------

struct differencing {
    const attn_context *context;
    const struct attention *a;
    struct attention_results *scratch;
    const attn_tensor *gradient;
    const char *what;
    double largest;
};

static void difference(void *state, const attn_tensor *input, const int64_t *index)
{
    struct differencing *d = state;
    const double step = 1e-5;
    const double value = test_at(input, index[0], index[1], index[2], index[3]);
    test_set(input, index[0], index[1], index[2], index[3], value + step);
    const double above = loss(d->context, d->a, d->scratch);
    test_set(input, index[0], index[1], index[2], index[3], value - step);
    const double below = loss(d->context, d->a, d->scratch);
    test_set(input, index[0], index[1], index[2], index[3], value);
    const double expected = (above - below) / (2.0 * step);
    const double actual = test_at(d->gradient, index[0], index[1], index[2], index[3]);
    if (!(fabs(actual - expected) <= 2e-9 + 2e-8 * fabs(expected))) {
        fail_msg("%s [%lld,%lld,%lld,%lld]: %.12g, by differences %.12g", d->what,
                 (long long)index[0], (long long)index[1], (long long)index[2], (long long)index[3],
                 actual, expected);
    }
    d->largest = fmax(d->largest, fabs(expected));
}

static void check_gradients(const struct attention *a)
{
    attn_context *context = test_context();
    struct attention_results r, scratch;
    attention_run(context, a, ATTENTION_REFERENCE, ATTN_DTYPE_NONE, &r);
    attention_results_begin(&scratch, a, ATTN_DTYPE_NONE);
    const struct {
        enum attention_result result;
        const attn_tensor *input;
    } pairs[] = {{ATTENTION_GRAD_QUERY, &a->query},
                 {ATTENTION_GRAD_KEY, &a->key},
                 {ATTENTION_GRAD_VALUE, &a->value},
                 {ATTENTION_GRAD_BIAS, &a->bias},
                 {ATTENTION_GRAD_SINKS, &a->sinks}};
    for (size_t n = 0; n < sizeof(pairs) / sizeof(pairs[0]); n++) {
        if (r.present[pairs[n].result]) {
            struct differencing d = {context,
                                     a,
                                     &scratch,
                                     &r.of[pairs[n].result],
                                     attention_result_names[pairs[n].result],
                                     0.0};
            test_for_each(pairs[n].input, difference, &d);
            assert_true(d.largest > 1e-3); // a gradient of nothing would prove nothing
        }
    }
    attention_results_end(&scratch);
    attention_results_end(&r);
    attn_context_destroy(context);
}

// ---- options ------------------------------------------------------------------------------------

static void plain(void **state)
{
    (void)state;
    struct attention a;
    attention_begin(&a, grouped, 1);
    check_gradients(&a);
    attention_end(&a);
}

static void grad_lse(void **state)
{
    (void)state;
    struct attention a;
    attention_begin(&a, grouped, 2);
    attention_add_grad_lse(&a);
    a.desc.causal = true;
    a.desc.diagonal = ATTN_DIAGONAL_OFFSET;
    a.desc.diagonal_offset = -1; // row 0 sees nothing
    check_gradients(&a);
    attention_end(&a);
}

static void sinks(void **state)
{
    (void)state;
    struct attention a;
    attention_begin(&a, grouped, 3);
    attention_add_sinks(&a);
    attention_add_grad_lse(&a);
    attention_add_query_lengths(&a, (int64_t[]){3, 4}); // the dead row's lse is the sink
    check_gradients(&a);
    attention_end(&a);
}

static void softcap_bias_alibi(void **state)
{
    (void)state;
    struct attention a;
    attention_begin(&a, grouped, 4);
    attention_add_bias(&a, ATTN_F64, (int64_t[]){2, 4, 4, 5}, 1.0);
    attention_add_alibi(&a);
    a.desc.softcap = 1.5;
    a.desc.diagonal = ATTN_DIAGONAL_BOTTOM_RIGHT;
    check_gradients(&a);
    attention_end(&a);
}

static void broadcast_bias(void **state)
{
    (void)state;
    static const int64_t sizes[][4] = {{1, 4, 4, 5}, {2, 1, 4, 5}, {2, 4, 1, 5},
                                       {2, 4, 4, 1}, {1, 1, 1, 5}, {1, 1, 4, 1}};
    for (size_t n = 0; n < sizeof(sizes) / sizeof(sizes[0]); n++) {
        struct attention a;
        attention_begin(&a, grouped, 5);
        attention_add_bias(&a, ATTN_F64, sizes[n], 1.0);
        attention_add_sinks(&a); // without them a bias per row has no gradient
        a.desc.causal = true;
        a.desc.diagonal = ATTN_DIAGONAL_BOTTOM_RIGHT;
        check_gradients(&a);
        attention_end(&a);
    }
}

static void masks(void **state)
{
    (void)state;
    struct attention a;
    attention_begin(&a, grouped, 6);
    attention_add_keep(&a, (int64_t[]){2, 1, 4, 5}, 0.7);
    attention_add_key_lengths(&a, (int64_t[]){5, 3});
    attention_add_query_lengths(&a, (int64_t[]){2, 4});
    a.desc.diagonal = ATTN_DIAGONAL_BOTTOM_RIGHT;
    a.desc.window_left = 2;
    a.desc.window_right = 1;
    check_gradients(&a);
    attention_end(&a);
}

static void packed(void **state)
{
    (void)state;
    struct attention a;
    struct attention_shape shape = grouped;
    shape.batch = 1;
    shape.queries = 9;
    shape.keys = 10;
    attention_begin(&a, shape, 7);
    attention_add_starts(&a, 5, (int64_t[]){0, 3, 3, 7, 8}, (int64_t[]){0, 4, 6, 9, 9});
    attention_add_bias(&a, ATTN_F64, (int64_t[]){1, 1, 9, 10}, 1.0);
    attention_add_sinks(&a);
    attention_add_grad_lse(&a);
    attention_add_philox(&a, 0.3);
    a.desc.causal = true;
    a.desc.diagonal = ATTN_DIAGONAL_BOTTOM_RIGHT;
    check_gradients(&a);
    attention_end(&a);
}

static void dropout(void **state)
{
    (void)state;
    struct attention a;
    attention_begin(&a, grouped, 8);
    attention_add_philox(&a, 0.4);
    attention_add_sinks(&a);
    check_gradients(&a);
    attention_add_dropout_keep(&a, (int64_t[]){2, 4, 4, 5}, 0.25);
    check_gradients(&a);
    attention_add_dropout_keep(&a, (int64_t[]){1, 4, 1, 5}, 0.25);
    check_gradients(&a);
    attention_end(&a);
}

static void everything(void **state)
{
    (void)state;
    struct attention a;
    attention_begin(&a, grouped, 9);
    attention_add_keep(&a, (int64_t[]){1, 4, 4, 5}, 0.8);
    attention_add_bias(&a, ATTN_F64, (int64_t[]){2, 1, 4, 5}, 1.0);
    attention_add_alibi(&a);
    attention_add_sinks(&a);
    attention_add_grad_lse(&a);
    attention_add_query_lengths(&a, (int64_t[]){4, 3});
    attention_add_key_lengths(&a, (int64_t[]){4, 5});
    attention_add_philox(&a, 0.2);
    a.desc.scale_mode = ATTN_SCALE_GIVEN;
    a.desc.scale = 0.7;
    a.desc.softcap = 2.0;
    a.desc.causal = true;
    a.desc.window_left = 3;
    a.desc.diagonal = ATTN_DIAGONAL_OFFSET;
    a.desc.diagonal_offset = 1;
    check_gradients(&a);
    attention_end(&a);
}

// The check itself: a gradient that is wrong in one element is found.
static void differences_find_an_error(void **state)
{
    (void)state;
    attn_context *context = test_context();
    struct attention a;
    struct attention_results r, scratch;
    attention_begin(&a, grouped, 10);
    attention_run(context, &a, ATTENTION_REFERENCE, ATTN_DTYPE_NONE, &r);
    attention_results_begin(&scratch, &a, ATTN_DTYPE_NONE);
    const double before = loss(context, &a, &scratch);
    const double step = 1e-3;
    test_set(&a.key, 1, 1, 2, 0, test_at(&a.key, 1, 1, 2, 0) + step);
    const double slope = (loss(context, &a, &scratch) - before) / step;
    assert_true(fabs(slope - test_at(&r.of[ATTENTION_GRAD_KEY], 1, 1, 2, 0)) < 1e-2);
    assert_true(fabs(slope - test_at(&r.of[ATTENTION_GRAD_KEY], 1, 1, 2, 1)) > 1e-2);
    attention_results_end(&scratch);
    attention_results_end(&r);
    attention_end(&a);
    attn_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain),          cmocka_unit_test(grad_lse),
        cmocka_unit_test(sinks),          cmocka_unit_test(softcap_bias_alibi),
        cmocka_unit_test(broadcast_bias), cmocka_unit_test(masks),
        cmocka_unit_test(packed),         cmocka_unit_test(dropout),
        cmocka_unit_test(everything),     cmocka_unit_test(differences_find_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
