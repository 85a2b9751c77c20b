// Parameters by name: their order, shapes and counts, loading, buffers, and the state dict's errors.
#include <string.h>

#include "modules/module_fixture.h"
#include "support/allocator.h"
#include "support/status.h"
#include "support/unit.h"

typedef struct fixture {
    test_allocator allocator;
    attn_context *context;
    attn_attention_config config;
} fixture;

static int set_up(void **state)
{
    static fixture f;
    f.context = test_context_on(&f.allocator);
    attn_attention_config_init(&f.config);
    f.config.d_in = 3;
    f.config.d_out = 4;
    f.config.context_length = 5;
    f.config.num_heads = 2;
    f.config.qkv_bias = true;
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    test_context_end(f->context, &f->allocator);
    return 0;
}

static void check_names(attn_module *module, const char *const *names, int64_t count)
{
    assert_int_equal(attn_module_parameter_count(module), count);
    for (int64_t i = 0; i < count; i++) {
        attn_parameter *parameter = attn_module_parameter(module, i);
        assert_string_equal(parameter->name, names[i]);
        assert_ptr_equal(attn_module_find_parameter(module, names[i]), parameter);
        assert_true(attn_tensor_same_shape(&parameter->value, &parameter->grad));
    }
    assert_null(attn_module_parameter(module, -1));
    assert_null(attn_module_parameter(module, count));
    assert_null(attn_module_find_parameter(module, "W_Query"));
}

static void check_shape(attn_module *module, const char *name, int64_t rows, int64_t columns)
{
    const attn_tensor value = attn_module_find_parameter(module, name)->value;
    assert_int_equal(value.shape[0], rows);
    assert_int_equal(value.ndim, columns ? 2 : 1);
    if (columns) {
        assert_int_equal(value.shape[1], columns);
    }
}

static void names_and_shapes(void **state)
{
    fixture *f = *state;
    attn_error error;
    attn_module *module = make_module(f->context, "MultiHeadAttention", &f->config, NULL);
    check_names(module,
                (const char *[]){"W_query.weight", "W_query.bias", "W_key.weight", "W_key.bias",
                                 "W_value.weight", "W_value.bias", "out_proj.weight",
                                 "out_proj.bias"},
                8);
    check_shape(module, "W_query.weight", 4, 3);
    check_shape(module, "out_proj.weight", 4, 4);
    check_shape(module, "out_proj.bias", 4, 0);
    assert_int_equal(attn_module_value_count(module), 3 * (4 * 3 + 4) + 4 * 4 + 4);
    assert_string_equal(attn_module_kind(module), "multi_head_attention");
    assert_int_equal(attn_module_config(module)->num_heads, 2);
    attn_module_destroy(module);

    attn_attention_config config = f->config;
    config.num_heads = 4;
    config.num_kv_heads = 2;
    config.head_dim = 6;
    config.qkv_bias = false;
    config.qk_norm = true;
    config.out_bias = false;
    config.causal = false;
    config.d_context = 7;
    module = make_module(f->context, "MultiHeadAttention", &config, NULL);
    check_names(module,
                (const char *[]){"W_query.weight", "W_key.weight", "W_value.weight",
                                 "out_proj.weight", "q_norm.weight", "k_norm.weight"},
                6);
    check_shape(module, "W_query.weight", 24, 3);
    check_shape(module, "W_key.weight", 12, 7);
    check_shape(module, "W_value.weight", 12, 7);
    check_shape(module, "out_proj.weight", 4, 24);
    check_shape(module, "k_norm.weight", 6, 0);
    int64_t first = 0; // without a generator parameters are zero, norms one
    assert_true(
        attn_tensor_get(&attn_module_find_parameter(module, "q_norm.weight")->value, &first) == 1);
    attn_module_destroy(module);

    config = f->config;
    config.num_heads = 1;
    config.context_length = 0;
    config.qkv_bias = false;
    module = make_module(f->context, "SelfAttentionV1", &config, NULL);
    check_names(module, (const char *[]){"W_query", "W_key", "W_value"}, 3);
    check_shape(module, "W_query", 3, 4);
    attn_module_destroy(module);

    ASSERT_OK(attn_linear_create(f->context, 3, 2, true, ATTN_F32, NULL, &module, &error));
    check_names(module, (const char *[]){"weight", "bias"}, 2);
    check_shape(module, "weight", 2, 3);
    assert_string_equal(attn_module_kind(module), "linear");
    assert_null(attn_module_config(module));
    attn_module_destroy(module);
}

