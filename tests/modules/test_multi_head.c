// MultiHeadAttention's options against a float64 reference written as plain loops.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "modules/module_fixture.h"
#include "support/allocator.h"
#include "support/status.h"
#include "support/unit.h"

enum { BATCH = 2, LENGTH = 6, SOURCE = 4, MOST = 512 };

// ---- the reference ------------------------------------------------------------------------------

typedef struct reference {
    const attn_attention_config *config;
    attn_module *module;
    int64_t heads, kv_heads, head_dim, position;
    const int64_t *lengths; // of the keys, or NULL
} reference;

static double parameter_at(const reference *r, const char *name, int64_t row, int64_t column)
{
    const attn_parameter *parameter = attn_module_find_parameter(r->module, name);
    const int64_t index[] = {row, column};
    return parameter ? attn_tensor_get(&parameter->value, index) : 0;
}

// One row through a Linear.
static void linear(const reference *r, const char *name, const double *x, int64_t in, int64_t out,
                   double *y)
{
    char weight[64] = {0}, bias[64] = {0};
    strcat(strcat(weight, name), ".weight");
    strcat(strcat(bias, name), ".bias");
    for (int64_t o = 0; o < out; o++) {
        y[o] = parameter_at(r, bias, o, 0);
        for (int64_t i = 0; i < in; i++) {
            y[o] += parameter_at(r, weight, o, i) * x[i];
        }
    }
}

// One head of one row: norm, then rotation by the row's position.
static void norm_and_rotate(const reference *r, const char *norm, int64_t position, double *head)
{
    const int64_t dim = r->head_dim;
    if (r->config->qk_norm) {
        double squares = 0;
        for (int64_t d = 0; d < dim; d++) {
            squares += head[d] * head[d];
        }
        const double root = sqrt(squares / (double)dim + r->config->qk_norm_epsilon);
        for (int64_t d = 0; d < dim; d++) {
            head[d] = head[d] / root * parameter_at(r, norm, d, 0);
        }
    }
    if (r->config->rotary == ATTN_ROTARY_NONE) {
        return;
    }
    for (int64_t i = 0; i < dim / 2; i++) {
        const bool half = r->config->rotary == ATTN_ROTARY_HALF_SPLIT;
        double *a = head + (half ? i : 2 * i), *b = head + (half ? i + dim / 2 : 2 * i + 1);
        const double angle = (double)position /
                             pow(r->config->rotary_base, 2 * (double)i / (double)dim);
        const double turned = *a * cos(angle) - *b * sin(angle);
        *b = *a * sin(angle) + *b * cos(angle);
        *a = turned;
    }
}

// x (queries, d_in), source (keys, d_context) -> out (queries, d_out), one batch entry.
static void attend(const reference *r, const double *x, int64_t queries, const double *source,
                   int64_t keys, int64_t length, double *out)
{
    static double q[MOST], k[MOST], v[MOST], context[MOST], weights[MOST];
    const attn_attention_config *config = r->config;
    const int64_t dim = r->head_dim;
    const int64_t width = r->heads * dim, kv_width = r->kv_heads * dim;
    const int64_t d_source = config->d_context ? config->d_context : config->d_in;
    for (int64_t i = 0; i < queries; i++) {
        linear(r, "W_query", x + i * config->d_in, config->d_in, width, q + i * width);
        for (int64_t h = 0; h < r->heads; h++) {
            norm_and_rotate(r, "q_norm.weight", r->position + i, q + i * width + h * dim);
        }
    }
    for (int64_t j = 0; j < keys; j++) {
        linear(r, "W_key", source + j * d_source, d_source, kv_width, k + j * kv_width);
        linear(r, "W_value", source + j * d_source, d_source, kv_width, v + j * kv_width);
        for (int64_t h = 0; h < r->kv_heads; h++) {
            norm_and_rotate(r, "k_norm.weight", r->position + j, k + j * kv_width + h * dim);
        }
    }
    for (int64_t i = 0; i < queries; i++) {
        for (int64_t h = 0; h < r->heads; h++) {
            const int64_t kv = h / (r->heads / r->kv_heads);
            double *row = context + h * dim, sum = 0;
            memset(row, 0, (size_t)dim * sizeof *row);
            for (int64_t j = 0; j < keys; j++) {
                double score = 0;
                for (int64_t d = 0; d < dim; d++) {
                    score += q[i * width + h * dim + d] * k[j * kv_width + kv * dim + d];
                }
                const bool hidden = j >= length || (config->causal && j > i);
                weights[j] = hidden ? 0 : exp(score / sqrt((double)dim));
                sum += weights[j];
            }
            for (int64_t j = 0; j < keys && sum > 0; j++) {
                for (int64_t d = 0; d < dim; d++) {
                    row[d] += weights[j] / sum * v[j * kv_width + kv * dim + d];
                }
            }
        }
        if (config->out_proj) {
            linear(r, "out_proj", context, width, config->d_out, out + i * config->d_out);
        } else {
            memcpy(out + i * config->d_out, context, (size_t)width * sizeof *out);
        }
    }
}

