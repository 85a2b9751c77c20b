#include "attention.h"

#include <string.h>

#include "status.h"

const char *const attention_result_names[ATTENTION_RESULT_COUNT] = {
    "output",     "row_max",  "row_sum",    "lse",       "weights",   "key_sums",
    "grad_query", "grad_key", "grad_value", "grad_bias", "grad_sinks"};

// ---- the problem --------------------------------------------------------------------------------

static attn_tensor random_tensor(struct attention *a, attn_dtype dtype, int32_t ndim,
                                 const int64_t *shape, double scale)
{
    const attn_tensor tensor = test_tensor(&a->pool, dtype, ndim, shape);
    test_fill_normal(&tensor, scale, &a->random);
    return tensor;
}

static attn_dtype stats_of(const struct attention *a)
{
    return a->shape.dtype == ATTN_F64 ? ATTN_F64 : ATTN_F32;
}

void attention_begin(struct attention *a, struct attention_shape s, uint64_t seed)
{
    *a = (struct attention){.shape = s, .random = seed};
    attn_sdpa_desc_init(&a->desc);
    a->query = random_tensor(a, s.dtype, 4,
                             (int64_t[]){s.batch, s.query_heads, s.queries, s.head_dim}, 1.0);
    a->key =
        random_tensor(a, s.dtype, 4, (int64_t[]){s.batch, s.key_heads, s.keys, s.head_dim}, 1.0);
    a->value =
        random_tensor(a, s.dtype, 4, (int64_t[]){s.batch, s.key_heads, s.keys, s.value_dim}, 1.0);
    a->grad_output = random_tensor(
        a, s.dtype, 4, (int64_t[]){s.batch, s.query_heads, s.queries, s.value_dim}, 1.0);
}

void attention_end(struct attention *a)
{
    test_pool_end(&a->pool);
}

void attention_add_keep(struct attention *a, const int64_t sizes[4], double p)
{
    a->keep = test_tensor(&a->pool, ATTN_BOOL, 4, sizes);
    test_fill_bernoulli(&a->keep, p, &a->random);
    a->desc.keep = &a->keep;
}

void attention_add_bias(struct attention *a, attn_dtype dtype, const int64_t sizes[4], double scale)
{
    a->bias = random_tensor(a, dtype, 4, sizes, scale);
    a->desc.bias = &a->bias;
}

void attention_add_alibi(struct attention *a)
{
    const int64_t heads = a->shape.query_heads;
    a->alibi_slopes = test_tensor(&a->pool, ATTN_F32, 1, &heads);
    for (int64_t h = 0; h < heads; h++) {
        test_set(&a->alibi_slopes, h, 0, 0, 0, 0.5 / (double)(h + 1));
    }
    a->desc.alibi_slopes = &a->alibi_slopes;
}

void attention_add_sinks(struct attention *a)
{
    a->sinks = random_tensor(a, stats_of(a), 1, &a->shape.query_heads, 1.0);
    a->desc.sinks = &a->sinks;
}

void attention_add_grad_lse(struct attention *a)
{
    const int64_t rows[] = {a->shape.batch, a->shape.query_heads, a->shape.queries};
    a->grad_lse = random_tensor(a, stats_of(a), 3, rows, 1.0);
}

void attention_add_query_lengths(struct attention *a, const int64_t *lengths)
{
    a->query_lengths = test_list(&a->pool, ATTN_I64, a->shape.batch, lengths);
    a->desc.query_lengths = &a->query_lengths;
}

void attention_add_key_lengths(struct attention *a, const int64_t *lengths)
{
    a->key_lengths = test_list(&a->pool, ATTN_I32, a->shape.batch, lengths);
    a->desc.key_lengths = &a->key_lengths;
}

void attention_add_starts(struct attention *a, int64_t count, const int64_t *query_starts,
                          const int64_t *key_starts)
{
    a->query_starts = test_list(&a->pool, ATTN_I32, count, query_starts);
    a->key_starts = test_list(&a->pool, ATTN_I64, count, key_starts);
    a->desc.query_starts = &a->query_starts;
    a->desc.key_starts = &a->key_starts;
}

