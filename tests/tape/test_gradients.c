// Every op's gradient against finite differences of its forward.
#include "gradient_cases.h"

static attn_var mixed(attn_tape *tape, const attn_var *inputs, int64_t count, void *user)
{
    (void)tape;
    (void)count;
    const struct gradient_case *const one = user;
    return mix(one->op(inputs));
}

static void every_gradient_is_the_slope(void **state)
{
    for_each_gradient_case(*state, mixed);
}

// Ties: all of the gradient goes to the first of the largest elements.
static void gradient_of_max_goes_to_the_first(void **state)
{
    struct fixture *const f = *state;
    const attn_var x = leaf(f, ATTN_F64, SHAPE(2, 3), VALUES(5, 7, 7, 2, 2, 2));
    attn_error error;
    ASSERT_OK(attn_backward(attn_sum_all(attn_max(x, 1, false)), &error));
    const attn_tensor grad = attn_grad(x);
    assert_elements(&grad, VALUES(0, 1, 0, 1, 0, 0));
}

// d/dx of the sum over (2, 3) of x[j] * y[i]: what is broadcast gets the sum.
static void broadcasting_is_summed(void **state)
{
    struct fixture *const f = *state;
    const attn_var x = leaf(f, ATTN_F32, SHAPE(3), VALUES(1, 2, 3));
    const attn_var y = leaf(f, ATTN_F32, SHAPE(2, 1), VALUES(10, 20));
    attn_error error;
    ASSERT_OK(attn_backward(attn_sum_all(attn_multiply(x, y)), &error));
    const attn_tensor dx = attn_grad(x), dy = attn_grad(y);
    assert_int_equal(dx.ndim, 1);
    assert_elements(&dx, VALUES(30, 30, 30));
    assert_int_equal(dy.ndim, 2);
    assert_elements(&dy, VALUES(6, 6));
}

// Where a row holds equal weights, softmax's gradient is a centred upstream gradient.
static void softmax_gradient_by_hand(void **state)
{
    struct fixture *const f = *state;
    const attn_var x = leaf(f, ATTN_F64, SHAPE(4), VALUES(1, 1, 1, 1));
    const double up[] = {4, 0, 0, 0};
    const attn_tensor upstream = attn_tensor_wrap_const(up, ATTN_F64, SHAPE(4));
    attn_error error;
    ASSERT_OK(attn_backward_from(attn_softmax(x, 0), &upstream, &error));
    const attn_tensor grad = attn_grad(x);
    assert_elements(&grad, VALUES(0.75, -0.25, -0.25, -0.25));
}

// Large logits: the loss and its gradient (weights minus one-hot, over rows) stay exact.
static void cross_entropy_is_stable(void **state)
{
    struct fixture *const f = *state;
    const attn_var x = leaf(f, ATTN_F32, SHAPE(2, 2), VALUES(3e4, -3e4, -3e38, 3e38));
    const int64_t classes[] = {0, 0};
    const attn_tensor targets = attn_tensor_wrap_const(classes, ATTN_I64, SHAPE(2));
    attn_error error;
    const attn_var loss = attn_cross_entropy(x, &targets);
    ASSERT_OK(attn_backward(loss, &error));
    const attn_tensor grad = attn_grad(x);
    assert_elements(&grad, VALUES(0, 0, -0.5, 0.5));

    const attn_var y = leaf(f, ATTN_F32, SHAPE(1, 2), VALUES(-1000, 1000));
    const attn_tensor first = attn_tensor_wrap_const(classes, ATTN_I64, SHAPE(1));
    assert_var(attn_cross_entropy(y, &first), ATTN_F32, 0, NULL, VALUES(2000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_gradient_is_the_slope, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(gradient_of_max_goes_to_the_first, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(broadcasting_is_summed, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(softmax_gradient_by_hand, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(cross_entropy_is_stable, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