static void wrapper_names(void **state)
{
    fixture *f = *state;
    f->config.qkv_bias = false;
    attn_module *module = make_module(f->context, "MultiHeadAttentionWrapper", &f->config, NULL);
    check_names(module,
                (const char *[]){"heads.0.W_query.weight", "heads.0.W_key.weight",
                                 "heads.0.W_value.weight", "heads.1.W_query.weight",
                                 "heads.1.W_key.weight", "heads.1.W_value.weight"},
                6);
    assert_int_equal(attn_module_buffer_count(module), 2);
    assert_string_equal(attn_module_buffer_name(module, 1), "heads.1.mask");
    attn_module_destroy(module);
}

static void round_trip(void **state)
{
    fixture *f = *state;
    attn_error error;
    attn_generator *generator;
    ASSERT_OK(attn_generator_create(f->context, 5, &generator, &error));
    attn_module *from = make_module(f->context, "MultiHeadAttention", &f->config, generator);
    attn_module *to = make_module(f->context, "MultiHeadAttention", &f->config, NULL);
    attn_attention_config wide = f->config;
    wide.dtype = ATTN_F64;
    attn_module *to_wide = make_module(f->context, "MultiHeadAttention", &wide, NULL);
    attn_named_tensor tensors[8];
    attn_module_state(from, tensors);
    const attn_named_tensor first = tensors[0]; // any order will do
    tensors[0] = tensors[7];
    tensors[7] = first;
    ASSERT_OK(attn_module_load_state(to, tensors, 8, false, &error));
    ASSERT_OK(attn_module_load_state(to_wide, tensors, 8, false, &error));
    for (int64_t i = 0; i < 8; i++) {
        const attn_parameter *parameter = attn_module_parameter(to, i);
        assert_same_bits(&parameter->value, &attn_module_parameter(from, i)->value,
                         parameter->name);
        assert_int_equal(parameter->version, 1);
        assert_close(&attn_module_parameter(to_wide, i)->value, &parameter->value, 0, 0,
                     parameter->name);
    }
    attn_module_destroy(to_wide);
    attn_module_destroy(to);
    attn_module_destroy(from);
    attn_generator_destroy(generator);
}

// A refused state leaves every parameter as it was, whatever was right in it.
static void refused_states(void **state)
{
    fixture *f = *state;
    attn_error error;
    f->config.qkv_bias = false;
    f->config.num_heads = 1;
    attn_generator *generator;
    ASSERT_OK(attn_generator_create(f->context, 5, &generator, &error));
    attn_module *from = make_module(f->context, "CausalAttention", &f->config, generator);
    attn_module *to = make_module(f->context, "CausalAttention", &f->config, NULL);
    attn_named_tensor tensors[6];
    attn_module_state(from, tensors);
    float zeros[25] = {0};
    const attn_named_tensor mask = {"mask",
                                    attn_tensor_wrap_const(zeros, ATTN_F32, 2, (int64_t[]){5, 5})};
    const attn_named_tensor bad_mask = {
        "mask", attn_tensor_wrap_const(zeros, ATTN_F32, 2, (int64_t[]){4, 4})};
    const attn_named_tensor stranger = {"W_o.weight",
                                        attn_tensor_wrap_const(zeros, ATTN_F32, 1, (int64_t[]){1})};

    ASSERT_FAILS(ATTN_ERR_NOT_FOUND,
                 "causal_attention: missing W_key.weight; missing W_value.weight",
                 attn_module_load_state(to, tensors, 1, false, &error));
    tensors[3] = stranger;
    ASSERT_FAILS(ATTN_ERR_NOT_FOUND, "causal_attention: unknown W_o.weight",
                 attn_module_load_state(to, tensors, 4, false, &error));
    tensors[3] = tensors[1];
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "causal_attention: W_key.weight is given twice",
                 attn_module_load_state(to, tensors, 4, false, &error));
    tensors[3] = bad_mask;
    ASSERT_FAILS(ATTN_ERR_SHAPE, "causal_attention: mask is [4,4], must be [5,5]",
                 attn_module_load_state(to, tensors, 4, false, &error));
    attn_named_tensor wrong[3];
    memcpy(wrong, tensors, sizeof wrong);
    ASSERT_OK(attn_tensor_transpose(&wrong[0].tensor, 0, 1, &wrong[0].tensor, &error));
    int64_t integers[12] = {0};
    wrong[2].tensor = attn_tensor_wrap(integers, ATTN_I64, 2, (int64_t[]){4, 3});
    ASSERT_FAILS(ATTN_ERR_SHAPE,
                 "causal_attention: W_query.weight is [3,4], must be [4,3]; W_value.weight is "
                 "int64, must be floating",
                 attn_module_load_state(to, wrong, 3, false, &error));
    memcpy(wrong, tensors, sizeof wrong);
    wrong[2].tensor = attn_module_parameter(to, 0)->value;
    ASSERT_FAILS(ATTN_ERR_OVERLAP,
                 "causal_attention: W_value.weight given in the memory of the module's "
                 "W_query.weight",
                 attn_module_load_state(to, wrong, 3, false, &error));
    for (int64_t i = 0; i < 3; i++) {
        const int64_t origin[2] = {0, 0};
        const attn_parameter *parameter = attn_module_parameter(to, i);
        assert_true(attn_tensor_get(&parameter->value, origin) == 0);
        assert_int_equal(parameter->version, 0);
    }

    tensors[3].name = NULL;
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "causal_attention: tensor 3 has no name",
                 attn_module_load_state(to, tensors, 4, false, &error));

    tensors[3] = mask;
    tensors[4] = stranger;
    ASSERT_OK(attn_module_load_state(to, tensors, 4, false, &error));
    ASSERT_OK(attn_module_load_state(to, tensors, 5, true, &error));
    assert_int_equal(attn_module_parameter(to, 0)->version, 2);
    attn_module_destroy(to);
    attn_module_destroy(from);
    attn_generator_destroy(generator);
}

