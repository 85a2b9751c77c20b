// Optimizers on numbers worked out by hand, clipping, schedules, refusals, and the report of what is
// not finite.
#include <math.h>
#include <string.h>

#include "attn/attn.h"
#include "modules/module_fixture.h"
#include "support/allocator.h"
#include "support/status.h"
#include "support/unit.h"

typedef struct fixture {
    test_allocator allocator;
    attn_context *context;
} fixture;

static int set_up(void **state)
{
    static fixture f;
    f.context = test_context_on(&f.allocator);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    test_context_end(f->context, &f->allocator);
    return 0;
}

// A parameter over the caller's arrays.
static attn_parameter parameter_over(attn_dtype dtype, void *value, void *grad, int64_t count)
{
    return (attn_parameter){.name = "w",
                            .value = attn_tensor_wrap(value, dtype, 1, &count),
                            .grad = attn_tensor_wrap(grad, dtype, 1, &count)};
}

static attn_optimizer *make(fixture *f, const attn_optimizer_config *config)
{
    attn_error error;
    attn_optimizer *optimizer = NULL;
    ASSERT_OK(attn_optimizer_create(f->context, config, &optimizer, &error));
    return optimizer;
}

// ---- update rules -------------------------------------------------------------------------------

// Starts at 1 and sees the gradients 0.5, -0.25, 1.
static void check_rule(fixture *f, const attn_optimizer_config *config, const double *expected)
{
    static const double gradients[] = {0.5, -0.25, 1};
    attn_error error;
    double value = 1, grad = 0;
    float narrow_value = 1, narrow_grad = 0;
    attn_parameter wide = parameter_over(ATTN_F64, &value, &grad, 1);
    attn_parameter narrow = parameter_over(ATTN_F32, &narrow_value, &narrow_grad, 1);
    attn_optimizer *optimizer = make(f, config);
    ASSERT_OK(attn_optimizer_add_parameter(optimizer, "wide", &wide, &error));
    ASSERT_OK(attn_optimizer_add_parameter(optimizer, "narrow", &narrow, &error));
    for (int n = 0; n < 3; n++) {
        grad = gradients[n];
        narrow_grad = (float)gradients[n];
        assert_int_equal(attn_optimizer_steps(optimizer), n);
        attn_optimizer_step(optimizer);
        assert_true(fabs(value - expected[n]) < 1e-15);
        assert_true(fabs((double)narrow_value - expected[n]) < 1e-7);
        assert_int_equal(wide.version, n + 1);
    }
    attn_optimizer_zero_grad(optimizer);
    assert_true(grad == 0 && narrow_grad == 0);
    attn_optimizer_destroy(optimizer);
}

static void sgd(void **state)
{
    fixture *f = *state;
    attn_optimizer_config config;
    attn_sgd_config_init(&config);
    config.learning_rate = 0.1;
    check_rule(f, &config, (const double[]){0.95, 0.975, 0.875});
    config.weight_decay = 0.01;
    check_rule(f, &config, (const double[]){0.949, 0.973051, 0.872077949});
    config.momentum = 0.9;
    config.dampening = 0.2;
    check_rule(f, &config, (const double[]){0.949, 0.9223408, 0.81760964736});
    config.dampening = 0;
    config.nesterov = true;
    check_rule(f, &config, (const double[]){0.9031, 0.90757411, 0.698189208191});
}

static void adamw(void **state)
{
    fixture *f = *state;
    attn_optimizer_config config;
    attn_adamw_config_init(&config);
    assert_true(config.learning_rate == 1e-3 && config.weight_decay == 1e-2);
    config.learning_rate = 0.1;
    check_rule(f, &config, (const double[]){0.899000002, 0.8714672987058463, 0.804784672376384});
    config.learning_rate = 0.01;
    config.weight_decay = 0.5;
    config.beta1 = 0.5;
    config.beta2 = 0.75;
    config.epsilon = 0.25;
    check_rule(f, &config,
               (const double[]){0.9883333333333333, 0.9833916666666667, 0.9725629618448579});
}

