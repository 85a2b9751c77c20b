// Smallest sizes, modules side by side, and what must have the same bits.
#include <string.h>

#include "modules/module_fixture.h"
#include "support/allocator.h"
#include "support/status.h"
#include "support/unit.h"

typedef struct fixture {
    test_allocator allocator;
    attn_context *context;
    attn_tape *tape;
    attn_generator *generator;
} fixture;

static int set_up(void **state)
{
    static fixture f;
    attn_error error;
    f.context = test_context_on(&f.allocator);
    ASSERT_OK(attn_tape_create(f.context, &f.tape, &error));
    ASSERT_OK(attn_generator_create(f.context, 17, &f.generator, &error));
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    attn_generator_destroy(f->generator);
    attn_tape_destroy(f->tape);
    test_context_end(f->context, &f->allocator);
    return 0;
}

static const char *const variants[] = {"SelfAttentionV1", "SelfAttentionV2", "CausalAttention",
                                       "MultiHeadAttentionWrapper", "MultiHeadAttention"};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

// A small module of each variant with what it has of dropout and heads.
static attn_module *small_module(fixture *f, int variant, double dropout)
{
    attn_attention_config config;
    attn_attention_config_init(&config);
    config.d_in = 5;
    config.d_out = 4;
    if (variant >= 2) {
        config.context_length = 7;
        config.dropout = dropout;
    }
    if (variant >= 3) {
        config.num_heads = 2;
    }
    return make_module(f->context, variants[variant], &config, f->generator);
}

static attn_var forward(fixture *f, attn_module *module, attn_var input, attn_trace *trace)
{
    attn_module_call call;
    attn_module_call_init(&call);
    call.input = input;
    call.generator = f->generator;
    call.trace = trace;
    return attn_module_forward(module, &call);
}

static void empty_shape(fixture *f, attn_module *module, int32_t ndim, const int64_t *shape)
{
    attn_error error;
    attn_tensor x;
    ASSERT_OK(attn_tensor_create(f->context, ATTN_F32, ndim, shape, &x, &error));
    const attn_var input = attn_input(f->tape, &x, true);
    const attn_var output = forward(f, module, input, NULL);
    const attn_tensor value = attn_value(output);
    assert_int_equal(value.ndim, ndim);
    assert_int_equal(attn_tensor_count(&value), 0);
    assert_int_equal(value.shape[ndim - 2], shape[ndim - 2]);
    ASSERT_OK(attn_backward(attn_sum_all(output), &error));
    for (int64_t i = 0; i < attn_module_parameter_count(module); i++) {
        const attn_tensor grad = attn_module_parameter(module, i)->grad;
        int64_t origin[2] = {0, 0};
        assert_true(attn_tensor_get(&grad, origin) == 0);
    }
    attn_tape_reset(f->tape);
    attn_tensor_destroy(f->context, &x);
}

static void empty_inputs(void **state)
{
    fixture *f = *state;
    for (int variant = 0; variant < VARIANTS; variant++) {
        attn_module *module = small_module(f, variant, 0.25);
        attn_generator_state before, after;
        attn_generator_save(f->generator, &before);
        empty_shape(f, module, 2, (int64_t[]){0, 5});
        empty_shape(f, module, 3, (int64_t[]){2, 0, 5});
        empty_shape(f, module, 3, (int64_t[]){0, 3, 5});
        attn_generator_save(f->generator, &after);
        assert_memory_equal(&before, &after, sizeof before);
        attn_module_destroy(module);
    }
}

// One token attends to itself: the context is its value.
static void one_token(void **state)
{
    fixture *f = *state;
    attn_attention_config config;
    attn_attention_config_init(&config);
    config.d_in = 5;
    config.d_out = 4;
    config.context_length = 1;
    attn_module *module = make_module(f->context, "CausalAttention", &config, f->generator);
    attn_tensor x = random_tensor(f->context, ATTN_F32, 3, (int64_t[]){2, 1, 5}, 3);
    const attn_var input = attn_input(f->tape, &x, false);
    const attn_tensor output = attn_value(attn_module_apply(module, input));
    const attn_parameter *weight = attn_module_find_parameter(module, "W_value.weight");
    const attn_var weight_var = attn_borrow(f->tape, &weight->value, NULL);
    const attn_tensor values = attn_value(attn_linear(input, weight_var, ATTN_NO_VAR));
    test_assert_ok(attn_tape_status(f->tape), attn_tape_error(f->tape), __FILE__, __LINE__);
    assert_close(&output, &values, 0, 0, "one token");
    attn_tensor_destroy(f->context, &x);
    attn_module_destroy(module);
}

