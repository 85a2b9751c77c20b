// Attention layers among a file's tensors: recognised by names and shapes, chosen, described.
#include <stdio.h>

#include "attn/safetensors.h"
#include "io/named.h"
#include "io_support.h"
#include "layer_fixture.h"
#include "status.h"

static test_allocator memory;
static attn_context *context;

// ---- finding ------------------------------------------------------------------------------------

static void test_layers_are_recognised(void **state)
{
    (void)state;
    layer_fixture f = {.context = context};
    fixture_add(&f, "wte.weight", 11, 6);
    fixture_add(&f, "h.0.attn.c_attn.weight", 6, 18);
    fixture_add(&f, "h.0.attn.c_attn.bias", 18, 0);
    fixture_add(&f, "h.0.attn.c_proj.weight", 6, 6);
    fixture_add(&f, "h.0.attn.c_proj.bias", 6, 0);
    fixture_add(&f, "h.0.mlp.c_proj.weight", 24, 6);
    fixture_add(&f, "encoder.layers.3.self_attn.in_proj_weight", 12, 4);
    fixture_add(&f, "encoder.layers.3.self_attn.out_proj.weight", 4, 4);
    fixture_add(&f, "model.layers.17.self_attn.q_proj.weight", 8, 4);
    fixture_add(&f, "model.layers.17.self_attn.k_proj.weight", 4, 4);
    fixture_add(&f, "model.layers.17.self_attn.v_proj.weight", 4, 4);
    fixture_add(&f, "model.layers.17.self_attn.o_proj.weight", 4, 8);
    fixture_add(&f, "model.layers.17.self_attn.q_norm.weight", 2, 0);
    fixture_add(&f, "x.k_norm.weight", 2, 0);
    attn_layer layers[3];
    int64_t found = 0;
    attn_error error;
    ASSERT_OK(attn_layers_find(f.tensors, f.count, ATTN_LAYOUT_ANY, layers, 3, &found, &error));
    assert_int_equal(found, 3);

    assert_int_equal(layers[0].layout, ATTN_LAYOUT_GPT2);
    assert_string_equal(layers[0].prefix, "h.0.attn.");
    assert_int_equal(layers[0].number, 0);
    assert_string_equal(layers[0].kind, "multi_head_attention");
    assert_int_equal(layers[0].config.d_in, 6);
    assert_int_equal(layers[0].config.d_out, 6);
    assert_true(layers[0].config.qkv_bias && layers[0].config.out_bias);
    assert_true(layers[0].config.causal);
    assert_false(layers[0].knows_heads);
    assert_int_equal(layers[0].values, 6 * 18 + 18 + 36 + 6);

    assert_int_equal(layers[1].layout, ATTN_LAYOUT_TORCH);
    assert_int_equal(layers[1].number, 3);
    assert_false(layers[1].config.qkv_bias || layers[1].config.out_bias);
    assert_false(layers[1].config.causal);

    assert_int_equal(layers[2].layout, ATTN_LAYOUT_LLAMA);
    assert_int_equal(layers[2].number, 17);
    assert_int_equal(layers[2].config.rotary, ATTN_ROTARY_HALF_SPLIT);
    assert_true(layers[2].config.qk_norm && layers[2].knows_heads);
    assert_int_equal(layers[2].config.num_heads, 4);
    assert_int_equal(layers[2].config.num_kv_heads, 2);
    assert_int_equal(layers[2].config.head_dim, 2);
    assert_int_equal(layers[2].config.d_out, 4);

    ASSERT_OK(attn_layers_find(f.tensors, f.count, ATTN_LAYOUT_TORCH, NULL, 0, &found, &error));
    assert_int_equal(found, 1);

    attn_layer layer;
    ASSERT_OK(attn_layer_find(f.tensors, f.count, ATTN_LAYOUT_ANY, NULL, 17, &layer, &error));
    assert_string_equal(layer.prefix, "model.layers.17.self_attn.");
    ASSERT_OK(
        attn_layer_find(f.tensors, f.count, ATTN_LAYOUT_ANY, "h.0.attn.", -1, &layer, &error));
    ASSERT_FAILS(ATTN_ERR_NOT_FOUND,
                 "layers: there is no attention layer 4; the layers are h.0.attn., "
                 "encoder.layers.3.self_attn., model.layers.17.self_attn.",
                 attn_layer_find(f.tensors, f.count, ATTN_LAYOUT_ANY, NULL, 4, &layer, &error));
    ASSERT_FAILS(ATTN_ERR_NOT_FOUND,
                 "layers: more than one attention layer; the layers are h.0.attn., "
                 "encoder.layers.3.self_attn., model.layers.17.self_attn.",
                 attn_layer_find(f.tensors, f.count, ATTN_LAYOUT_ANY, NULL, -1, &layer, &error));
    ASSERT_FAILS(ATTN_ERR_NOT_FOUND,
                 "layers: there is no attention layer \"blk.\"; no layer is recognised",
                 attn_layer_find(f.tensors, 1, ATTN_LAYOUT_ANY, "blk.", -1, &layer, &error));
    fixture_clear(&f);
}

