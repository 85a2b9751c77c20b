// Sizes that only strides of 0 make possible.
#include "support/attention.h"
#include "support/unit.h"

// One key repeated 2^44 times by a stride of 0, of which the row sees the last one.
static void one_key_repeated(void **state)
{
    (void)state;
    attn_context *context = test_context();
    float row[64], output[64];
    for (int d = 0; d < 64; d++) {
        row[d] = (float)d;
    }
    const int64_t many = INT64_C(1) << 44;
    attn_tensor key = attn_tensor_wrap(row, ATTN_F32, 4, (int64_t[]){1, 1, 1, 64});
    const attn_tensor query = key;
    key.shape[2] = many;
    key.stride[2] = 0;
    const attn_tensor out = attn_tensor_wrap(output, ATTN_F32, 4, (int64_t[]){1, 1, 1, 64});
    attn_sdpa_desc desc;
    attn_sdpa_desc_init(&desc);
    desc.causal = true;
    desc.diagonal = ATTN_DIAGONAL_BOTTOM_RIGHT;
    desc.window_left = 0;
    attn_sdpa_forward_args args;
    attn_sdpa_forward_args_init(&args);
    args.query = &query;
    args.key = args.value = &key;
    args.output = &out;
    attn_error error;
    if (attn_sdpa_forward(context, &desc, &args, &error) != ATTN_OK) {
        fail_msg("%s", error.text);
    }
    assert_tensors_close("the value", &out, &query, 0, 1e-6);
    attn_context_destroy(context);
}

// A row of 2^55 elements is legal with a stride of 0, but no workspace holds it.
static void workspace_of_a_huge_head(void **state)
{
    (void)state;
    attn_context *context = test_context();
    float element = 1, output = 0;
    attn_tensor row = attn_tensor_wrap(&element, ATTN_F32, 4, (int64_t[]){1, 1, 1, 1});
    const attn_tensor value = row;
    row.shape[3] = INT64_C(1) << 55;
    row.stride[3] = 0;
    const attn_tensor out = attn_tensor_wrap(&output, ATTN_F32, 4, (int64_t[]){1, 1, 1, 1});
    attn_sdpa_desc desc;
    attn_sdpa_desc_init(&desc);
    attn_sdpa_forward_args args;
    attn_sdpa_forward_args_init(&args);
    args.query = args.key = &row;
    args.value = &value;
    args.output = &out;
    attn_error error;
    size_t bytes = 0;
    assert_int_equal(attn_sdpa_forward_workspace(context, &desc, &args, &bytes, &error),
                     ATTN_ERR_OVERFLOW);
    assert_int_equal(attn_sdpa_forward(context, &desc, &args, &error), ATTN_ERR_OVERFLOW);
    attn_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_key_repeated),
        cmocka_unit_test(workspace_of_a_huge_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
