// Strides and element types: the call sees elements, not the memory's layout.
#include "support/attention.h"
#include "support/status.h"
#include "support/unit.h"

static const struct attention_shape small = {.batch = 2,
                                             .query_heads = 4,
                                             .key_heads = 2,
                                             .queries = 6,
                                             .keys = 9,
                                             .head_dim = 5,
                                             .value_dim = 3,
                                             .dtype = ATTN_F32};

// The same elements under other strides: dims stored in reverse order, every second element, rows
// backwards.
static attn_tensor restride(struct test_pool *pool, const attn_tensor *source)
{
    int64_t shape[4] = {1, 1, 1, 1};
    for (int32_t d = 0; d < source->ndim; d++) {
        shape[source->ndim - 1 - d] = source->shape[d];
    }
    shape[source->ndim - 1] *= 2;
    const attn_tensor storage = test_tensor(pool, source->dtype, source->ndim, shape);
    attn_tensor view = *source;
    for (int32_t d = 0; d < source->ndim; d++) {
        view.stride[d] = storage.stride[source->ndim - 1 - d];
    }
    view.stride[0] *= 2;
    view.data = storage.data;
    const int32_t rows = source->ndim - 2;
    const size_t size = attn_dtype_size(source->dtype);
    view.data = (char *)view.data + (size_t)((view.shape[rows] - 1) * view.stride[rows]) * size;
    view.stride[rows] = -view.stride[rows];
    attn_error error;
    ASSERT_OK(attn_tensor_copy(source, &view, &error));
    return view;
}

static void any_strides(void **state)
{
    (void)state;
    static const attn_dtype dtypes[] = {ATTN_F32, ATTN_F64, ATTN_F16, ATTN_BF16};
    attn_context *context = test_context();
    attn_error error;
    for (int n = 0; n < 4; n++) {
        struct attention a;
        struct attention_results plain, strided;
        struct attention_shape shape = small;
        shape.dtype = dtypes[n];
        attention_begin(&a, shape, 51);
        attention_add_keep(&a, (int64_t[]){2, 4, 6, 9}, 0.8);
        attention_add_bias(&a, ATTN_F32, (int64_t[]){2, 4, 6, 9}, 1.0);
        attention_add_dropout_keep(&a, (int64_t[]){2, 4, 6, 9}, 0.3);
        attention_add_grad_lse(&a);
        attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &plain);
        attn_tensor *const inputs[] = {&a.query, &a.key,          &a.value,       &a.keep,
                                       &a.bias,  &a.dropout_keep, &a.grad_output, &a.grad_lse};
        for (size_t m = 0; m < sizeof(inputs) / sizeof(inputs[0]); m++) {
            *inputs[m] = restride(&a.pool, inputs[m]);
        }
        attention_results_begin(&strided, &a, ATTN_DTYPE_NONE);
        for (int m = 0; m < ATTENTION_RESULT_COUNT; m++) {
            if (strided.present[m]) {
                strided.of[m] = restride(&strided.pool, &plain.of[m]);
                ASSERT_OK(attn_tensor_fill(&strided.of[m], -7.0, &error));
            }
        }
        attention_forward(context, &a, ATTENTION_PUBLIC, &strided);
        attention_backward(context, &a, ATTENTION_PUBLIC, &strided);
        assert_attention_same_bits(&strided, &plain);
        attention_results_end(&strided);
        attention_results_end(&plain);
        attention_end(&a);
    }
    attn_context_destroy(context);
}

// Operands that several heads and batch entries share by stride 0; masks of fewer dims.
static void shared_operands(void **state)
{
    (void)state;
    attn_context *context = test_context();
    struct attention a;
    struct attention_results shared, copied;
    attention_begin(&a, small, 52);
    attention_add_bias(&a, ATTN_F32, (int64_t[]){1, 1, 6, 9}, 1.0);
    a.key.stride[0] = a.key.stride[1] = a.value.stride[1] = 0;
    attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &shared);
    a.key = test_tensor_as(&a.pool, ATTN_F32, &a.key);
    a.value = test_tensor_as(&a.pool, ATTN_F32, &a.value);
    a.bias = attn_tensor_wrap(a.bias.data, ATTN_F32, 2, (int64_t[]){6, 9});
    attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &copied);
    copied.of[ATTENTION_GRAD_BIAS] =
        attn_tensor_wrap(copied.of[ATTENTION_GRAD_BIAS].data, ATTN_F32, 4, (int64_t[]){1, 1, 6, 9});
    assert_attention_same_bits(&copied, &shared);
    attention_results_end(&copied);
    attention_results_end(&shared);
    attention_end(&a);
    attn_context_destroy(context);
}

// Any nonzero byte of a uint8 mask lets attend; each storage type alone and mixed stays within its
// own rounding of the reference on the same elements.
static void element_types(void **state)
{
    (void)state;
    static const attn_dtype types[] = {ATTN_F32, ATTN_F16, ATTN_BF16};
    attn_context *context = test_context();
    for (int n = 0; n < 27; n++) {
        struct attention a;
        struct attention_results r, reference;
        attention_begin(&a, small, 53);
        attention_add_keep(&a, (int64_t[]){1, 1, 6, 9}, 0.8);
        for (int64_t j = 0; j < 54; j++) {
            uint8_t *byte = (uint8_t *)a.keep.data + j;
            *byte = (uint8_t)(*byte * (j % 255 + 1));
        }
        a.keep.dtype = ATTN_U8;
        a.query = test_tensor_as(&a.pool, types[n % 3], &a.query);
        a.key = test_tensor_as(&a.pool, types[n / 3 % 3], &a.key);
        a.value = test_tensor_as(&a.pool, types[n / 9], &a.value);
        attention_results_begin(&r, &a, ATTN_DTYPE_NONE);
        r.of[ATTENTION_OUTPUT] = test_tensor_as(&r.pool, types[n % 3], &r.of[ATTENTION_OUTPUT]);
        attention_forward(context, &a, ATTENTION_PUBLIC, &r);
        attention_backward(context, &a, ATTENTION_PUBLIC, &r);
        attention_run(context, &a, ATTENTION_REFERENCE, ATTN_F64, &reference);
        const double output_step = n % 3 == 0 ? 5e-6 : (n % 3 == 1 ? 0x1p-10 : 0x1p-7);
        for (int m = 0; m < ATTENTION_RESULT_COUNT; m++) {
            if (r.present[m]) {
                // The backward sees the rounded output.
                const double bound = m == ATTENTION_OUTPUT || m >= ATTENTION_FORWARD_COUNT
                                         ? 4.0 * output_step
                                         : 5e-6;
                assert_tensors_close(attention_result_names[m], &r.of[m], &reference.of[m], bound,
                                     bound);
            }
        }
        attention_results_end(&reference);
        attention_results_end(&r);
        attention_end(&a);
    }
    attn_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_strides),
        cmocka_unit_test(shared_operands),
        cmocka_unit_test(element_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