// ---- the comparison -----------------------------------------------------------------------------

typedef struct options {
    attn_attention_config config;
    bool cross;
    int64_t position;
    const int64_t *lengths;
} options;

static options plain_options(void)
{
    options o = {.cross = false};
    attn_attention_config_init(&o.config);
    o.config.d_in = 5;
    o.config.d_out = 8;
    o.config.num_heads = 2;
    o.config.context_length = 64;
    return o;
}

static void random_parameters(const attn_context *context, attn_module *module)
{
    attn_error error;
    for (int64_t i = 0; i < attn_module_parameter_count(module); i++) {
        attn_parameter *parameter = attn_module_parameter(module, i);
        attn_tensor values = random_tensor(context, ATTN_F32, parameter->value.ndim,
                                           parameter->value.shape, (uint64_t)i + 50);
        ASSERT_OK(attn_tensor_copy(&values, &parameter->value, &error));
        attn_tensor_destroy(context, &values);
    }
}

static void check_options(const options *given, attn_dtype dtype)
{
    attn_error error;
    test_allocator allocator;
    attn_context *context = test_context_on(&allocator);
    options o = *given;
    o.config.dtype = dtype;
    attn_module *module = make_module(context, "MultiHeadAttention", &o.config, NULL);
    random_parameters(context, module);
    const int64_t d_source = o.config.d_context ? o.config.d_context : o.config.d_in;
    const int64_t keys = o.cross ? SOURCE : LENGTH;
    attn_tensor x =
        random_tensor(context, ATTN_F32, 3, (int64_t[]){BATCH, LENGTH, o.config.d_in}, 1);
    attn_tensor source = random_tensor(context, ATTN_F32, 3, (int64_t[]){BATCH, keys, d_source}, 2);
    attn_tensor x_own = converted(context, &x, dtype);
    attn_tensor source_own = converted(context, &source, dtype);

    attn_tape *tape;
    attn_trace *trace;
    ASSERT_OK(attn_tape_create(context, &tape, &error));
    ASSERT_OK(attn_trace_create(context, &trace, &error));
    attn_module_call call;
    attn_module_call_init(&call);
    call.input = attn_input(tape, &x_own, false);
    call.position = o.position;
    call.trace = trace;
    const int64_t batch = BATCH;
    const attn_tensor lengths = attn_tensor_wrap_const(o.lengths, ATTN_I64, 1, &batch);
    call.key_lengths = o.lengths ? &lengths : NULL;
    if (o.cross) {
        call.context = attn_input(tape, &source_own, false);
    }
    const attn_tensor output = attn_value(attn_module_forward(module, &call));
    test_assert_ok(attn_tape_status(tape), attn_tape_error(tape), __FILE__, __LINE__);

    reference r = {.config = &o.config, .module = module, .position = o.position};
    r.heads = o.config.num_heads;
    r.kv_heads = o.config.num_kv_heads ? o.config.num_kv_heads : r.heads;
    r.head_dim = o.config.head_dim ? o.config.head_dim : o.config.d_out / r.heads;
    attn_tensor wanted, x64 = converted(context, &x, ATTN_F64);
    attn_tensor source64 = converted(context, o.cross ? &source : &x, ATTN_F64);
    ASSERT_OK(attn_tensor_create(context, ATTN_F64, 3, (int64_t[]){BATCH, LENGTH, o.config.d_out},
                                 &wanted, &error));
    for (int64_t b = 0; b < BATCH; b++) {
        attend(&r, (const double *)x64.data + b * LENGTH * o.config.d_in, LENGTH,
               (const double *)source64.data + b * keys * d_source, keys,
               o.lengths ? o.lengths[b] : keys,
               (double *)wanted.data + b * LENGTH * o.config.d_out);
    }
    const double bound = dtype == ATTN_F64 ? 1e-12 : 1e-5;
    assert_close(&output, &wanted, bound, bound, "output");
    if (!o.config.out_proj) { // the traced context is the output, heads merged
        assert_close(&attn_trace_find(trace, "context.merged")->tensor, &output, 0, 0, "merged");
        attn_tensor traced;
        ASSERT_OK(attn_tensor_transpose(&attn_trace_find(trace, "context")->tensor, 1, 2, &traced,
                                        &error));
        attn_tensor split;
        ASSERT_OK(attn_tensor_view(&output, 4, (int64_t[]){BATCH, LENGTH, r.heads, r.head_dim},
                                   &split, &error));
        assert_close(&traced, &split, bound, bound, "context");
    }
    attn_tensor *const owned[] = {&wanted, &x64, &source64, &source_own, &x_own, &source, &x};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) {
        attn_tensor_destroy(context, owned[i]);
    }
    attn_trace_destroy(trace);
    attn_tape_destroy(tape);
    attn_module_destroy(module);
    test_context_end(context, &allocator);
}