// More elements than one job takes, on several threads: the same bits as on one.
static void threads(void **state)
{
    (void)state;
    enum { COUNT = 40000 };
    static float values[2][COUNT], grads[2][COUNT];
    attn_error error;
    for (int k = 0; k < 2; k++) {
        attn_context_config setup;
        attn_context_config_init(&setup);
        if (k == 1) {
            ASSERT_OK(attn_executor_pthreads(3, &setup.executor, &error));
        }
        attn_context *context;
        ASSERT_OK(attn_context_create(&setup, &context, &error));
        for (int i = 0; i < COUNT; i++) {
            values[k][i] = (float)(i % 97) / 97;
            grads[k][i] = (float)(i % 89 - 44) / 89;
        }
        attn_parameter parameter = parameter_over(ATTN_F32, values[k], grads[k], COUNT);
        attn_optimizer_config config;
        attn_adamw_config_init(&config);
        attn_optimizer *optimizer;
        ASSERT_OK(attn_optimizer_create(context, &config, &optimizer, &error));
        ASSERT_OK(attn_optimizer_add_parameter(optimizer, "w", &parameter, &error));
        for (int n = 0; n < 3; n++) {
            attn_optimizer_step(optimizer);
        }
        attn_optimizer_destroy(optimizer);
        attn_context_destroy(context);
    }
    assert_memory_equal(values[0], values[1], sizeof values[0]);
    assert_true(values[0][COUNT - 1] != (float)((COUNT - 1) % 97) / 97);
}

// ---- schedules ----------------------------------------------------------------------------------

static void schedules(void **state)
{
    fixture *f = *state;
    const attn_schedule constant = {.kind = ATTN_SCHEDULE_CONSTANT};
    assert_true(attn_schedule_factor(&constant, 0) == 1);
    assert_true(attn_schedule_factor(&constant, 1000) == 1);
    const attn_schedule warm = {.kind = ATTN_SCHEDULE_CONSTANT, .warmup_steps = 4};
    assert_true(attn_schedule_factor(&warm, 0) == 0.25);
    assert_true(attn_schedule_factor(&warm, 2) == 0.75);
    assert_true(attn_schedule_factor(&warm, 3) == 1);
    assert_true(attn_schedule_factor(&warm, 4) == 1);
    const attn_schedule cosine = {
        .kind = ATTN_SCHEDULE_COSINE, .warmup_steps = 2, .total_steps = 10, .final_factor = 0.2};
    assert_true(attn_schedule_factor(&cosine, 0) == 0.5);
    assert_true(attn_schedule_factor(&cosine, 2) == 1);
    assert_true(fabs(attn_schedule_factor(&cosine, 4) - (0.6 + 0.4 * sqrt(0.5))) < 1e-15);
    assert_true(fabs(attn_schedule_factor(&cosine, 6) - 0.6) < 1e-15);
    assert_true(fabs(attn_schedule_factor(&cosine, 10) - 0.2) < 1e-15);
    assert_true(fabs(attn_schedule_factor(&cosine, 99) - 0.2) < 1e-15);

    attn_error error;
    double value = 0, grad = 1;
    attn_parameter parameter = parameter_over(ATTN_F64, &value, &grad, 1);
    attn_optimizer_config config;
    attn_sgd_config_init(&config);
    config.learning_rate = 2;
    config.schedule = cosine;
    attn_optimizer *optimizer = make(f, &config);
    ASSERT_OK(attn_optimizer_add_parameter(optimizer, "w", &parameter, &error));
    assert_true(attn_optimizer_rate(optimizer) == 1);
    attn_optimizer_step(optimizer);
    assert_true(value == -1);
    assert_true(attn_optimizer_rate(optimizer) == 2);
    attn_optimizer_set_learning_rate(optimizer, 3);
    attn_optimizer_set_learning_rate(optimizer, -1);
    assert_true(attn_optimizer_rate(optimizer) == 3);
    attn_optimizer_destroy(optimizer);
}

// ---- gradients ----------------------------------------------------------------------------------

