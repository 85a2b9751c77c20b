// Every golden module case: initial weights to the bit, outputs, attention weights, dropout and all
// gradients, in float32 and float64.
#include <stdio.h>
#include <string.h>

#include "modules/module_fixture.h"
#include "support/allocator.h"
#include "support/status.h"
#include "support/unit.h"

typedef struct bounds {
    double output, gradient;
} bounds;

// The golden data's own suggestion.
static bounds bounds_of(attn_dtype dtype)
{
    return dtype == ATTN_F64 ? (bounds){1e-12, 1e-12} : (bounds){5e-6, 2e-5};
}

static bool has(const module_case *from, const char *name)
{
    return attn_safetensors_find(from->file, name) != NULL;
}

// The module with the case's initial weights, drawn and compared to the bit; the generator goes on
// where the case draws its dropout mask.
static void draw_initial_weights(const attn_context *context, const module_case *from,
                                 attn_generator *generator)
{
    attn_generator_manual_seed(generator, from->weight_seed);
    attn_module *module = case_module(context, from, ATTN_F32, generator);
    assert_true(attn_module_parameter_count(module) > 0);
    for (int64_t i = 0; i < attn_module_parameter_count(module); i++) {
        const attn_parameter *parameter = attn_module_parameter(module, i);
        const attn_tensor expected = golden_tensor(from->file, parameter->name);
        assert_same_bits(&parameter->value, &expected, parameter->name);
    }
    attn_module_destroy(module);
    if (from->reseeded) {
        attn_generator_manual_seed(generator, from->dropout_seed);
    }
}

// Traced intermediates against the file's arrays. The wrapper's trace has one set per head.
static void check_trace(const module_case *from, const attn_trace *trace, double bound)
{
    static const char *const names[][2] = {
        {"attn_weights", "attn_weights.f64"},
        {"attn_weights.dropped", "attn_weights_dropped.f64"},
        {"context.merged", "context_before_out_proj.f64"},
    };
    const bool wrapper = strcmp(from->variant, "MultiHeadAttentionWrapper") == 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!has(from, names[i][1])) {
            continue;
        }
        const attn_tensor expected = golden_tensor(from->file, names[i][1]);
        const int64_t parts = wrapper ? expected.shape[1] : 1;
        for (int64_t part = 0; part < parts; part++) {
            attn_error error;
            attn_tensor slice = expected;
            char name[64];
            snprintf(name, sizeof name, "heads.%d.%s", (int)part, names[i][0]);
            if (wrapper) {
                ASSERT_OK(attn_tensor_select(&expected, 1, part, &slice, &error));
            }
            const attn_named_tensor *entry = attn_trace_find(trace, wrapper ? name : names[i][0]);
            assert_non_null(entry);
            assert_close(&entry->tensor, &slice, bound, bound, entry->name);
        }
    }
}

static void check_gradients(const module_case *from, attn_module *module, attn_var x, double bound)
{
    const attn_tensor grad_x = attn_grad(x);
    const attn_tensor expected = golden_tensor(from->file, "grad.x.f64");
    assert_close(&grad_x, &expected, bound, bound, "grad.x");
    for (int64_t i = 0; i < attn_module_parameter_count(module); i++) {
        const attn_parameter *parameter = attn_module_parameter(module, i);
        char name[80];
        snprintf(name, sizeof name, "grad.%s.f64", parameter->name);
        const attn_tensor wanted = golden_tensor(from->file, name);
        assert_close(&parameter->grad, &wanted, bound, bound, name);
    }
}

static void check_case(const char *name, attn_dtype dtype)
{
    attn_error error;
    test_allocator allocator;
    attn_context *context = test_context_on(&allocator);
    module_case from = case_open(context, name);
    const bounds bound = bounds_of(dtype);
    attn_generator *generator;
    attn_tape *tape;
    attn_trace *trace;
    ASSERT_OK(attn_generator_create(context, 0, &generator, &error));
    ASSERT_OK(attn_tape_create(context, &tape, &error));
    ASSERT_OK(attn_trace_create(context, &trace, &error));
    draw_initial_weights(context, &from, generator);

    attn_module *module = case_module(context, &from, dtype, NULL);
    case_load(&from, module);
    const attn_tensor x32 = golden_tensor(from.file, "x");
    const attn_tensor upstream32 = golden_tensor(from.file, "grad_out");
    attn_tensor x = converted(context, &x32, dtype);
    attn_tensor upstream = converted(context, &upstream32, dtype);

    attn_module_call call;
    attn_module_call_init(&call);
    call.input = attn_input(tape, &x, true);
    call.generator = generator;
    call.trace = trace;
    const attn_var output = attn_module_forward(module, &call);
    ASSERT_OK(attn_backward_from(output, &upstream, &error));
    const attn_tensor value = attn_value(output);
    const attn_tensor expected = golden_tensor(from.file, "out.f64");
    assert_close(&value, &expected, bound.output, bound.output, "out");
    check_trace(&from, trace, bound.output);
    check_gradients(&from, module, call.input, bound.gradient);

    if (has(&from, "out_eval.f32")) {
        attn_module_eval(module);
        const attn_var eval = attn_module_apply(module, call.input);
        const attn_tensor eval_value = attn_value(eval);
        const attn_tensor eval_expected = golden_tensor(from.file, "out_eval.f32");
        assert_close(&eval_value, &eval_expected, 5e-6, 5e-6, "out_eval");
    }

    attn_tensor_destroy(context, &upstream);
    attn_tensor_destroy(context, &x);
    attn_module_destroy(module);
    attn_trace_destroy(trace);
    attn_tape_destroy(tape);
    attn_generator_destroy(generator);
    case_close(&from);
    test_context_end(context, &allocator);
}

static void float32(void **state)
{
    check_case(*state, ATTN_F32);
}

static void float64(void **state)
{
    check_case(*state, ATTN_F64);
}

static char cases[][40] = {
    "v1_1x3x2",
    "v1_6x3x2_seed123",
    "v1_7x5x4",
    "v1_9x8x16",
    "v2_1x4x3",
    "v2_6x3x2_seed789",
    "v2_6x3x2_bias",
    "v2_7x5x4_bias",
    "v2_11x16x8",
    "causal_1x1x3x2",
    "causal_2x6x3x2_seed123",
    "causal_2x6x3x2_seed123_p50",
    "causal_2x9x4x4_p10",
    "causal_3x5x7x5_ctx8_bias",
    "causal_3x5x7x5_ctx8_p50",
    "wrapper_1x7x5_3x3h_bias",
    "wrapper_2x5x4_3x2h_p50",
    "wrapper_2x6x3_1x2h_ex32",
    "wrapper_2x6x3_2h_seed123",
    "mha_1x1x4x6_3h",
    "mha_1x33x16x16_2h",
    "mha_2x6x3x2_2h_seed123",
    "mha_2x6x3x4_2h",
    "mha_2x6x8x8_1h_p10_bias",
    "mha_2x9x12x12_4h",
    "mha_2x9x12x12_4h_p50",
    "mha_3x7x5x6_3h_bias_ctx10",
};
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
