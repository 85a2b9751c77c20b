// Memory: whichever allocation fails, nothing leaks, nobody's gradient is half written, and the tape
// works again; and a step that was made once allocates nothing when it is made again.
#include <stdatomic.h>
#include <string.h>

#include "support/allocator.h"
#include "support/attention.h"
#include "tape_fixture.h"

enum { ROWS = 24, WIDTH = 16, CLASSES = 5 };

// A training step of a small model, with parameters outside the tape.
struct model {
    struct test_pool pool;
    attn_tensor x, weight, weight_grad, bias, bias_grad, keys, keys_grad, targets;
    attn_generator *generator;
};

static void model_begin(struct model *m, const attn_context *context)
{
    attn_error error;
    uint64_t random = 9;
    *m = (struct model){0};
    attn_tensor *const tensors[] = {&m->x, &m->weight, &m->weight_grad, &m->keys, &m->keys_grad};
    for (int n = 0; n < 5; n++) {
        *tensors[n] = n == 0 ? test_tensor(&m->pool, ATTN_F32, SHAPE(2, ROWS, WIDTH))
                             : test_tensor(&m->pool, ATTN_F32, SHAPE(WIDTH, WIDTH));
        test_fill_normal(tensors[n], 0.5, &random);
    }
    m->bias = test_tensor(&m->pool, ATTN_F32, SHAPE(WIDTH));
    m->bias_grad = test_tensor(&m->pool, ATTN_F32, SHAPE(WIDTH));
    m->targets = test_tensor(&m->pool, ATTN_I64, SHAPE(2, ROWS));
    ASSERT_OK(attn_generator_create(context, 1, &m->generator, &error));
}

static void model_end(struct model *m)
{
    attn_generator_destroy(m->generator);
    test_pool_end(&m->pool);
}

// Every kind of op, then backward. The tape's or backward's status.
static attn_status step(attn_tape *tape, const struct model *m, attn_error *error)
{
    const attn_var x = attn_input(tape, &m->x, false);
    const attn_var weight = attn_borrow(tape, &m->weight, &m->weight_grad);
    const attn_var bias = attn_borrow(tape, &m->bias, &m->bias_grad);
    const attn_var keys = attn_borrow(tape, &m->keys, &m->keys_grad);
    const attn_var query = attn_linear(x, weight, bias);
    const attn_var key = attn_matmul(x, keys);
    attn_var weights = attn_matmul(query, attn_transpose(key, -2, -1));
    weights = attn_softmax(attn_tril(attn_scale(weights, 0.25), 0), -1);
    weights = attn_dropout(weights, 0.2, true, m->generator);
    const attn_var context = attn_matmul(weights, attn_tanh(x));
    attn_sdpa_desc desc;
    attn_sdpa_desc_init(&desc);
    desc.causal = true;
    const int64_t heads[] = {m->x.shape[0], ROWS, 2, WIDTH / 2};
    const attn_var split = attn_transpose(attn_view(query, 4, heads), 1, 2);
    const attn_var fused = attn_scaled_dot_product_attention(split, split, split, ATTN_NO_VAR,
                                                             ATTN_NO_VAR, &desc, NULL);
    const int64_t merged[] = {m->x.shape[0], ROWS, WIDTH};
    const attn_var joined = attn_view(attn_contiguous(attn_transpose(fused, 1, 2)), 3, merged);
    const attn_var sum = attn_add(attn_max(joined, -1, true), context);
    const attn_var logits = attn_slice(sum, -1, 0, CLASSES);
    const attn_var loss = attn_add(attn_cross_entropy(logits, &m->targets), attn_mse_loss(sum, x));
    attn_var slope;
    attn_status status = attn_tape_status(tape);
    if (status == ATTN_OK) {
        status = attn_gradients(loss, &bias, 1, true, &slope, error);
    } else if (error) {
        *error = *attn_tape_error(tape);
    }
    if (status == ATTN_OK) {
        status = attn_backward(attn_add(loss, attn_sum_all(attn_multiply(slope, slope))), error);
    }
    return status;
}