void attention_add_philox(struct attention *a, double p)
{
    a->desc.dropout = ATTN_DROPOUT_PHILOX;
    a->desc.dropout_p = p;
    a->desc.dropout_seed = 0x1234567890abcdefu;
    a->desc.dropout_stream = 7;
    a->desc.dropout_call = 3;
}

void attention_add_dropout_keep(struct attention *a, const int64_t sizes[4], double p)
{
    const int64_t bytes[] = {sizes[0], sizes[1], sizes[2], (sizes[3] + 7) / 8};
    a->dropout_keep = test_tensor(&a->pool, ATTN_U8, 4, bytes);
    uint8_t *data = a->dropout_keep.data;
    for (int64_t n = 0; n < attn_tensor_count(&a->dropout_keep); n++) {
        for (int bit = 0; bit < 8; bit++) {
            data[n] = (uint8_t)(data[n] | (test_random_uniform(&a->random) >= p) << bit);
        }
    }
    a->desc.dropout = ATTN_DROPOUT_KEEP;
    a->desc.dropout_p = p;
    a->desc.dropout_keep = &a->dropout_keep;
}

// ---- results ------------------------------------------------------------------------------------

void attention_results_begin(struct attention_results *r, const struct attention *a,
                             attn_dtype dtype)
{
    const struct attention_shape s = a->shape;
    *r = (struct attention_results){.pool = {NULL}};
    const int64_t rows[] = {s.batch, s.query_heads, s.queries};
    const int64_t key_rows[] = {s.batch, s.query_heads, s.keys};
    const struct {
        enum attention_result result;
        int32_t ndim;
        const int64_t *shape;
        attn_dtype dtype;
    } wanted[] = {
        {ATTENTION_OUTPUT, 4, a->grad_output.shape, s.dtype},
        {ATTENTION_ROW_MAX, 3, rows, stats_of(a)},
        {ATTENTION_ROW_SUM, 3, rows, stats_of(a)},
        {ATTENTION_LSE, 3, rows, stats_of(a)},
        {ATTENTION_WEIGHTS, 4, (int64_t[]){s.batch, s.query_heads, s.queries, s.keys}, stats_of(a)},
        {ATTENTION_KEY_SUMS, 3, key_rows, stats_of(a)},
        {ATTENTION_GRAD_QUERY, 4, a->query.shape, s.dtype},
        {ATTENTION_GRAD_KEY, 4, a->key.shape, s.dtype},
        {ATTENTION_GRAD_VALUE, 4, a->value.shape, s.dtype},
        {ATTENTION_GRAD_BIAS, a->bias.ndim, a->bias.shape, a->bias.dtype},
        {ATTENTION_GRAD_SINKS, a->sinks.ndim, a->sinks.shape, a->sinks.dtype},
    };
    for (size_t n = 0; n < sizeof(wanted) / sizeof(wanted[0]); n++) {
        if (wanted[n].dtype == ATTN_DTYPE_NONE) {
            continue; // no bias, no sinks
        }
        attn_tensor *tensor = &r->of[wanted[n].result];
        *tensor = test_tensor(&r->pool, dtype == ATTN_DTYPE_NONE ? wanted[n].dtype : dtype,
                              wanted[n].ndim, wanted[n].shape);
        memset(tensor->data, 0xa5,
               (size_t)attn_tensor_count(tensor) * attn_dtype_size(tensor->dtype));
        r->present[wanted[n].result] = true;
    }
}

void attention_results_end(struct attention_results *r)
{
    test_pool_end(&r->pool);
}

static const attn_tensor *result(const struct attention_results *r, enum attention_result which)
{
    return r->present[which] ? &r->of[which] : NULL;
}

