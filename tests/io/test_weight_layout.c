// Attention layers under others' names: loaded, refused with the reason, saved, and the same after a
// round trip.
#include <string.h>

#include "attn/safetensors.h"
#include "io/named.h"
#include "io_support.h"
#include "layer_fixture.h"
#include "status.h"

static test_allocator memory;
static attn_context *context;

// ---- small modules ------------------------------------------------------------------------------

static double value_at(const attn_tensor *tensor, int64_t row, int64_t column)
{
    const int64_t index[] = {row, column};
    return attn_tensor_get(tensor, index);
}

static const attn_tensor *parameter(attn_module *module, const char *name)
{
    const attn_parameter *found = attn_module_find_parameter(module, name);
    assert_non_null(found);
    return &found->value;
}

static attn_module *create(const attn_attention_config *config)
{
    attn_error error;
    attn_module *module = NULL;
    ASSERT_OK(attn_multi_head_attention_create(context, config, NULL, &module, &error));
    return module;
}

static attn_attention_config small_config(bool qkv_bias, bool out_bias)
{
    attn_attention_config config;
    attn_attention_config_init(&config);
    config.d_in = 6;
    config.d_out = 6;
    config.num_heads = 2;
    config.context_length = 8;
    config.qkv_bias = qkv_bias;
    config.out_bias = out_bias;
    return config;
}

static attn_layer named_layer(attn_layout layout, const char *prefix)
{
    attn_layer layer;
    attn_error error;
    ASSERT_OK(attn_layer_init(&layer, layout, prefix, &error));
    return layer;
}

// ---- loading ------------------------------------------------------------------------------------

static void test_gpt2_is_split_and_transposed(void **state)
{
    (void)state;
    layer_fixture f = {.context = context};
    const attn_tensor *joint = fixture_add(&f, "transformer.h.2.attn.c_attn.weight", 6, 18);
    const attn_tensor *bias = fixture_add(&f, "transformer.h.2.attn.c_attn.bias", 18, 0);
    const attn_tensor *out = fixture_add(&f, "transformer.h.2.attn.c_proj.weight", 6, 6);
    fixture_add(&f, "transformer.h.2.attn.c_proj.bias", 6, 0);
    fixture_add(&f, "transformer.h.2.attn.bias", 8, 8);
    fixture_add(&f, "transformer.h.2.attn.masked_bias", 1, 0);
    const attn_attention_config config = small_config(true, true);
    attn_module *module = create(&config);
    const attn_layer layer = named_layer(ATTN_LAYOUT_GPT2, "transformer.h.2.attn.");
    attn_error error;
    ASSERT_OK(attn_layer_load(module, &layer, f.tensors, f.count, &error));
    static const char *const weights[] = {"W_query.weight", "W_key.weight", "W_value.weight"};
    static const char *const biases[] = {"W_query.bias", "W_key.bias", "W_value.bias"};
    for (int part = 0; part < 3; part++) {
        for (int64_t o = 0; o < 6; o++) {
            const int64_t column = 6 * part + o;
            for (int64_t i = 0; i < 6; i++) {
                assert_true(value_at(parameter(module, weights[part]), o, i) ==
                            value_at(joint, i, column));
            }
            assert_true(attn_tensor_get(parameter(module, biases[part]), &o) ==
                        attn_tensor_get(bias, &column));
        }
    }
    assert_true(value_at(parameter(module, "out_proj.weight"), 1, 4) == value_at(out, 4, 1));
    attn_module_destroy(module);
    fixture_clear(&f);
}

