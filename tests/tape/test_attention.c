// Attention as an op: its gradients are those of the attention calls, for every feature of the
// descriptor, whether the engine gives them or the composition from ops, which can be differentiated
// again.
#include <math.h>
#include <string.h>

#include "support/attention.h"
#include "tape/tape.h"
#include "tape_fixture.h"

// ---- problems -----------------------------------------------------------------------------------

static const struct attention_shape plain = {2, 2, 1, 5, 6, 3, 2, ATTN_F64};
static const struct attention_shape single = {1, 4, 2, 7, 9, 2, 3, ATTN_F64};

static void bare(struct attention *a)
{
    a->desc.scale_mode = ATTN_SCALE_GIVEN;
    a->desc.scale = 0.8;
}

static void causal_with_lse(struct attention *a)
{
    a->desc.causal = true;
    attention_add_grad_lse(a);
}

static void bottom_right_window(struct attention *a)
{
    a->desc.causal = true;
    a->desc.diagonal = ATTN_DIAGONAL_BOTTOM_RIGHT;
    a->desc.window_left = 2;
    attention_add_grad_lse(a);
}

// Rows 0 and 1 see nothing.
static void offset_with_blind_rows(struct attention *a)
{
    a->desc.causal = true;
    a->desc.diagonal = ATTN_DIAGONAL_OFFSET;
    a->desc.diagonal_offset = -2;
    a->desc.window_left = 3;
    a->desc.window_right = 1;
    attention_add_grad_lse(a);
}

static void lengths(struct attention *a)
{
    attention_add_query_lengths(a, (int64_t[]){3, 5});
    attention_add_key_lengths(a, (int64_t[]){6, 2});
    a->desc.diagonal = ATTN_DIAGONAL_BOTTOM_RIGHT;
    a->desc.causal = true;
}

static void softcap_bias_alibi(struct attention *a)
{
    a->desc.softcap = 1.5;
    attention_add_bias(a, ATTN_F64, (int64_t[]){1, 2, 1, 6}, 1);
    attention_add_alibi(a);
    attention_add_grad_lse(a);
}

static void masking_bias(struct attention *a)
{
    attention_add_bias(a, ATTN_F64, (int64_t[]){2, 1, 5, 6}, 1);
    for (int64_t j = 0; j < 6; j++) {
        test_set(&a->bias, 1, 0, 2, j, -INFINITY);
        test_set(&a->bias, j % 2, 0, j % 5, j, -INFINITY);
    }
    attention_add_grad_lse(a);
}

static void sinks(struct attention *a)
{
    attention_add_sinks(a);
    attention_add_grad_lse(a);
    a->desc.causal = true;
    a->desc.diagonal = ATTN_DIAGONAL_OFFSET;
    a->desc.diagonal_offset = -1;
}

static void keep(struct attention *a)
{
    attention_add_keep(a, (int64_t[]){2, 2, 5, 6}, 0.4);
    attention_add_grad_lse(a);
}

static void keep_shared(struct attention *a)
{
    attention_add_keep(a, (int64_t[]){2, 1, 1, 6}, 0.5);
}

static void philox(struct attention *a)
{
    attention_add_philox(a, 0.3);
    a->desc.dropout_batch = 4;
    a->desc.dropout_head = 9;
    a->desc.dropout_row = 100;
    a->desc.causal = true;
}

static void dropout_keep(struct attention *a)
{
    attention_add_dropout_keep(a, (int64_t[]){2, 1, 5, 6}, 0.4);
    attention_add_grad_lse(a);
}

static void packed(struct attention *a)
{
    attention_add_starts(a, 4, (int64_t[]){0, 2, 2, 6}, (int64_t[]){0, 3, 4, 8});
    a->desc.causal = true;
    a->desc.diagonal = ATTN_DIAGONAL_BOTTOM_RIGHT;
    attention_add_alibi(a);
    attention_add_philox(a, 0.2);
    attention_add_bias(a, ATTN_F64, (int64_t[]){1, 4, 7, 9}, 1);
    attention_add_sinks(a);
}

static const struct problem {
    const char *name;
    const struct attention_shape *shape;
    void (*add)(struct attention *a);
} problems[] = {
    {"bare", &plain, bare},
    {"causal", &plain, causal_with_lse},
    {"bottom-right, window", &plain, bottom_right_window},
    {"offset, blind rows", &plain, offset_with_blind_rows},
    {"lengths", &plain, lengths},
    {"softcap, bias, ALiBi", &plain, softcap_bias_alibi},
    {"masking bias", &plain, masking_bias},
    {"sinks", &plain, sinks},
    {"keep", &plain, keep},
    {"keep, shared", &plain, keep_shared},
    {"Philox dropout", &plain, philox},
    {"given dropout", &plain, dropout_keep},
    {"packed", &single, packed},
};

// ---- running them -------------------------------------------------------------------------------

enum { INPUTS = 5 };

