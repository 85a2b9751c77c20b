// What the ops compute: by hand, in both precisions, for views, empty tensors and NaN.
#include <float.h>
#include <math.h>
#include <string.h>

#include "tape_fixture.h"

static const attn_dtype dtypes[] = {ATTN_F32, ATTN_F64};

#define NUMBERS VALUES(1, 2, 3, 4, 5, 6)

// ---- elementwise --------------------------------------------------------------------------------

static void elementwise(void **state)
{
    struct fixture *const f = *state;
    for (int n = 0; n < 2; n++) {
        const attn_dtype t = dtypes[n];
        const attn_var a = leaf(f, t, SHAPE(2, 3), NUMBERS);
        const attn_var row = leaf(f, t, SHAPE(3), VALUES(10, 20, 30));
        const attn_var column = leaf(f, t, SHAPE(2, 1), VALUES(2, 4));
        assert_var(attn_add(a, row), t, SHAPE(2, 3), VALUES(11, 22, 33, 14, 25, 36));
        assert_var(attn_subtract(row, column), t, SHAPE(2, 3), VALUES(8, 18, 28, 6, 16, 26));
        assert_var(attn_multiply(column, a), t, SHAPE(2, 3), VALUES(2, 4, 6, 16, 20, 24));
        assert_var(attn_divide(a, column), t, SHAPE(2, 3), VALUES(0.5, 1, 1.5, 1, 1.25, 1.5));
        assert_var(attn_scale(column, -0.5), t, SHAPE(2, 1), VALUES(-1, -2));
        const attn_var turned = attn_transpose(a, 0, 1);
        assert_var(attn_add(turned, turned), t, SHAPE(3, 2), VALUES(2, 8, 4, 10, 6, 12));
        assert_var(attn_exp(leaf(f, t, SHAPE(3), VALUES(0, 1, -1))), t, SHAPE(3),
                   VALUES(1, 2.718281828459045, 0.36787944117144233));
        assert_var(attn_log(leaf(f, t, SHAPE(2), VALUES(1, 10))), t, SHAPE(2),
                   VALUES(0, 2.302585092994046));
        assert_var(attn_tanh(leaf(f, t, SHAPE(2), VALUES(0.5, -30))), t, SHAPE(2),
                   VALUES(0.46211715726000973, -1));
        attn_tape_reset(f->tape);
    }
    // A factor is rounded to the operand's precision, as torch rounds a Python number.
    const attn_var third = attn_scale(leaf(f, ATTN_F32, SHAPE(1), VALUES(3)), 1.0 / 3);
    const volatile float expected = 3.0F * (float)(1.0 / 3);
    assert_true(attn_item(third) == (double)expected);
}

static void special_values(void **state)
{
    struct fixture *const f = *state;
    const double inf = INFINITY, nan = NAN;
    for (int n = 0; n < 2; n++) {
        const attn_dtype t = dtypes[n];
        const attn_var x = leaf(f, t, SHAPE(3), VALUES(0, inf, nan));
        assert_var(attn_log(x), t, SHAPE(3), VALUES(-inf, inf, nan));
        assert_var(attn_exp(attn_scale(x, -1)), t, SHAPE(3), VALUES(1, 0, nan));
        assert_var(attn_tanh(x), t, SHAPE(3), VALUES(0, 1, nan));
        assert_var(attn_divide(x, x), t, SHAPE(3), VALUES(nan, nan, nan));
        assert_var(attn_sum(x, 0, false), t, 0, NULL, VALUES(nan));
        // Softmax: NaN and +inf spoil their row, -inf has weight 0, a row of -inf is NaN.
        const attn_var rows = leaf(f, t, SHAPE(4, 2), VALUES(nan, 1, inf, 1, -inf, 1, -inf, -inf));
        assert_var(attn_softmax(rows, 1), t, SHAPE(4, 2),
                   VALUES(nan, nan, nan, nan, 0, 1, nan, nan));
        assert_var(attn_log_softmax(rows, 1), t, SHAPE(4, 2),
                   VALUES(nan, nan, nan, nan, -inf, 0, nan, nan));
        assert_var(attn_max(rows, 1, false), t, SHAPE(4), VALUES(nan, inf, 1, -inf));
        // The largest finite logits do not overflow.
        const double most = t == ATTN_F32 ? FLT_MAX : DBL_MAX;
        const attn_var large = leaf(f, t, SHAPE(3), VALUES(most, -most, most));
        assert_var(attn_softmax(large, 0), t, SHAPE(3), VALUES(0.5, 0, 0.5));
        attn_tape_reset(f->tape);
    }
}

