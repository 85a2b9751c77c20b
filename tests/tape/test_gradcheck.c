// attn_gradcheck finds wrong gradients, and says where.
#include <math.h>
#include <string.h>

#include "tape/tape.h"
#include "tape_fixture.h"

// The op of tape/tape.h's opening comment, y = 2 x, with a wrong gradient for the last element.
static void wrong_backward(const attn_tape_back *back)
{
    const attn_tensor *const x = attn_tape_value(back->inputs[0]);
    double factors[6] = {2, 2, 2, 2, 2, 2.5};
    const attn_tensor tensor = attn_tensor_wrap(factors, ATTN_F64, x->ndim, x->shape);
    back->gradients[0] = attn_multiply(back->upstream[0], attn_input(back->tape, &tensor, false));
}

static attn_var wrong(attn_var a)
{
    static const attn_tape_op op = {"wrong", wrong_backward};
    attn_tape *tape;
    if (!attn_tape_enter(op.name, &a, 1, &tape)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *const x = attn_tape_value(a);
    attn_tensor y;
    if (!attn_tape_tensor(tape, op.name, x->dtype, x->ndim, x->shape, &y)) {
        return attn_tape_failed(tape);
    }
    for (int64_t n = 0; n < attn_tensor_count(x); n++) {
        ((double *)y.data)[n] = 2 * ((const double *)x->data)[n];
    }
    return attn_tape_push(tape, &op, &a, 1, &y, NULL, 0);
}

static attn_var function(attn_tape *tape, const attn_var *inputs, int64_t count, void *user)
{
    const char *const kind = user;
    if (strcmp(kind, "fails") == 0) {
        return attn_matmul(inputs[0], inputs[1]);
    }
    if (strcmp(kind, "absent") == 0) {
        return ATTN_NO_VAR;
    }
    if (strcmp(kind, "vector") == 0) {
        return inputs[0];
    }
    if (strcmp(kind, "NaN") == 0) {
        return attn_sum_all(attn_log(inputs[0]));
    }
    if (strcmp(kind, "unused") == 0) {
        return attn_sum_all(inputs[1]);
    }
    (void)tape;
    (void)count;
    const attn_var y = attn_multiply(inputs[0], attn_exp(inputs[1]));
    return attn_sum_all(strcmp(kind, "wrong") == 0 ? attn_add(y, wrong(inputs[1])) : y);
}

static void verdicts(void **state)
{
    struct fixture *const f = *state;
    double numbers[12] = {1, -2, 3, 0.5, 5, -6, 0.1, 0.2, 0.3, -0.4, 0.5, 0.6};
    const double before[12] = {1, -2, 3, 0.5, 5, -6, 0.1, 0.2, 0.3, -0.4, 0.5, 0.6};
    attn_tensor inputs[] = {attn_tensor_wrap(numbers, ATTN_F64, SHAPE(2, 3)),
                            attn_tensor_wrap(numbers + 6, ATTN_F64, SHAPE(2, 3))};
    attn_gradcheck_report r;
    attn_error error;
    ASSERT_OK(
        attn_gradcheck(f->context, function, "right", inputs, 2, 1e-3, 1e-9, 1e-3, &r, &error));
    assert_true(r.passed && r.checked == 12 && r.error < 1e-9);
    ASSERT_OK(
        attn_gradcheck(f->context, function, "unused", inputs, 2, 1e-3, 1e-9, 1e-3, &r, &error));
    assert_true(r.passed);

    ASSERT_OK(
        attn_gradcheck(f->context, function, "wrong", inputs, 2, 1e-3, 1e-9, 1e-3, &r, &error));
    const double slope = -6 * exp(0.6) + 2;
    assert_false(r.passed);
    assert_int_equal(r.input, 1);
    assert_int_equal(r.index[0], 1);
    assert_int_equal(r.index[1], 2);
    assert_true(fabs(r.numeric - slope) < 1e-8);
    assert_true(fabs(r.analytic - slope - 0.5) < 1e-12);
    assert_true(fabs(r.error - 0.5 / -slope) < 1e-8);

    ASSERT_OK(attn_gradcheck(f->context, function, "NaN", inputs, 1, 1e-3, 1e-9, 1e-3, &r, &error));
    assert_true(!r.passed && isnan(r.error) && r.index[0] == 0 && r.index[1] == 0);
    assert_memory_equal(numbers, before, sizeof before); // inputs are never moved

    // Any strides; nothing to compare.
    ASSERT_OK(attn_tensor_transpose(&inputs[1], 0, 1, &inputs[1], &error));
    ASSERT_OK(
        attn_gradcheck(f->context, function, "unused", inputs, 2, 1e-3, 1e-9, 1e-3, &r, &error));
    assert_true(r.passed && r.checked == 12);
}

static void refusals(void **state)
{
    struct fixture *const f = *state;
    double numbers[6] = {0};
    attn_tensor inputs[] = {attn_tensor_wrap(numbers, ATTN_F64, SHAPE(2, 3)),
                            attn_tensor_wrap(numbers, ATTN_F64, SHAPE(2, 3))};
    attn_gradcheck_report r = {.checked = -1};
    attn_error error;
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "gradcheck: function is NULL",
                 attn_gradcheck(f->context, NULL, "", inputs, 2, 1e-3, 1, 1, &r, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "gradcheck: count (-2) must not be negative",
                 attn_gradcheck(f->context, function, "", inputs, -2, 1e-3, 1, 1, &r, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "gradcheck: step (0) must be in (0, 1)",
                 attn_gradcheck(f->context, function, "", inputs, 2, 0, 1, 1, &r, &error));
    ASSERT_FAILS(ATTN_ERR_STATE, "gradcheck: the function's result is absent",
                 attn_gradcheck(f->context, function, "absent", inputs, 2, 1e-3, 1, 1, &r, &error));
    ASSERT_FAILS(ATTN_ERR_SHAPE,
                 "backward: a var of shape [2,3] is no scalar; use attn_backward_from",
                 attn_gradcheck(f->context, function, "vector", inputs, 2, 1e-3, 1, 1, &r, &error));
    ASSERT_FAILS(ATTN_ERR_SHAPE,
                 "matmul: shapes [2,3] and [2,3] do not fit: the first's columns must be as many "
                 "as the second's rows",
                 attn_gradcheck(f->context, function, "fails", inputs, 2, 1e-3, 1, 1, &r, &error));
    inputs[1].dtype = ATTN_F32;
    ASSERT_FAILS(ATTN_ERR_DTYPE, "gradcheck: input 1 is float32, not float64",
                 attn_gradcheck(f->context, function, "", inputs, 2, 1e-3, 1, 1, &r, &error));
    assert_int_equal(r.checked, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(verdicts, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(refusals, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
