// The descriptor and the argument structs as a whole: every field compiles and has its default, every
// option is served, and memory that runs out at any point leaves nothing behind.
#include <string.h>

#include "support/allocator.h"
#include "support/attention.h"
#include "support/status.h"
#include "support/unit.h"

// ---- every field --------------------------------------------------------------------------------

// Positional initialisers fail to compile, or warn, when a field is added, removed or moved.
static attn_sdpa_desc every_field(const attn_tensor *t)
{
    return (attn_sdpa_desc){sizeof(attn_sdpa_desc),
                            ATTN_SCALE_GIVEN,
                            0.5, // scale
                            ATTN_DIAGONAL_OFFSET,
                            1,    // diagonal_offset
                            true, // causal
                            2,    // window_left
                            0,    // window_right
                            t,    // query_lengths
                            t,    // key_lengths
                            t,    // query_starts
                            t,    // key_starts
                            t,    // keep
                            t,    // bias
                            t,    // alibi_slopes
                            3.0,  // softcap
                            t,    // sinks
                            ATTN_DROPOUT_PHILOX,
                            0.1, // dropout_p
                            1,   // dropout_seed
                            2,   // dropout_stream
                            3,   // dropout_call
                            4,   // dropout_batch
                            5,   // dropout_head
                            6,   // dropout_row
                            t,   // dropout_keep
                            {0}};
}

static attn_sdpa_forward_args every_forward_argument(const attn_tensor *t, void *workspace)
{
    return (attn_sdpa_forward_args){sizeof(attn_sdpa_forward_args),
                                    t,     // query
                                    t,     // key
                                    t,     // value
                                    t,     // output
                                    t,     // row_max
                                    t,     // row_sum
                                    t,     // lse
                                    t,     // weights
                                    t,     // weight_heads
                                    t,     // weight_rows
                                    false, // weights_dropped
                                    t,     // key_sums
                                    workspace,
                                    64, // workspace_size
                                    {0}};
}

static attn_sdpa_backward_args every_backward_argument(const attn_tensor *t, void *workspace)
{
    return (attn_sdpa_backward_args){sizeof(attn_sdpa_backward_args),
                                     t, // query
                                     t, // key
                                     t, // value
                                     t, // output
                                     t, // row_max
                                     t, // row_sum
                                     t, // grad_output
                                     t, // grad_lse
                                     t, // grad_query
                                     t, // grad_key
                                     t, // grad_value
                                     t, // grad_bias
                                     t, // grad_sinks
                                     workspace,
                                     64, // workspace_size
                                     {0}};
}

static void fields(void **state)
{
    (void)state;
    attn_tensor tensor = {.data = NULL};
    char workspace[64];
    const attn_sdpa_desc desc = every_field(&tensor);
    assert_ptr_equal(desc.dropout_keep, &tensor);
    assert_ptr_equal(every_forward_argument(&tensor, workspace).workspace, workspace);
    assert_ptr_equal(every_backward_argument(&tensor, workspace).workspace, workspace);
}

static void defaults(void **state)
{
    (void)state;
    attn_sdpa_desc desc;
    memset(&desc, 0x5a, sizeof(desc));
    attn_sdpa_desc_init(&desc);
    assert_int_equal(desc.struct_size, sizeof(desc));
    assert_int_equal(desc.scale_mode, ATTN_SCALE_INVERSE_SQRT);
    assert_int_equal(desc.diagonal, ATTN_DIAGONAL_TOP_LEFT);
    assert_false(desc.causal);
    assert_int_equal(desc.window_left, -1);
    assert_int_equal(desc.window_right, -1);
    assert_null(desc.query_lengths);
    assert_null(desc.key_lengths);
    assert_null(desc.query_starts);
    assert_null(desc.key_starts);
    assert_null(desc.keep);
    assert_null(desc.bias);
    assert_null(desc.alibi_slopes);
    assert_true(desc.softcap == 0.0);
    assert_null(desc.sinks);
    assert_int_equal(desc.dropout, ATTN_DROPOUT_NONE);
    assert_true(desc.dropout_p == 0.0);
    assert_null(desc.dropout_keep);
    for (int n = 0; n < 8; n++) {
        assert_int_equal(desc.reserved[n], 0);
    }
    attn_sdpa_forward_args forward;
    attn_sdpa_forward_args_init(&forward);
    assert_int_equal(forward.struct_size, sizeof(forward));
    assert_null(forward.weights);
    attn_sdpa_backward_args backward;
    attn_sdpa_backward_args_init(&backward);
    assert_int_equal(backward.struct_size, sizeof(backward));
    assert_null(backward.grad_query);
    assert_true(attn_numerics_version() >= 1);
}