// A fused and a separate torch file of the same numbers load to the same module.
static void test_torch_joint_and_separate(void **state)
{
    (void)state;
    layer_fixture f = {.context = context};
    fixture_add(&f, "in_proj_weight", 18, 6);
    fixture_add(&f, "in_proj_bias", 18, 0);
    fixture_add(&f, "out_proj.weight", 6, 6);
    fixture_add(&f, "out_proj.bias", 6, 0);
    attn_attention_config config = small_config(true, true);
    config.causal = false;
    attn_module *joint = create(&config);
    attn_module *separate = create(&config);
    const attn_layer layer = named_layer(ATTN_LAYOUT_TORCH, "");
    attn_error error;
    ASSERT_OK(attn_layer_load(joint, &layer, f.tensors, f.count, &error));

    attn_named_tensor parts[6] = {f.tensors[1], f.tensors[2], f.tensors[3]};
    static const char *const names[] = {"q_proj_weight", "k_proj_weight", "v_proj_weight"};
    for (int part = 0; part < 3; part++) {
        parts[3 + part].name = names[part];
        ASSERT_OK(attn_tensor_slice(&f.tensors[0].tensor, 0, 6 * part, 6 * part + 6, 1,
                                    &parts[3 + part].tensor, &error));
    }
    attn_layer found;
    ASSERT_OK(attn_layer_find(parts, 6, ATTN_LAYOUT_ANY, NULL, -1, &found, &error));
    assert_int_equal(found.layout, ATTN_LAYOUT_TORCH);
    ASSERT_OK(attn_layer_load(separate, &found, parts, 6, &error));
    for (int64_t i = 0; i < attn_module_parameter_count(joint); i++) {
        attn_comparison comparison;
        ASSERT_OK(attn_tensor_compare(&attn_module_parameter(joint, i)->value,
                                      &attn_module_parameter(separate, i)->value, 0, 0, &comparison,
                                      &error));
        assert_true(comparison.equal_bits);
    }
    attn_module_destroy(joint);
    attn_module_destroy(separate);
    fixture_clear(&f);
}

static void test_refusals_name_the_tensor(void **state)
{
    (void)state;
    layer_fixture f = {.context = context};
    fixture_add(&f, "h.0.attn.c_attn.weight", 18, 6); // transposed
    fixture_add(&f, "h.0.attn.c_attn.bias", 18, 0);
    fixture_add(&f, "h.0.attn.c_proj.weight", 6, 6);
    fixture_add(&f, "h.0.attn.c_proj.bias", 6, 0);
    attn_attention_config config = small_config(true, true);
    attn_module *module = create(&config);
    attn_layer layer = named_layer(ATTN_LAYOUT_GPT2, "h.0.attn.");
    attn_error error;
    ASSERT_FAILS(ATTN_ERR_SHAPE,
                 "h.0.attn.c_attn.weight: expected [6, 18], got [18, 6] (is it transposed?)",
                 attn_layer_load(module, &layer, f.tensors, f.count, &error));
    const int64_t turned[] = {6, 18};
    ASSERT_OK(attn_tensor_view(&f.tensors[0].tensor, 2, turned, &f.tensors[0].tensor, &error));
    ASSERT_OK(attn_layer_load(module, &layer, f.tensors, f.count, &error));

    f.tensors[2].name = "h.0.attn.c_projection.weight";
    ASSERT_FAILS(ATTN_ERR_NOT_FOUND,
                 "h.0.attn.c_proj.weight: no such tensor; the nearest are h.0.attn.c_attn.weight, "
                 "h.0.attn.c_proj.bias, h.0.attn.c_projection.weight; no layer is recognised",
                 attn_layer_load(module, &layer, f.tensors, f.count, &error));
    f.tensors[2].name = "h.0.attn.c_proj.weight";

    layer = named_layer(ATTN_LAYOUT_GPT2, "h.1.attn.");
    ASSERT_FAILS(ATTN_ERR_NOT_FOUND,
                 "h.1.attn.c_attn.weight: no such tensor; the nearest are h.0.attn.c_attn.weight, "
                 "h.0.attn.c_proj.weight, h.0.attn.c_attn.bias; the layers are h.0.attn.",
                 attn_layer_load(module, &layer, f.tensors, f.count, &error));
    attn_module_destroy(module);

    // A bias that the module does not have must be zero.
    config = small_config(false, true);
    module = create(&config);
    layer = named_layer(ATTN_LAYOUT_GPT2, "h.0.attn.");
    ASSERT_FAILS(ATTN_ERR_NOT_SUPPORTED,
                 "h.0.attn.c_attn.bias: not zero, and the module has no such bias (qkv_bias)",
                 attn_layer_load(module, &layer, f.tensors, f.count, &error));
    memset(f.tensors[1].tensor.data, 0, 18 * sizeof(float));
    ASSERT_OK(attn_layer_load(module, &layer, f.tensors, f.count, &error));
    attn_module_destroy(module);

    // Fewer key heads than query heads do not fit into a fused tensor.
    config = small_config(true, true);
    config.num_kv_heads = 1;
    module = create(&config);
    ASSERT_FAILS(ATTN_ERR_NOT_SUPPORTED,
                 "layers: h.0.attn.c_attn.weight holds query, key and value of one shape, but the "
                 "module's query is [6, 6] and its key [3, 6]",
                 attn_layer_load(module, &layer, f.tensors, f.count, &error));
    attn_module_destroy(module);
    fixture_clear(&f);
}

