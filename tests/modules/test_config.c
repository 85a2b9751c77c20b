// What modules refuse, and in which words.
#include <math.h>
#include <string.h>

#include "modules/module_fixture.h"
#include "support/allocator.h"
#include "support/status.h"
#include "support/unit.h"

typedef attn_status (*create_function)(const attn_context *, const attn_attention_config *,
                                       attn_generator *, attn_module **, attn_error *);

typedef struct fixture {
    test_allocator allocator;
    attn_context *context;
    attn_tape *tape;
} fixture;

static int set_up(void **state)
{
    static fixture f;
    attn_error error;
    f.context = test_context_on(&f.allocator);
    ASSERT_OK(attn_tape_create(f.context, &f.tape, &error));
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    attn_tape_destroy(f->tape);
    test_context_end(f->context, &f->allocator);
    return 0;
}

static attn_attention_config base_config(void)
{
    attn_attention_config config;
    attn_attention_config_init(&config);
    config.d_in = 6;
    config.d_out = 4;
    config.context_length = 5;
    return config;
}

static void refuses(fixture *f, create_function create, const attn_attention_config *config,
                    attn_status expected, const char *text)
{
    attn_error error;
    attn_module *module = (attn_module *)f; // must not be written
    ASSERT_FAILS(expected, text, create(f->context, config, NULL, &module, &error));
    assert_ptr_equal(module, f);
}

static void shared_fields(void **state)
{
    fixture *f = *state;
    const create_function create = attn_causal_attention_create;
    const attn_status invalid = ATTN_ERR_INVALID_ARGUMENT;
    refuses(f, create, NULL, invalid, "causal_attention: config is NULL");
    attn_attention_config config = base_config();
    config.reserved[3] = 1;
    refuses(f, create, &config, invalid, "causal_attention: config.reserved[3] must be zero");
    config = base_config();
    config.dtype = ATTN_F16;
    refuses(f, create, &config, invalid,
            "causal_attention: dtype must be float32 or float64, not float16");
    config = base_config();
    config.d_in = 0;
    refuses(f, create, &config, invalid, "causal_attention: d_in (0) must be positive");
    config = base_config();
    config.d_out = -2;
    refuses(f, create, &config, invalid, "causal_attention: d_out (-2) must be positive");
    config = base_config();
    config.context_length = 0;
    refuses(f, create, &config, invalid, "causal_attention: context_length (0) must be positive");
    config = base_config();
    config.dropout = 1;
    refuses(f, create, &config, invalid, "causal_attention: dropout (1) must be in [0, 1)");
    config.dropout = NAN;
    refuses(f, create, &config, invalid, "causal_attention: dropout (nan) must be in [0, 1)");
    config = base_config();
    config.dropout_source = (attn_dropout_source)7;
    refuses(f, create, &config, invalid, "causal_attention: unknown dropout_source (7)");
    config = base_config();
    config.d_in = INT64_MAX / 2;
    config.d_out = INT64_MAX / 2;
    attn_error error;
    attn_module *module = NULL;
    assert_int_equal(create(f->context, &config, NULL, &module, &error), ATTN_ERR_OVERFLOW);
    assert_null(module);
}

// Every variant names the fields that it does not have.
static void foreign_fields(void **state)
{
    fixture *f = *state;
    const attn_status invalid = ATTN_ERR_INVALID_ARGUMENT;
    attn_attention_config config = base_config();
    refuses(f, attn_self_attention_v1_create, &config, invalid,
            "self_attention_v1: has no context_length; leave it at its default");
    config.context_length = 0;
    config.qkv_bias = true;
    refuses(f, attn_self_attention_v1_create, &config, invalid,
            "self_attention_v1: has no qkv_bias; leave it at its default");
    config.dropout = 0.5;
    refuses(f, attn_self_attention_v2_create, &config, invalid,
            "self_attention_v2: has no dropout; leave it at its default");
    config = base_config();
    config.num_heads = 2;
    refuses(f, attn_causal_attention_create, &config, invalid,
            "causal_attention: has no num_heads; leave it at its default");
    config = base_config();
    config.causal = false;
    refuses(f, attn_causal_attention_create, &config, invalid,
            "causal_attention: has no causal; leave it at its default");
    config = base_config();
    config.rotary = ATTN_ROTARY_HALF_SPLIT;
    refuses(f, attn_multi_head_attention_wrapper_create, &config, invalid,
            "multi_head_attention_wrapper: has no rotary; leave it at its default");
}