// ---- shape --------------------------------------------------------------------------------------

static void shape(void **state)
{
    struct fixture *const f = *state;
    const attn_dtype t = ATTN_F32;
    const attn_var a = leaf(f, t, SHAPE(2, 3), NUMBERS);
    const attn_tensor whole = attn_value(a);
    const attn_var turned = attn_transpose(a, -2, -1);
    assert_var(turned, t, SHAPE(3, 2), VALUES(1, 4, 2, 5, 3, 6));
    assert_ptr_equal(attn_value(turned).data, whole.data); // a view
    assert_var(attn_view(a, SHAPE(3, -1)), t, SHAPE(3, 2), NUMBERS);
    assert_ptr_equal(attn_value(attn_view(a, SHAPE(6))).data, whole.data);
    assert_int_equal(attn_contiguous(a).index, a.index);
    const attn_tensor dense = attn_value(attn_contiguous(turned));
    assert_true(attn_tensor_is_contiguous(&dense));
    assert_elements(&dense, VALUES(1, 4, 2, 5, 3, 6));
    assert_var(attn_expand(attn_slice(a, 1, 2, 3), SHAPE(2, 2, 2)), t, SHAPE(2, 2, 2),
               VALUES(3, 3, 6, 6, 3, 3, 6, 6));
    assert_var(attn_slice(a, -1, 1, 3), t, SHAPE(2, 2), VALUES(2, 3, 5, 6));
    assert_var(attn_select(a, 0, 1), t, SHAPE(3), VALUES(4, 5, 6));
    assert_var(attn_select(turned, 0, 2), t, SHAPE(2), VALUES(3, 6));
    assert_var(attn_cat((attn_var[]){a, attn_slice(a, 0, 0, 1)}, 2, 0), t, SHAPE(3, 3),
               VALUES(1, 2, 3, 4, 5, 6, 1, 2, 3));
    assert_var(attn_cat((attn_var[]){turned, turned}, 2, -1), t, SHAPE(3, 4),
               VALUES(1, 4, 1, 4, 2, 5, 2, 5, 3, 6, 3, 6));
    const attn_var rows[] = {attn_select(a, 0, 0), attn_select(a, 0, 1)};
    assert_var(attn_stack(rows, 2, 0), t, SHAPE(2, 3), NUMBERS);
    assert_var(attn_stack(rows, 2, -1), t, SHAPE(3, 2), VALUES(1, 4, 2, 5, 3, 6));
}

// ---- masks --------------------------------------------------------------------------------------