static void any_failing_allocation(void **state)
{
    (void)state;
    test_allocator memory;
    attn_context *const context = test_context_on(&memory);
    struct model m;
    model_begin(&m, context);
    float before[WIDTH * WIDTH], bias_before[WIDTH];
    attn_error error;
    bool done = false;
    int failures = 0;
    for (long long n = 0; !done; n++) {
        assert_true(n < 1000);
        memcpy(before, m.weight_grad.data, sizeof before);
        memcpy(bias_before, m.bias_grad.data, sizeof bias_before);
        atomic_store(&memory.fail_at, atomic_load(&memory.calls) + n);
        attn_tape *tape = NULL;
        attn_status status = attn_tape_create(context, &tape, &error);
        if (status == ATTN_OK) {
            status = step(tape, &m, &error);
            done = status == ATTN_OK;
        }
        if (!done) {
            failures++;
            assert_int_equal(status, ATTN_ERR_OUT_OF_MEMORY);
            assert_int_equal(error.status, ATTN_ERR_OUT_OF_MEMORY);
            assert_non_null(strstr(error.text, "no memory for"));
            assert_memory_equal(before, m.weight_grad.data, sizeof before);
            assert_memory_equal(bias_before, m.bias_grad.data, sizeof bias_before);
        }
        if (!done && tape) { // the same tape once more, now that there is memory
            atomic_store(&memory.fail_at, -1);
            attn_tape_reset(tape);
            ASSERT_OK(step(tape, &m, &error));
        }
        attn_tape_destroy(tape);
    }
    assert_true(failures >= 5); // tape, table of nodes, several chunks
    model_end(&m);
    test_context_end(context, &memory);
}

// The failing call is backward itself: the tape stays as it was, healthy, and can try again.
static void backward_without_memory(void **state)
{
    (void)state;
    test_allocator memory;
    attn_context *const context = test_context_on(&memory);
    struct model m;
    model_begin(&m, context);
    attn_error error;
    attn_tape *tape;
    ASSERT_OK(attn_tape_create(context, &tape, &error));
    const attn_var weight = attn_borrow(tape, &m.weight, &m.weight_grad);
    const attn_var own = attn_input(tape, &m.keys, true);
    attn_var y = attn_multiply(weight, own);
    for (int n = 0; n < 60; n++) {
        y = attn_tanh(attn_add(y, weight));
    }
    const attn_var loss = attn_sum_all(y);
    float before[WIDTH * WIDTH];
    memcpy(before, m.weight_grad.data, sizeof before);
    attn_status status = ATTN_ERR_OUT_OF_MEMORY;
    int failures = 0;
    for (long long n = 0; status != ATTN_OK; n++) {
        atomic_store(&memory.fail_at, atomic_load(&memory.calls) + n);
        status = attn_backward(loss, &error);
        atomic_store(&memory.fail_at, -1);
        if (status != ATTN_OK) {
            failures++;
            assert_int_equal(status, ATTN_ERR_OUT_OF_MEMORY);
            assert_memory_equal(error.text, "backward: ", 10);
            assert_int_equal(attn_tape_status(tape), ATTN_OK);
            assert_true(attn_tape_recording(tape));
            assert_int_equal(attn_grad(own).dtype, ATTN_DTYPE_NONE);
            assert_memory_equal(before, m.weight_grad.data, sizeof before);
            const attn_var next = attn_exp(loss);
            assert_int_equal(next.index, loss.index + (uint32_t)failures);
        }
    }
    assert_true(failures > 0);
    assert_int_equal(attn_grad(own).dtype, ATTN_F32);
    assert_memory_not_equal(before, m.weight_grad.data, sizeof before);
    attn_tape_destroy(tape);
    model_end(&m);
    test_context_end(context, &memory);
}