static void test_refusals_of_what_is_not_computed(void **state)
{
    (void)state;
    layer_fixture f = {.context = context};
    fixture_add(&f, "in_proj_weight", 18, 6);
    fixture_add(&f, "out_proj.weight", 6, 6);
    fixture_add(&f, "bias_k", 6, 0);
    attn_attention_config config = small_config(false, false);
    attn_module *module = create(&config);
    attn_layer layer = named_layer(ATTN_LAYOUT_TORCH, "");
    attn_error error;
    ASSERT_FAILS(ATTN_ERR_NOT_SUPPORTED, "bias_k: a learned extra key and value are not supported",
                 attn_layer_load(module, &layer, f.tensors, f.count, &error));
    f.tensors[2].name = "bias_v";
    ASSERT_FAILS(ATTN_ERR_NOT_SUPPORTED, "bias_v: a learned extra key and value are not supported",
                 attn_layer_load(module, &layer, f.tensors, f.count, &error));
    fixture_clear(&f);

    fixture_add(&f, "l.q_proj.weight", 6, 6);
    fixture_add(&f, "l.k_proj.weight", 6, 6);
    fixture_add(&f, "l.v_proj.weight", 6, 6);
    fixture_add(&f, "l.o_proj.weight", 6, 6);
    fixture_add(&f, "l.q_norm.weight", 3, 0);
    layer = named_layer(ATTN_LAYOUT_LLAMA, "l.");
    ASSERT_FAILS(ATTN_ERR_NOT_SUPPORTED,
                 "layers: l.* was trained with rotary positions; configure the module for them "
                 "(rotary: half-split for Hugging Face's files, interleaved for Meta's)",
                 attn_layer_load(module, &layer, f.tensors, f.count, &error));
    attn_module_destroy(module);

    config.head_dim = 6;
    config.rotary = ATTN_ROTARY_INTERLEAVED;
    config.num_heads = 1;
    module = create(&config);
    ASSERT_FAILS(ATTN_ERR_NOT_SUPPORTED,
                 "l.q_norm.weight: the module has no query and key norms (qk_norm)",
                 attn_layer_load(module, &layer, f.tensors, f.count, &error));
    ASSERT_OK(attn_layer_load(module, &layer, f.tensors, 4, &error));
    layer = named_layer(ATTN_LAYOUT_GPT2, "");
    ASSERT_FAILS(ATTN_ERR_NOT_SUPPORTED,
                 "layers: layout gpt2 has no rotary positions, but the module does",
                 attn_layer_load(module, &layer, f.tensors, f.count, &error));
    attn_module_destroy(module);
    fixture_clear(&f);
}

// A file of this library with more than the module has does not lose the rest in silence.
static void test_own_leftovers_are_refused(void **state)
{
    (void)state;
    layer_fixture f = {.context = context, .next = 1};
    fixture_add(&f, "W_query.weight", 6, 6);
    fixture_add(&f, "W_key.weight", 6, 6);
    fixture_add(&f, "W_value.weight", 6, 6);
    fixture_add(&f, "W_value.bias", 6, 0);
    fixture_add(&f, "out_proj.weight", 6, 6);
    fixture_add(&f, "mask", 8, 8);
    fixture_add(&f, "x", 6, 6);
    const attn_layer layer = named_layer(ATTN_LAYOUT_ATTN, "");
    attn_attention_config config = small_config(false, false);
    attn_module *module = create(&config);
    attn_error error;
    ASSERT_FAILS(ATTN_ERR_NOT_SUPPORTED,
                 "W_value.bias: not zero, and the module has no such bias (qkv_bias)",
                 attn_layer_load(module, &layer, f.tensors, f.count, &error));
    memset(f.tensors[3].tensor.data, 0, 6 * sizeof(float));
    ASSERT_OK(attn_layer_load(module, &layer, f.tensors, f.count, &error));
    attn_module_destroy(module);

    config.num_heads = 1;
    config.out_bias = true;
    ASSERT_OK(attn_causal_attention_create(context, &config, NULL, &module, &error));
    ASSERT_FAILS(ATTN_ERR_NOT_SUPPORTED,
                 "out_proj.weight: the causal_attention has no such parameter",
                 attn_layer_load(module, &layer, f.tensors, f.count, &error));
    attn_module_destroy(module);
    fixture_clear(&f);
}

