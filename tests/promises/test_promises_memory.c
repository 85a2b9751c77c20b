// Where tensors may lie: strides past 2^31 elements, columns of one matrix side by side, and no
// output over an input.
#define _DEFAULT_SOURCE // MAP_ANONYMOUS, MAP_NORESERVE
#include <string.h>
#include <sys/mman.h>

#include "suite.h"
#include "support/status.h"
#include "support/unit.h"

enum { KEYS = 3, ROWS = 2, WIDE_DIMS = 4 };

// A copy whose rows (dim 2) lie 2^31 + 3 elements apart, and whose columns 7 apart, on pages that
// exist only where they are touched.
static attn_tensor spread(const attn_tensor *source, void **base, size_t *bytes)
{
    const int64_t row_stride = (INT64_C(1) << 31) + 3;
    *bytes = ((size_t)source->shape[2] * (size_t)row_stride + 64) * sizeof(float);
    *base = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                 -1, 0);
    if (*base == MAP_FAILED) {
        skip(); // an address space that is too small
    }
    attn_tensor view = *source;
    view.data = *base;
    view.stride[2] = row_stride;
    view.stride[3] = 7;
    attn_error error;
    ASSERT_OK(attn_tensor_copy(source, &view, &error));
    return view;
}

static void strides_past_32_bits(void **state)
{
    (void)state;
    attn_context *context = test_context();
    struct attention a;
    struct attention_results compact, wide;
    attention_begin(
        &a, (struct attention_shape){1, 1, 1, ROWS, KEYS, WIDE_DIMS, WIDE_DIMS, ATTN_F32}, 91);
    attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &compact);
    attention_results_begin(&wide, &a, ATTN_DTYPE_NONE);
    attn_tensor *const spread_out[] = {&a.query,
                                       &a.key,
                                       &a.value,
                                       &a.grad_output,
                                       &wide.of[ATTENTION_OUTPUT],
                                       &wide.of[ATTENTION_GRAD_QUERY],
                                       &wide.of[ATTENTION_GRAD_KEY],
                                       &wide.of[ATTENTION_GRAD_VALUE]};
    enum { COUNT = sizeof(spread_out) / sizeof(spread_out[0]) };
    void *bases[COUNT];
    size_t bytes[COUNT];
    for (int n = 0; n < COUNT; n++) {
        *spread_out[n] = spread(spread_out[n], &bases[n], &bytes[n]);
    }
    attention_forward(context, &a, ATTENTION_PUBLIC, &wide);
    attention_backward(context, &a, ATTENTION_PUBLIC, &wide);
    assert_attention_same_bits(&wide, &compact);
    for (int n = 0; n < COUNT; n++) {
        assert_int_equal(munmap(bases[n], bytes[n]), 0);
    }
    attention_results_end(&wide);
    attention_results_end(&compact);
    attention_end(&a);
    attn_context_destroy(context);
}

// Query, key, value and output as column blocks of one (B, T, 4 * H * D) matrix: legal, since no
// element is shared, and the same bits as from tensors of their own.
static void columns_of_one_matrix(void **state)
{
    (void)state;
    attn_context *context = test_context();
    struct attention a;
    struct attention_results apart, together;
    const int64_t batch = 2, heads = 3, rows = 9, dims = 8, width = 4 * heads * dims;
    attention_begin(
        &a, (struct attention_shape){batch, heads, heads, rows, rows, dims, dims, ATTN_F32}, 92);
    attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &apart);
    attention_results_begin(&together, &a, ATTN_DTYPE_NONE);
    attn_tensor *const columns[] = {&a.query, &a.key, &a.value, &together.of[ATTENTION_OUTPUT]};
    float *matrix = test_pool_take(&a.pool, (size_t)(batch * rows * width) * sizeof(float));
    attn_error error;
    for (int n = 0; n < 4; n++) {
        attn_tensor view = *columns[n];
        view.data = matrix + n * heads * dims;
        view.stride[0] = rows * width;
        view.stride[1] = dims;
        view.stride[2] = width;
        ASSERT_OK(attn_tensor_copy(columns[n], &view, &error));
        *columns[n] = view;
    }
    attention_forward(context, &a, ATTENTION_PUBLIC, &together);
    attention_backward(context, &a, ATTENTION_PUBLIC, &together);
    assert_attention_same_bits(&together, &apart);
    attention_results_end(&together);
    attention_results_end(&apart);
    attention_end(&a);
    attn_context_destroy(context);
}

// Every output over every input, in place and one element in: refused, and nothing is written.
static void outputs_over_inputs(void **state)
{
    (void)state;
    attn_context *context = test_context();
    struct attention a;
    struct attention_results r;
    attention_begin(&a, (struct attention_shape){2, 2, 2, 6, 6, 4, 4, ATTN_F32}, 93);
    attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &r);
    const attn_tensor *const inputs[] = {&a.query, &a.key, &a.value, &a.grad_output};
    for (int m = 0; m < 4; m++) {
        const uint64_t before = test_digest(TEST_DIGEST_START, inputs[m]);
        for (int n = 0; n < ATTENTION_RESULT_COUNT; n++) {
            const bool backward = n >= ATTENTION_FORWARD_COUNT;
            if (!r.present[n] || (m == 3 && !backward)) {
                continue;
            }
            for (int shift = 0; shift < 2; shift++) {
                const attn_tensor own = r.of[n];
                r.of[n].data = (float *)inputs[m]->data + shift;
                const attn_sdpa_forward_args forward = attention_forward_args(&a, &r);
                const attn_sdpa_backward_args back = attention_backward_args(&a, &r);
                attn_error error;
                assert_int_equal(backward ? attn_sdpa_backward(context, &a.desc, &back, &error)
                                          : attn_sdpa_forward(context, &a.desc, &forward, &error),
                                 ATTN_ERR_OVERLAP);
                r.of[n] = own;
            }
        }
        assert_true(before == test_digest(TEST_DIGEST_START, inputs[m]));
    }
    attention_results_end(&r);
    attention_end(&a);
    attn_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strides_past_32_bits),
        cmocka_unit_test(columns_of_one_matrix),
        cmocka_unit_test(outputs_over_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
