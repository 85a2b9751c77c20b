// Every refusal: its status, its text, and that the tape stays failed until the reset.
#include <math.h>
#include <string.h>

#include "tape_fixture.h"

#define ASSERT_REFUSED(expected, text, expression)                    \
    do {                                                              \
        const attn_var refused = (expression);                        \
        assert_ptr_equal(refused.tape, f->tape);                      \
        assert_int_equal(attn_value(refused).dtype, ATTN_DTYPE_NONE); \
        assert_tape_failed(f->tape, expected, text);                  \
        make_vars(f, &v);                                             \
    } while (0)

// Vars that the refusals need, made anew after every reset.
struct vars {
    attn_var m23, m45, v3, scalar, f32;
};

static void make_vars(struct fixture *f, struct vars *v)
{
    v->m23 = random_leaf(f, ATTN_F64, SHAPE(2, 3));
    v->m45 = random_leaf(f, ATTN_F64, SHAPE(4, 5));
    v->v3 = random_leaf(f, ATTN_F64, SHAPE(3));
    v->scalar = random_leaf(f, ATTN_F64, 0, NULL);
    v->f32 = random_leaf(f, ATTN_F32, SHAPE(2, 3));
}

// ---- ops ----------------------------------------------------------------------------------------

static void elementwise(void **state)
{
    struct fixture *const f = *state;
    struct vars v;
    make_vars(f, &v);
    ASSERT_REFUSED(ATTN_ERR_SHAPE, "add: shapes [2,3] and [4,5] do not broadcast",
                   attn_add(v.m23, v.m45));
    ASSERT_REFUSED(ATTN_ERR_DTYPE, "multiply: operand 1 is float64 but operand 2 is float32",
                   attn_multiply(v.m23, v.f32));
    ASSERT_REFUSED(ATTN_ERR_INVALID_ARGUMENT, "subtract: operand 2 is absent",
                   attn_subtract(v.m23, ATTN_NO_VAR));
    ASSERT_REFUSED(ATTN_ERR_INVALID_ARGUMENT, "divide: operand 1 is absent",
                   attn_divide(ATTN_NO_VAR, v.m23));
    assert_null(attn_exp(ATTN_NO_VAR).tape);
}

static void shape(void **state)
{
    struct fixture *const f = *state;
    struct vars v;
    make_vars(f, &v);
    ASSERT_REFUSED(ATTN_ERR_SHAPE, "view: shape [4] does not hold the 6 elements of shape [2,3]",
                   attn_view(v.m23, SHAPE(4)));
    ASSERT_REFUSED(
        ATTN_ERR_NOT_CONTIGUOUS,
        "view: tensor of shape [3,2] with stride [1,3] is not contiguous; call contiguous "
        "first",
        attn_view(attn_transpose(v.m23, 0, 1), SHAPE(6)));
    ASSERT_REFUSED(ATTN_ERR_SHAPE, "cat: operand 1 has shape [2,3] but operand 2 has [4,5]",
                   attn_cat((attn_var[]){v.m23, v.m45}, 2, 0));
    ASSERT_REFUSED(ATTN_ERR_SHAPE, "cat: operand 1 has shape [2,3] but operand 3 has [3]",
                   attn_cat((attn_var[]){v.m23, v.m23, v.v3}, 3, 1));
    ASSERT_REFUSED(ATTN_ERR_INVALID_ARGUMENT,
                   "cat: dim 2 is out of range for operands of shape [2,3]",
                   attn_cat((attn_var[]){v.m23, v.m23}, 2, 2));
    ASSERT_REFUSED(ATTN_ERR_SHAPE, "stack: operand 1 has shape [2,3] but operand 2 has [3]",
                   attn_stack((attn_var[]){v.m23, v.v3}, 2, 0));
    ASSERT_REFUSED(ATTN_ERR_INVALID_ARGUMENT,
                   "stack: dim -4 is out of range for operands of shape [2,3]",
                   attn_stack((attn_var[]){v.m23, v.m23}, 2, -4));
    ASSERT_REFUSED(
        ATTN_ERR_SHAPE, "stack: shape [1,1,1,1,1,1,1,1] has 8 dims already, the most",
        attn_stack((attn_var[]){attn_view(v.scalar, SHAPE(1, 1, 1, 1, 1, 1, 1, 1))}, 1, 0));
    assert_null(attn_cat(NULL, 0, 0).tape);
    // Core's own texts: only that they come through.
    const attn_var refused[] = {attn_transpose(v.m23, 0, 2), attn_exp(v.m23)};
    assert_ptr_equal(refused[1].tape, f->tape);
    assert_int_equal(attn_tape_status(f->tape), ATTN_ERR_INVALID_ARGUMENT);
    assert_memory_equal(attn_tape_error(f->tape)->text, "transpose: ", 11);
    attn_tape_reset(f->tape);
    make_vars(f, &v);
    attn_expand(v.m23, SHAPE(4, 3));
    assert_int_equal(attn_tape_status(f->tape), ATTN_ERR_SHAPE);
    assert_memory_equal(attn_tape_error(f->tape)->text, "expand: ", 8);
    attn_tape_reset(f->tape);
    make_vars(f, &v);
    attn_slice(v.m23, 0, 1, 3);
    assert_int_equal(attn_tape_status(f->tape), ATTN_ERR_INVALID_ARGUMENT);
    assert_memory_equal(attn_tape_error(f->tape)->text, "slice: ", 7);
    attn_tape_reset(f->tape);
    make_vars(f, &v);
    attn_select(v.m23, 1, 3);
    assert_int_equal(attn_tape_status(f->tape), ATTN_ERR_INVALID_ARGUMENT);
    assert_memory_equal(attn_tape_error(f->tape)->text, "select: ", 8);
    attn_tape_reset(f->tape);
}

