// An allocator that fails at its N-th call, for every N: creation, forward, trace, backward and the
// optimizer report it, lose nothing, and leave what they were given as it was.
#include <string.h>

#include "modules/module_fixture.h"
#include "support/allocator.h"
#include "support/status.h"
#include "support/unit.h"

typedef struct options {
    const char *variant;
    attn_attention_config config;
} options;

static options base(const char *variant)
{
    options o = {.variant = variant};
    attn_attention_config_init(&o.config);
    o.config.d_in = 6;
    o.config.d_out = 4;
    return o;
}

typedef attn_status (*create_function)(const attn_context *, const attn_attention_config *,
                                       attn_generator *, attn_module **, attn_error *);

static create_function creator(const char *variant)
{
    return strcmp(variant, "SelfAttentionV1") == 0      ? attn_self_attention_v1_create
           : strcmp(variant, "SelfAttentionV2") == 0    ? attn_self_attention_v2_create
           : strcmp(variant, "CausalAttention") == 0    ? attn_causal_attention_create
           : strcmp(variant, "MultiHeadAttention") == 0 ? attn_multi_head_attention_create
                                                        : attn_multi_head_attention_wrapper_create;
}

// A whole life of a module, up to the first failure.
static attn_status live(const attn_context *context, const options *o, attn_generator *generator,
                        const attn_tensor *x, attn_module **module, attn_tape **tape,
                        attn_trace **trace, attn_optimizer **optimizer, attn_error *error)
{
    attn_optimizer_config adamw;
    attn_adamw_config_init(&adamw);
    attn_status status = creator(o->variant)(context, &o->config, generator, module, error);
    if (status != ATTN_OK) {
        // Nothing was drawn for a module that does not exist.
        attn_generator_state now, fresh;
        attn_generator_save(generator, &now);
        attn_generator_manual_seed(generator, 6);
        attn_generator_save(generator, &fresh);
        assert_memory_equal(&now, &fresh, sizeof now);
        return status;
    }
    if ((status = attn_tape_create(context, tape, error)) != ATTN_OK ||
        (status = attn_trace_create(context, trace, error)) != ATTN_OK ||
        (status = attn_optimizer_create(context, &adamw, optimizer, error)) != ATTN_OK) {
        return status;
    }
    status = attn_optimizer_add_module(*optimizer, "layer.", *module, error);
    if (status != ATTN_OK) {
        assert_int_equal(attn_optimizer_parameter_count(*optimizer), 0);
        return status;
    }
    attn_module_call call;
    attn_module_call_init(&call);
    call.input = attn_input(*tape, x, true);
    call.generator = generator;
    call.trace = *trace;
    const attn_var output = attn_module_forward(*module, &call);
    if (attn_tape_status(*tape) != ATTN_OK) {
        *error = *attn_tape_error(*tape);
        return error->status;
    }
    const attn_var loss = attn_sum_all(attn_multiply(output, output));
    status = attn_backward(loss, error);
    if (status != ATTN_OK) { // no gradient was written
        for (int64_t i = 0; i < attn_module_parameter_count(*module); i++) {
            const attn_tensor grad = attn_module_parameter(*module, i)->grad;
            for (int64_t k = 0; k < attn_tensor_count(&grad); k++) {
                assert_true(((const float *)grad.data)[k] == 0);
            }
        }
    }
    return status;
}

static void fail_at_every_call(const options *o)
{
    bool done = false;
    for (long long n = 0; !done; n++) {
        attn_error error = {.status = ATTN_OK};
        test_allocator allocator;
        attn_context *context = test_context_on(&allocator);
        attn_generator *generator;
        attn_module *module = NULL;
        attn_tape *tape = NULL;
        attn_trace *trace = NULL;
        attn_optimizer *optimizer = NULL;
        ASSERT_OK(attn_generator_create(context, 6, &generator, &error));
        attn_tensor x = random_tensor(context, ATTN_F32, 3, (int64_t[]){2, 40, 6}, 1);
        const long long before = atomic_load(&allocator.calls);
        atomic_store(&allocator.fail_at, before + n);
        const attn_status status =
            live(context, o, generator, &x, &module, &tape, &trace, &optimizer, &error);
        done = atomic_load(&allocator.calls) <= before + n; // not reached any more
        if (done) {
            ASSERT_OK(status);
            assert_true(n > 10);
        } else {
            assert_int_equal(status, ATTN_ERR_OUT_OF_MEMORY);
            assert_int_equal(error.status, ATTN_ERR_OUT_OF_MEMORY);
            assert_true(strlen(error.text) > 5);
        }
        atomic_store(&allocator.fail_at, -1);
        attn_optimizer_destroy(optimizer);
        attn_trace_destroy(trace);
        attn_tape_destroy(tape);
        attn_module_destroy(module);
        attn_tensor_destroy(context, &x);
        attn_generator_destroy(generator);
        test_context_end(context, &allocator);
    }
}

static void self_attention(void **state)
{
    (void)state;
    options o = base("SelfAttentionV1");
    fail_at_every_call(&o);
    o = base("SelfAttentionV2");
    o.config.qkv_bias = true;
    fail_at_every_call(&o);
}

static void causal_attention(void **state)
{
    (void)state;
    options o = base("CausalAttention");
    o.config.context_length = 40;
    o.config.dropout = 0.25;
    fail_at_every_call(&o);
}

static void wrapper(void **state)
{
    (void)state;
    options o = base("MultiHeadAttentionWrapper");
    o.config.context_length = 40;
    o.config.num_heads = 3;
    o.config.dropout = 0.25;
    fail_at_every_call(&o);
}

static void multi_head(void **state)
{
    (void)state;
    options o = base("MultiHeadAttention");
    o.config.context_length = 40;
    o.config.num_heads = 2;
    o.config.dropout = 0.25;
    o.config.qkv_bias = true;
    fail_at_every_call(&o);
    o.config.num_heads = 4;
    o.config.num_kv_heads = 2;
    o.config.head_dim = 4;
    o.config.qk_norm = true;
    o.config.rotary = ATTN_ROTARY_INTERLEAVED;
    o.config.dropout_source = ATTN_DROPOUT_FROM_PHILOX;
    fail_at_every_call(&o);
}

static void linear_layer(void **state)
{
    (void)state;
    for (long long n = 0, done = 0; !done; n++) {
        attn_error error;
        test_allocator allocator;
        attn_context *context = test_context_on(&allocator);
        attn_module *module = NULL;
        const long long before = atomic_load(&allocator.calls);
        atomic_store(&allocator.fail_at, before + n);
        const attn_status status =
            attn_linear_create(context, 3, 2, true, ATTN_F32, NULL, &module, &error);
        done = atomic_load(&allocator.calls) <= before + n;
        assert_int_equal(status, done ? ATTN_OK : ATTN_ERR_OUT_OF_MEMORY);
        attn_module_destroy(module);
        test_context_end(context, &allocator);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_layer),     cmocka_unit_test(self_attention),
        cmocka_unit_test(causal_attention), cmocka_unit_test(wrapper),
        cmocka_unit_test(multi_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