static void masks(void **state)
{
    struct fixture *const f = *state;
    const double inf = INFINITY;
    for (int n = 0; n < 2; n++) {
        const attn_dtype t = dtypes[n];
        const attn_var a = leaf(f, t, SHAPE(3, 3), VALUES(1, 2, 3, 4, 5, 6, 7, 8, 9));
        assert_var(attn_tril(a, 0), t, SHAPE(3, 3), VALUES(1, 0, 0, 4, 5, 0, 7, 8, 9));
        assert_var(attn_tril(a, 1), t, SHAPE(3, 3), VALUES(1, 2, 0, 4, 5, 6, 7, 8, 9));
        assert_var(attn_triu(a, 1), t, SHAPE(3, 3), VALUES(0, 2, 3, 0, 0, 6, 0, 0, 0));
        assert_var(attn_triu(a, INT64_MIN), t, SHAPE(3, 3), VALUES(1, 2, 3, 4, 5, 6, 7, 8, 9));
        // What is masked is replaced, not multiplied: infinities do not turn into NaN.
        const attn_var wide = leaf(f, t, SHAPE(2, 1, 3), VALUES(inf, inf, inf, 1, 2, 3));
        assert_var(attn_tril(wide, 0), t, SHAPE(2, 1, 3), VALUES(inf, 0, 0, 1, 0, 0));
        const bool above[] = {false, true, true, false, false, true, false, false, false};
        const attn_tensor mask = attn_tensor_wrap_const(above, ATTN_BOOL, SHAPE(3, 3));
        assert_var(attn_masked_fill(a, &mask, -inf), t, SHAPE(3, 3),
                   VALUES(1, -inf, -inf, 4, 5, -inf, 7, 8, 9));
        const attn_var weights = attn_softmax(attn_masked_fill(attn_scale(a, 0), &mask, -inf), -1);
        const double third = t == ATTN_F32 ? (double)(1.0F / 3) : 1.0 / 3;
        assert_var(weights, t, SHAPE(3, 3), VALUES(1, 0, 0, 0.5, 0.5, 0, third, third, third));
        attn_tape_reset(f->tape);
    }
}

// ---- reductions ---------------------------------------------------------------------------------

static void reductions(void **state)
{
    struct fixture *const f = *state;
    for (int n = 0; n < 2; n++) {
        const attn_dtype t = dtypes[n];
        const attn_var a = leaf(f, t, SHAPE(2, 3), VALUES(1, 6, 2, 4, 4, 1));
        const attn_var turned = attn_transpose(a, 0, 1);
        assert_var(attn_sum(a, 0, false), t, SHAPE(3), VALUES(5, 10, 3));
        assert_var(attn_sum(a, 1, true), t, SHAPE(2, 1), VALUES(9, 9));
        assert_var(attn_sum(turned, -1, false), t, SHAPE(3), VALUES(5, 10, 3));
        assert_var(attn_mean(a, -1, false), t, SHAPE(2), VALUES(3, 3));
        assert_var(attn_max(a, 0, true), t, SHAPE(1, 3), VALUES(4, 6, 2));
        assert_var(attn_max(turned, 0, false), t, SHAPE(2), VALUES(6, 4));
        assert_var(attn_sum_all(turned), t, 0, NULL, VALUES(18));
        assert_var(attn_mean_all(a), t, 0, NULL, VALUES(3));
        // Rows of log(1), log(2), log(5).
        const attn_var logits = attn_log(leaf(f, t, SHAPE(1, 3), VALUES(1, 2, 5)));
        assert_var(attn_softmax(logits, 1), t, SHAPE(1, 3), VALUES(0.125, 0.25, 0.625));
        assert_var(attn_softmax(attn_transpose(logits, 0, 1), 0), t, SHAPE(3, 1),
                   VALUES(0.125, 0.25, 0.625));
        assert_var(attn_log_softmax(logits, 1), t, SHAPE(1, 3),
                   VALUES(-2.0794415416798357, -1.3862943611198906, -0.4700036292457356));
        attn_tape_reset(f->tape);
    }
}

