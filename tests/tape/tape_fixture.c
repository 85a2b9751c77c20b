#include "tape_fixture.h"

#include <math.h>
#include <stdlib.h>

int fixture_setup(void **state)
{
    struct fixture *const f = calloc(1, sizeof *f);
    attn_error error;
    assert_non_null(f);
    f->random = 42;
    ASSERT_OK(attn_context_create(NULL, &f->context, &error));
    ASSERT_OK(attn_tape_create(f->context, &f->tape, &error));
    *state = f;
    return 0;
}

int fixture_teardown(void **state)
{
    struct fixture *const f = *state;
    if (attn_tape_status(f->tape) != ATTN_OK) {
        print_error("left on the tape: %s\n", attn_tape_error(f->tape)->text);
        return 1;
    }
    attn_tape_destroy(f->tape);
    attn_context_destroy(f->context);
    test_pool_end(&f->pool);
    free(f);
    return 0;
}

attn_var leaf(struct fixture *f, attn_dtype dtype, int32_t ndim, const int64_t *shape,
              const double *values)
{
    const attn_tensor wide = attn_tensor_wrap_const(values, ATTN_F64, ndim, shape);
    const attn_tensor tensor = test_tensor_as(&f->pool, dtype, &wide);
    return attn_input(f->tape, &tensor, true);
}

attn_var random_leaf(struct fixture *f, attn_dtype dtype, int32_t ndim, const int64_t *shape)
{
    const attn_tensor tensor = test_tensor(&f->pool, dtype, ndim, shape);
    test_fill_normal(&tensor, 1, &f->random);
    return attn_input(f->tape, &tensor, true);
}

void assert_elements(const attn_tensor *tensor, const double *values)
{
    attn_error error;
    attn_comparison found;
    const attn_tensor expected =
        attn_tensor_wrap_const(values, ATTN_F64, tensor->ndim, tensor->shape);
    const double relative = tensor->dtype == ATTN_F64 ? 1e-12 : 1e-6;
    ASSERT_OK(attn_tensor_compare(tensor, &expected, 1e-300, relative, &found, &error));
    if (found.differing > 0) {
        print_error("%.17g instead of %.17g\n", found.worst_actual, found.worst_expected);
        fail();
    }
}

void assert_var(attn_var var, attn_dtype dtype, int32_t ndim, const int64_t *shape,
                const double *values)
{
    const attn_tensor value = attn_value(var);
    if (var.tape && attn_tape_status(var.tape) != ATTN_OK) {
        print_error("%s\n", attn_tape_error(var.tape)->text);
    }
    assert_int_equal(value.dtype, dtype);
    assert_int_equal(value.ndim, ndim);
    for (int32_t d = 0; d < ndim; d++) {
        assert_int_equal(value.shape[d], shape[d]);
    }
    assert_elements(&value, values);
}

void assert_tape_failed(attn_tape *tape, attn_status status, const char *text)
{
    assert_string_equal(attn_tape_error(tape)->text, text);
    assert_int_equal(attn_tape_status(tape), status);
    assert_int_equal(attn_tape_error(tape)->status, status);
    attn_tape_reset(tape);
    assert_int_equal(attn_tape_status(tape), ATTN_OK);
    assert_string_equal(attn_tape_error(tape)->text, "");
}

attn_var mix(attn_var a)
{
    const attn_tensor value = attn_value(a);
    const int64_t count = value.dtype == ATTN_DTYPE_NONE ? 0 : attn_tensor_count(&value);
    double *const weights = malloc((size_t)(count + 1) * sizeof *weights);
    assert_non_null(weights);
    for (int64_t n = 0; n < count; n++) {
        weights[n] = 0.5 + sin(1.7 * (double)n + 0.3);
    }
    struct test_pool pool = {0};
    const attn_tensor wide = attn_tensor_wrap(weights, ATTN_F64, value.ndim, value.shape);
    const attn_tensor tensor = count > 0 ? test_tensor_as(&pool, value.dtype, &wide) : value;
    const attn_var factor = attn_input(a.tape, &tensor, false);
    test_pool_end(&pool);
    free(weights);
    return attn_sum_all(attn_multiply(factor, attn_add(a, attn_multiply(a, a))));
}

attn_var gradient_penalty(attn_var scalar, const attn_var *inputs, int64_t count)
{
    attn_var grads[8], total = ATTN_NO_VAR;
    attn_error error;
    assert_true(count >= 1 && count <= 8);
    if (attn_tape_status(scalar.tape) != ATTN_OK) {
        return scalar;
    }
    ASSERT_OK(attn_gradients(scalar, inputs, count, true, grads, &error));
    for (int64_t k = 0; k < count; k++) {
        const attn_var part = mix(grads[k]);
        total = total.tape ? attn_add(total, part) : part;
    }
    return total;
}

void assert_gradients(const attn_context *context, const char *name, attn_scalar_function function,
                      void *user, const attn_tensor *inputs, int64_t count)
{
    attn_gradcheck_report report;
    attn_error error;
    ASSERT_OK(
        attn_gradcheck(context, function, user, inputs, count, 1e-3, 1e-7, 1e-2, &report, &error));
    if (!report.passed) {
        print_error("%s: input %d at [%d,%d,%d,%d]: analytic %.12g, numeric %.12g, error %g\n",
                    name, (int)report.input, (int)report.index[0], (int)report.index[1],
                    (int)report.index[2], (int)report.index[3], report.analytic, report.numeric,
                    report.error);
        fail();
    }
    int64_t elements = 0;
    for (int64_t k = 0; k < count; k++) {
        elements += attn_tensor_count(&inputs[k]);
    }
    assert_int_equal(report.checked, elements);
}