static void test_a_failed_load_changes_nothing(void **state)
{
    (void)state;
    layer_fixture f = {.context = context};
    fixture_add(&f, "q_proj.weight", 6, 6);
    fixture_add(&f, "k_proj.weight", 6, 6);
    fixture_add(&f, "v_proj.weight", 6, 5);
    fixture_add(&f, "o_proj.weight", 6, 6);
    attn_attention_config config = small_config(false, false);
    config.num_heads = 3;
    config.rotary = ATTN_ROTARY_HALF_SPLIT;
    attn_module *module = create(&config);
    const attn_layer layer = named_layer(ATTN_LAYOUT_LLAMA, "");
    attn_error error;
    ASSERT_FAILS(ATTN_ERR_SHAPE, "v_proj.weight: expected [6, 6], got [6, 5]",
                 attn_layer_load(module, &layer, f.tensors, f.count, &error));
    for (int64_t i = 0; i < 6; i++) {
        assert_true(value_at(parameter(module, "W_query.weight"), i, 5) == 0);
    }
    attn_module_destroy(module);
    fixture_clear(&f);
}

// ---- the golden GPT-2 layer ---------------------------------------------------------------------

static float hash_value(uint32_t index, uint32_t tag, double scale)
{
    uint32_t x = index * 2654435761U + tag * 40503U + 12345U;
    x ^= x >> 15;
    x *= 0x2c1b3c6dU;
    x ^= x >> 12;
    x *= 0x297a2d39U;
    x ^= x >> 15;
    return (float)(((double)(x >> 8) / 16777216 - 0.5) * scale);
}

// The recipe's parameter `tag` as one third of a tensor that lies as GPT-2's do.
static void fill_part(float *values, int64_t rows, int64_t columns, int64_t stride, uint32_t tag)
{
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t column = 0; column < columns; column++) {
            // values is (in, out); the recipe counts (out, in).
            values[row * stride + column] =
                hash_value((uint32_t)(column * rows + row), tag + 100, 0.07);
        }
    }
}

// Writes the recipe's parameters as Hugging Face does and reads the file back into a module.
static attn_module *golden_gpt2_module(const char *path)
{
    enum { WIDTH = 768 };
    layer_fixture f = {.context = context};
    float *joint = fixture_add(&f, "transformer.h.7.attn.c_attn.weight", WIDTH, 3 * WIDTH)->data;
    float *joint_bias = fixture_add(&f, "transformer.h.7.attn.c_attn.bias", 3 * WIDTH, 0)->data;
    float *out = fixture_add(&f, "transformer.h.7.attn.c_proj.weight", WIDTH, WIDTH)->data;
    float *out_bias = fixture_add(&f, "transformer.h.7.attn.c_proj.bias", WIDTH, 0)->data;
    for (uint32_t part = 0; part < 3; part++) {
        fill_part(joint + (size_t)part * WIDTH, WIDTH, WIDTH, 3 * (int64_t)WIDTH, 1 + part);
        fill_part(joint_bias + (size_t)part * WIDTH, 1, WIDTH, 0, 5 + part);
    }
    fill_part(out, WIDTH, WIDTH, WIDTH, 4);
    fill_part(out_bias, 1, WIDTH, 0, 8);
    attn_error error;
    ASSERT_OK(attn_safetensors_save(context, path, f.tensors, f.count, NULL, 0, &error));
    fixture_clear(&f);

    attn_safetensors *file = NULL;
    ASSERT_OK(attn_safetensors_open(context, path, &file, &error));
    const attn_named_tensor *tensors = attn_safetensors_entry(file, 0);
    const int64_t count = attn_safetensors_count(file);
    attn_layer layer;
    ASSERT_OK(attn_layer_find(tensors, count, ATTN_LAYOUT_ANY, NULL, 7, &layer, &error));
    ASSERT_OK(attn_layer_set_heads(&layer, 12, &error));
    layer.config.context_length = 1024;
    attn_module *module = NULL;
    ASSERT_OK(attn_layer_create_module(context, &layer, &module, &error));
    ASSERT_OK(attn_layer_load(module, &layer, tensors, count, &error));
    attn_safetensors_close(file);
    return module;
}