static void buffers(void **state)
{
    fixture *f = *state;
    attn_error error;
    attn_module *module = make_module(f->context, "MultiHeadAttention", &f->config, NULL);
    assert_int_equal(attn_module_buffer_count(module), 1);
    assert_string_equal(attn_module_buffer_name(module, 0), "mask");
    assert_null(attn_module_buffer_name(module, 1));
    attn_tensor layout;
    ASSERT_OK(attn_module_buffer_shape(module, "mask", &layout, &error));
    float values[25];
    const attn_tensor mask = attn_tensor_wrap(values, layout.dtype, layout.ndim, layout.shape);
    ASSERT_OK(attn_module_buffer(module, "mask", &mask, &error));
    for (int i = 0; i < 5; i++) {
        for (int j = 0; j < 5; j++) {
            assert_true(values[5 * i + j] == (j > i ? 1.0F : 0.0F));
        }
    }
    ASSERT_FAILS(ATTN_ERR_NOT_FOUND, "multi_head_attention: no buffer is named bias",
                 attn_module_buffer(module, "bias", &mask, &error));
    const attn_tensor narrow = attn_tensor_wrap(values, ATTN_F32, 2, (int64_t[]){5, 4});
    ASSERT_FAILS(ATTN_ERR_SHAPE, "multi_head_attention: buffer mask is [5,5], not [5,4]",
                 attn_module_buffer(module, "mask", &narrow, &error));
    double wide_values[25];
    const attn_tensor wide = attn_tensor_wrap(wide_values, ATTN_F64, 2, (int64_t[]){5, 5});
    ASSERT_FAILS(ATTN_ERR_DTYPE, "multi_head_attention: buffer mask is float32, not float64",
                 attn_module_buffer(module, "mask", &wide, &error));
    attn_tensor folded = mask;
    folded.stride[0] = 1;
    ASSERT_FAILS(
        ATTN_ERR_OVERLAP,
        "multi_head_attention: the output for buffer mask of shape [5,5] with stride [1,1] "
        "overlaps itself",
        attn_module_buffer(module, "mask", &folded, &error));
    attn_module_destroy(module);

    f->config.causal = false;
    module = make_module(f->context, "MultiHeadAttention", &f->config, NULL);
    assert_int_equal(attn_module_buffer_count(module), 0);
    attn_module_destroy(module);
}

static void modes(void **state)
{
    fixture *f = *state;
    attn_module *module = make_module(f->context, "MultiHeadAttentionWrapper", &f->config, NULL);
    assert_true(attn_module_training(module));
    attn_module_eval(module);
    assert_false(attn_module_training(module));
    attn_module_train(module);
    assert_true(attn_module_training(module));
    attn_module_destroy(module);
    attn_module_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(names_and_shapes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(wrapper_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(round_trip, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refused_states, set_up, tear_down),
        cmocka_unit_test_setup_teardown(buffers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(modes, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