static void multi_head_fields(void **state)
{
    fixture *f = *state;
    const create_function create = attn_multi_head_attention_create;
    const attn_status invalid = ATTN_ERR_INVALID_ARGUMENT;
    attn_attention_config config = base_config();
    config.d_out = 10;
    config.num_heads = 4;
    refuses(f, create, &config, invalid,
            "multi_head_attention: d_out (10) must be divisible by num_heads (4)");
    config.num_heads = 0;
    refuses(f, create, &config, invalid, "multi_head_attention: num_heads (0) must be positive");
    config = base_config();
    config.num_heads = 4;
    config.num_kv_heads = 3;
    refuses(f, create, &config, invalid,
            "multi_head_attention: num_heads (4) must be divisible by num_kv_heads (3)");
    config = base_config();
    config.head_dim = 3;
    config.out_proj = false;
    refuses(f, create, &config, invalid,
            "multi_head_attention: without out_proj, d_out (4) must be num_heads (1) times "
            "head_dim (3)");
    config = base_config();
    config.d_context = 3;
    refuses(f, create, &config, invalid,
            "multi_head_attention: d_context (3) must be 0 where the module is causal and not "
            "negative elsewhere");
    config = base_config();
    config.rotary = (attn_rotary_style)9;
    refuses(f, create, &config, invalid, "multi_head_attention: unknown rotary style (9)");
    config.rotary = ATTN_ROTARY_INTERLEAVED;
    config.head_dim = 3;
    refuses(f, create, &config, invalid,
            "multi_head_attention: rotary positions need an even head_dim, not 3");
    config = base_config();
    config.rotary_base = 0;
    refuses(f, create, &config, invalid,
            "multi_head_attention: rotary_base (0) must be positive and finite");
    config = base_config();
    config.qk_norm_epsilon = -1;
    refuses(f, create, &config, invalid,
            "multi_head_attention: qk_norm_epsilon (-1) must be finite and not negative");
    config = base_config();
    config.head_dim = INT64_MAX / 2;
    config.num_heads = 4;
    refuses(f, create, &config, ATTN_ERR_OVERFLOW,
            "multi_head_attention: num_heads times head_dim overflows");
    config = base_config();
    config.num_heads = INT64_MAX / 4;
    refuses(f, attn_multi_head_attention_wrapper_create, &config, ATTN_ERR_OVERFLOW,
            "multi_head_attention_wrapper: num_heads (2305843009213693951) is too large");
}

