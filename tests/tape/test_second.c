// Second derivatives: the gradient of a gradient penalty, for every op, against finite differences
// of the penalty, which uses first derivatives only.
#include <math.h>

#include "gradient_cases.h"

static attn_var penalty(attn_tape *tape, const attn_var *inputs, int64_t count, void *user)
{
    (void)tape;
    const struct gradient_case *const one = user;
    return gradient_penalty(mix(one->op(inputs)), inputs, count);
}

static void every_second_derivative_is_the_slope(void **state)
{
    for_each_gradient_case(*state, penalty);
}

// x^3: 3 x^2, 6 x, 6, and then 0.
static void derivatives_of_any_order(void **state)
{
    struct fixture *const f = *state;
    const attn_var x = leaf(f, ATTN_F64, SHAPE(1), VALUES(2));
    attn_error error;
    attn_var y = attn_sum_all(attn_multiply(attn_multiply(x, x), x));
    const double expected[] = {12, 12, 6, 0, 0};
    for (int n = 0; n < 5; n++) {
        attn_var slope;
        ASSERT_OK(attn_gradients(y, &x, 1, true, &slope, &error));
        assert_var(slope, ATTN_F64, SHAPE(1), &expected[n]);
        y = attn_sum_all(slope);
    }
}

// Without `differentiable` the values are the same and the vars are constants.
static void gradients_as_constants(void **state)
{
    struct fixture *const f = *state;
    const attn_var x = random_leaf(f, ATTN_F64, SHAPE(2, 3));
    const attn_var unused = random_leaf(f, ATTN_F64, SHAPE(4));
    const attn_var y = mix(attn_tanh(x));
    const attn_var inputs[] = {x, unused, x};
    attn_var recorded[3], constant[3];
    attn_error error;
    ASSERT_OK(attn_gradients(y, inputs, 3, true, recorded, &error));
    ASSERT_OK(attn_gradients(y, inputs, 3, false, constant, &error));
    for (int k = 0; k < 3; k++) {
        const attn_tensor a = attn_value(recorded[k]), b = attn_value(constant[k]);
        assert_same_bits("gradient", &a, &b);
    }
    assert_var(constant[1], ATTN_F64, SHAPE(4), VALUES(0, 0, 0, 0));
    ASSERT_FAILS(ATTN_ERR_STATE,
                 "backward: the var does not depend on anything that wants a gradient",
                 attn_backward(attn_sum_all(constant[0]), &error));
    ASSERT_OK(attn_backward(attn_sum_all(recorded[0]), &error));
}

// An intermediate var counts as a variable of its own, and its inputs still get their full gradient.
static void gradient_of_an_intermediate(void **state)
{
    struct fixture *const f = *state;
    const attn_var x = leaf(f, ATTN_F64, SHAPE(1), VALUES(3));
    const attn_var square = attn_multiply(x, x);
    const attn_var y = attn_sum_all(attn_multiply(square, x));
    const attn_var inputs[] = {x, square, y};
    attn_var grads[3];
    attn_error error;
    ASSERT_OK(attn_gradients(y, inputs, 3, false, grads, &error));
    assert_var(grads[0], ATTN_F64, SHAPE(1), VALUES(27));
    assert_var(grads[1], ATTN_F64, SHAPE(1), VALUES(3));
    assert_var(grads[2], ATTN_F64, 0, NULL, VALUES(1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_second_derivative_is_the_slope, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(derivatives_of_any_order, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(gradients_as_constants, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(gradient_of_an_intermediate, fixture_setup,
                                        fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