// The operands as leaves, the op, and the upstream gradients pulled back through it.
struct run {
    attn_var inputs[INPUTS], outputs[2], grads[INPUTS];
};

static void run_on_tape(attn_tape *tape, const struct attention *a, bool differentiable,
                        struct run *r)
{
    memset(r, 0, sizeof *r);
    const attn_tensor *const tensors[INPUTS] = {&a->query, &a->key, &a->value, a->desc.bias,
                                                a->desc.sinks};
    for (int k = 0; k < INPUTS; k++) {
        r->inputs[k] = tensors[k] ? attn_input(tape, tensors[k], true) : ATTN_NO_VAR;
    }
    r->outputs[0] = attn_scaled_dot_product_attention(r->inputs[0], r->inputs[1], r->inputs[2],
                                                      r->inputs[3], r->inputs[4], &a->desc,
                                                      &r->outputs[1]);
    const attn_var upstream[] = {attn_input(tape, &a->grad_output, false),
                                 a->grad_lse.data ? attn_input(tape, &a->grad_lse, false)
                                                  : ATTN_NO_VAR};
    assert_int_equal(attn_tape_status(tape), ATTN_OK);
    attn_tape_set_recording(tape, differentiable);
    attn_tape_pull_back(tape, 0, r->outputs, upstream, 2, r->inputs, INPUTS, r->grads);
    attn_tape_set_recording(tape, true);
    if (attn_tape_status(tape) != ATTN_OK) {
        print_error("%s\n", attn_tape_error(tape)->text);
    }
    assert_int_equal(attn_tape_status(tape), ATTN_OK);
}

static const enum attention_result result_of_input[INPUTS] = {
    ATTENTION_GRAD_QUERY, ATTENTION_GRAD_KEY, ATTENTION_GRAD_VALUE, ATTENTION_GRAD_BIAS,
    ATTENTION_GRAD_SINKS};

static void gradients_are_the_calls(void **state)
{
    struct fixture *const f = *state;
    for (size_t n = 0; n < sizeof problems / sizeof problems[0]; n++) {
        struct attention a;
        struct attention_results expected;
        attention_begin(&a, *problems[n].shape, 11 + n);
        problems[n].add(&a);
        attention_run(f->context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &expected);
        for (int differentiable = 0; differentiable < 2; differentiable++) {
            struct run r;
            run_on_tape(f->tape, &a, differentiable, &r);
            const attn_tensor output = attn_value(r.outputs[0]), lse = attn_value(r.outputs[1]);
            assert_same_bits(problems[n].name, &output, &expected.of[ATTENTION_OUTPUT]);
            assert_same_bits(problems[n].name, &lse, &expected.of[ATTENTION_LSE]);
            for (int k = 0; k < INPUTS; k++) {
                const enum attention_result result = result_of_input[k];
                assert_int_equal(r.inputs[k].tape != NULL, expected.present[result]);
                if (!r.inputs[k].tape) {
                    continue;
                }
                const attn_tensor grad = attn_value(r.grads[k]);
                if (differentiable) {
                    assert_tensors_close(problems[n].name, &grad, &expected.of[result], 1e-13,
                                         1e-11);
                } else {
                    assert_same_bits(problems[n].name, &grad, &expected.of[result]);
                }
            }
            attn_tape_reset(f->tape);
        }
        attention_results_end(&expected);
        attention_end(&a);
    }
}

// ---- second derivatives -------------------------------------------------------------------------

static attn_var attention_penalty(attn_tape *tape, const attn_var *inputs, int64_t count,
                                  void *user)
{
    const struct attention *const a = user;
    const bool has_bias = a->desc.bias, has_sinks = a->desc.sinks;
    const attn_var bias = has_bias ? inputs[3] : ATTN_NO_VAR;
    const attn_var sink = has_sinks ? inputs[3 + has_bias] : ATTN_NO_VAR;
    attn_var lse;
    const attn_var output = attn_scaled_dot_product_attention(inputs[0], inputs[1], inputs[2], bias,
                                                              sink, &a->desc, &lse);
    attn_var scalar = mix(output);
    if (a->grad_lse.data) {
        // The finite entries only.
        const attn_tensor value = attn_value(lse);
        bool infinite[64];
        assert_true(attn_tensor_count(&value) <= 64);
        for (int64_t n = 0; n < attn_tensor_count(&value); n++) {
            infinite[n] = isinf(((const double *)value.data)[n]);
        }
        const attn_tensor mask = attn_tensor_wrap(infinite, ATTN_BOOL, value.ndim, value.shape);
        scalar = attn_add(scalar, mix(attn_masked_fill(lse, &mask, 0)));
    }
    (void)tape;
    return gradient_penalty(scalar, inputs, count);
}