// float32 sums are exact in double before the one rounding; more than one tile and one job.
static void long_sums(void **state)
{
    struct fixture *const f = *state;
    const int64_t rows = 300, columns = 211;
    const attn_tensor x = test_tensor(&f->pool, ATTN_F32, 2, (int64_t[]){rows, columns});
    float *const elements = x.data;
    for (int64_t n = 0; n < rows * columns; n++) {
        elements[n] = (float)((n * 7919) % 1000003) * 1e-3F;
    }
    const attn_var a = attn_input(f->tape, &x, false);
    const attn_tensor by_column = attn_value(attn_sum(a, 0, false));
    const attn_tensor by_row = attn_value(attn_sum(a, 1, false));
    const attn_tensor twice = attn_value(attn_add(a, attn_exp(attn_scale(a, -1))));
    double all = 0;
    for (int64_t j = 0; j < columns; j++) {
        double sum = 0;
        for (int64_t i = 0; i < rows; i++) {
            sum += elements[i * columns + j];
        }
        assert_true(((const float *)by_column.data)[j] == (float)sum);
    }
    for (int64_t i = 0; i < rows; i++) {
        double sum = 0;
        for (int64_t j = 0; j < columns; j++) {
            const float x_ij = elements[i * columns + j];
            sum += x_ij;
            all += x_ij;
            assert_true(((const float *)twice.data)[i * columns + j] ==
                        x_ij + (float)exp((double)-x_ij));
        }
        assert_true(((const float *)by_row.data)[i] == (float)sum);
    }
    assert_true(attn_item(attn_sum_all(a)) == (double)(float)all);
}

// ---- choosing -----------------------------------------------------------------------------------

static void choosing(void **state)
{
    struct fixture *const f = *state;
    for (int n = 0; n < 2; n++) {
        const attn_dtype t = dtypes[n];
        const attn_var a = leaf(f, t, SHAPE(3, 2), NUMBERS);
        const int32_t rows[] = {2, 0, 2, 1};
        const attn_tensor indices = attn_tensor_wrap_const(rows, ATTN_I32, SHAPE(2, 2));
        assert_var(attn_embedding(a, &indices), t, SHAPE(2, 2, 2), VALUES(5, 6, 1, 2, 5, 6, 3, 4));
        const int64_t one = 1;
        const attn_tensor scalar = attn_tensor_wrap_const(&one, ATTN_I64, 0, NULL);
        assert_var(attn_embedding(attn_transpose(a, 0, 1), &scalar), t, SHAPE(3), VALUES(2, 4, 6));
        // -log(1/8), -log(5/8): their mean.
        const attn_var logits = attn_log(leaf(f, t, SHAPE(2, 3), VALUES(1, 2, 5, 1, 2, 5)));
        const int64_t classes[] = {0, 2};
        const attn_tensor targets = attn_tensor_wrap_const(classes, ATTN_I64, SHAPE(2));
        assert_var(attn_cross_entropy(logits, &targets), t, 0, NULL, VALUES(1.2747225854627857));
        const attn_var single = attn_select(logits, 0, 0);
        assert_var(attn_cross_entropy(single, &scalar), t, 0, NULL, VALUES(1.3862943611198906));
        assert_var(attn_mse_loss(a, attn_scale(a, 2)), t, 0, NULL, VALUES(91.0 / 6));
        attn_tape_reset(f->tape);
    }
}

// torch's stream: the bits of attn_dropout_mask in row-major order, whatever the strides; survivors
// times 1/(1-p) in the tensor's precision; two masks follow each other.
static void dropout(void **state)
{
    struct fixture *const f = *state;
    attn_generator *generator, *reference;
    attn_error error;
    ASSERT_OK(attn_generator_create(f->context, 77, &generator, &error));
    ASSERT_OK(attn_generator_create(f->context, 77, &reference, &error));
    for (int n = 0; n < 2; n++) {
        const attn_dtype t = dtypes[n];
        const attn_var x = attn_transpose(random_leaf(f, t, SHAPE(1037, 3)), 0, 1);
        const attn_tensor y = attn_value(attn_dropout(x, 0.3, true, generator));
        const attn_tensor value = attn_value(x);
        const attn_tensor keep = test_tensor(&f->pool, ATTN_BOOL, 2, y.shape);
        ASSERT_OK(attn_dropout_mask(reference, 0.3, &keep, &error));
        const double scale = t == ATTN_F32 ? (double)(1.0F / 0.7F) : 1 / 0.7;
        for (int64_t i = 0; i < 3; i++) {
            for (int64_t j = 0; j < 1037; j++) {
                const double kept = test_at(&value, i, j, 0, 0) * scale;
                const double expected = test_at(&keep, i, j, 0, 0) == 0 ? 0
                                        : t == ATTN_F32                 ? (double)(float)kept
                                                                        : kept;
                assert_true(test_at(&y, i, j, 0, 0) == expected);
            }
        }
    }
    const attn_var x = leaf(f, ATTN_F32, 0, NULL, VALUES(3));
    const double once = attn_item(attn_dropout(x, 0.5, true, generator));
    assert_true(once == 0 || once == 6);
    attn_generator_state before, after;
    attn_generator_save(generator, &before);
    assert_int_equal(attn_dropout(x, 0, true, generator).index, x.index);
    assert_int_equal(attn_dropout(x, 0.5, false, NULL).index, x.index);
    assert_var(attn_dropout(random_leaf(f, ATTN_F32, SHAPE(2, 0)), 0.5, true, generator), ATTN_F32,
               SHAPE(2, 0), NULL);
    attn_generator_save(generator, &after);
    assert_memory_equal(&before, &after, sizeof before);
    attn_generator_destroy(generator);
    attn_generator_destroy(reference);
}