static void masks(void **state)
{
    struct fixture *const f = *state;
    struct vars v;
    make_vars(f, &v);
    const float numbers[2] = {0};
    const bool flags[2] = {false, true};
    const attn_tensor number_mask = attn_tensor_wrap_const(numbers, ATTN_F32, SHAPE(2, 1));
    const attn_tensor wrong_shape = attn_tensor_wrap_const(flags, ATTN_BOOL, SHAPE(2));
    ASSERT_REFUSED(ATTN_ERR_DTYPE, "masked_fill: the mask is float32, not bool or uint8",
                   attn_masked_fill(v.m23, &number_mask, 0));
    ASSERT_REFUSED(ATTN_ERR_SHAPE,
                   "masked_fill: a mask of shape [2] does not broadcast to shape [2,3]",
                   attn_masked_fill(v.m23, &wrong_shape, 0));
    ASSERT_REFUSED(ATTN_ERR_SHAPE, "tril: shape [3] has no rows and columns", attn_tril(v.v3, 0));
    ASSERT_REFUSED(ATTN_ERR_SHAPE, "triu: shape [] has no rows and columns",
                   attn_triu(v.scalar, 0));
    attn_masked_fill(v.m23, NULL, 0);
    assert_int_equal(attn_tape_status(f->tape), ATTN_ERR_INVALID_ARGUMENT);
    attn_tape_reset(f->tape);
}

static void reductions(void **state)
{
    struct fixture *const f = *state;
    struct vars v;
    make_vars(f, &v);
    ASSERT_REFUSED(ATTN_ERR_INVALID_ARGUMENT, "sum: dim 2 is out of range for shape [2,3]",
                   attn_sum(v.m23, 2, false));
    ASSERT_REFUSED(ATTN_ERR_INVALID_ARGUMENT, "mean: dim 0 is out of range for shape []",
                   attn_mean(v.scalar, 0, false));
    ASSERT_REFUSED(ATTN_ERR_INVALID_ARGUMENT, "max: dim -3 is out of range for shape [2,3]",
                   attn_max(v.m23, -3, false));
    ASSERT_REFUSED(ATTN_ERR_SHAPE, "max: dim 1 of shape [2,0] has no elements",
                   attn_max(attn_slice(v.m23, 1, 0, 0), 1, false));
    ASSERT_REFUSED(ATTN_ERR_INVALID_ARGUMENT, "softmax: dim 2 is out of range for shape [2,3]",
                   attn_softmax(v.m23, 2));
    ASSERT_REFUSED(ATTN_ERR_INVALID_ARGUMENT, "log_softmax: dim -1 is out of range for shape []",
                   attn_log_softmax(v.scalar, -1));
}

