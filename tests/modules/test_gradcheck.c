// Every parameter of every module, and its inputs, against finite differences in float64.
//
// The loss is the sum of the output times fixed random numbers. Central differences with step h and 2h
// are extrapolated (Richardson), so that their error is about h^4 plus rounding / h. An element passes
// when its two derivatives differ by at most 1e-7 of the larger one, or by less than 1e-7 * FLOOR.
#include <math.h>
#include <string.h>

#include "modules/module_fixture.h"
#include "support/allocator.h"
#include "support/status.h"
#include "support/unit.h"

#define STEP 2e-4
#define TOLERANCE 1e-7
#define FLOOR 1e-3

enum { BATCH = 2, LENGTH = 5, SOURCE = 3 };

typedef struct problem {
    const attn_context *context;
    attn_tape *tape;
    attn_module *module;
    attn_generator *generator;
    attn_tensor x, source; // source.ndim 0: none
    attn_tensor factors;   // of the output
    const attn_tensor *lengths;
    int64_t position;
} problem;

// The loss on a fresh tape with the same dropout every time; with `grads`, also its gradients.
static double loss(problem *p, bool backward, attn_tensor *grad_x, attn_tensor *grad_source)
{
    attn_error error;
    attn_tape_reset(p->tape);
    attn_generator_manual_seed(p->generator, 77);
    attn_module_set_dropout_calls(p->module, 9);
    attn_module_call call;
    attn_module_call_init(&call);
    call.input = attn_input(p->tape, &p->x, backward);
    call.generator = p->generator;
    call.key_lengths = p->lengths;
    call.position = p->position;
    if (p->source.ndim > 0) {
        call.context = attn_input(p->tape, &p->source, backward);
    }
    const attn_var output = attn_module_forward(p->module, &call);
    const attn_var scalar =
        attn_sum_all(attn_multiply(output, attn_input(p->tape, &p->factors, false)));
    test_assert_ok(attn_tape_status(p->tape), attn_tape_error(p->tape), __FILE__, __LINE__);
    if (backward) {
        ASSERT_OK(attn_backward(scalar, &error));
        *grad_x = attn_grad(call.input);
        if (p->source.ndim > 0) {
            *grad_source = attn_grad(call.context);
        }
    }
    return attn_item(scalar);
}

static double central(problem *p, double *element, double step)
{
    const double kept = *element;
    *element = kept + step;
    const double above = loss(p, false, NULL, NULL);
    *element = kept - step;
    const double below = loss(p, false, NULL, NULL);
    *element = kept;
    return (above - below) / (2 * step);
}

// Compares every element of `analytic`, a contiguous copy of the gradient of `value`.
static void check_tensor(problem *p, const char *name, const attn_tensor *value,
                         const double *analytic)
{
    double *elements = value->data;
    for (int64_t i = 0; i < attn_tensor_count(value); i++) {
        const double near = central(p, &elements[i], STEP);
        const double far = central(p, &elements[i], 2 * STEP);
        const double numeric = (4 * near - far) / 3;
        const double size = fmax(FLOOR, fmax(fabs(numeric), fabs(analytic[i])));
        if (!(fabs(numeric - analytic[i]) <= TOLERANCE * size)) {
            fail_msg("%s[%d]: analytic %.12g, numeric %.12g", name, (int)i, analytic[i], numeric);
        }
    }
}

static void check_problem(problem *p)
{
    attn_tensor grad_x = {0}, grad_source = {0};
    attn_module_zero_grad(p->module);
    loss(p, true, &grad_x, &grad_source);
    attn_tensor x = converted(p->context, &grad_x, ATTN_F64);
    attn_tensor source = {0};
    if (p->source.ndim > 0) {
        source = converted(p->context, &grad_source, ATTN_F64);
    }
    check_tensor(p, "input", &p->x, x.data);
    if (p->source.ndim > 0) {
        check_tensor(p, "context", &p->source, source.data);
    }
    for (int64_t i = 0; i < attn_module_parameter_count(p->module); i++) {
        const attn_parameter *parameter = attn_module_parameter(p->module, i);
        check_tensor(p, parameter->name, &parameter->value, parameter->grad.data);
    }
    attn_tensor_destroy(p->context, &source);
    attn_tensor_destroy(p->context, &x);
}

typedef struct options {
    const char *variant;
    attn_attention_config config;
    bool cross, flat, lengths;
    int64_t position;
} options;

static options base(const char *variant)
{
    options o = {.variant = variant};
    attn_attention_config_init(&o.config);
    o.config.dtype = ATTN_F64;
    o.config.d_in = 3;
    o.config.d_out = 4;
    return o;
}

static void check(const options *o)
{
    attn_error error;
    test_allocator allocator;
    attn_context *context = test_context_on(&allocator);
    problem p = {.context = context, .position = o->position};
    ASSERT_OK(attn_tape_create(context, &p.tape, &error));
    ASSERT_OK(attn_generator_create(context, 4, &p.generator, &error));
    p.module = make_module(context, o->variant, &o->config, p.generator);
    const int32_t drop = o->flat ? 1 : 0; // a flat input is (T, d_in)
    const int64_t d_source = o->config.d_context ? o->config.d_context : o->config.d_in;
    const int64_t heads = strcmp(o->variant, "MultiHeadAttentionWrapper") == 0 ? o->config.num_heads
                                                                               : 1;
    const int64_t x_shape[] = {BATCH, LENGTH, o->config.d_in};
    const int64_t source_shape[] = {BATCH, SOURCE, d_source};
    const int64_t out_shape[] = {BATCH, LENGTH, o->config.d_out * heads};
    p.x = random_tensor(context, ATTN_F64, 3 - drop, x_shape + drop, 1);
    p.factors = random_tensor(context, ATTN_F64, 3 - drop, out_shape + drop, 2);
    if (o->cross) {
        p.source = random_tensor(context, ATTN_F64, 3 - drop, source_shape + drop, 3);
    }
    const int64_t lengths[] = {LENGTH - 2, 0}, batch = BATCH;
    const attn_tensor lengths_tensor = attn_tensor_wrap_const(lengths, ATTN_I64, 1, &batch);
    p.lengths = o->lengths ? &lengths_tensor : NULL;
    check_problem(&p);
    if (o->cross) {
        attn_tensor_destroy(context, &p.source);
    }
    attn_tensor_destroy(context, &p.factors);
    attn_tensor_destroy(context, &p.x);
    attn_module_destroy(p.module);
    attn_generator_destroy(p.generator);
    attn_tape_destroy(p.tape);
    test_context_end(context, &allocator);
}