static void second_derivatives(void **state)
{
    struct fixture *const f = *state;
    for (size_t n = 0; n < sizeof problems / sizeof problems[0]; n++) {
        struct attention a;
        attention_begin(&a, *problems[n].shape, 31 + n);
        problems[n].add(&a);
        attn_tensor inputs[INPUTS] = {a.query, a.key, a.value};
        int64_t count = 3;
        if (a.desc.bias && problems[n].add != masking_bias) {
            inputs[count++] = a.bias;
        }
        if (a.desc.sinks) {
            inputs[count++] = a.sinks;
        }
        if (problems[n].add != masking_bias) { // no differences around -inf
            assert_gradients(f->context, problems[n].name, attention_penalty, &a, inputs, count);
        }
        attention_end(&a);
    }
}

// ---- the rest -----------------------------------------------------------------------------------

// NaN where nobody looks reaches nothing, whichever way the gradients come.
static void unseen_nan_stays_unseen(void **state)
{
    struct fixture *const f = *state;
    struct attention a;
    attention_begin(&a, plain, 3);
    lengths(&a);
    for (int64_t d = 0; d < 3; d++) {
        test_set(&a.query, 0, 1, 4, d, NAN);
        test_set(&a.key, 1, 0, 3, d, NAN);
        test_set(&a.value, 1, 0, 5, d % 2, NAN);
        test_set(&a.grad_output, 0, 1, 3, d % 2, NAN);
    }
    for (int differentiable = 0; differentiable < 2; differentiable++) {
        struct run r;
        run_on_tape(f->tape, &a, differentiable, &r);
        for (int k = 0; k < 3; k++) {
            const attn_tensor grad = attn_value(r.grads[k]);
            for (int64_t n = 0; n < attn_tensor_count(&grad); n++) {
                assert_true(isfinite(((const double *)grad.data)[n]));
            }
        }
        attn_tape_reset(f->tape);
    }
    attention_end(&a);
}

// An expanded bias gets a gradient of its own shape, and what was expanded the sum.
static void expanded_bias(void **state)
{
    struct fixture *const f = *state;
    struct attention a;
    attention_begin(&a, plain, 4);
    const attn_var q = attn_input(f->tape, &a.query, true), k = attn_input(f->tape, &a.key, true);
    const attn_var v = attn_input(f->tape, &a.value, true);
    const attn_var row = random_leaf(f, ATTN_F64, SHAPE(6));
    const attn_var whole = attn_expand(row, SHAPE(2, 5, 6));
    const attn_var output =
        attn_scaled_dot_product_attention(q, k, v, whole, ATTN_NO_VAR, &a.desc, NULL);
    const attn_var inputs[] = {row, whole};
    attn_var grads[2];
    attn_error error;
    ASSERT_OK(attn_gradients(mix(output), inputs, 2, false, grads, &error));
    const attn_var summed = attn_sum(attn_sum(grads[1], 0, false), 0, false);
    const attn_tensor actual = attn_value(grads[0]), expected = attn_value(summed);
    assert_tensors_close("bias", &actual, &expected, 1e-14, 1e-12);
    attention_end(&a);
}

// float32, transposed views as operands, no lse, recording off: the bits of the plain call.
static void any_strides(void **state)
{
    struct fixture *const f = *state;
    const attn_var x = random_leaf(f, ATTN_F32, SHAPE(2, 5, 3, 8));
    const attn_var heads = attn_transpose(x, 1, 2);
    attn_sdpa_desc desc;
    attn_sdpa_desc_init(&desc);
    desc.causal = true;
    const attn_var strided = attn_scaled_dot_product_attention(heads, heads, heads, ATTN_NO_VAR,
                                                               ATTN_NO_VAR, &desc, NULL);
    attn_tape_set_recording(f->tape, false);
    const attn_var copy = attn_contiguous(heads);
    const attn_var dense =
        attn_scaled_dot_product_attention(copy, copy, copy, ATTN_NO_VAR, ATTN_NO_VAR, &desc, NULL);
    const attn_tensor a = attn_value(strided), b = attn_value(dense);
    assert_same_bits("strides", &a, &b);
}

static void empty_sizes(void **state)
{
    struct fixture *const f = *state;
    attn_sdpa_desc desc;
    attn_sdpa_desc_init(&desc);
    const int64_t shapes[][4] = {{0, 2, 3, 4}, {1, 2, 0, 4}, {1, 0, 3, 4}};
    for (int n = 0; n < 3; n++) {
        const attn_var x = random_leaf(f, ATTN_F32, 4, shapes[n]);
        const attn_var y =
            attn_scaled_dot_product_attention(x, x, x, ATTN_NO_VAR, ATTN_NO_VAR, &desc, NULL);
        attn_error error;
        attn_var grad;
        ASSERT_OK(attn_backward(attn_sum_all(y), &error));
        ASSERT_OK(attn_gradients(mix(y), &x, 1, true, &grad, &error));
        assert_var(grad, ATTN_F32, 4, shapes[n], NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(gradients_are_the_calls, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(second_derivatives, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(unseen_nan_stays_unseen, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(expanded_bias, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(any_strides, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(empty_sizes, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