attn_sdpa_forward_args attention_forward_args(const struct attention *a,
                                              const struct attention_results *r)
{
    attn_sdpa_forward_args args;
    attn_sdpa_forward_args_init(&args);
    args.query = &a->query;
    args.key = &a->key;
    args.value = &a->value;
    args.output = result(r, ATTENTION_OUTPUT);
    args.row_max = result(r, ATTENTION_ROW_MAX);
    args.row_sum = result(r, ATTENTION_ROW_SUM);
    args.lse = result(r, ATTENTION_LSE);
    args.weights = result(r, ATTENTION_WEIGHTS);
    args.key_sums = result(r, ATTENTION_KEY_SUMS);
    return args;
}

attn_sdpa_backward_args attention_backward_args(const struct attention *a,
                                                const struct attention_results *r)
{
    attn_sdpa_backward_args args;
    attn_sdpa_backward_args_init(&args);
    args.query = &a->query;
    args.key = &a->key;
    args.value = &a->value;
    args.output = result(r, ATTENTION_OUTPUT);
    args.row_max = result(r, ATTENTION_ROW_MAX);
    args.row_sum = result(r, ATTENTION_ROW_SUM);
    args.grad_output = &a->grad_output;
    args.grad_lse = a->grad_lse.data != NULL ? &a->grad_lse : NULL;
    args.grad_query = result(r, ATTENTION_GRAD_QUERY);
    args.grad_key = result(r, ATTENTION_GRAD_KEY);
    args.grad_value = result(r, ATTENTION_GRAD_VALUE);
    args.grad_bias = result(r, ATTENTION_GRAD_BIAS);
    args.grad_sinks = result(r, ATTENTION_GRAD_SINKS);
    return args;
}

void attention_forward(const attn_context *context, const struct attention *a,
                       enum attention_path path, struct attention_results *r)
{
    attn_error error;
    const attn_sdpa_forward_args args = attention_forward_args(a, r);
    ASSERT_OK(path == ATTENTION_PUBLIC
                  ? attn_sdpa_forward(context, &a->desc, &args, &error)
                  : attn_sdpa_reference_forward(context, &a->desc, &args, &error));
}

void attention_backward(const attn_context *context, const struct attention *a,
                        enum attention_path path, struct attention_results *r)
{
    attn_error error;
    const attn_sdpa_backward_args args = attention_backward_args(a, r);
    ASSERT_OK(path == ATTENTION_PUBLIC
                  ? attn_sdpa_backward(context, &a->desc, &args, &error)
                  : attn_sdpa_reference_backward(context, &a->desc, &args, &error));
}

void attention_run(const attn_context *context, const struct attention *a, enum attention_path path,
                   attn_dtype dtype, struct attention_results *r)
{
    attention_results_begin(r, a, dtype);
    attention_forward(context, a, path, r);
    attention_backward(context, a, path, r);
}

void assert_attention_close(const struct attention_results *actual,
                            const struct attention_results *expected, double absolute,
                            double relative)
{
    for (int n = 0; n < ATTENTION_RESULT_COUNT; n++) {
        assert_int_equal(actual->present[n], expected->present[n]);
        if (actual->present[n]) {
            assert_tensors_close(attention_result_names[n], &actual->of[n], &expected->of[n],
                                 absolute, relative);
        }
    }
}

void assert_attention_same_bits(const struct attention_results *actual,
                                const struct attention_results *expected)
{
    for (int n = 0; n < ATTENTION_RESULT_COUNT; n++) {
        assert_int_equal(actual->present[n], expected->present[n]);
        if (actual->present[n]) {
            assert_same_bits(attention_result_names[n], &actual->of[n], &expected->of[n]);
        }
    }
}

// ---- contexts -----------------------------------------------------------------------------------

attn_context *test_context(void)
{
    return test_context_with(1, ATTN_TIER_AUTO);
}

attn_context *test_context_with(int32_t threads, attn_tier tier)
{
    attn_error error;
    attn_context_config config;
    attn_context_config_init(&config);
    config.tier = tier;
    if (threads != 1) {
        ASSERT_OK(attn_executor_pthreads(threads, &config.executor, &error));
    }
    attn_context *context = NULL;
    ASSERT_OK(attn_context_create(&config, &context, &error));
    return context;
}
