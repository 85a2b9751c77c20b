// How long vars live, what backward leaves behind, and what recording means.
#include "tape_fixture.h"

#include <math.h>

static const char stale[] = "add: operand 2 is stale: it was made before a reset or a release";

static attn_tensor on_stack(double *values, int64_t count)
{
    return attn_tensor_wrap(values, ATTN_F64, 1, &count);
}

// ---- reset, mark, release -----------------------------------------------------------------------

static void vars_of_before_a_reset_are_stale(void **state)
{
    struct fixture *const f = *state;
    const attn_var old = leaf(f, ATTN_F64, SHAPE(1), VALUES(1));
    attn_tape_reset(f->tape);
    const attn_var young = leaf(f, ATTN_F64, SHAPE(1), VALUES(2));
    assert_int_equal(young.index, old.index); // the place is used again, the handle is not
    attn_add(young, old);
    assert_tape_failed(f->tape, ATTN_ERR_STATE, stale);

    const attn_tensor none = attn_value(old);
    assert_int_equal(none.dtype, ATTN_DTYPE_NONE);
    assert_tape_failed(f->tape, ATTN_ERR_STATE,
                       "value: operand 1 is stale: it was made before a reset or a release");
    assert_true(isnan(attn_item(old)));
    assert_tape_failed(f->tape, ATTN_ERR_STATE,
                       "item: operand 1 is stale: it was made before a reset or a release");
}

static void release_forgets_what_came_after_the_mark(void **state)
{
    struct fixture *const f = *state;
    attn_error error;
    const attn_var before = leaf(f, ATTN_F64, SHAPE(2), VALUES(1, 2));
    const attn_tape_mark mark = attn_tape_get_mark(f->tape);
    const attn_var after = attn_exp(before);
    for (int n = 0; n < 3; n++) {
        ASSERT_OK(attn_tape_release(f->tape, mark, &error)); // a mark serves many times
        assert_var(before, ATTN_F64, SHAPE(2), VALUES(1, 2));
        const attn_var again = attn_scale(before, 3);
        assert_int_equal(again.index, after.index);
        assert_var(again, ATTN_F64, SHAPE(2), VALUES(3, 6));
        assert_int_equal(attn_tape_status(f->tape), ATTN_OK);
    }
    attn_add(before, after);
    assert_tape_failed(f->tape, ATTN_ERR_STATE, stale);
}

static void marks_that_do_not_fit_are_refused(void **state)
{
    struct fixture *const f = *state;
    attn_error error;
    attn_tape *other;
    ASSERT_OK(attn_tape_create(f->context, &other, &error));
    const attn_tape_mark early = attn_tape_get_mark(f->tape);
    leaf(f, ATTN_F64, SHAPE(1), VALUES(1));
    const attn_tape_mark late = attn_tape_get_mark(f->tape);
    ASSERT_FAILS(ATTN_ERR_STATE, "release: the mark belongs to another tape",
                 attn_tape_release(other, early, &error));
    ASSERT_OK(attn_tape_release(f->tape, early, &error));
    ASSERT_FAILS(ATTN_ERR_STATE, "release: the mark itself was forgotten by an earlier release",
                 attn_tape_release(f->tape, late, &error));
    leaf(f, ATTN_F64, SHAPE(1), VALUES(1)); // the same place, another generation
    ASSERT_FAILS(ATTN_ERR_STATE, "release: the mark itself was forgotten by an earlier release",
                 attn_tape_release(f->tape, late, &error));
    attn_tape_reset(f->tape);
    ASSERT_FAILS(ATTN_ERR_STATE, "release: the mark is from before a reset",
                 attn_tape_release(f->tape, early, &error));
    attn_tape_destroy(other);
    attn_tape_destroy(NULL);
}

static void release_drops_gradients_made_after_the_mark(void **state)
{
    struct fixture *const f = *state;
    attn_error error;
    const attn_var x = leaf(f, ATTN_F64, SHAPE(2), VALUES(1, 2));
    const attn_var y = attn_sum_all(x);
    assert_int_equal(attn_grad(x).dtype, ATTN_DTYPE_NONE);
    const attn_tape_mark mark = attn_tape_get_mark(f->tape);
    ASSERT_OK(attn_backward(y, &error));
    assert_int_equal(attn_grad(x).dtype, ATTN_F64);
    ASSERT_OK(attn_tape_release(f->tape, mark, &error));
    assert_int_equal(attn_grad(x).dtype, ATTN_DTYPE_NONE);
    ASSERT_OK(attn_backward(y, &error));
    const attn_tape_mark later = attn_tape_get_mark(f->tape);
    attn_exp(x);
    ASSERT_OK(attn_tape_release(f->tape, later, &error));
    const attn_tensor grad = attn_grad(x);
    assert_elements(&grad, VALUES(1, 1));
}