static void products(void **state)
{
    struct fixture *const f = *state;
    struct vars v;
    make_vars(f, &v);
    ASSERT_REFUSED(ATTN_ERR_SHAPE,
                   "matmul: shapes [2,3] and [4,5] do not fit: the first's columns must be as many "
                   "as the second's rows",
                   attn_matmul(v.m23, v.m45));
    ASSERT_REFUSED(ATTN_ERR_SHAPE,
                   "matmul: shapes [3] and [4,5] do not fit: both need rows and columns",
                   attn_matmul(v.v3, v.m45));
    ASSERT_REFUSED(
        ATTN_ERR_SHAPE,
        "matmul: shapes [2,1,3] and [3,3,2] do not fit: their leading dims do not "
        "broadcast",
        attn_matmul(attn_view(v.m23, SHAPE(2, 1, 3)), random_leaf(f, ATTN_F64, SHAPE(3, 3, 2))));
    ASSERT_REFUSED(ATTN_ERR_SHAPE,
                   "linear: x of shape [2,3] does not fit a weight (out, in) of shape [4,5]",
                   attn_linear(v.m23, v.m45, ATTN_NO_VAR));
    ASSERT_REFUSED(ATTN_ERR_SHAPE,
                   "linear: x of shape [] does not fit a weight (out, in) of shape [2,3]",
                   attn_linear(v.scalar, v.m23, ATTN_NO_VAR));
    ASSERT_REFUSED(ATTN_ERR_SHAPE,
                   "linear: a bias of shape [3] does not fit a weight (out, in) of shape [2,3]",
                   attn_linear(v.m23, v.m23, v.v3));
    attn_var lse = v.m23;
    ASSERT_REFUSED(ATTN_ERR_INVALID_ARGUMENT,
                   "scaled_dot_product_attention: the descriptor is NULL",
                   attn_scaled_dot_product_attention(v.m23, v.m23, v.m23, ATTN_NO_VAR, ATTN_NO_VAR,
                                                     NULL, &lse));
    assert_int_equal(lse.generation, 0); // failed as well
    attn_sdpa_desc desc;
    attn_sdpa_desc_init(&desc);
    attn_scaled_dot_product_attention(v.m23, v.m23, v.m23, ATTN_NO_VAR, ATTN_NO_VAR, &desc, NULL);
    assert_int_equal(attn_tape_status(f->tape), ATTN_ERR_SHAPE);
    assert_memory_equal(attn_tape_error(f->tape)->text, "sdpa: ", 6);
    attn_tape_reset(f->tape);
}

static void training(void **state)
{
    struct fixture *const f = *state;
    struct vars v;
    make_vars(f, &v);
    ASSERT_REFUSED(ATTN_ERR_INVALID_ARGUMENT, "dropout: p (1) must be in [0, 1)",
                   attn_dropout(v.m23, 1, false, NULL));
    ASSERT_REFUSED(ATTN_ERR_INVALID_ARGUMENT, "dropout: p (nan) must be in [0, 1)",
                   attn_dropout(v.m23, (double)NAN, false, NULL));
    ASSERT_REFUSED(ATTN_ERR_INVALID_ARGUMENT, "dropout: training with p = 0.5 needs a generator",
                   attn_dropout(v.m23, 0.5, true, NULL));
    const int64_t numbers[] = {1, 4, -1};
    const attn_tensor bad = attn_tensor_wrap_const(numbers, ATTN_I64, SHAPE(2));
    const attn_tensor negative = attn_tensor_wrap_const(numbers + 2, ATTN_I64, SHAPE(1));
    const attn_tensor bytes = attn_tensor_wrap_const(numbers, ATTN_U8, SHAPE(2));
    const attn_tensor good = attn_tensor_wrap_const(numbers, ATTN_I64, SHAPE(1));
    ASSERT_REFUSED(ATTN_ERR_INVALID_ARGUMENT,
                   "embedding: element 1 of the indices is 4, which is not in [0, 4)",
                   attn_embedding(v.m45, &bad));
    ASSERT_REFUSED(ATTN_ERR_INVALID_ARGUMENT,
                   "embedding: element 0 of the indices is -1, which is not in [0, 4)",
                   attn_embedding(v.m45, &negative));
    ASSERT_REFUSED(ATTN_ERR_DTYPE, "embedding: the indices are uint8, not int64 or int32",
                   attn_embedding(v.m45, &bytes));
    ASSERT_REFUSED(ATTN_ERR_SHAPE, "embedding: a weight of shape [3] is no matrix",
                   attn_embedding(v.v3, &good));
    ASSERT_REFUSED(ATTN_ERR_INVALID_ARGUMENT,
                   "cross_entropy: element 1 of the targets is 4, which is not in [0, 3)",
                   attn_cross_entropy(v.m23, &bad));
    ASSERT_REFUSED(ATTN_ERR_SHAPE,
                   "cross_entropy: targets of shape [1] do not fit logits of shape [2,3]",
                   attn_cross_entropy(v.m23, &good));
    ASSERT_REFUSED(ATTN_ERR_SHAPE, "cross_entropy: the logits have no classes",
                   attn_cross_entropy(v.scalar, &good));
    ASSERT_REFUSED(ATTN_ERR_SHAPE, "mse_loss: shapes [2,3] and [3] differ",
                   attn_mse_loss(v.m23, v.v3));
}