// (T, d_in) is a batch of one; every row of a batch is what it is alone.
static void ranks_and_batches(void **state)
{
    fixture *f = *state;
    attn_error error;
    for (int variant = 0; variant < VARIANTS; variant++) {
        attn_module *module = small_module(f, variant, 0);
        attn_tensor x = random_tensor(f->context, ATTN_F32, 3, (int64_t[]){3, 6, 5}, 4);
        const attn_tensor all =
            attn_value(forward(f, module, attn_input(f->tape, &x, false), NULL));
        for (int64_t b = 0; b < 3; b++) {
            attn_tensor alone, wanted;
            ASSERT_OK(attn_tensor_select(&x, 0, b, &alone, &error));
            ASSERT_OK(attn_tensor_select(&all, 0, b, &wanted, &error));
            const attn_tensor output =
                attn_value(forward(f, module, attn_input(f->tape, &alone, false), NULL));
            assert_same_bits(&output, &wanted, variants[variant]);
        }
        attn_tape_reset(f->tape);
        attn_tensor_destroy(f->context, &x);
        attn_module_destroy(module);
    }
}

// The trace is computed beside the output, with dropout and without.
static void trace_changes_nothing(void **state)
{
    fixture *f = *state;
    attn_error error;
    attn_trace *trace;
    ASSERT_OK(attn_trace_create(f->context, &trace, &error));
    for (int variant = 0; variant < VARIANTS; variant++) {
        attn_module *module = small_module(f, variant, 0.25);
        attn_tensor x = random_tensor(f->context, ATTN_F32, 3, (int64_t[]){2, 6, 5}, 5);
        attn_generator_manual_seed(f->generator, 8);
        const attn_var plain_input = attn_input(f->tape, &x, true);
        const attn_var plain = forward(f, module, plain_input, NULL);
        ASSERT_OK(attn_backward(attn_sum_all(plain), &error));
        attn_tensor grad = converted(f->context, &attn_module_parameter(module, 0)->grad, ATTN_F32);
        const attn_tensor plain_value = attn_value(plain);
        attn_tensor output = converted(f->context, &plain_value, ATTN_F32);
        attn_module_zero_grad(module);
        attn_tape_reset(f->tape);

        attn_generator_manual_seed(f->generator, 8);
        attn_trace_clear(trace);
        const attn_var traced_input = attn_input(f->tape, &x, true);
        const attn_var traced = forward(f, module, traced_input, trace);
        ASSERT_OK(attn_backward(attn_sum_all(traced), &error));
        const attn_tensor traced_value = attn_value(traced);
        assert_same_bits(&traced_value, &output, variants[variant]);
        assert_same_bits(&attn_module_parameter(module, 0)->grad, &grad, "gradient");
        assert_true(attn_trace_count(trace) >= 6);
        attn_tape_reset(f->tape);
        attn_tensor_destroy(f->context, &output);
        attn_tensor_destroy(f->context, &grad);
        attn_tensor_destroy(f->context, &x);
        attn_module_destroy(module);
    }
    attn_trace_destroy(trace);
}

