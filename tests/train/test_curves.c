// The golden trainings: 50 steps of SGD and AdamW on MultiHeadAttention, dropout included, whose losses,
// first gradients and final parameters are torch's. With the environment variable
// ATTN_SHOW_LOSSES set, losses are printed beside torch's.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "modules/module_fixture.h"
#include "support/allocator.h"
#include "support/status.h"
#include "support/unit.h"

enum { STEPS = 50 };

typedef struct run {
    test_allocator allocator;
    attn_context *context;
    module_case from;
    attn_dtype dtype;
    training parts;
} run;

static double number(const run *t, const char *key, double otherwise)
{
    const char *text = attn_safetensors_metadata(t->from.file, key);
    return text ? strtod(text, NULL) : otherwise;
}

static void make_optimizer(run *t)
{
    attn_error error;
    attn_optimizer_config config;
    const char *name = attn_safetensors_metadata(t->from.file, "optimizer.name");
    assert_non_null(name);
    if (strcmp(name, "adamw") == 0) {
        attn_adamw_config_init(&config); // the files' betas and eps are the defaults
    } else {
        attn_sgd_config_init(&config);
        config.momentum = number(t, "optimizer.momentum", 0);
    }
    config.learning_rate = number(t, "optimizer.lr", 0);
    config.weight_decay = number(t, "optimizer.weight_decay", 0);
    ASSERT_OK(attn_optimizer_create(t->context, &config, &t->parts.optimizer, &error));
    ASSERT_OK(attn_optimizer_add_module(t->parts.optimizer, "", t->parts.module, &error));
}

// Weights, x and target are drawn in this order, and then the dropout masks: the generator must stand
// where torch's stood, though x and target come from the file.
static void draw_initial_state(run *t)
{
    attn_error error;
    ASSERT_OK(attn_generator_create(t->context, (uint64_t)number(t, "seed", 0), &t->parts.generator,
                                    &error));
    attn_module *drawn = case_module(t->context, &t->from, ATTN_F32, t->parts.generator);
    attn_named_tensor state[8];
    attn_module_state(drawn, state);
    for (int64_t i = 0; i < attn_module_parameter_count(drawn); i++) {
        char name[64];
        snprintf(name, sizeof name, "init.%s", state[i].name);
        const attn_tensor expected = golden_tensor(t->from.file, name);
        assert_same_bits(&state[i].tensor, &expected, name);
    }
    t->parts.module = case_module(t->context, &t->from, t->dtype, NULL);
    ASSERT_OK(attn_module_load_state(t->parts.module, state, attn_module_parameter_count(drawn),
                                     false, &error));
    attn_module_destroy(drawn);
    const attn_tensor x = golden_tensor(t->from.file, "x");
    const attn_tensor target = golden_tensor(t->from.file, "target");
    attn_tensor scratch = converted(t->context, &x, ATTN_F32);
    ASSERT_OK(attn_randn(t->parts.generator, &scratch, &error));
    assert_close(&scratch, &x, 1e-6, 1e-6, "x");
    ASSERT_OK(attn_randn(t->parts.generator, &scratch, &error));
    assert_close(&scratch, &target, 1e-6, 1e-6, "target");
    attn_tensor_destroy(t->context, &scratch);
    t->parts.x = converted(t->context, &x, t->dtype);
    t->parts.target = converted(t->context, &target, t->dtype);
}

static void begin(run *t, const char *name, attn_dtype dtype)
{
    attn_error error;
    t->dtype = dtype;
    t->context = test_context_on(&t->allocator);
    t->from = case_open(t->context, name);
    draw_initial_state(t);
    make_optimizer(t);
    ASSERT_OK(attn_tape_create(t->context, &t->parts.tape, &error));
}