static void check_both_ranks(options o)
{
    check(&o);
    o.flat = true;
    check(&o);
}

static void linear_layer(void **state)
{
    (void)state;
    attn_error error;
    test_allocator allocator;
    attn_context *context = test_context_on(&allocator);
    problem p = {.context = context};
    ASSERT_OK(attn_tape_create(context, &p.tape, &error));
    ASSERT_OK(attn_generator_create(context, 4, &p.generator, &error));
    ASSERT_OK(attn_linear_create(context, 3, 2, true, ATTN_F64, p.generator, &p.module, &error));
    p.x = random_tensor(context, ATTN_F64, 2, (int64_t[]){4, 3}, 1);
    p.factors = random_tensor(context, ATTN_F64, 2, (int64_t[]){4, 2}, 2);
    check_problem(&p);
    attn_tensor_destroy(context, &p.factors);
    attn_tensor_destroy(context, &p.x);
    attn_module_destroy(p.module);
    attn_generator_destroy(p.generator);
    attn_tape_destroy(p.tape);
    test_context_end(context, &allocator);
}

static void self_attention(void **state)
{
    (void)state;
    check_both_ranks(base("SelfAttentionV1"));
    options o = base("SelfAttentionV2");
    check_both_ranks(o);
    o.config.qkv_bias = true;
    o.lengths = true;
    check(&o);
}

static void causal_attention(void **state)
{
    (void)state;
    options o = base("CausalAttention");
    o.config.context_length = 8;
    check_both_ranks(o);
    o.config.qkv_bias = true;
    o.config.dropout = 0.4;
    check_both_ranks(o);
    o.config.dropout_source = ATTN_DROPOUT_FROM_PHILOX;
    o.position = 2;
    check_both_ranks(o);
}

static void wrapper(void **state)
{
    (void)state;
    options o = base("MultiHeadAttentionWrapper");
    o.config.context_length = 8;
    o.config.num_heads = 2;
    o.config.d_out = 2;
    check_both_ranks(o);
    o.config.qkv_bias = true;
    o.config.dropout = 0.4;
    check_both_ranks(o);
    o.config.dropout_source = ATTN_DROPOUT_FROM_PHILOX;
    check(&o);
}

static options multi_head(void)
{
    options o = base("MultiHeadAttention");
    o.config.context_length = 8;
    o.config.num_heads = 2;
    return o;
}

static void multi_head_plain(void **state)
{
    (void)state;
    options o = multi_head();
    check_both_ranks(o);
    o.config.causal = false;
    o.config.qkv_bias = true;
    o.config.out_bias = false;
    check_both_ranks(o);
    o.config.out_proj = false;
    o.lengths = true;
    check(&o);
}

static void multi_head_dropout(void **state)
{
    (void)state;
    options o = multi_head();
    o.config.dropout = 0.4;
    check(&o);
    o.config.dropout_source = ATTN_DROPOUT_FROM_PHILOX;
    check(&o);
}

static void multi_head_grouped(void **state)
{
    (void)state;
    options o = multi_head();
    o.config.num_heads = 4;
    o.config.num_kv_heads = 2;
    o.config.head_dim = 3;
    check_both_ranks(o);
    o.config.num_kv_heads = 1;
    o.config.dropout = 0.4;
    o.lengths = true;
    check(&o);
}

static void multi_head_cross(void **state)
{
    (void)state;
    options o = multi_head();
    o.config.causal = false;
    o.cross = true;
    check_both_ranks(o);
    o.config.d_context = 2;
    o.config.qkv_bias = true;
    o.config.dropout = 0.4;
    check(&o);
}

static void multi_head_rotary(void **state)
{
    (void)state;
    options o = multi_head();
    o.config.rotary = ATTN_ROTARY_HALF_SPLIT;
    o.config.head_dim = 4;
    o.position = 3;
    check_both_ranks(o);
    o.config.rotary = ATTN_ROTARY_INTERLEAVED;
    o.config.rotary_base = 100;
    check(&o);
}

static void multi_head_norms(void **state)
{
    (void)state;
    options o = multi_head();
    o.config.qk_norm = true;
    check_both_ranks(o);
    o.config.rotary = ATTN_ROTARY_HALF_SPLIT;
    o.config.num_heads = 4;
    o.config.num_kv_heads = 2;
    o.config.head_dim = 2;
    o.config.dropout = 0.4;
    o.config.qkv_bias = true;
    check(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_layer),       cmocka_unit_test(self_attention),
        cmocka_unit_test(causal_attention),   cmocka_unit_test(wrapper),
        cmocka_unit_test(multi_head_plain),   cmocka_unit_test(multi_head_dropout),
        cmocka_unit_test(multi_head_grouped), cmocka_unit_test(multi_head_cross),
        cmocka_unit_test(multi_head_rotary),  cmocka_unit_test(multi_head_norms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