// ---- nothing there ------------------------------------------------------------------------------

static void empty_tensors(void **state)
{
    struct fixture *const f = *state;
    attn_error error;
    for (int n = 0; n < 2; n++) {
        const attn_dtype t = dtypes[n];
        const attn_var none = random_leaf(f, t, SHAPE(2, 0));
        const attn_var flat = random_leaf(f, t, SHAPE(0, 3));
        assert_var(attn_add(none, random_leaf(f, t, SHAPE(2, 1))), t, SHAPE(2, 0), NULL);
        assert_var(attn_softmax(none, 1), t, SHAPE(2, 0), NULL);
        assert_var(attn_log_softmax(flat, 1), t, SHAPE(0, 3), NULL);
        assert_var(attn_sum(none, 1, false), t, SHAPE(2), VALUES(0, 0));
        assert_var(attn_mean(none, 1, false), t, SHAPE(2), VALUES(NAN, NAN));
        assert_var(attn_max(flat, 1, false), t, SHAPE(0), NULL);
        assert_var(attn_sum_all(none), t, 0, NULL, VALUES(0));
        assert_var(attn_tril(none, 0), t, SHAPE(2, 0), NULL);
        assert_var(attn_cat((attn_var[]){none, none}, 2, 1), t, SHAPE(2, 0), NULL);
        assert_var(attn_contiguous(attn_transpose(none, 0, 1)), t, SHAPE(0, 2), NULL);
        // No terms: zeros, or the bias.
        const attn_var product = attn_matmul(none, flat);
        assert_var(product, t, SHAPE(2, 3), VALUES(0, 0, 0, 0, 0, 0));
        const attn_var bias = leaf(f, t, SHAPE(3), VALUES(1, 2, 3));
        assert_var(attn_linear(none, attn_transpose(flat, 0, 1), bias), t, SHAPE(2, 3),
                   VALUES(1, 2, 3, 1, 2, 3));
        assert_var(
            attn_linear(random_leaf(f, t, SHAPE(0, 4, 2)), random_leaf(f, t, SHAPE(3, 2)), bias), t,
            SHAPE(0, 4, 3), NULL);
        const attn_tensor no_rows = attn_tensor_wrap(NULL, ATTN_I64, SHAPE(0, 2));
        assert_var(attn_embedding(random_leaf(f, t, SHAPE(3, 2)), &no_rows), t, SHAPE(0, 2, 2),
                   NULL);
        const attn_var loss = attn_add(
            attn_sum_all(product),
            attn_add(attn_sum_all(attn_multiply(none, none)), attn_sum_all(attn_softmax(flat, 1))));
        ASSERT_OK(attn_backward(loss, &error));
        const attn_tensor grad = attn_grad(none);
        assert_int_equal(attn_tensor_count(&grad), 0);
        attn_tape_reset(f->tape);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(elementwise, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(special_values, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(shape, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(masks, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(reductions, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(long_sums, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(choosing, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(dropout, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(empty_tensors, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