static void clipping(void **state)
{
    fixture *f = *state;
    attn_error error;
    double value[2] = {0, 0}, grad[2] = {3, 4};
    float narrow_value = 0, narrow_grad = 12;
    attn_parameter wide = parameter_over(ATTN_F64, value, grad, 2);
    attn_parameter narrow = parameter_over(ATTN_F32, &narrow_value, &narrow_grad, 1);
    attn_optimizer_config config;
    attn_sgd_config_init(&config);
    attn_optimizer *optimizer = make(f, &config);
    ASSERT_OK(attn_optimizer_add_parameter(optimizer, "wide", &wide, &error));
    ASSERT_OK(attn_optimizer_add_parameter(optimizer, "narrow", &narrow, &error));
    double norm = 0;
    ASSERT_OK(attn_optimizer_clip_grad_norm(optimizer, 14, &norm, &error));
    assert_true(norm == 13 && grad[0] == 3 && narrow_grad == 12);
    ASSERT_OK(attn_optimizer_clip_grad_norm(optimizer, 6.5, NULL, &error));
    const double factor = 6.5 / (13 + 1e-6);
    assert_true(grad[0] == 3 * factor && grad[1] == 4 * factor);
    assert_true(narrow_grad == 12 * (float)factor);

    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "clip_grad_norm: max_norm (0) must be positive",
                 attn_optimizer_clip_grad_norm(optimizer, 0, NULL, &error));
    grad[1] = INFINITY;
    norm = 7;
    ASSERT_FAILS(ATTN_ERR_NOT_FINITE, "clip_grad_norm: step 0: the norm of the gradients is inf",
                 attn_optimizer_clip_grad_norm(optimizer, 1, &norm, &error));
    assert_true(norm == 7 && grad[0] == 3 * factor);
    attn_optimizer_destroy(optimizer);
}

static attn_var vector(attn_tape *tape, const double *values, int64_t count, bool requires_grad)
{
    const attn_tensor tensor = attn_tensor_wrap_const(values, ATTN_F64, 1, &count);
    return attn_input(tape, &tensor, requires_grad);
}

static void not_finite(void **state)
{
    fixture *f = *state;
    attn_error error;
    double value[2] = {1, 2}, grad[2] = {0, 0};
    attn_parameter parameter = parameter_over(ATTN_F64, value, grad, 2);
    attn_optimizer_config config;
    attn_sgd_config_init(&config);
    attn_optimizer *optimizer = make(f, &config);
    ASSERT_OK(attn_optimizer_add_parameter(optimizer, "W_key.weight", &parameter, &error));
    attn_optimizer_step(optimizer);
    attn_tape *tape;
    ASSERT_OK(attn_tape_create(f->context, &tape, &error));

    // log(-1) is the first NaN; log(0) = -inf alone is what a mask may write.
    attn_var x = vector(tape, (const double[]){0, -1, 4}, 3, true);
    attn_var loss = attn_sum_all(attn_exp(attn_log(x)));
    ASSERT_FAILS(ATTN_ERR_NOT_FINITE,
                 "step 1: loss is nan; first seen in the result of log, float64 [3], at [1]",
                 attn_optimizer_check_finite(optimizer, loss, &error));
    attn_not_finite found = attn_tape_first_not_finite(loss);
    assert_true(found.found && isnan(found.value) && found.index[0] == 1);
    assert_string_equal(found.name, "log");
    attn_tape_reset(tape);

    x = vector(tape, (const double[]){0, 1}, 2, true);
    loss = attn_sum_all(attn_exp(attn_log(x)));
    assert_false(attn_tape_first_not_finite(loss).found);
    ASSERT_OK(attn_optimizer_check_finite(optimizer, loss, &error));
    loss = attn_sum_all(attn_log(x));
    ASSERT_FAILS(ATTN_ERR_NOT_FINITE, "step 1: loss is -inf",
                 attn_optimizer_check_finite(optimizer, loss, &error));
    attn_tape_reset(tape);

    x = vector(tape, (const double[]){INFINITY, 1}, 2, true);
    loss = attn_sum_all(x);
    ASSERT_FAILS(ATTN_ERR_NOT_FINITE,
                 "step 1: loss is inf; first seen in an input, float64 [2], at [0]",
                 attn_optimizer_check_finite(optimizer, loss, &error));
    assert_null(attn_tape_first_not_finite(loss).name);
    attn_tape_reset(tape);

    grad[1] = NAN;
    loss = vector(tape, (const double[]){0.25}, 1, false);
    ASSERT_FAILS(ATTN_ERR_NOT_FINITE,
                 "step 1: loss is 0.25; gradient of W_key.weight is nan at [1]",
                 attn_optimizer_check_finite(optimizer, loss, &error));
    grad[1] = 1;
    ASSERT_OK(attn_optimizer_check_finite(optimizer, loss, &error));
    attn_tape_fail(tape, ATTN_ERR_SHAPE, "matmul: no");
    ASSERT_FAILS(ATTN_ERR_SHAPE, "matmul: no",
                 attn_optimizer_check_finite(optimizer, loss, &error));
    attn_tape_destroy(tape);
    attn_optimizer_destroy(optimizer);
}