static void leaves(void **state)
{
    struct fixture *const f = *state;
    struct vars v;
    make_vars(f, &v);
    double numbers[4] = {0};
    attn_tensor value = attn_tensor_wrap(numbers, ATTN_F64, SHAPE(2));
    attn_tensor grad = attn_tensor_wrap(numbers + 2, ATTN_F64, SHAPE(2));
    attn_tensor changed = attn_tensor_wrap(numbers, ATTN_I64, SHAPE(2));
    ASSERT_REFUSED(ATTN_ERR_DTYPE, "input: int64 is neither float32 nor float64",
                   attn_input(f->tape, &changed, true));
    ASSERT_REFUSED(ATTN_ERR_DTYPE, "borrow: int64 is neither float32 nor float64",
                   attn_borrow(f->tape, &changed, NULL));
    ASSERT_REFUSED(ATTN_ERR_DTYPE, "constant: bool is neither float32 nor float64",
                   attn_constant(f->tape, ATTN_BOOL, 1));
    changed = attn_tensor_wrap(numbers, ATTN_F64, SHAPE(1));
    ASSERT_REFUSED(ATTN_ERR_SHAPE, "borrow: value [2] and gradient [1] differ in shape",
                   attn_borrow(f->tape, &value, &changed));
    changed = attn_tensor_wrap(numbers + 2, ATTN_F32, SHAPE(2));
    ASSERT_REFUSED(ATTN_ERR_DTYPE, "borrow: the value is float64 but the gradient is float32",
                   attn_borrow(f->tape, &value, &changed));
    changed = attn_tensor_wrap_const(numbers + 2, ATTN_F64, SHAPE(2));
    ASSERT_REFUSED(ATTN_ERR_INVALID_ARGUMENT, "borrow: the gradient is read-only",
                   attn_borrow(f->tape, &value, &changed));
    ASSERT_REFUSED(ATTN_ERR_OVERLAP, "borrow: the gradient overlaps the value",
                   attn_borrow(f->tape, &value, &value));
    grad.stride[0] = 0;
    ASSERT_REFUSED(ATTN_ERR_OVERLAP, "borrow: the gradient overlaps itself",
                   attn_borrow(f->tape, &value, &grad));
    attn_input(f->tape, NULL, false);
    assert_int_equal(attn_tape_status(f->tape), ATTN_ERR_INVALID_ARGUMENT);
    attn_tape_reset(f->tape);
    make_vars(f, &v);
    assert_true(isnan(attn_item(v.m23)));
    assert_tape_failed(f->tape, ATTN_ERR_SHAPE, "item: the var has shape [2,3], not one element");
    assert_null(attn_input(NULL, &value, false).tape);
    assert_null(attn_constant(NULL, ATTN_F32, 0).tape);
    assert_int_equal(attn_value(ATTN_NO_VAR).dtype, ATTN_DTYPE_NONE);
    assert_int_equal(attn_grad(ATTN_NO_VAR).dtype, ATTN_DTYPE_NONE);
    assert_true(isnan(attn_item(ATTN_NO_VAR)));
    attn_error error;
    attn_tape *tape;
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "tape: the context must not be NULL",
                 attn_tape_create(NULL, &tape, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "tape: the result must not be NULL",
                 attn_tape_create(f->context, NULL, &error));
}

