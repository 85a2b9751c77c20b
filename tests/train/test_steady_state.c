// After the first step, a training step of a fixed shape makes no allocator call.
#include <string.h>

#include "modules/module_fixture.h"
#include "support/allocator.h"
#include "support/status.h"
#include "support/unit.h"

enum { STEPS = 5 };

static double step(const training *t)
{
    attn_error error;
    const double loss = training_loss(t);
    ASSERT_OK(attn_optimizer_clip_grad_norm(t->optimizer, 0.1, NULL, &error));
    attn_optimizer_step(t->optimizer);
    return loss;
}

// Allocator calls inside one attn_sdpa_backward that has its workspace: whatever it still takes itself
// (the float64 definition does, the engine does not) is its own affair and not a module's.
static long long calls_inside_backward(attn_context *context, test_allocator *allocator)
{
    attn_error error;
    double numbers[8][4] = {{0.5, -1, 2, 0.25}, {1, 2, 3, 4}, {4, 3, 2, 1}};
    const int64_t shape[] = {1, 1, 2, 2};
    attn_tensor tensors[8];
    for (int i = 0; i < 8; i++) {
        tensors[i] = attn_tensor_wrap(numbers[i], ATTN_F64, i == 4 || i == 5 ? 3 : 4, shape);
    }
    attn_sdpa_desc desc;
    attn_sdpa_desc_init(&desc);
    attn_sdpa_forward_args forward;
    attn_sdpa_forward_args_init(&forward);
    forward.query = &tensors[0];
    forward.key = &tensors[1];
    forward.value = &tensors[2];
    forward.output = &tensors[3];
    forward.row_max = &tensors[4];
    forward.row_sum = &tensors[5];
    ASSERT_OK(attn_sdpa_forward(context, &desc, &forward, &error));
    attn_sdpa_backward_args backward;
    attn_sdpa_backward_args_init(&backward);
    backward.query = forward.query;
    backward.key = forward.key;
    backward.value = forward.value;
    backward.output = forward.output;
    backward.row_max = forward.row_max;
    backward.row_sum = forward.row_sum;
    backward.grad_output = &tensors[6];
    backward.grad_query = &tensors[7];
    size_t bytes;
    ASSERT_OK(attn_sdpa_backward_workspace(context, &desc, &backward, &bytes, &error));
    const int64_t size = (int64_t)bytes + 1;
    attn_tensor workspace;
    ASSERT_OK(attn_tensor_create(context, ATTN_U8, 1, &size, &workspace, &error));
    backward.workspace = workspace.data;
    backward.workspace_size = bytes;
    const long long before = atomic_load(&allocator->calls);
    ASSERT_OK(attn_sdpa_backward(context, &desc, &backward, &error));
    const long long calls = atomic_load(&allocator->calls) - before;
    attn_tensor_destroy(context, &workspace);
    return calls;
}

static void check(const char *variant, const attn_attention_config *config, bool sgd)
{
    attn_error error;
    test_allocator allocator;
    attn_context *context = test_context_on(&allocator);
    training t;
    ASSERT_OK(attn_generator_create(context, 5, &t.generator, &error));
    t.module = make_module(context, variant, config, t.generator);
    attn_optimizer_config rule;
    if (sgd) {
        attn_sgd_config_init(&rule);
        rule.momentum = 0.9;
    } else {
        attn_adamw_config_init(&rule);
    }
    ASSERT_OK(attn_optimizer_create(context, &rule, &t.optimizer, &error));
    ASSERT_OK(attn_optimizer_add_module(t.optimizer, "", t.module, &error));
    ASSERT_OK(attn_tape_create(context, &t.tape, &error));
    t.x = random_tensor(context, config->dtype, 3, (int64_t[]){2, 19, 6}, 1);
    attn_var probe = attn_input(t.tape, &t.x, false);
    attn_module_eval(t.module);
    const attn_tensor shape = attn_value(attn_module_apply(t.module, probe));
    attn_module_train(t.module);
    t.target = random_tensor(context, config->dtype, 3, shape.shape, 2);

    const double first = step(&t);
    const bool wrapper = strcmp(variant, "MultiHeadAttentionWrapper") == 0;
    const long long attentions = wrapper ? config->num_heads : 1;
    const long long inside = attentions * calls_inside_backward(context, &allocator);
    const long long calls = atomic_load(&allocator.calls);
    double last = first;
    for (int n = 0; n < STEPS; n++) {
        last = step(&t);
    }
    assert_int_equal(atomic_load(&allocator.calls), calls + STEPS * inside);
    assert_true(last != first); // it did train

    attn_tensor_destroy(context, &t.target);
    attn_tensor_destroy(context, &t.x);
    attn_tape_destroy(t.tape);
    attn_optimizer_destroy(t.optimizer);
    attn_module_destroy(t.module);
    attn_generator_destroy(t.generator);
    test_context_end(context, &allocator);
}

static attn_attention_config base(void)
{
    attn_attention_config config;
    attn_attention_config_init(&config);
    config.d_in = 6;
    config.d_out = 8;
    return config;
}

static void without_dropout(void **state)
{
    (void)state;
    attn_attention_config config = base();
    check("SelfAttentionV1", &config, true);
    config.qkv_bias = true;
    check("SelfAttentionV2", &config, false);
}

static void with_dropout(void **state)
{
    (void)state;
    attn_attention_config config = base();
    config.context_length = 19;
    config.dropout = 0.25;
    check("CausalAttention", &config, false);
    config.num_heads = 2;
    check("MultiHeadAttentionWrapper", &config, true);
    check("MultiHeadAttention", &config, false);
    config.dtype = ATTN_F64;
    check("MultiHeadAttention", &config, true);
}

static void with_everything(void **state)
{
    (void)state;
    attn_attention_config config = base();
    config.context_length = 19;
    config.dropout = 0.25;
    config.dropout_source = ATTN_DROPOUT_FROM_PHILOX;
    config.num_heads = 4;
    config.num_kv_heads = 2;
    config.head_dim = 6;
    config.qk_norm = true;
    config.rotary = ATTN_ROTARY_HALF_SPLIT;
    check("MultiHeadAttention", &config, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_dropout),
        cmocka_unit_test(with_dropout),
        cmocka_unit_test(with_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