static void test_golden_layer_through_a_gpt2_file(void **state)
{
    (void)state;
    char *folder = make_folder();
    attn_module *module = golden_gpt2_module(in_folder(folder, "gpt2.safetensors"));
    attn_error error;
    attn_safetensors *golden = NULL;
    ASSERT_OK(attn_safetensors_open(context, ATTN_TEST_DATA "/golden/gpt2_768_12h_hash.safetensors",
                                    &golden, &error));
    const int64_t shape[] = {2, 8, 768};
    attn_tensor x;
    ASSERT_OK(attn_tensor_create(context, ATTN_F32, 3, shape, &x, &error));
    for (int64_t i = 0; i < attn_tensor_count(&x); i++) {
        ((float *)x.data)[i] = hash_value((uint32_t)i, 120, 2);
    }
    attn_tape *tape = NULL;
    ASSERT_OK(attn_tape_create(context, &tape, &error));
    attn_module_eval(module);
    const attn_var out = attn_module_apply(module, attn_input(tape, &x, false));
    ASSERT_OK(attn_tape_status(tape));
    const attn_tensor value = attn_value(out);
    attn_comparison comparison;
    ASSERT_OK(attn_tensor_compare(&value, &attn_safetensors_find(golden, "out.f64")->tensor, 5e-6,
                                  0, &comparison, &error));
    assert_int_equal(comparison.differing, 0);
    assert_int_equal(comparison.count, 2 * 8 * 768);
    attn_tape_destroy(tape);
    attn_tensor_destroy(context, &x);
    attn_safetensors_close(golden);
    attn_module_destroy(module);
    remove_folder(folder);
}

// ---- saving -------------------------------------------------------------------------------------

// Saves, loads into a fresh module of the same config, compares every bit.
static void round_trip(const attn_attention_config *config, attn_layout layout, const char *prefix,
                       int64_t tensors)
{
    attn_error error;
    attn_generator *generator = NULL;
    ASSERT_OK(attn_generator_create(context, 7, &generator, &error));
    attn_module *module = NULL;
    ASSERT_OK(attn_multi_head_attention_create(context, config, generator, &module, &error));
    attn_tensor_list *list = NULL;
    ASSERT_OK(attn_layer_save(context, module, layout, prefix, false, &list, &error));
    assert_int_equal(attn_tensor_list_count(list), tensors);

    attn_layer layer;
    ASSERT_OK(attn_layer_find(attn_tensor_list_entries(list), tensors, ATTN_LAYOUT_ANY, NULL, -1,
                              &layer, &error));
    assert_int_equal(layer.layout, layout);
    assert_string_equal(layer.prefix, prefix);
    attn_module *again = create(config);
    ASSERT_OK(attn_layer_load(again, &layer, attn_tensor_list_entries(list), tensors, &error));
    for (int64_t i = 0; i < attn_module_parameter_count(module); i++) {
        attn_comparison comparison;
        ASSERT_OK(attn_tensor_compare(&attn_module_parameter(again, i)->value,
                                      &attn_module_parameter(module, i)->value, 0, 0, &comparison,
                                      &error));
        assert_true(comparison.equal_bits);
    }
    attn_tensor_list_destroy(list);
    attn_module_destroy(again);
    attn_module_destroy(module);
    attn_generator_destroy(generator);
}

static void test_round_trips(void **state)
{
    (void)state;
    for (int qkv_bias = 0; qkv_bias < 2; qkv_bias++) {
        for (int out_bias = 0; out_bias < 2; out_bias++) {
            attn_attention_config config = small_config(qkv_bias, out_bias);
            const int64_t own = 4 + 3 * qkv_bias + out_bias;
            round_trip(&config, ATTN_LAYOUT_ATTN, "", own);
            round_trip(&config, ATTN_LAYOUT_ATTN, "blocks.1.att.", own);
            round_trip(&config, ATTN_LAYOUT_GPT2, "h.3.attn.", 4);
            round_trip(&config, ATTN_LAYOUT_TORCH, "self_attn.", qkv_bias || out_bias ? 4 : 2);
            config.causal = false;
            config.d_context = 5;
            round_trip(&config, ATTN_LAYOUT_TORCH, "cross.", qkv_bias || out_bias ? 6 : 4);
            config = small_config(qkv_bias, out_bias);
            config.num_heads = 4;
            config.num_kv_heads = 2;
            config.head_dim = 2;
            config.rotary = ATTN_ROTARY_HALF_SPLIT;
            round_trip(&config, ATTN_LAYOUT_LLAMA, "model.layers.0.self_attn.", own);
            config.qk_norm = true;
            round_trip(&config, ATTN_LAYOUT_LLAMA, "model.layers.0.self_attn.", own + 2);
            round_trip(&config, ATTN_LAYOUT_ATTN, "", own + 2);
        }
    }
    assert_int_equal(blocks_left(&memory), 0);
}