static void test_own_modules_are_recognised(void **state)
{
    (void)state;
    static const struct {
        const char *file, *kind;
        int64_t d_in, d_out, heads, context_length;
    } cases[] = {
        {"v1_6x3x2_seed123", "self_attention_v1", 3, 2, 1, 0},
        {"v2_6x3x2_seed789", "self_attention_v2", 3, 2, 1, 0},
        {"wrapper_2x6x3_2h_seed123", "multi_head_attention_wrapper", 3, 2, 2, 0},
        {"mha_2x6x3x2_2h_seed123", "multi_head_attention", 3, 2, 1, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/golden/%s.safetensors", ATTN_TEST_DATA, cases[i].file);
        attn_safetensors *file = NULL;
        attn_error error;
        ASSERT_OK(attn_safetensors_open(context, path, &file, &error));
        attn_layer layer;
        ASSERT_OK(attn_layer_find(attn_safetensors_entry(file, 0), attn_safetensors_count(file),
                                  ATTN_LAYOUT_ANY, NULL, -1, &layer, &error));
        assert_int_equal(layer.layout, ATTN_LAYOUT_ATTN);
        assert_string_equal(layer.prefix, "");
        assert_int_equal(layer.number, -1);
        assert_string_equal(layer.kind, cases[i].kind);
        assert_int_equal(layer.config.d_in, cases[i].d_in);
        assert_int_equal(layer.config.d_out, cases[i].d_out);
        assert_int_equal(layer.config.num_heads, cases[i].heads);
        attn_safetensors_close(file);
    }
}

// A mask tells causal_attention from self_attention_v2, and how long a sequence may be.
static void test_masks_tell_the_context_length(void **state)
{
    (void)state;
    layer_fixture f = {.context = context};
    fixture_add(&f, "W_query.weight", 2, 3);
    fixture_add(&f, "W_key.weight", 2, 3);
    fixture_add(&f, "W_value.weight", 2, 3);
    fixture_add(&f, "mask", 9, 9);
    attn_layer layer;
    attn_error error;
    ASSERT_OK(attn_layer_find(f.tensors, f.count, ATTN_LAYOUT_ANY, NULL, -1, &layer, &error));
    assert_string_equal(layer.kind, "causal_attention");
    assert_int_equal(layer.config.context_length, 9);
    attn_module *module = NULL;
    ASSERT_OK(attn_layer_create_module(context, &layer, &module, &error));
    ASSERT_OK(attn_layer_load(module, &layer, f.tensors, f.count, &error));
    attn_module_destroy(module);
    fixture_clear(&f);
}

static void test_heads_follow_from_widths(void **state)
{
    (void)state;
    attn_layer layer = {.layout = ATTN_LAYOUT_LLAMA,
                        .kind = "multi_head_attention",
                        .query_width = 32,
                        .key_width = 8};
    layer.config.d_out = 20;
    attn_error error;
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT,
                 "layers: the query projection's 32 rows do not divide into 5 heads",
                 attn_layer_set_heads(&layer, 5, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT,
                 "layers: with 2 query heads of 16, the key projection's 8 rows are no number of "
                 "heads that divides them",
                 attn_layer_set_heads(&layer, 2, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "layers: num_heads (0) must be positive",
                 attn_layer_set_heads(&layer, 0, &error));
    ASSERT_OK(attn_layer_set_heads(&layer, 8, &error));
    assert_int_equal(layer.config.num_heads, 8);
    assert_int_equal(layer.config.num_kv_heads, 2);
    assert_int_equal(layer.config.head_dim, 4);
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "layers: the file holds 8 heads, not 4",
                 attn_layer_set_heads(&layer, 4, &error));
}

// ---- names --------------------------------------------------------------------------------------

static void test_edit_distance(void **state)
{
    (void)state;
    assert_int_equal(attn_edit_distance("kitten", "sitting", 10), 3);
    assert_int_equal(attn_edit_distance("", "abc", 10), 3);
    assert_int_equal(attn_edit_distance("abc", "", 10), 3);
    assert_int_equal(attn_edit_distance("abc", "abc", 10), 0);
    assert_int_equal(attn_edit_distance("abcdef", "uvwxyz", 4), 4);
    assert_int_equal(attn_edit_distance("a", "abcdefgh", 4), 4);
}

static void test_layout_names(void **state)
{
    (void)state;
    for (int i = 0; i < ATTN_LAYOUT_COUNT; i++) {
        attn_layout back = ATTN_LAYOUT_COUNT;
        assert_true(attn_layout_from_name(attn_layout_name((attn_layout)i), &back));
        assert_int_equal(back, i);
    }
    attn_layout kept = ATTN_LAYOUT_GPT2;
    assert_false(attn_layout_from_name("gpt3", &kept));
    assert_int_equal(kept, ATTN_LAYOUT_GPT2);
    assert_string_equal(attn_layout_name(ATTN_LAYOUT_COUNT), "unknown");
}

int main(void)
{
    context = io_context(&memory);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers_are_recognised),
        cmocka_unit_test(test_own_modules_are_recognised),
        cmocka_unit_test(test_masks_tell_the_context_length),
        cmocka_unit_test(test_heads_follow_from_widths),
        cmocka_unit_test(test_edit_distance),
        cmocka_unit_test(test_layout_names),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    test_context_end(context, &memory);
    return failed;
}