static void check(const options *o)
{
    check_options(o, ATTN_F64);
    check_options(o, ATTN_F32);
}

// ---- the options --------------------------------------------------------------------------------

static void causal_and_not(void **state)
{
    (void)state;
    options o = plain_options();
    check(&o);
    o.config.causal = false;
    o.config.context_length = 0;
    check(&o);
    o.config.qkv_bias = true;
    o.config.out_bias = false;
    check(&o);
}

static void grouped_queries(void **state)
{
    (void)state;
    options o = plain_options();
    o.config.num_heads = 4;
    o.config.num_kv_heads = 2;
    o.config.head_dim = 4; // wider than d_out / num_heads
    check(&o);
    o.config.num_kv_heads = 1;
    o.config.qkv_bias = true;
    check(&o);
    o.config.head_dim = 0;
    o.config.out_proj = false;
    check(&o);
}

static void head_dim_one(void **state)
{
    (void)state;
    options o = plain_options();
    o.config.num_heads = 8;
    check(&o);
}

static void cross_attention(void **state)
{
    (void)state;
    options o = plain_options();
    o.config.causal = false;
    o.config.context_length = LENGTH;
    o.cross = true;
    check(&o);
    o.config.d_context = 3;
    o.config.num_heads = 4;
    o.config.num_kv_heads = 2;
    o.config.qk_norm = true;
    check(&o);
}

static void key_lengths(void **state)
{
    (void)state;
    options o = plain_options();
    const int64_t lengths[] = {LENGTH, 2}, with_empty[] = {0, 3};
    o.lengths = lengths;
    check(&o);
    o.lengths = with_empty;
    o.config.out_proj = false;
    check(&o);
    o.config.causal = false;
    check(&o);
}

static void rotary_positions(void **state)
{
    (void)state;
    options o = plain_options();
    o.config.rotary = ATTN_ROTARY_HALF_SPLIT;
    check(&o);
    o.position = 11;
    o.config.rotary_base = 500;
    o.config.num_heads = 4;
    o.config.num_kv_heads = 2;
    o.config.head_dim = 6;
    check(&o);
    o.config.rotary = ATTN_ROTARY_INTERLEAVED;
    check(&o);
}

static void query_and_key_norms(void **state)
{
    (void)state;
    options o = plain_options();
    o.config.qk_norm = true;
    check(&o);
    o.config.qk_norm_epsilon = 0.5;
    o.config.rotary = ATTN_ROTARY_INTERLEAVED;
    o.config.num_heads = 4;
    o.config.num_kv_heads = 2;
    o.config.head_dim = 4;
    o.config.qkv_bias = true;
    check(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(causal_and_not),      cmocka_unit_test(grouped_queries),
        cmocka_unit_test(head_dim_one),        cmocka_unit_test(cross_attention),
        cmocka_unit_test(key_lengths),         cmocka_unit_test(rotary_positions),
        cmocka_unit_test(query_and_key_norms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
