// Refusals of element types, of lists, of read-only and overlapping outputs, of sizes and workspaces.
#include <string.h>

#include "refusals.h"
#include "support/status.h"
#include "support/unit.h"

// ---- element types ------------------------------------------------------------------------------

static void integer_query(struct call *c)
{
    c->forward.query = c->backward.query = own(c, ATTN_I32, 4, SHAPE(2, 4, 3, 6));
}

static void wide_key(struct call *c)
{
    c->forward.key = c->backward.key = own(c, ATTN_F64, 4, SHAPE(2, 2, 5, 6));
}

static void wide_output(struct call *c)
{
    c->forward.output = c->backward.output = own(c, ATTN_F64, 4, SHAPE(2, 4, 3, 7));
}

static void half_statistics(struct call *c)
{
    c->forward.row_sum = c->backward.row_sum = own(c, ATTN_F16, 3, SHAPE(2, 4, 3));
}

static void float_keep(struct call *c)
{
    c->desc->keep = own(c, ATTN_F32, 4, SHAPE(2, 1, 3, 5));
}

static void half_keep(struct call *c)
{
    c->desc->keep = own(c, ATTN_BF16, 4, SHAPE(2, 1, 3, 5));
}

static void integer_keep(struct call *c)
{
    c->desc->keep = own(c, ATTN_I64, 4, SHAPE(2, 1, 3, 5));
}

static void bool_bias(struct call *c)
{
    c->desc->bias = own(c, ATTN_BOOL, 4, SHAPE(1, 4, 3, 5));
}

static void float_lengths(struct call *c)
{
    c->desc->query_lengths = own(c, ATTN_F32, 1, SHAPE(2));
}

static void bool_dropout_keep(struct call *c)
{
    c->desc->dropout_keep = own(c, ATTN_BOOL, 4, SHAPE(2, 4, 3, 1));
}

static void half_grad_query(struct call *c)
{
    c->backward.grad_query = own(c, ATTN_F16, 4, SHAPE(2, 4, 3, 6));
}

static void wide_grad_bias(struct call *c)
{
    c->backward.grad_bias = own(c, ATTN_F64, 4, SHAPE(1, 4, 3, 5));
}

static void wide_grad_output(struct call *c)
{
    c->backward.grad_output = own(c, ATTN_F64, 4, SHAPE(2, 4, 3, 7));
}

static void narrow_key(struct call *c)
{
    wide_key(c);
    c->own[0].dtype = ATTN_F32;
}

static void narrow_statistics(struct call *c)
{
    c->forward.row_max = c->backward.row_max = own(c, ATTN_F32, 3, SHAPE(2, 4, 3));
}

static void dtypes(void **state)
{
    (void)state;
    static const struct refusal refusals[] = {
        {integer_query, ATTN_ERR_DTYPE,
         "sdpa: query is int32, expected float32, float64, float16 or bfloat16", BOTH},
        {wide_key, ATTN_ERR_DTYPE,
         "sdpa: key is float64, expected float32, float16 or bfloat16 as query is float32", BOTH},
        {wide_output, ATTN_ERR_DTYPE,
         "sdpa: output is float64, expected float32, float16 or bfloat16 as query is float32",
         BOTH},
        {half_statistics, ATTN_ERR_DTYPE,
         "sdpa: row_sum is float16, expected float32 as query is float32", BOTH},
        {float_keep, ATTN_ERR_DTYPE,
         "sdpa: keep is float32; a keep mask is bool (true = may attend); an additive mask goes "
         "into bias",
         BOTH},
        {half_keep, ATTN_ERR_DTYPE,
         "sdpa: keep is bfloat16; a keep mask is bool (true = may attend); an additive mask goes "
         "into bias",
         BOTH},
        {integer_keep, ATTN_ERR_DTYPE, "sdpa: keep is int64, expected uint8 or bool", BOTH},
        {bool_bias, ATTN_ERR_DTYPE, "sdpa: bias is bool, expected float32 or float64", BOTH},
        {float_lengths, ATTN_ERR_DTYPE, "sdpa: query_lengths is float32, expected int64 or int32",
         BOTH},
        {bool_dropout_keep, ATTN_ERR_DTYPE, "sdpa: dropout_keep is bool, expected uint8", BOTH},
        {half_grad_query, ATTN_ERR_DTYPE,
         "sdpa: grad_query is float16, expected float32 as query is float32", BACKWARD},
        {wide_grad_bias, ATTN_ERR_DTYPE,
         "sdpa: grad_bias is float64, expected float32 as bias is float32", BACKWARD},
        {wide_grad_output, ATTN_ERR_DTYPE,
         "sdpa: grad_output is float64, expected float32, float16 or bfloat16 as query is float32",
         BACKWARD},
    };
    check_refusals(refusals, sizeof(refusals) / sizeof(refusals[0]), ATTN_F32);
    static const struct refusal wide_refusals[] = {
        {narrow_key, ATTN_ERR_DTYPE, "sdpa: key is float32, expected float64 as query is float64",
         BOTH},
        {narrow_statistics, ATTN_ERR_DTYPE,
         "sdpa: row_max is float32, expected float64 as query is float64", BOTH},
    };
    check_refusals(wide_refusals, sizeof(wide_refusals) / sizeof(wide_refusals[0]), ATTN_F64);
}