// ---- every option is served ---------------------------------------------------------------------

static void add_keep(struct attention *a)
{
    attention_add_keep(a, (int64_t[]){1, 1, 5, 6}, 0.7);
}

static void add_bias(struct attention *a)
{
    attention_add_bias(a, ATTN_F32, (int64_t[]){2, 4, 5, 6}, 1.0);
}

static void add_wide_bias(struct attention *a)
{
    attention_add_bias(a, ATTN_F64, (int64_t[]){1, 1, 1, 6}, 1.0);
}

static void add_lengths(struct attention *a)
{
    attention_add_query_lengths(a, (int64_t[]){5, 3});
    attention_add_key_lengths(a, (int64_t[]){4, 6});
}

static void add_philox(struct attention *a)
{
    attention_add_philox(a, 0.25);
}

static void add_dropout_keep(struct attention *a)
{
    attention_add_dropout_keep(a, (int64_t[]){2, 4, 5, 6}, 0.25);
}

static void set_causal(struct attention *a)
{
    a->desc.causal = true;
}

static void set_bottom_right(struct attention *a)
{
    a->desc.causal = true;
    a->desc.diagonal = ATTN_DIAGONAL_BOTTOM_RIGHT;
}

static void set_offset(struct attention *a)
{
    a->desc.causal = true;
    a->desc.diagonal = ATTN_DIAGONAL_OFFSET;
    a->desc.diagonal_offset = 2;
}

static void set_window(struct attention *a)
{
    a->desc.window_left = 2;
    a->desc.window_right = 1;
}

static void set_scale(struct attention *a)
{
    a->desc.scale_mode = ATTN_SCALE_GIVEN;
    a->desc.scale = 0.3;
}

static void set_softcap(struct attention *a)
{
    a->desc.softcap = 2.0;
}

static const struct option {
    const char *name;
    void (*add)(struct attention *a);
} options[] = {
    {"keep", add_keep},
    {"bias", add_bias},
    {"bias in float64", add_wide_bias},
    {"alibi_slopes", attention_add_alibi},
    {"sinks", attention_add_sinks},
    {"grad_lse", attention_add_grad_lse},
    {"query_lengths, key_lengths", add_lengths},
    {"dropout by Philox", add_philox},
    {"dropout by a keep mask", add_dropout_keep},
    {"causal", set_causal},
    {"causal, bottom right", set_bottom_right},
    {"causal, offset", set_offset},
    {"window", set_window},
    {"scale", set_scale},
    {"softcap", set_softcap},
};

enum { OPTION_COUNT = sizeof(options) / sizeof(options[0]) };

// What the build does not serve yet, by name. It is to stay empty.
static const char *const unserved[] = {NULL};