// ---- backward -----------------------------------------------------------------------------------

static void gradients_add_up_in_borrowed_memory(void **state)
{
    struct fixture *const f = *state;
    attn_error error;
    attn_tape *second;
    ASSERT_OK(attn_tape_create(f->context, &second, &error));
    double w[2] = {3, 4}, g[2] = {100, 200};
    const attn_tensor value = on_stack(w, 2), grad = on_stack(g, 2);
    attn_tape *const tapes[] = {f->tape, second};
    for (int n = 0; n < 2; n++) {
        const attn_var x = attn_borrow(tapes[n], &value, &grad);
        const attn_var y = attn_sum_all(attn_multiply(x, x));
        ASSERT_OK(attn_backward(y, &error));
        const attn_tensor seen = attn_grad(x);
        assert_ptr_equal(seen.data, g);
        ASSERT_OK(attn_backward(y, &error)); // the same record once more
    }
    assert_true(g[0] == 100 + 4 * 6 && g[1] == 200 + 4 * 8);

    // Borrowed twice on one tape, once through a transposed view: both reach the same memory.
    double m[4] = {1, 2, 3, 4}, dm[4] = {0};
    const attn_tensor matrix = attn_tensor_wrap(m, ATTN_F64, SHAPE(2, 2));
    const attn_tensor matrix_grad = attn_tensor_wrap(dm, ATTN_F64, SHAPE(2, 2));
    attn_tensor turned, turned_grad;
    ASSERT_OK(attn_tensor_transpose(&matrix, 0, 1, &turned, &error));
    ASSERT_OK(attn_tensor_transpose(&matrix_grad, 0, 1, &turned_grad, &error));
    attn_tape_reset(f->tape);
    const attn_var a = attn_borrow(f->tape, &matrix, &matrix_grad);
    const attn_var b = attn_borrow(f->tape, &turned, &turned_grad);
    ASSERT_OK(attn_backward(attn_sum_all(attn_multiply(a, b)), &error));
    // d/da = b = m^T, and d/db = a = m, which lands transposed.
    assert_elements(&matrix_grad, VALUES(2, 6, 4, 8));
    const attn_tensor unchanged = attn_value(a);
    assert_elements(&unchanged, VALUES(1, 2, 3, 4));
    attn_tape_destroy(second);
}

static void grad_is_that_of_the_last_backward(void **state)
{
    struct fixture *const f = *state;
    attn_error error;
    const attn_var x = leaf(f, ATTN_F64, SHAPE(2), VALUES(1, 2));
    const attn_var z = leaf(f, ATTN_F64, SHAPE(2), VALUES(5, 6));
    const double fixed_value[] = {7};
    const attn_tensor fixed_tensor = attn_tensor_wrap_const(fixed_value, ATTN_F64, SHAPE(1));
    const attn_var fixed = attn_input(f->tape, &fixed_tensor, false);
    const attn_var product = attn_multiply(attn_multiply(x, z), fixed);
    ASSERT_OK(attn_backward(attn_sum_all(product), &error));
    attn_tensor grad = attn_grad(z);
    assert_elements(&grad, VALUES(7, 14));
    assert_int_equal(attn_grad(fixed).dtype, ATTN_DTYPE_NONE);
    assert_int_equal(attn_grad(product).dtype, ATTN_DTYPE_NONE);
    ASSERT_OK(attn_backward(attn_sum_all(attn_scale(x, 2)), &error));
    grad = attn_grad(x);
    assert_elements(&grad, VALUES(2, 2));
    assert_int_equal(attn_grad(z).dtype, ATTN_DTYPE_NONE); // not reached this time

    ASSERT_OK(attn_backward(attn_sum_all(x), &error));
    const double up[] = {10, 20};
    const attn_tensor upstream = attn_tensor_wrap_const(up, ATTN_F64, SHAPE(2));
    ASSERT_OK(attn_backward_from(product, &upstream, &error));
    grad = attn_grad(x);
    assert_elements(&grad, VALUES(350, 840));
    ASSERT_OK(attn_backward_from(x, &upstream, &error)); // a leaf itself
    grad = attn_grad(x);
    assert_elements(&grad, up);
    assert_int_equal(grad.flags & ATTN_TENSOR_READ_ONLY, ATTN_TENSOR_READ_ONLY);
}