// ---- lists --------------------------------------------------------------------------------------

static void negative_length(struct call *c)
{
    c->desc->query_lengths = own_list(c, 2, SHAPE(3, -1));
}

static void long_length(struct call *c)
{
    c->desc->key_lengths = own_list(c, 2, SHAPE(6, 5));
}

static void negative_row(struct call *c)
{
    c->forward.weight_rows = own_list(c, 3, SHAPE(0, -1, 1));
}

static void large_head(struct call *c)
{
    c->forward.weight_heads = own_list(c, 1, SHAPE(4));
}

static void rows_without_weights(struct call *c)
{
    c->forward.weights = NULL;
    c->forward.weight_rows = own_list(c, 1, SHAPE(0));
}

static void one_list_of_starts(struct call *c)
{
    c->desc->query_starts = own_list(c, 2, SHAPE(0, 3));
}

static void starts_and_lengths(struct call *c)
{
    c->desc->query_starts = c->desc->key_starts = own_list(c, 2, SHAPE(0, 3));
}

static void starts_in_a_batch(struct call *c)
{
    c->desc->query_lengths = c->desc->key_lengths = NULL;
    starts_and_lengths(c);
}

static void lists(void **state)
{
    (void)state;
    static const struct refusal refusals[] = {
        {negative_length, ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: query_lengths[1] is -1, expected 0 .. Tq = 3", BOTH},
        {long_length, ATTN_ERR_INVALID_ARGUMENT, "sdpa: key_lengths[0] is 6, expected 0 .. Tk = 5",
         BOTH},
        {negative_row, ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: weight_rows[1] is -1, expected an index below Tq = 3", FORWARD},
        {large_head, ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: weight_heads[0] is 4, expected an index below Hq = 4", FORWARD},
        {rows_without_weights, ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: weight_rows is given, but weights is NULL", FORWARD},
        {one_list_of_starts, ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: query_starts is given without key_starts; packed sequences need both", BOTH},
        {starts_and_lengths, ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: query_starts and key_starts exclude query_lengths", BOTH},
        {starts_in_a_batch, ATTN_ERR_SHAPE,
         "sdpa: packed sequences need a batch of 1, but query has B = 2", BOTH},
    };
    check_refusals(refusals, sizeof(refusals) / sizeof(refusals[0]), ATTN_F32);
}

static void starts(void **state)
{
    (void)state;
    static const struct {
        int64_t count, query_starts[4], key_count, key_starts[4];
        attn_status status;
        const char *text;
    } cases[] = {
        {3,
         {0, 4, 9},
         3,
         {1, 4, 8},
         ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: key_starts[0] is 1, expected 0"},
        {4,
         {0, 5, 3, 9},
         4,
         {0, 1, 2, 3},
         ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: query_starts[2] is 3, below query_starts[1] = 5"},
        {3,
         {0, 4, 10},
         3,
         {0, 4, 8},
         ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: query_starts[2] is 10, beyond Tq = 9"},
        {3,
         {0, 4, 9},
         2,
         {0, 8},
         ATTN_ERR_SHAPE,
         "sdpa: key_starts has shape [2], expected [3] as query_starts"},
        {0,
         {0},
         0,
         {0},
         ATTN_ERR_SHAPE,
         "sdpa: query_starts has shape [0], expected [N+1]: at least the 0 it starts with"},
    };
    attn_context *context = test_context();
    for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
        struct attention a;
        struct attention_results r;
        attn_error error;
        attention_begin(&a, (struct attention_shape){1, 1, 1, 9, 8, 2, 2, ATTN_F32}, 22);
        attention_add_starts(&a, 4, (int64_t[]){0, 0, 0, 0}, (int64_t[]){0, 0, 0, 0});
        a.query_starts = test_list(&a.pool, ATTN_I64, cases[n].count, cases[n].query_starts);
        a.key_starts = test_list(&a.pool, ATTN_I64, cases[n].key_count, cases[n].key_starts);
        attention_results_begin(&r, &a, ATTN_DTYPE_NONE);
        const attn_sdpa_forward_args forward = attention_forward_args(&a, &r);
        const attn_sdpa_backward_args backward = attention_backward_args(&a, &r);
        ASSERT_FAILS(cases[n].status, cases[n].text,
                     attn_sdpa_forward(context, &a.desc, &forward, &error));
        ASSERT_FAILS(cases[n].status, cases[n].text,
                     attn_sdpa_backward(context, &a.desc, &backward, &error));
        attention_results_end(&r);
        attention_end(&a);
    }
    attn_context_destroy(context);
}

// ---- outputs ------------------------------------------------------------------------------------

static void read_only_output(struct call *c)
{
    c->r.of[ATTENTION_OUTPUT].flags |= ATTN_TENSOR_READ_ONLY;
}

static void read_only_grad_key(struct call *c)
{
    c->r.of[ATTENTION_GRAD_KEY].flags |= ATTN_TENSOR_READ_ONLY;
}

static void output_in_query(struct call *c)
{
    attn_tensor *output = own(c, ATTN_F32, 4, SHAPE(2, 4, 3, 7));
    output->data = (float *)c->a.query.data + 143; // the last element
    c->forward.output = output;
}

static void key_sums_in_bias(struct call *c)
{
    attn_tensor *sums = own(c, ATTN_F32, 3, SHAPE(2, 4, 5));
    sums->data = c->a.bias.data;
    c->forward.key_sums = sums;
}

static void lse_is_row_max(struct call *c)
{
    c->forward.lse = &c->r.of[ATTENTION_ROW_MAX];
}

static void repeated_output(struct call *c)
{
    c->r.of[ATTENTION_OUTPUT].stride[1] = 0;
}

static void grad_query_in_query(struct call *c)
{
    c->backward.grad_query = &c->a.query;
}

static void grad_value_in_key(struct call *c)
{
    attn_tensor *gradient = own(c, ATTN_F32, 4, SHAPE(2, 2, 5, 7));
    gradient->data = c->r.of[ATTENTION_GRAD_KEY].data;
    gradient->stride[3] = 0;
    gradient->stride[2] = 1;
    c->backward.grad_value = gradient;
}

static void grad_value_is_grad_key(struct call *c)
{
    attn_tensor *gradient = own(c, ATTN_F32, 4, SHAPE(2, 2, 5, 7));
    gradient->data = c->r.of[ATTENTION_GRAD_KEY].data;
    c->backward.grad_value = gradient;
}

static void outputs(void **state)
{
    (void)state;
    static const struct refusal refusals[] = {
        {read_only_output, ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: output is read-only and cannot be written", FORWARD},
        {read_only_grad_key, ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: grad_key is read-only and cannot be written", BACKWARD},
        {output_in_query, ATTN_ERR_OVERLAP, "sdpa: output overlaps query", FORWARD},
        {key_sums_in_bias, ATTN_ERR_OVERLAP, "sdpa: key_sums overlaps bias", FORWARD},
        {lse_is_row_max, ATTN_ERR_OVERLAP, "sdpa: lse overlaps row_max", FORWARD},
        {repeated_output, ATTN_ERR_OVERLAP,
         "sdpa: output with shape [2,4,3,7] and stride [84,0,7,1] overlaps itself", FORWARD},
        {grad_query_in_query, ATTN_ERR_OVERLAP, "sdpa: grad_query overlaps query", BACKWARD},
        {grad_value_in_key, ATTN_ERR_OVERLAP,
         "sdpa: grad_value with shape [2,2,5,7] and stride [70,35,1,0] overlaps itself", BACKWARD},
        {grad_value_is_grad_key, ATTN_ERR_OVERLAP, "sdpa: grad_value overlaps grad_key", BACKWARD},
    };
    check_refusals(refusals, sizeof(refusals) / sizeof(refusals[0]), ATTN_F32);
}

static void grad_bias_without_bias(struct call *c)
{
    c->desc->bias = NULL;
}

static void grad_sinks_without_sinks(struct call *c)
{
    c->desc->sinks = NULL;
}

static void no_row_max(struct call *c)
{
    c->backward.row_max = NULL;
}

static void no_grad_output(struct call *c)
{
    c->backward.grad_output = NULL;
}

static void missing(void **state)
{
    (void)state;
    static const struct refusal refusals[] = {
        {grad_bias_without_bias, ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: grad_bias is given, but bias is NULL", BACKWARD},
        {grad_sinks_without_sinks, ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: grad_sinks is given, but sinks is NULL", BACKWARD},
        {no_row_max, ATTN_ERR_INVALID_ARGUMENT, "sdpa: row_max is NULL", BACKWARD},
        {no_grad_output, ATTN_ERR_INVALID_ARGUMENT, "sdpa: grad_output is NULL", BACKWARD},
    };
    check_refusals(refusals, sizeof(refusals) / sizeof(refusals[0]), ATTN_F32);
}

// ---- sizes --------------------------------------------------------------------------------------

// The call's query with other sizes and no memory behind them: strides of 0.
static void huge_query(struct call *c, int64_t batch, int64_t heads, int64_t rows)
{
    attn_tensor *query = own(c, ATTN_F32, 4, SHAPE(1, 1, 1, 6));
    attn_tensor *key = own(c, ATTN_F32, 4, SHAPE(1, 1, 1, 6));
    attn_tensor *value = own(c, ATTN_F32, 4, SHAPE(1, 1, 1, 7));
    const int64_t sizes[] = {batch, heads, rows};
    for (int d = 0; d < 3; d++) {
        query->shape[d] = sizes[d];
        query->stride[d] = key->stride[d] = value->stride[d] = 0;
    }
    key->shape[0] = value->shape[0] = batch;
    key->shape[2] = value->shape[2] = 5;
    c->forward.query = c->backward.query = query;
    c->forward.key = c->backward.key = key;
    c->forward.value = c->backward.value = value;
}

static void many_rows(struct call *c)
{
    huge_query(c, 2, 4, (INT64_C(1) << 53) + 1);
}

static void many_heads(struct call *c)
{
    huge_query(c, 1 << 29, 1 << 29, 0);
    c->own[1].shape[2] = c->own[2].shape[2] = 1 << 20;
}

static void sizes(void **state)
{
    (void)state;
    static const struct refusal refusals[] = {
        {many_rows, ATTN_ERR_OVERFLOW,
         "sdpa: the rows of query [2,4,9007199254740993,6] or key [2,1,5,6] are too many to count",
         BOTH},
        {many_heads, ATTN_ERR_OVERFLOW,
         "sdpa: the rows of query [536870912,536870912,0,6] or key [536870912,1,1048576,6] are too "
         "many to count",
         BOTH},
    };
    check_refusals(refusals, sizeof(refusals) / sizeof(refusals[0]), ATTN_F32);
}

// A tensor that is not well formed is refused by its field's name.
static void malformed(void **state)
{
    (void)state;
    attn_context *context = test_context();
    struct call c;
    call_begin(&c, context, ATTN_F32);
    attn_error error;
    c.a.value.data = NULL;
    assert_int_equal(attn_sdpa_forward(context, c.desc, &c.forward, &error),
                     ATTN_ERR_INVALID_ARGUMENT);
    assert_memory_equal(error.text, "sdpa: value", 11);
    call_end(&c);
    attn_context_destroy(context);
}

// ---- workspace ----------------------------------------------------------------------------------

static void workspaces(void **state)
{
    (void)state;
    attn_context *context = test_context();
    struct call c;
    call_begin(&c, context, ATTN_F32);
    attn_error error;
    size_t forward_bytes = 0, backward_bytes = 0;
    ASSERT_OK(attn_sdpa_forward_workspace(context, c.desc, &c.forward, &forward_bytes, &error));
    ASSERT_OK(attn_sdpa_backward_workspace(context, c.desc, &c.backward, &backward_bytes, &error));
    char *memory = test_pool_take(&c.a.pool, forward_bytes + backward_bytes + 64);
    c.forward.workspace = c.backward.workspace = memory + 8;
    c.forward.workspace_size = forward_bytes;
    c.backward.workspace_size = backward_bytes;
    assert_int_equal(attn_sdpa_forward(context, c.desc, &c.forward, &error), ATTN_ERR_WORKSPACE);
    assert_non_null(strstr(error.text, "is not aligned to 64 bytes"));
    assert_int_equal(attn_sdpa_backward(context, c.desc, &c.backward, &error), ATTN_ERR_WORKSPACE);
    assert_non_null(strstr(error.text, "is not aligned to 64 bytes"));
    c.forward.workspace = c.backward.workspace = memory;
    if (forward_bytes > 0) {
        c.forward.workspace_size--;
        assert_int_equal(attn_sdpa_forward(context, c.desc, &c.forward, &error),
                         ATTN_ERR_WORKSPACE);
        assert_non_null(strstr(error.text, "are needed"));
    }
    c.forward.workspace = c.a.query.data;
    c.forward.workspace_size = 64;
    ASSERT_FAILS(ATTN_ERR_OVERLAP, "sdpa: query overlaps workspace",
                 attn_sdpa_forward(context, c.desc, &c.forward, &error));
    c.forward.workspace = c.r.of[ATTENTION_LSE].data;
    ASSERT_FAILS(ATTN_ERR_OVERLAP, "sdpa: lse overlaps workspace",
                 attn_sdpa_forward(context, c.desc, &c.forward, &error));
    call_end(&c);
    attn_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dtypes),    cmocka_unit_test(lists),      cmocka_unit_test(starts),
        cmocka_unit_test(outputs),   cmocka_unit_test(missing),    cmocka_unit_test(sizes),
        cmocka_unit_test(malformed), cmocka_unit_test(workspaces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
