// The bits of products: the same for a weight and its transpose, for every layout and batch, and for
// any number of threads.
#include "support/attention.h"
#include "tape_fixture.h"

// x W and its gradients against linear(x, W^T) and its own, bit for bit: SelfAttentionV1 and V2 are
// the same function of transposed weights.
static void weight_and_its_transpose(void **state)
{
    struct fixture *const f = *state;
    const attn_dtype dtypes[] = {ATTN_F32, ATTN_F64};
    attn_error error;
    for (int n = 0; n < 2; n++) {
        const attn_var x1 = random_leaf(f, dtypes[n], SHAPE(3, 17, 37));
        const attn_var w1 = random_leaf(f, dtypes[n], SHAPE(37, 29));
        const attn_var x2 = attn_view(x1, SHAPE(3, 17, 37));
        const attn_var w2 = attn_contiguous(attn_transpose(w1, 0, 1));
        const attn_var y1 = attn_matmul(x1, w1), y2 = attn_linear(x2, w2, ATTN_NO_VAR);
        const attn_tensor out1 = attn_value(y1), out2 = attn_value(y2);
        assert_same_bits("output", &out1, &out2);

        attn_var grads1[2], grads2[2];
        ASSERT_OK(attn_gradients(mix(y1), (attn_var[]){x1, w1}, 2, false, grads1, &error));
        ASSERT_OK(attn_gradients(mix(y2), (attn_var[]){x2, w2}, 2, false, grads2, &error));
        const attn_tensor dx1 = attn_value(grads1[0]), dx2 = attn_value(grads2[0]);
        const attn_tensor dw1 = attn_value(grads1[1]);
        const attn_tensor dw2 = attn_value(attn_transpose(grads2[1], 0, 1));
        assert_same_bits("input gradient", &dx1, &dx2);
        assert_same_bits("weight gradient", &dw1, &dw2);
        attn_tape_reset(f->tape);
    }
}

// One chain of fused multiply-adds, ascending, from 0 or from the bias.
static void one_chain_per_element(void **state)
{
    struct fixture *const f = *state;
    const attn_var x = random_leaf(f, ATTN_F32, SHAPE(2, 5, 19));
    const attn_var w = random_leaf(f, ATTN_F32, SHAPE(7, 19));
    const attn_var b = random_leaf(f, ATTN_F32, SHAPE(7));
    const attn_tensor y = attn_value(attn_linear(x, w, b));
    const attn_tensor z = attn_value(attn_matmul(x, attn_transpose(w, 0, 1)));
    const float *const xs = attn_value(x).data, *const ws = attn_value(w).data;
    const float *const bs = attn_value(b).data;
    for (int64_t m = 0; m < 10; m++) {
        for (int64_t j = 0; j < 7; j++) {
            float from_bias = bs[j], from_zero = 0;
            for (int64_t k = 0; k < 19; k++) {
                from_bias = __builtin_fmaf(xs[m * 19 + k], ws[j * 19 + k], from_bias);
                from_zero = __builtin_fmaf(xs[m * 19 + k], ws[j * 19 + k], from_zero);
            }
            assert_true(((const float *)y.data)[m * 7 + j] == from_bias);
            assert_true(((const float *)z.data)[m * 7 + j] == from_zero);
        }
    }
}

static void broadcasting_batches(void **state)
{
    struct fixture *const f = *state;
    const attn_var a = random_leaf(f, ATTN_F64, SHAPE(2, 1, 4, 3));
    const attn_var b = random_leaf(f, ATTN_F64, SHAPE(5, 2, 3));
    const attn_var turned = attn_transpose(b, 1, 2);
    const attn_tensor whole = attn_value(attn_matmul(a, turned));
    assert_int_equal(whole.ndim, 4);
    assert_int_equal(whole.shape[1], 5);
    for (int64_t m = 0; m < 2; m++) {
        for (int64_t n = 0; n < 5; n++) {
            const attn_var left = attn_select(attn_select(a, 0, m), 0, 0);
            const attn_tensor one = attn_value(attn_matmul(left, attn_select(turned, 0, n)));
            attn_tensor part;
            attn_error error;
            ASSERT_OK(attn_tensor_select(&whole, 0, m, &part, &error));
            ASSERT_OK(attn_tensor_select(&part, 0, n, &part, &error));
            assert_same_bits("matrix of the batch", &part, &one);
        }
    }
}

// Everything that runs on several threads: products, elementwise ops, rows, sums.
static uint64_t digest_of_a_step(const attn_context *context)
{
    attn_error error;
    attn_tape *tape;
    uint64_t random = 5;
    struct test_pool pool = {0};
    ASSERT_OK(attn_tape_create(context, &tape, &error));
    const attn_tensor values = test_tensor(&pool, ATTN_F32, SHAPE(3, 150, 150));
    const attn_tensor weights = test_tensor(&pool, ATTN_F32, SHAPE(150, 150));
    test_fill_normal(&values, 1, &random);
    test_fill_normal(&weights, 1, &random);
    const attn_var x = attn_input(tape, &values, true), w = attn_input(tape, &weights, true);
    const attn_var y = attn_softmax(attn_matmul(attn_tanh(x), w), 1);
    const attn_var z = attn_multiply(attn_sum(y, 0, false), attn_max(y, 0, false));
    ASSERT_OK(attn_backward(attn_mean_all(attn_multiply(z, w)), &error));
    const attn_tensor value = attn_value(z), dx = attn_grad(x), dw = attn_grad(w);
    uint64_t digest = test_digest(TEST_DIGEST_START, &value);
    digest = test_digest(test_digest(digest, &dx), &dw);
    attn_tape_destroy(tape);
    test_pool_end(&pool);
    return digest;
}

static void any_number_of_threads(void **state)
{
    (void)state;
    attn_context *const serial = test_context();
    const uint64_t expected = digest_of_a_step(serial);
    attn_context_destroy(serial);
    for (int32_t threads = 2; threads <= 5; threads++) {
        attn_context *const context = test_context_with(threads, ATTN_TIER_AUTO);
        assert_true(digest_of_a_step(context) == expected);
        attn_context_destroy(context);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(weight_and_its_transpose, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(one_chain_per_element, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(broadcasting_batches, fixture_setup, fixture_teardown),
        cmocka_unit_test(any_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