// What one attention backward asks the allocator for although it was given a workspace: the tape
// adds nothing to that.
static long long calls_of_attention_backward(const attn_context *context, test_allocator *memory)
{
    struct attention a;
    struct attention_results r;
    attn_error error;
    size_t bytes;
    attention_begin(&a, (struct attention_shape){1, 1, 1, 3, 3, 2, 2, ATTN_F32}, 1);
    attention_results_begin(&r, &a, ATTN_DTYPE_NONE);
    attention_forward(context, &a, ATTENTION_PUBLIC, &r);
    attn_sdpa_backward_args args = attention_backward_args(&a, &r);
    ASSERT_OK(attn_sdpa_backward_workspace(context, &a.desc, &args, &bytes, &error));
    args.workspace = test_pool_take(&a.pool, bytes + 1);
    args.workspace_size = bytes;
    const long long before = atomic_load(&memory->calls);
    ASSERT_OK(attn_sdpa_backward(context, &a.desc, &args, &error));
    const long long calls = atomic_load(&memory->calls) - before;
    attention_results_end(&r);
    attention_end(&a);
    return calls;
}

static void repeated_steps_allocate_nothing(void **state)
{
    (void)state;
    test_allocator memory;
    attn_context *const context = test_context_on(&memory);
    struct model m;
    model_begin(&m, context);
    attn_error error;
    attn_tape *tape;
    ASSERT_OK(attn_tape_create(context, &tape, &error));
    // Two shapes in turn; each is new once.
    const attn_tensor whole_x = m.x, whole_targets = m.targets;
    const long long allowed = calls_of_attention_backward(context, &memory);
    long long calls = 0;
    for (int n = 0; n < 8; n++) {
        if (n == 2) {
            calls = atomic_load(&memory.calls);
        }
        m.x = whole_x;
        m.targets = whole_targets;
        if (n % 2 == 0) {
            m.x.shape[0] = m.targets.shape[0] = 1;
        }
        attn_tape_reset(tape);
        ASSERT_OK(step(tape, &m, &error));
    }
    assert_int_equal(atomic_load(&memory.calls), calls + 6 * allowed);
    calls = atomic_load(&memory.calls);

    // Evaluation in a loop, released each time.
    attn_tape_reset(tape);
    attn_tape_set_recording(tape, false);
    const attn_var x = attn_input(tape, &whole_x, false);
    const attn_tape_mark mark = attn_tape_get_mark(tape);
    for (int n = 0; n < 1000; n++) {
        attn_softmax(attn_matmul(x, attn_transpose(x, 1, 2)), -1);
        assert_int_equal(attn_tape_status(tape), ATTN_OK);
        ASSERT_OK(attn_tape_release(tape, mark, &error));
    }
    assert_int_equal(atomic_load(&memory.calls), calls);
    attn_tape_destroy(tape);
    model_end(&m);
    test_context_end(context, &memory);
}

// gradcheck gives everything back, whichever allocation fails.
static attn_var square(attn_tape *tape, const attn_var *inputs, int64_t count, void *user)
{
    (void)tape;
    (void)count;
    (void)user;
    return attn_sum_all(attn_multiply(inputs[0], inputs[1]));
}

static void gradcheck_without_memory(void **state)
{
    (void)state;
    test_allocator memory;
    attn_context *const context = test_context_on(&memory);
    double numbers[4] = {1, 2, 3, 4};
    const attn_tensor inputs[] = {attn_tensor_wrap(numbers, ATTN_F64, SHAPE(2)),
                                  attn_tensor_wrap(numbers + 2, ATTN_F64, SHAPE(2))};
    attn_status status = ATTN_ERR_OUT_OF_MEMORY;
    attn_error error;
    for (long long n = 0; status != ATTN_OK; n++) {
        attn_gradcheck_report report = {.checked = -1};
        atomic_store(&memory.fail_at, atomic_load(&memory.calls) + n);
        status =
            attn_gradcheck(context, square, NULL, inputs, 2, 1e-3, 1e-9, 1e-3, &report, &error);
        if (status != ATTN_OK) {
            assert_int_equal(status, ATTN_ERR_OUT_OF_MEMORY);
            assert_int_equal(report.checked, -1);
        } else {
            assert_true(report.passed && report.checked == 4 && n > 5);
        }
    }
    test_context_end(context, &memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_failing_allocation),
        cmocka_unit_test(backward_without_memory),
        cmocka_unit_test(repeated_steps_allocate_nothing),
        cmocka_unit_test(gradcheck_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