static void test_masks_are_saved_when_asked_for(void **state)
{
    (void)state;
    const attn_attention_config config = small_config(false, true);
    attn_module *module = create(&config);
    attn_error error;
    attn_tensor_list *list = NULL;
    ASSERT_OK(attn_layer_save(context, module, ATTN_LAYOUT_ATTN, "att.", true, &list, &error));
    const attn_named_tensor *mask = attn_named_find(attn_tensor_list_entries(list),
                                                    attn_tensor_list_count(list), "att.", "mask");
    assert_non_null(mask);
    assert_int_equal(mask->tensor.shape[0], 8);
    assert_true(value_at(&mask->tensor, 2, 3) == 1 && value_at(&mask->tensor, 3, 3) == 0);
    attn_tensor_list_destroy(list);
    attn_module_destroy(module);
}

static void test_saving_refuses_what_a_layout_cannot_say(void **state)
{
    (void)state;
    attn_attention_config config = small_config(false, true);
    config.num_kv_heads = 1;
    attn_module *module = create(&config);
    attn_tensor_list *list = NULL;
    attn_error error;
    ASSERT_FAILS(ATTN_ERR_NOT_SUPPORTED,
                 "layers: layout gpt2 has as many key heads as query heads (num_kv_heads)",
                 attn_layer_save(context, module, ATTN_LAYOUT_GPT2, "", false, &list, &error));
    ASSERT_FAILS(ATTN_ERR_NOT_SUPPORTED,
                 "layers: layout llama needs a module with rotary positions",
                 attn_layer_save(context, module, ATTN_LAYOUT_LLAMA, "", false, &list, &error));
    attn_module_destroy(module);
    config = small_config(false, true);
    config.head_dim = 6;
    config.rotary = ATTN_ROTARY_HALF_SPLIT;
    module = create(&config);
    ASSERT_FAILS(ATTN_ERR_NOT_SUPPORTED, "layers: layout torch has no rotary positions",
                 attn_layer_save(context, module, ATTN_LAYOUT_TORCH, "", false, &list, &error));
    attn_module_destroy(module);
    config = small_config(false, true);
    config.out_proj = false;
    module = create(&config);
    ASSERT_FAILS(ATTN_ERR_NOT_SUPPORTED,
                 "layers: layout torch needs an output projection (out_proj)",
                 attn_layer_save(context, module, ATTN_LAYOUT_TORCH, "", false, &list, &error));
    assert_null(list);
    attn_module_destroy(module);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    const attn_attention_config config = small_config(true, true);
    attn_module *module = create(&config);
    const long long before = blocks_left(&memory);
    attn_status status = ATTN_ERR_OUT_OF_MEMORY;
    for (int64_t nth = 1; status != ATTN_OK; nth++) {
        fail_nth(&memory, nth);
        attn_tensor_list *list = NULL;
        status = attn_layer_save(context, module, ATTN_LAYOUT_GPT2, "h.0.", false, &list, NULL);
        if (status == ATTN_OK) {
            const attn_layer layer = named_layer(ATTN_LAYOUT_GPT2, "h.0.");
            status = attn_layer_load(module, &layer, attn_tensor_list_entries(list),
                                     attn_tensor_list_count(list), NULL);
        }
        attn_tensor_list_destroy(list);
        assert_int_equal(blocks_left(&memory), before);
        assert_true(status == ATTN_OK || status == ATTN_ERR_OUT_OF_MEMORY);
    }
    fail_nth(&memory, 0);
    attn_module_destroy(module);
}

int main(void)
{
    context = io_context(&memory);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpt2_is_split_and_transposed),
        cmocka_unit_test(test_torch_joint_and_separate),
        cmocka_unit_test(test_refusals_name_the_tensor),
        cmocka_unit_test(test_refusals_of_what_is_not_computed),
        cmocka_unit_test(test_own_leftovers_are_refused),
        cmocka_unit_test(test_a_failed_load_changes_nothing),
        cmocka_unit_test(test_golden_layer_through_a_gpt2_file),
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_masks_are_saved_when_asked_for),
        cmocka_unit_test(test_saving_refuses_what_a_layout_cannot_say),
        cmocka_unit_test(test_out_of_memory),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    test_context_end(context, &memory);
    return failed;
}