// What the trace holds for two heads: names in order, shapes and strides as the steps had them.
static void trace_entries(void **state)
{
    fixture *f = *state;
    attn_error error;
    attn_trace *trace;
    ASSERT_OK(attn_trace_create(f->context, &trace, &error));
    attn_module *module = small_module(f, 4, 0.25);
    attn_tensor x = random_tensor(f->context, ATTN_F32, 3, (int64_t[]){2, 6, 5}, 5);
    forward(f, module, attn_input(f->tape, &x, false), trace);
    static const struct {
        const char *name, *layout;
    } wanted[] = {
        {"queries", "float32 [2,6,4] stride [24,4,1]"},
        {"keys", "float32 [2,6,4] stride [24,4,1]"},
        {"values", "float32 [2,6,4] stride [24,4,1]"},
        {"queries.heads", "float32 [2,2,6,2] stride [24,2,4,1]"},
        {"keys.heads", "float32 [2,2,6,2] stride [24,2,4,1]"},
        {"values.heads", "float32 [2,2,6,2] stride [24,2,4,1]"},
        {"attn_scores", "float32 [2,2,6,6] stride [72,36,6,1]"},
        {"attn_scores.masked", "float32 [2,2,6,6] stride [72,36,6,1]"},
        {"attn_weights", "float32 [2,2,6,6] stride [72,36,6,1]"},
        {"attn_weights.dropped", "float32 [2,2,6,6] stride [72,36,6,1]"},
        {"context", "float32 [2,2,6,2] stride [24,12,2,1]"},
        {"context.merged", "float32 [2,6,4] stride [24,4,1]"},
    };
    assert_int_equal(attn_trace_count(trace), sizeof wanted / sizeof wanted[0]);
    for (int64_t i = 0; i < attn_trace_count(trace); i++) {
        char layout[160];
        const attn_named_tensor *entry = attn_trace_entry(trace, i);
        assert_string_equal(entry->name, wanted[i].name);
        attn_tensor_format_layout(&entry->tensor, layout, sizeof layout);
        assert_string_equal(layout, wanted[i].layout);
        assert_ptr_equal(attn_trace_find(trace, wanted[i].name), entry);
    }
    assert_null(attn_trace_entry(trace, attn_trace_count(trace)));
    assert_null(attn_trace_find(trace, "query"));
    assert_false(attn_trace_first_not_finite(trace).found); // -inf of the mask is no fault
    attn_trace_clear(trace);
    assert_int_equal(attn_trace_count(trace), 0);
    attn_trace_destroy(trace);
    attn_trace_destroy(NULL);
    attn_tensor_destroy(f->context, &x);
    attn_module_destroy(module);
}

static void v1_equals_v2_transposed(void **state)
{
    fixture *f = *state;
    attn_error error;
    attn_module *v1 = small_module(f, 0, 0);
    attn_module *v2 = small_module(f, 1, 0);
    attn_named_tensor transposed[3];
    attn_module_state(v2, transposed);
    static const char *const names[] = {"W_query", "W_key", "W_value"};
    for (int i = 0; i < 3; i++) {
        transposed[i].name = names[i];
        ASSERT_OK(
            attn_tensor_transpose(&transposed[i].tensor, 0, 1, &transposed[i].tensor, &error));
    }
    ASSERT_OK(attn_module_load_state(v1, transposed, 3, false, &error));
    attn_tensor x = random_tensor(f->context, ATTN_F32, 2, (int64_t[]){9, 5}, 6);
    const attn_var input = attn_input(f->tape, &x, false);
    const attn_var first = forward(f, v1, input, NULL), second = forward(f, v2, input, NULL);
    ASSERT_OK(attn_backward(attn_add(attn_sum_all(first), attn_sum_all(second)), &error));
    const attn_tensor a = attn_value(first), b = attn_value(second);
    assert_same_bits(&a, &b, "V1 and V2");
    for (int i = 0; i < 3; i++) {
        attn_tensor grad;
        ASSERT_OK(attn_tensor_transpose(&attn_module_parameter(v2, i)->grad, 0, 1, &grad, &error));
        assert_close(&attn_module_parameter(v1, i)->grad, &grad, 1e-6, 1e-6, names[i]);
    }
    attn_tensor_destroy(f->context, &x);
    attn_module_destroy(v2);
    attn_module_destroy(v1);
}

static attn_tensor input_gradient(fixture *f, attn_module *first, attn_module *second,
                                  const attn_tensor *x)
{
    attn_error error;
    const attn_var input = attn_input(f->tape, x, true);
    attn_var loss = attn_sum_all(forward(f, first, input, NULL));
    if (second) {
        loss = attn_add(loss, attn_sum_all(forward(f, second, input, NULL)));
    }
    ASSERT_OK(attn_backward(loss, &error));
    const attn_tensor grad = attn_grad(input);
    attn_tensor copy = converted(f->context, &grad, grad.dtype);
    attn_tape_reset(f->tape);
    return copy;
}

