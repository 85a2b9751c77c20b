#include "modules/module_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/status.h"
#include "support/unit.h"

// ---- golden cases -------------------------------------------------------------------------------

static const char *metadata(const attn_safetensors *file, const char *key, const char *otherwise)
{
    const char *value = attn_safetensors_metadata(file, key);
    return value ? value : otherwise;
}

static int64_t integer(const attn_safetensors *file, const char *key, const char *otherwise)
{
    return strtoll(metadata(file, key, otherwise), NULL, 10);
}

module_case case_open(const attn_context *context, const char *name)
{
    module_case opened = {.file = golden_open(context, name)};
    const attn_safetensors *file = opened.file;
    const char *variant = metadata(file, "variant", "MultiHeadAttention");
    assert_true(strlen(variant) < sizeof opened.variant);
    memcpy(opened.variant, variant, strlen(variant) + 1);
    attn_attention_config_init(&opened.config);
    opened.config.d_in = integer(file, "d_in", "0");
    opened.config.d_out = integer(file, "d_out", "0");
    opened.config.num_heads = integer(file, "num_heads", "1");
    opened.config.context_length = integer(file, "context_length", "0");
    opened.config.qkv_bias = strcmp(metadata(file, "qkv_bias", "false"), "true") == 0;
    opened.config.dropout = strtod(metadata(file, "dropout_p", "0"), NULL);
    opened.weight_seed = (uint64_t)integer(file, "weight_seed", "0");
    opened.dropout_seed = (uint64_t)integer(file, "dropout_seed", "0");
    opened.reseeded = attn_safetensors_metadata(file, "dropout_seed") != NULL;
    return opened;
}

void case_close(module_case *opened)
{
    attn_safetensors_close(opened->file);
}

attn_module *case_module(const attn_context *context, const module_case *from, attn_dtype dtype,
                         attn_generator *generator)
{
    attn_attention_config config = from->config;
    config.dtype = dtype;
    return make_module(context, from->variant, &config, generator);
}

void case_load(const module_case *from, attn_module *module)
{
    attn_error error;
    attn_named_tensor tensors[64];
    const int64_t count = attn_module_parameter_count(module);
    assert_true(count <= 64);
    for (int64_t i = 0; i < count; i++) {
        tensors[i].name = attn_module_parameter(module, i)->name;
        tensors[i].tensor = golden_tensor(from->file, tensors[i].name);
    }
    ASSERT_OK(attn_module_load_state(module, tensors, count, false, &error));
}

// ---- modules and tensors ------------------------------------------------------------------------

attn_module *make_module(const attn_context *context, const char *variant,
                         const attn_attention_config *config, attn_generator *generator)
{
    typedef attn_status (*create_function)(const attn_context *, const attn_attention_config *,
                                           attn_generator *, attn_module **, attn_error *);
    static const struct {
        const char *variant;
        create_function create;
    } table[] = {
        {"SelfAttentionV1", attn_self_attention_v1_create},
        {"SelfAttentionV2", attn_self_attention_v2_create},
        {"CausalAttention", attn_causal_attention_create},
        {"MultiHeadAttentionWrapper", attn_multi_head_attention_wrapper_create},
        {"MultiHeadAttention", attn_multi_head_attention_create},
    };
    attn_error error;
    attn_module *module = NULL;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (strcmp(table[i].variant, variant) == 0) {
            ASSERT_OK(table[i].create(context, config, generator, &module, &error));
        }
    }
    assert_non_null(module);
    return module;
}

double training_loss(const training *t)
{
    attn_error error;
    attn_tape_reset(t->tape);
    attn_optimizer_zero_grad(t->optimizer);
    attn_module_call call;
    attn_module_call_init(&call);
    call.input = attn_input(t->tape, &t->x, false);
    call.generator = t->generator;
    const attn_var output = attn_module_forward(t->module, &call);
    const attn_var loss = attn_mse_loss(output, attn_input(t->tape, &t->target, false));
    ASSERT_OK(attn_backward(loss, &error));
    ASSERT_OK(attn_optimizer_check_finite(t->optimizer, loss, &error));
    return attn_item(loss);
}

attn_tensor converted(const attn_context *context, const attn_tensor *source, attn_dtype dtype)
{
    attn_error error;
    attn_tensor copy;
    ASSERT_OK(attn_tensor_create(context, dtype, source->ndim, source->shape, &copy, &error));
    ASSERT_OK(attn_tensor_copy(source, &copy, &error));
    return copy;
}

attn_tensor random_tensor(const attn_context *context, attn_dtype dtype, int32_t ndim,
                          const int64_t *shape, uint64_t seed)
{
    attn_error error;
    attn_tensor tensor;
    attn_generator *generator;
    ASSERT_OK(attn_tensor_create(context, dtype, ndim, shape, &tensor, &error));
    ASSERT_OK(attn_generator_create(context, seed, &generator, &error));
    ASSERT_OK(attn_uniform(generator, -1, 1, &tensor, &error));
    attn_generator_destroy(generator);
    return tensor;
}

// ---- comparisons --------------------------------------------------------------------------------

static void show_worst(const attn_comparison *found, const attn_tensor *tensor, const char *name)
{
    attn_tensor index = *tensor;
    char text[160];
    memcpy(index.shape, found->worst, sizeof index.shape);
    attn_tensor_format_shape(&index, text, sizeof text);
    print_error("%s: %lld of %lld differ; at %s %.17g instead of %.17g\n", name,
                (long long)found->differing, (long long)found->count, text, found->worst_actual,
                found->worst_expected);
}

void test_assert_close(const attn_tensor *actual, const attn_tensor *expected, double absolute,
                       double relative, const char *name, const char *file, int line)
{
    attn_error error;
    attn_comparison found;
    test_assert_ok(attn_tensor_compare(actual, expected, absolute, relative, &found, &error),
                   &error, file, line);
    if (found.differing != 0) {
        show_worst(&found, actual, name);
        _fail(file, line);
    }
}

void test_assert_same_bits(const attn_tensor *actual, const attn_tensor *expected, const char *name,
                           const char *file, int line)
{
    attn_error error;
    attn_comparison found;
    test_assert_ok(attn_tensor_compare(actual, expected, 0, 0, &found, &error), &error, file, line);
    if (!found.equal_bits) {
        show_worst(&found, actual, name);
        _fail(file, line);
    }
}