static void every_option_is_served(void **state)
{
    (void)state;
    static const attn_dtype dtypes[] = {ATTN_F32, ATTN_F64, ATTN_F16, ATTN_BF16};
    attn_context *context = test_context();
    int missing = 0;
    for (int d = 0; d < 4; d++) {
        for (int n = 0; n < OPTION_COUNT; n++) {
            struct attention a;
            struct attention_results r;
            attention_begin(&a, (struct attention_shape){2, 4, 2, 5, 6, 4, 3, dtypes[d]}, 31);
            options[n].add(&a);
            attention_results_begin(&r, &a, ATTN_DTYPE_NONE);
            const attn_sdpa_forward_args forward = attention_forward_args(&a, &r);
            const attn_sdpa_backward_args backward = attention_backward_args(&a, &r);
            attn_error error;
            const attn_status forward_status =
                attn_sdpa_forward(context, &a.desc, &forward, &error);
            const attn_status backward_status =
                forward_status == ATTN_OK ? attn_sdpa_backward(context, &a.desc, &backward, &error)
                                          : forward_status;
            if (backward_status != ATTN_OK) {
                print_error("%s: %s\n", options[n].name, error.text);
                assert_int_equal(backward_status, ATTN_ERR_NOT_SUPPORTED);
                missing++;
            }
            attention_results_end(&r);
            attention_end(&a);
        }
    }
    assert_null(unserved[0]);
    assert_int_equal(missing, 0);
    attn_context_destroy(context);
}

// Each output alone: NULL outputs are not computed and do not matter to the others.
static void every_subset_of_outputs(void **state)
{
    (void)state;
    attn_context *context = test_context();
    struct attention a;
    struct attention_results all;
    attention_begin(&a, (struct attention_shape){2, 4, 2, 5, 6, 4, 3, ATTN_F32}, 32);
    for (int n = 0; n < OPTION_COUNT; n++) {
        options[n].add(&a);
    }
    attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &all);
    for (int n = 0; n < ATTENTION_RESULT_COUNT; n++) {
        struct attention_results one;
        attention_results_begin(&one, &a, ATTN_DTYPE_NONE);
        if (n < ATTENTION_FORWARD_COUNT) {
            for (int m = 0; m < ATTENTION_FORWARD_COUNT; m++) {
                one.present[m] = m == n;
            }
            attention_forward(context, &a, ATTENTION_PUBLIC, &one);
        } else {
            attention_forward(context, &a, ATTENTION_PUBLIC, &one);
            for (int m = ATTENTION_FORWARD_COUNT; m < ATTENTION_RESULT_COUNT; m++) {
                one.present[m] = m == n;
            }
            attention_backward(context, &a, ATTENTION_PUBLIC, &one);
        }
        assert_same_bits(attention_result_names[n], &one.of[n], &all.of[n]);
        attention_results_end(&one);
    }
    // None at all is a legal call, too.
    struct attention_results none = all;
    memset(none.present, 0, sizeof(none.present));
    attention_forward(context, &a, ATTENTION_PUBLIC, &none);
    attention_results_end(&all);
    attention_end(&a);
    attn_context_destroy(context);
}

// ---- memory that runs out -----------------------------------------------------------------------