// Two modules on one input: its gradient is the sum, each module's own is as if it were alone.
static void shared_input(void **state)
{
    fixture *f = *state;
    attn_module *first = small_module(f, 2, 0), *second = small_module(f, 4, 0);
    attn_tensor x = random_tensor(f->context, ATTN_F32, 3, (int64_t[]){2, 6, 5}, 7);
    attn_tensor alone1 = input_gradient(f, first, NULL, &x);
    attn_tensor alone2 = input_gradient(f, second, NULL, &x);
    attn_tensor kept = converted(f->context, &attn_module_parameter(first, 0)->grad, ATTN_F32);
    attn_module_zero_grad(first);
    attn_tensor both = input_gradient(f, first, second, &x);
    assert_same_bits(&attn_module_parameter(first, 0)->grad, &kept, "W_query.weight");
    for (int64_t i = 0; i < attn_tensor_count(&both); i++) {
        ((float *)alone1.data)[i] += ((const float *)alone2.data)[i];
    }
    assert_close(&both, &alone1, 1e-6, 1e-6, "gradient of the input");
    attn_tensor_destroy(f->context, &kept);
    attn_tensor_destroy(f->context, &both);
    attn_tensor_destroy(f->context, &alone2);
    attn_tensor_destroy(f->context, &alone1);
    attn_tensor_destroy(f->context, &x);
    attn_module_destroy(second);
    attn_module_destroy(first);
}

// Two backward calls on two tapes add up; zero_grad clears.
static void gradients_accumulate(void **state)
{
    fixture *f = *state;
    attn_error error;
    attn_module *module = small_module(f, 4, 0);
    attn_tensor x = random_tensor(f->context, ATTN_F32, 3, (int64_t[]){2, 6, 5}, 7);
    attn_tape *other;
    ASSERT_OK(attn_tape_create(f->context, &other, &error));
    attn_tape *const tapes[] = {f->tape, other};
    attn_tensor once = {0};
    attn_parameter *weight = attn_module_find_parameter(module, "W_value.weight");
    for (int i = 0; i < 2; i++) {
        const attn_var output = attn_module_apply(module, attn_input(tapes[i], &x, false));
        ASSERT_OK(attn_backward(attn_sum_all(output), &error));
        if (i == 0) {
            once = converted(f->context, &weight->grad, ATTN_F32);
        }
    }
    for (int64_t i = 0; i < attn_tensor_count(&once); i++) {
        ((float *)once.data)[i] *= 2;
    }
    assert_same_bits(&weight->grad, &once, "twice");
    attn_module_zero_grad(module);
    attn_tensor_fill(&once, 0, &error);
    assert_same_bits(&weight->grad, &once, "zero");
    attn_tape_destroy(other);
    attn_tensor_destroy(f->context, &once);
    attn_tensor_destroy(f->context, &x);
    attn_module_destroy(module);
}

// Changing a later token leaves every earlier row's bits unchanged.
static void causality_to_the_bit(void **state)
{
    fixture *f = *state;
    attn_error error;
    for (int variant = 2; variant < VARIANTS; variant++) {
        attn_module *module = small_module(f, variant, 0);
        attn_tensor x = random_tensor(f->context, ATTN_F32, 2, (int64_t[]){7, 5}, 7);
        const attn_tensor before =
            attn_value(attn_module_apply(module, attn_input(f->tape, &x, false)));
        for (int i = 0; i < 10; i++) { // rows 5 and 6
            ((float *)x.data)[5 * 5 + i] += 100;
        }
        const attn_tensor after =
            attn_value(attn_module_apply(module, attn_input(f->tape, &x, false)));
        attn_tensor early_before, early_after, late_before, late_after;
        ASSERT_OK(attn_tensor_slice(&before, 0, 0, 5, 1, &early_before, &error));
        ASSERT_OK(attn_tensor_slice(&after, 0, 0, 5, 1, &early_after, &error));
        ASSERT_OK(attn_tensor_select(&before, 0, 5, &late_before, &error));
        ASSERT_OK(attn_tensor_select(&after, 0, 5, &late_after, &error));
        assert_same_bits(&early_after, &early_before, variants[variant]);
        attn_comparison found;
        ASSERT_OK(attn_tensor_compare(&late_after, &late_before, 0, 0, &found, &error));
        assert_true(found.differing > 0);
        attn_tape_reset(f->tape);
        attn_tensor_destroy(f->context, &x);
        attn_module_destroy(module);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(empty_inputs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_token, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ranks_and_batches, set_up, tear_down),
        cmocka_unit_test_setup_teardown(trace_changes_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(trace_entries, set_up, tear_down),
        cmocka_unit_test_setup_teardown(v1_equals_v2_transposed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(shared_input, set_up, tear_down),
        cmocka_unit_test_setup_teardown(gradients_accumulate, set_up, tear_down),
        cmocka_unit_test_setup_teardown(causality_to_the_bit, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