static void not_finite_in_a_trace(void **state)
{
    fixture *f = *state;
    attn_error error;
    attn_attention_config config;
    attn_attention_config_init(&config);
    config.d_in = 2;
    config.d_out = 2;
    config.context_length = 4;
    attn_generator *generator;
    attn_tape *tape;
    attn_trace *trace;
    ASSERT_OK(attn_generator_create(f->context, 1, &generator, &error));
    ASSERT_OK(attn_tape_create(f->context, &tape, &error));
    ASSERT_OK(attn_trace_create(f->context, &trace, &error));
    attn_module *module = make_module(f->context, "MultiHeadAttention", &config, generator);
    ((float *)attn_module_find_parameter(module, "W_key.weight")->value.data)[3] = NAN;
    attn_tensor x = random_tensor(f->context, ATTN_F32, 2, (int64_t[]){3, 2}, 1);
    attn_module_call call;
    attn_module_call_init(&call);
    call.input = attn_input(tape, &x, false);
    call.trace = trace;
    attn_module_forward(module, &call);
    const attn_not_finite found = attn_trace_first_not_finite(trace);
    assert_true(found.found);
    assert_string_equal(found.name, "keys");
    assert_int_equal(found.index[2], 1);
    attn_tensor_destroy(f->context, &x);
    attn_module_destroy(module);
    attn_trace_destroy(trace);
    attn_tape_destroy(tape);
    attn_generator_destroy(generator);
}

// ---- refusals -----------------------------------------------------------------------------------

static void refused(fixture *f, const attn_optimizer_config *config, const char *text)
{
    attn_error error;
    attn_optimizer *optimizer = NULL;
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, text,
                 attn_optimizer_create(f->context, config, &optimizer, &error));
    assert_null(optimizer);
}

static void configs(void **state)
{
    fixture *f = *state;
    attn_optimizer_config s, a;
    attn_sgd_config_init(&s);
    attn_adamw_config_init(&a);
    const attn_optimizer_config sgd_default = s, adamw_default = a;
    refused(f, NULL, "optimizer: config is NULL or not filled by an _init function");
    s.reserved[1] = 1;
    refused(f, &s, "optimizer: config.reserved[1] must be zero");
    s = sgd_default;
    s.kind = (attn_optimizer_kind)5;
    refused(f, &s, "optimizer: unknown kind (5)");
    s = sgd_default;
    s.learning_rate = -0.5;
    refused(f, &s, "sgd: learning_rate (-0.5) must be in [0, inf)");
    s = sgd_default;
    s.weight_decay = NAN;
    refused(f, &s, "sgd: weight_decay (nan) must be in [0, inf)");
    s = sgd_default;
    s.beta1 = 0.9;
    refused(f, &s, "sgd: has no beta1");
    s = sgd_default;
    s.nesterov = true;
    refused(f, &s, "sgd: nesterov needs a momentum (0) above 0 and dampening (0) 0");
    a.beta2 = 1;
    refused(f, &a, "adamw: beta2 (1) must be in [0, 1)");
    a = adamw_default;
    a.momentum = 0.9;
    refused(f, &a, "adamw: has no momentum");
    a = adamw_default;
    a.nesterov = true;
    refused(f, &a, "adamw: has no nesterov");
    a = adamw_default;
    a.schedule.kind = (attn_schedule_kind)9;
    refused(f, &a, "optimizer: unknown schedule (9)");
    a = adamw_default;
    a.schedule.warmup_steps = -1;
    refused(f, &a, "optimizer: schedule.warmup_steps (-1) must not be negative");
    a = adamw_default;
    a.schedule.total_steps = 5;
    refused(f, &a, "optimizer: a constant schedule has no total_steps or final_factor");
    a.schedule.kind = ATTN_SCHEDULE_COSINE;
    a.schedule.warmup_steps = 5;
    refused(f, &a, "optimizer: schedule.total_steps (5) must exceed warmup_steps (5)");
    a.schedule.warmup_steps = 0;
    a.schedule.final_factor = NAN;
    refused(f, &a, "optimizer: schedule.final_factor (nan) must be finite and not negative");
}