static void end(run *t)
{
    attn_tape_destroy(t->parts.tape);
    attn_optimizer_destroy(t->parts.optimizer);
    attn_tensor_destroy(t->context, &t->parts.target);
    attn_tensor_destroy(t->context, &t->parts.x);
    attn_module_destroy(t->parts.module);
    attn_generator_destroy(t->parts.generator);
    case_close(&t->from);
    test_context_end(t->context, &t->allocator);
}

// Softmax ignores a shift of all keys: the gradient of W_key.bias is zero but for rounding.
static bool is_rounding(const char *name)
{
    return strcmp(name, "W_key.bias") == 0;
}

static void check_parameters(run *t, const char *format, bool gradients, double bound)
{
    for (int64_t i = 0; i < attn_module_parameter_count(t->parts.module); i++) {
        const attn_parameter *parameter = attn_module_parameter(t->parts.module, i);
        char name[80];
        snprintf(name, sizeof name, "%s.%s.%s", format, parameter->name,
                 t->dtype == ATTN_F64 ? "f64" : "f32");
        const attn_tensor expected = golden_tensor(t->from.file, name);
        if (!is_rounding(parameter->name)) {
            assert_close(gradients ? &parameter->grad : &parameter->value, &expected, bound, bound,
                         name);
        }
    }
}

static void check_curve(const char *name, attn_dtype dtype)
{
    run t = {.dtype = dtype};
    begin(&t, name, dtype);
    const bool wide = dtype == ATTN_F64;
    const attn_tensor losses = golden_tensor(t.from.file, wide ? "loss.f64" : "loss.f32");
    const attn_parameter *key_bias = attn_module_find_parameter(t.parts.module, "W_key.bias");
    const double bound = wide ? 1e-12 : 1e-6;
    assert_int_equal(losses.shape[0], STEPS + 1);
    for (int64_t n = 0; n <= STEPS; n++) {
        if (n == STEPS) {
            attn_module_eval(t.parts.module); // the files' last loss is that of the trained module
        }
        const double loss = training_loss(&t.parts), expected = attn_tensor_get(&losses, &n);
        if (getenv("ATTN_SHOW_LOSSES") && (n % 25 == 0 || n == 10)) {
            print_message("%-26s %s step %2d  %.9g  torch %.9g  %+.1e\n", name,
                          wide ? "f64" : "f32", (int)n, loss, expected, loss / expected - 1);
        }
        if (!(fabs(loss - expected) <= bound * expected)) {
            fail_msg("%s step %d: loss %.17g instead of %.17g", name, (int)n, loss, expected);
        }
        if (n == 0) {
            check_parameters(&t, "step0_grad", true, wide ? 1e-12 : 2e-5);
        }
        if (key_bias) {
            for (int64_t k = 0; k < attn_tensor_count(&key_bias->grad); k++) {
                assert_true(fabs(attn_tensor_get(&key_bias->grad, &k)) < (wide ? 1e-16 : 1e-7));
            }
        }
        if (n < STEPS) {
            attn_optimizer_step(t.parts.optimizer);
        }
    }
    assert_int_equal(attn_optimizer_steps(t.parts.optimizer), STEPS);
    check_parameters(&t, "final", false, wide ? 1e-12 : 2e-5);
    end(&t);
}

static void float32(void **state)
{
    check_curve(*state, ATTN_F32);
}

static void float64(void **state)
{
    check_curve(*state, ATTN_F64);
}

static char cases[][32] = {"train_sgd", "train_sgd_momentum", "train_adamw",
                           "train_adamw_dropout10", "train_adamw_bias_lr1e-2"};
enum { CASES = sizeof cases / sizeof cases[0] };

int main(void)
{
    struct CMUnitTest tests[2 * CASES];
    for (int i = 0; i < CASES; i++) {
        tests[2 * i] = (struct CMUnitTest){cases[i], float32, NULL, NULL, cases[i]};
        tests[2 * i + 1] = (struct CMUnitTest){cases[i], float64, NULL, NULL, cases[i]};
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