static void linear_arguments(void **state)
{
    fixture *f = *state;
    attn_error error;
    attn_module *module = NULL;
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT,
                 "linear: in_features (0) and out_features (2) must be positive",
                 attn_linear_create(f->context, 0, 2, true, ATTN_F32, NULL, &module, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "linear: context is NULL",
                 attn_linear_create(NULL, 1, 2, true, ATTN_F32, NULL, &module, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "linear: module is NULL",
                 attn_linear_create(f->context, 1, 2, true, ATTN_F32, NULL, NULL, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "linear: dtype must be float32 or float64, not int64",
                 attn_linear_create(f->context, 2, 2, true, ATTN_I64, NULL, &module, &error));
    assert_null(module);
}

// ---- calls --------------------------------------------------------------------------------------

// Runs the call on zeros of the shape and checks the tape's error; then clears it.
static void call_refused(fixture *f, attn_module *module, attn_module_call call, attn_dtype dtype,
                         int32_t ndim, const int64_t *shape, attn_status expected, const char *text)
{
    attn_error error;
    attn_tensor x;
    ASSERT_OK(attn_tensor_create(f->context, dtype, ndim, shape, &x, &error));
    call.input = attn_input(f->tape, &x, false);
    const attn_var output = attn_module_forward(module, &call);
    assert_int_equal(attn_tape_status(f->tape), expected);
    assert_string_equal(attn_tape_error(f->tape)->text, text);
    assert_int_equal(attn_value(output).dtype, ATTN_DTYPE_NONE);
    attn_tape_reset(f->tape);
    attn_tensor_destroy(f->context, &x);
}

static void calls(void **state)
{
    fixture *f = *state;
    attn_attention_config config = base_config();
    config.dropout = 0.5;
    attn_module *module = make_module(f->context, "CausalAttention", &config, NULL);
    attn_module_call call;
    attn_module_call_init(&call);
    const attn_status invalid = ATTN_ERR_INVALID_ARGUMENT;
    call_refused(f, module, call, ATTN_F32, 3, (int64_t[]){2, 6, 6}, invalid,
                 "causal_attention: T (6) exceeds context_length (5)");
    call_refused(f, module, call, ATTN_F32, 1, (int64_t[]){6}, ATTN_ERR_SHAPE,
                 "causal_attention: input [6] must be (T, d_in) or (B, T, d_in)");
    call_refused(f, module, call, ATTN_F32, 3, (int64_t[]){2, 3, 4}, ATTN_ERR_SHAPE,
                 "causal_attention: input [2,3,4] must end in d_in (6)");
    call_refused(f, module, call, ATTN_F64, 2, (int64_t[]){3, 6}, ATTN_ERR_DTYPE,
                 "causal_attention: the input is float64, the module float32");
    call_refused(f, module, call, ATTN_F32, 2, (int64_t[]){3, 6}, invalid,
                 "causal_attention: dropout (0.5) in training needs a generator in the call");
    call.position = 3;
    call_refused(f, module, call, ATTN_F32, 2, (int64_t[]){3, 6}, invalid,
                 "causal_attention: position (3) plus T (3) exceeds context_length (5)");
    call.position = INT64_MAX - 2;
    call_refused(f, module, call, ATTN_F32, 2, (int64_t[]){3, 6}, ATTN_ERR_OVERFLOW,
                 "causal_attention: position (9223372036854775805) plus T (3) is too large");
    call.position = -1;
    call_refused(f, module, call, ATTN_F32, 2, (int64_t[]){3, 6}, invalid,
                 "causal_attention: position (-1) must not be negative");
    attn_module_call_init(&call);
    call.reserved[2] = 1;
    call_refused(f, module, call, ATTN_F32, 2, (int64_t[]){3, 6}, invalid,
                 "causal_attention: call.reserved[2] must be zero");
    attn_module_destroy(module);
}

static void second_input(void **state)
{
    fixture *f = *state;
    attn_error error;
    attn_attention_config config = base_config();
    attn_module_call call;
    attn_module_call_init(&call);
    attn_tensor other;
    ASSERT_OK(attn_tensor_create(f->context, ATTN_F32, 2, (int64_t[]){4, 6}, &other, &error));

    attn_module *causal = make_module(f->context, "CausalAttention", &config, NULL);
    call.context = attn_input(f->tape, &other, false);
    call_refused(f, causal, call, ATTN_F32, 2, (int64_t[]){3, 6}, ATTN_ERR_INVALID_ARGUMENT,
                 "causal_attention: takes no second input (context)");
    attn_module_destroy(causal);

    attn_module *heads = make_module(f->context, "MultiHeadAttention", &config, NULL);
    call.context = attn_input(f->tape, &other, false);
    call_refused(f, heads, call, ATTN_F32, 2, (int64_t[]){3, 6}, ATTN_ERR_INVALID_ARGUMENT,
                 "multi_head_attention: a second input (context) does not go with a causal mask, "
                 "which needs one sequence");
    attn_module_destroy(heads);

    config.causal = false;
    config.d_context = 7;
    attn_module *cross = make_module(f->context, "MultiHeadAttention", &config, NULL);
    call.context = attn_input(f->tape, &other, false);
    call_refused(f, cross, call, ATTN_F32, 2, (int64_t[]){3, 6}, ATTN_ERR_SHAPE,
                 "multi_head_attention: context [4,6] must have the rank and batch of input [3,6] "
                 "and end in d_context (7)");
    call.context = ATTN_NO_VAR;
    call_refused(f, cross, call, ATTN_F32, 2, (int64_t[]){3, 6}, ATTN_ERR_INVALID_ARGUMENT,
                 "multi_head_attention: d_context (7) differs from d_in (6), so the call needs a "
                 "context");
    attn_tape *elsewhere;
    ASSERT_OK(attn_tape_create(f->context, &elsewhere, &error));
    call.context = attn_input(elsewhere, &other, false);
    call_refused(f, cross, call, ATTN_F32, 2, (int64_t[]){3, 6}, ATTN_ERR_STATE,
                 "multi_head_attention: the context is on another tape than the input");
    attn_tape_destroy(elsewhere);
    attn_module_destroy(cross);
    attn_tensor_destroy(f->context, &other);
}

static void another_context(void **state)
{
    fixture *f = *state;
    attn_error error;
    attn_context *context;
    ASSERT_OK(attn_context_create(NULL, &context, &error));
    attn_attention_config config = base_config();
    attn_module *module = make_module(context, "MultiHeadAttention", &config, NULL);
    attn_module_call call;
    attn_module_call_init(&call);
    call_refused(f, module, call, ATTN_F32, 2, (int64_t[]){3, 6}, ATTN_ERR_STATE,
                 "multi_head_attention: the input's tape belongs to another context than the "
                 "module's parameters");
    assert_ptr_equal(attn_module_context(module), context);
    attn_module_destroy(module);
    attn_context_destroy(context);
}

// A failed tape stays failed, and a module then neither computes nor draws.
static void failed_tape(void **state)
{
    fixture *f = *state;
    attn_error error;
    attn_attention_config config = base_config();
    config.dropout = 0.5;
    attn_module *module = make_module(f->context, "CausalAttention", &config, NULL);
    attn_generator *generator;
    attn_generator_state before, after;
    ASSERT_OK(attn_generator_create(f->context, 1, &generator, &error));
    attn_generator_save(generator, &before);
    attn_tensor x;
    ASSERT_OK(attn_tensor_create(f->context, ATTN_F32, 2, (int64_t[]){3, 6}, &x, &error));
    attn_module_call call;
    attn_module_call_init(&call);
    call.input = attn_input(f->tape, &x, false);
    call.generator = generator;
    attn_tape_fail(f->tape, ATTN_ERR_INTERRUPTED, "stopped");
    attn_module_forward(module, &call);
    assert_string_equal(attn_tape_error(f->tape)->text, "stopped");
    attn_generator_save(generator, &after);
    assert_memory_equal(&before, &after, sizeof before);
    attn_generator_destroy(generator);
    attn_tensor_destroy(f->context, &x);
    attn_module_destroy(module);

    // No input at all: no tape to complain to.
    attn_module *linear;
    ASSERT_OK(attn_linear_create(f->context, 2, 2, false, ATTN_F32, NULL, &linear, &error));
    assert_null(attn_module_apply(linear, ATTN_NO_VAR).tape);
    assert_null(attn_module_forward(linear, NULL).tape);
    attn_module_destroy(linear);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(shared_fields, set_up, tear_down),
        cmocka_unit_test_setup_teardown(foreign_fields, set_up, tear_down),
        cmocka_unit_test_setup_teardown(multi_head_fields, set_up, tear_down),
        cmocka_unit_test_setup_teardown(linear_arguments, set_up, tear_down),
        cmocka_unit_test_setup_teardown(calls, set_up, tear_down),
        cmocka_unit_test_setup_teardown(second_input, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_context, set_up, tear_down),
        cmocka_unit_test_setup_teardown(failed_tape, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