static void backward_leaves_no_vars_behind(void **state)
{
    struct fixture *const f = *state;
    attn_error error;
    const attn_var x = leaf(f, ATTN_F64, SHAPE(2), VALUES(1, 2));
    const attn_var y = attn_sum_all(attn_tanh(x));
    ASSERT_OK(attn_backward(y, &error));
    const attn_var next = attn_exp(x);
    assert_int_equal(next.index, y.index + 1);
    assert_true(attn_tape_recording(f->tape));
}

// ---- recording ----------------------------------------------------------------------------------

static void recording_can_be_off(void **state)
{
    struct fixture *const f = *state;
    attn_error error;
    const attn_var x = leaf(f, ATTN_F64, SHAPE(2), VALUES(1, 2));
    assert_true(attn_tape_recording(f->tape));
    attn_tape_set_recording(f->tape, false);
    assert_false(attn_tape_recording(f->tape));
    const attn_var y = attn_sum_all(attn_multiply(x, x));
    assert_var(y, ATTN_F64, 0, NULL, VALUES(5));
    ASSERT_FAILS(ATTN_ERR_STATE, "backward: the var was made while recording was off",
                 attn_backward(y, &error));
    attn_var grad;
    ASSERT_FAILS(ATTN_ERR_STATE, "gradients: the var was made while recording was off",
                 attn_gradients(y, &x, 1, true, &grad, &error));
    attn_tape_set_recording(f->tape, true);
    // What was made meanwhile is a constant: d/dx (y x) = y.
    const attn_var z = attn_sum_all(attn_multiply(x, y));
    ASSERT_OK(attn_backward(z, &error));
    const attn_tensor dx = attn_grad(x);
    assert_elements(&dx, VALUES(5, 5));
    // Differentiable gradients are recorded even while recording is off.
    const attn_var square = attn_sum_all(attn_multiply(x, x));
    attn_tape_set_recording(f->tape, false);
    ASSERT_OK(attn_gradients(square, &x, 1, true, &grad, &error));
    assert_false(attn_tape_recording(f->tape));
    attn_tape_set_recording(f->tape, true);
    ASSERT_OK(attn_backward(attn_sum_all(grad), &error));
    const attn_tensor second = attn_grad(x);
    assert_elements(&second, VALUES(2, 2));
}

// ---- leaves -------------------------------------------------------------------------------------

static void inputs_are_copies_and_borrows_are_not(void **state)
{
    struct fixture *const f = *state;
    double v[2] = {1, 2};
    const attn_tensor tensor = on_stack(v, 2);
    const attn_var copied = attn_input(f->tape, &tensor, false);
    const attn_var borrowed = attn_borrow(f->tape, &tensor, NULL);
    v[0] = 9;
    assert_var(copied, ATTN_F64, SHAPE(2), VALUES(1, 2));
    assert_var(borrowed, ATTN_F64, SHAPE(2), VALUES(9, 2));
    assert_ptr_equal(attn_value(borrowed).data, v);
    assert_int_equal(attn_value(copied).flags & ATTN_TENSOR_READ_ONLY, ATTN_TENSOR_READ_ONLY);
    attn_error error;
    ASSERT_FAILS(ATTN_ERR_STATE,
                 "backward: the var does not depend on anything that wants a gradient",
                 attn_backward(attn_sum_all(borrowed), &error));
    assert_true(attn_item(attn_constant(f->tape, ATTN_F32, 0.1)) == (double)0.1F);
    assert_true(attn_item(attn_constant(f->tape, ATTN_F64, 0.1)) == 0.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(vars_of_before_a_reset_are_stale, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(release_forgets_what_came_after_the_mark, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(marks_that_do_not_fit_are_refused, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(release_drops_gradients_made_after_the_mark, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(gradients_add_up_in_borrowed_memory, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(grad_is_that_of_the_last_backward, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(backward_leaves_no_vars_behind, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(recording_can_be_off, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(inputs_are_copies_and_borrows_are_not, fixture_setup,
                                        fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