// ---- going back ---------------------------------------------------------------------------------

static void going_back(void **state)
{
    struct fixture *const f = *state;
    struct vars v;
    make_vars(f, &v);
    attn_error error;
    attn_tape *other;
    ASSERT_OK(attn_tape_create(f->context, &other, &error));
    attn_var grad = ATTN_NO_VAR;
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "backward: the var is absent",
                 attn_backward(ATTN_NO_VAR, &error));
    ASSERT_FAILS(ATTN_ERR_SHAPE,
                 "backward: a var of shape [2,3] is no scalar; use "
                 "attn_backward_from",
                 attn_backward(v.m23, &error));
    ASSERT_FAILS(ATTN_ERR_SHAPE,
                 "gradients: a var of shape [2,3] is no scalar; use "
                 "attn_backward_from",
                 attn_gradients(v.m23, &v.m23, 1, false, &grad, &error));
    const double numbers[6] = {0};
    attn_tensor upstream = attn_tensor_wrap_const(numbers, ATTN_F64, SHAPE(3, 2));
    ASSERT_FAILS(ATTN_ERR_SHAPE,
                 "backward: the var has shape [2,3] but the upstream gradient [3,2]",
                 attn_backward_from(v.m23, &upstream, &error));
    upstream = attn_tensor_wrap_const(numbers, ATTN_F32, SHAPE(2, 3));
    ASSERT_FAILS(ATTN_ERR_DTYPE, "backward: the var is float64 but the upstream gradient float32",
                 attn_backward_from(v.m23, &upstream, &error));
    const attn_var constant = attn_constant(f->tape, ATTN_F64, 1);
    ASSERT_FAILS(ATTN_ERR_STATE,
                 "gradients: input 1 does not depend on anything that wants a gradient",
                 attn_gradients(v.scalar, (attn_var[]){v.m23, constant}, 2, false,
                                (attn_var[2]){{0}}, &error));
    const attn_var foreign = attn_constant(other, ATTN_F64, 1);
    ASSERT_FAILS(ATTN_ERR_STATE, "gradients: input 0 belongs to another tape",
                 attn_gradients(v.scalar, &foreign, 1, false, &grad, &error));
    const attn_var absent = ATTN_NO_VAR;
    ASSERT_FAILS(ATTN_ERR_STATE, "gradients: input 0 is absent",
                 attn_gradients(v.scalar, &absent, 1, false, &grad, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "gradients: the count is out of range",
                 attn_gradients(v.scalar, &v.scalar, -1, false, &grad, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "gradients: inputs and gradients must not be NULL",
                 attn_gradients(v.scalar, NULL, 1, false, &grad, &error));
    assert_null(grad.tape);
    ASSERT_OK(attn_gradients(v.scalar, NULL, 0, false, NULL, &error));
    assert_int_equal(attn_tape_status(f->tape), ATTN_OK); // refusals here do not fail the tape

    attn_add(v.m23, v.m45);
    ASSERT_FAILS(ATTN_ERR_STATE,
                 "backward: the tape failed before: add: shapes [2,3] and [4,5] do not broadcast",
                 attn_backward(v.scalar, &error));
    attn_tape_reset(f->tape);
    ASSERT_FAILS(ATTN_ERR_STATE,
                 "backward: the var is stale: it was made before a reset or a release",
                 attn_backward(v.scalar, &error));
    const attn_var old = v.m23;
    make_vars(f, &v);
    ASSERT_FAILS(ATTN_ERR_STATE,
                 "gradients: input 0 is stale: it was made before a reset or a release",
                 attn_gradients(v.scalar, &old, 1, false, &grad, &error));
    attn_tape_destroy(other);
}

// ---- sticky errors ------------------------------------------------------------------------------

static void the_first_error_stays(void **state)
{
    struct fixture *const f = *state;
    struct vars v;
    make_vars(f, &v);
    attn_generator *generator;
    attn_error error;
    ASSERT_OK(attn_generator_create(f->context, 1, &generator, &error));
    attn_generator_state before, after;
    attn_generator_save(generator, &before);

    const attn_var sum = attn_add(v.m23, v.m45);
    attn_var chain = attn_softmax(attn_dropout(attn_tanh(sum), 0.5, true, generator), 9);
    chain = attn_dropout(v.m23, 0.5, true, generator); // a good var of a failed tape
    attn_tape_fail(f->tape, ATTN_ERR_IO, "later");
    assert_int_equal(attn_value(chain).dtype, ATTN_DTYPE_NONE);
    assert_int_equal(attn_value(v.m23).dtype, ATTN_F64); // what there was before can be read
    attn_generator_save(generator, &after);
    assert_memory_equal(&before, &after, sizeof before);
    assert_tape_failed(f->tape, ATTN_ERR_SHAPE, "add: shapes [2,3] and [4,5] do not broadcast");

    attn_exp(chain); // the failed var itself is stale now
    assert_tape_failed(f->tape, ATTN_ERR_STATE,
                       "exp: operand 1 is stale: it was made before a reset or a release");
    attn_tape_fail(f->tape, ATTN_ERR_IO, "disk full");
    assert_tape_failed(f->tape, ATTN_ERR_IO, "disk full");
    attn_tape_fail(f->tape, ATTN_ERR_IO, NULL);
    assert_tape_failed(f->tape, ATTN_ERR_IO, attn_status_message(ATTN_ERR_IO));
    attn_generator_destroy(generator);
}

// As if the tape's creation had failed and nobody had looked.
static void no_tape_at_all(void **state)
{
    struct fixture *const f = *state;
    attn_error error;
    const attn_tensor value = test_tensor(&f->pool, ATTN_F32, SHAPE(2));
    const attn_var chain = attn_softmax(attn_add(attn_input(NULL, &value, true), ATTN_NO_VAR), 0);
    assert_null(chain.tape);
    assert_int_equal(attn_tape_status(NULL), ATTN_ERR_INVALID_ARGUMENT);
    assert_string_equal(attn_tape_error(NULL)->text, "the tape is NULL");
    attn_tape_reset(NULL);
    attn_tape_fail(NULL, ATTN_ERR_IO, "no");
    attn_tape_set_recording(NULL, true);
    assert_false(attn_tape_recording(NULL));
    assert_null(attn_tape_context(NULL));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "release: the tape is NULL",
                 attn_tape_release(NULL, attn_tape_get_mark(NULL), &error));
    assert_null(attn_stack(NULL, 2, 0).tape);
}