static void parameters(void **state)
{
    fixture *f = *state;
    attn_error error;
    double value[4] = {0}, grad[4] = {0};
    attn_optimizer_config config;
    attn_sgd_config_init(&config);
    attn_optimizer *optimizer = make(f, &config);
    attn_parameter good = parameter_over(ATTN_F64, value, grad, 4), bad = good;
    ASSERT_OK(attn_optimizer_add_parameter(optimizer, "w", &good, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "optimizer: w2 is there already, as w",
                 attn_optimizer_add_parameter(optimizer, "w2", &good, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "optimizer: w is there already, as w",
                 attn_optimizer_add_parameter(optimizer, "w", &bad, &error));
    bad.value.shape[0] = 3;
    ASSERT_FAILS(ATTN_ERR_SHAPE, "optimizer: b has shape [3] but its gradient [4]",
                 attn_optimizer_add_parameter(optimizer, "b", &bad, &error));
    bad = good;
    bad.grad.dtype = ATTN_F32;
    ASSERT_FAILS(ATTN_ERR_DTYPE,
                 "optimizer: b is float64 with a float32 gradient; both must be float32 or "
                 "float64",
                 attn_optimizer_add_parameter(optimizer, "b", &bad, &error));
    bad = good;
    bad.value.shape[0] = bad.grad.shape[0] = 2;
    bad.value.stride[0] = 2;
    ASSERT_FAILS(ATTN_ERR_NOT_CONTIGUOUS, "optimizer: b is not contiguous",
                 attn_optimizer_add_parameter(optimizer, "b", &bad, &error));
    bad = good;
    bad.value.flags = ATTN_TENSOR_READ_ONLY;
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "optimizer: b is read-only",
                 attn_optimizer_add_parameter(optimizer, "b", &bad, &error));

    bad = good;
    bad.value.shape[0] = bad.grad.shape[0] = 2;
    bad.grad.data = value + 1;
    ASSERT_FAILS(ATTN_ERR_OVERLAP, "optimizer: b overlaps its gradient",
                 attn_optimizer_add_parameter(optimizer, "b", &bad, &error));

    attn_context *other;
    ASSERT_OK(attn_context_create(NULL, &other, &error));
    attn_module *stranger, *own;
    ASSERT_OK(attn_linear_create(other, 2, 3, true, ATTN_F32, NULL, &stranger, &error));
    ASSERT_OK(attn_linear_create(f->context, 2, 3, true, ATTN_F32, NULL, &own, &error));
    ASSERT_FAILS(ATTN_ERR_STATE,
                 "optimizer: the parameters of this linear belong to another context",
                 attn_optimizer_add_module(optimizer, "", stranger, &error));
    ASSERT_OK(
        attn_optimizer_add_parameter(optimizer, "out.bias", attn_module_parameter(own, 1), &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "optimizer: out.bias is there already, as out.bias",
                 attn_optimizer_add_module(optimizer, "out.", own, &error));
    assert_int_equal(attn_optimizer_parameter_count(optimizer), 2); // out.weight is gone again
    assert_string_equal(attn_optimizer_parameter_name(optimizer, 1), "out.bias");
    assert_ptr_equal(attn_optimizer_parameter(optimizer, 0), &good);
    assert_null(attn_optimizer_parameter(optimizer, 2));
    assert_null(attn_optimizer_parameter_name(optimizer, -1));
    attn_optimizer_step(optimizer);
    ASSERT_FAILS(
        ATTN_ERR_STATE, "optimizer: weight comes after step 1; add parameters before the first",
        attn_optimizer_add_parameter(optimizer, "weight", attn_module_parameter(own, 0), &error));
    attn_module_destroy(own);
    attn_module_destroy(stranger);
    attn_context_destroy(other);
    attn_optimizer_destroy(optimizer);
    attn_optimizer_destroy(NULL);
}

static void moments(void **state)
{
    fixture *f = *state;
    attn_error error;
    double value = 1, grad = 0.5;
    attn_parameter parameter = parameter_over(ATTN_F64, &value, &grad, 1);
    attn_optimizer_config config;
    attn_adamw_config_init(&config);
    attn_optimizer *optimizer = make(f, &config);
    ASSERT_OK(attn_optimizer_add_parameter(optimizer, "w", &parameter, &error));
    attn_optimizer_step(optimizer);
    assert_int_equal(attn_optimizer_moment_count(optimizer), 2);
    attn_named_tensor held[3];
    attn_optimizer_moments(optimizer, held);
    assert_string_equal(held[0].name, "exp_avg.w");
    assert_string_equal(held[1].name, "exp_avg_sq.w");
    const int64_t first = 0;
    assert_true(fabs(attn_tensor_get(&held[0].tensor, &first) - 0.05) < 1e-16);
    assert_true(fabs(attn_tensor_get(&held[1].tensor, &first) - 0.00025) < 1e-17);

    double new_average = 3, new_square = 4;
    float narrow = 0;
    double value_pair[2] = {0};
    const int64_t one = 1, two = 2;
    attn_named_tensor given[3] = {
        {"exp_avg_sq.w", attn_tensor_wrap_const(&new_square, ATTN_F64, 1, &one)},
        {"exp_avg.w", attn_tensor_wrap_const(&narrow, ATTN_F32, 1, &one)},
        {"exp_avg.v", attn_tensor_wrap_const(&new_average, ATTN_F64, 1, &one)}};
    ASSERT_FAILS(ATTN_ERR_NOT_FOUND, "optimizer: 1 moments given, 2 needed",
                 attn_optimizer_restore(optimizer, 8, given, 1, &error));
    ASSERT_FAILS(ATTN_ERR_DTYPE, "optimizer: exp_avg.w is float32, not float64",
                 attn_optimizer_restore(optimizer, 8, given, 2, &error));
    ASSERT_FAILS(ATTN_ERR_NOT_FOUND, "optimizer: unknown moment exp_avg.v",
                 attn_optimizer_restore(optimizer, 8, given + 2, 1, &error));
    given[1] = given[0];
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "optimizer: exp_avg_sq.w is given twice",
                 attn_optimizer_restore(optimizer, 8, given, 2, &error));
    given[1] = (attn_named_tensor){"exp_avg.w", held[1].tensor};
    ASSERT_FAILS(ATTN_ERR_OVERLAP,
                 "optimizer: exp_avg.w is given in the memory of the optimizer's exp_avg_sq.w",
                 attn_optimizer_restore(optimizer, 8, given, 2, &error));
    given[1].tensor.data = NULL;
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "exp_avg.w: data of a tensor of shape [1] is NULL",
                 attn_optimizer_restore(optimizer, 8, given, 2, &error));
    given[1].tensor = attn_tensor_wrap(value_pair, ATTN_F64, 1, &two);
    ASSERT_FAILS(ATTN_ERR_SHAPE, "optimizer: exp_avg.w is [2], must be [1]",
                 attn_optimizer_restore(optimizer, 8, given, 2, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "optimizer: steps (-1) must not be negative",
                 attn_optimizer_restore(optimizer, -1, given, 2, &error));
    assert_true(fabs(attn_tensor_get(&held[1].tensor, &first) - 0.00025) < 1e-17);
    assert_int_equal(attn_optimizer_steps(optimizer), 1);
    given[1] =
        (attn_named_tensor){"exp_avg.w", attn_tensor_wrap_const(&new_average, ATTN_F64, 1, &one)};
    ASSERT_OK(attn_optimizer_restore(optimizer, 8, given, 2, &error));
    assert_true(attn_tensor_get(&held[0].tensor, &first) == 3);
    assert_true(attn_tensor_get(&held[1].tensor, &first) == 4);
    assert_int_equal(attn_optimizer_steps(optimizer), 8);
    attn_optimizer_destroy(optimizer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sgd, set_up, tear_down),
        cmocka_unit_test_setup_teardown(adamw, set_up, tear_down),
        cmocka_unit_test(threads),
        cmocka_unit_test_setup_teardown(schedules, set_up, tear_down),
        cmocka_unit_test_setup_teardown(clipping, set_up, tear_down),
        cmocka_unit_test_setup_teardown(not_finite, set_up, tear_down),
        cmocka_unit_test_setup_teardown(not_finite_in_a_trace, set_up, tear_down),
        cmocka_unit_test_setup_teardown(configs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(parameters, set_up, tear_down),
        cmocka_unit_test_setup_teardown(moments, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