// Fails allocation 0, 1, 2, ... of a call until it succeeds. A failed one reports it, gives back what
// it had, and leaves the outputs as they were.
static void sweep(enum attention_path path, bool backward)
{
    test_allocator state;
    attn_context *context = test_context_on(&state);
    struct attention a;
    struct attention_results r;
    attention_begin(&a, (struct attention_shape){2, 4, 2, 70, 90, 16, 8, ATTN_F32}, 33);
    attention_add_bias(&a, ATTN_F32, (int64_t[]){1, 4, 70, 90}, 1.0);
    attention_add_sinks(&a);
    attention_results_begin(&r, &a, ATTN_DTYPE_NONE);
    attention_forward(context, &a, path, &r);
    const attn_sdpa_forward_args forward_args = attention_forward_args(&a, &r);
    const attn_sdpa_backward_args backward_args = attention_backward_args(&a, &r);
    const enum attention_result watched = backward ? ATTENTION_GRAD_KEY : ATTENTION_OUTPUT;
    memset(r.of[watched].data, 0xa5, (size_t)attn_tensor_count(&r.of[watched]) * sizeof(float));
    const uint64_t untouched = test_digest(TEST_DIGEST_START, &r.of[watched]);
    attn_status status = ATTN_ERR_OUT_OF_MEMORY;
    for (int n = 0; status != ATTN_OK; n++) {
        assert_in_range(n, 0, 50);
        const long long live = atomic_load(&state.live);
        atomic_store(&state.calls, 0);
        atomic_store(&state.fail_at, n);
        attn_error error = {ATTN_OK, ""};
        if (path == ATTENTION_PUBLIC) {
            status = backward ? attn_sdpa_backward(context, &a.desc, &backward_args, &error)
                              : attn_sdpa_forward(context, &a.desc, &forward_args, &error);
        } else {
            status = backward
                         ? attn_sdpa_reference_backward(context, &a.desc, &backward_args, &error)
                         : attn_sdpa_reference_forward(context, &a.desc, &forward_args, &error);
        }
        assert_int_equal(atomic_load(&state.live), live);
        const uint64_t digest = test_digest(TEST_DIGEST_START, &r.of[watched]);
        if (status != ATTN_OK) {
            assert_int_equal(status, ATTN_ERR_OUT_OF_MEMORY);
            assert_memory_equal(error.text, "sdpa: no memory", 15);
            assert_true(digest == untouched);
        } else {
            assert_true(digest != untouched);
        }
    }
    atomic_store(&state.fail_at, -1);
    attention_results_end(&r);
    attention_end(&a);
    test_context_end(context, &state);
}

static void failing_allocations(void **state)
{
    (void)state;
    sweep(ATTENTION_PUBLIC, false);
    sweep(ATTENTION_PUBLIC, true);
    sweep(ATTENTION_REFERENCE, false);
    sweep(ATTENTION_REFERENCE, true);
}

// With the workspace that it asks for a call allocates nothing, and computes the same.
static void a_given_workspace(void **state)
{
    (void)state;
    test_allocator counter;
    attn_context *context = test_context_on(&counter);
    struct attention a;
    struct attention_results own, given;
    attention_begin(&a, (struct attention_shape){2, 4, 2, 70, 300, 16, 8, ATTN_F32}, 34);
    attention_add_bias(&a, ATTN_F32, (int64_t[]){1, 1, 70, 300}, 1.0);
    attention_add_sinks(&a);
    attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &own);
    assert_true(atomic_load(&counter.calls) > 0);
    attention_results_begin(&given, &a, ATTN_DTYPE_NONE);
    attn_sdpa_forward_args forward = attention_forward_args(&a, &given);
    attn_sdpa_backward_args backward = attention_backward_args(&a, &given);
    attn_error error;
    ASSERT_OK(
        attn_sdpa_forward_workspace(context, &a.desc, &forward, &forward.workspace_size, &error));
    ASSERT_OK(attn_sdpa_backward_workspace(context, &a.desc, &backward, &backward.workspace_size,
                                           &error));
    forward.workspace = test_pool_take(&a.pool, forward.workspace_size);
    backward.workspace = test_pool_take(&a.pool, backward.workspace_size);
    memset(forward.workspace, 0xff, forward.workspace_size); // nobody may count on zeros
    memset(backward.workspace, 0xff, backward.workspace_size);
    atomic_store(&counter.calls, 0);
    ASSERT_OK(attn_sdpa_forward(context, &a.desc, &forward, &error));
    ASSERT_OK(attn_sdpa_backward(context, &a.desc, &backward, &error));
    assert_int_equal(atomic_load(&counter.calls), 0);
    assert_attention_same_bits(&given, &own);
    attention_results_end(&given);
    attention_results_end(&own);
    attention_end(&a);
    test_context_end(context, &counter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields),
        cmocka_unit_test(defaults),
        cmocka_unit_test(every_option_is_served),
        cmocka_unit_test(every_subset_of_outputs),
        cmocka_unit_test(failing_allocations),
        cmocka_unit_test(a_given_workspace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