static void vars_of_two_tapes_fail_both(void **state)
{
    struct fixture *const f = *state;
    attn_error error;
    attn_context *second_context;
    attn_tape *second;
    ASSERT_OK(attn_context_create(NULL, &second_context, &error));
    ASSERT_OK(attn_tape_create(second_context, &second, &error));
    assert_ptr_equal(attn_tape_context(second), second_context);
    const attn_var a = random_leaf(f, ATTN_F64, SHAPE(3));
    const attn_var b = attn_constant(second, ATTN_F64, 1);
    assert_ptr_equal(attn_add(a, b).tape, f->tape);
    assert_tape_failed(f->tape, ATTN_ERR_STATE, "add: operand 2 belongs to another tape");
    assert_tape_failed(second, ATTN_ERR_STATE,
                       "add: operand 2 belongs to this tape, operand 1 to another");
    attn_tape_destroy(second);
    attn_context_destroy(second_context);
}

// 2^61 elements, by expansion: their bytes are counted before anything is allocated.
static void sizes_that_do_not_fit(void **state)
{
    struct fixture *const f = *state;
    const attn_var x =
        attn_expand(attn_constant(f->tape, ATTN_F32, 1), SHAPE(INT64_C(1) << 31, INT64_C(1) << 30));
    attn_exp(x);
    assert_int_equal(attn_tape_status(f->tape), ATTN_ERR_OVERFLOW);
    attn_tape_reset(f->tape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(elementwise, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(shape, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(masks, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(reductions, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(products, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(training, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(leaves, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(going_back, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(the_first_error_stays, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(no_tape_at_all, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(vars_of_two_tapes_fail_both, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(sizes_that_do_not_fit, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
