// Refusals of structs, enums and numbers.
#include <math.h>

#include "refusals.h"
#include "support/status.h"
#include "support/unit.h"

// ---- structs ------------------------------------------------------------------------------------

static void small_desc(struct call *c)
{
    c->desc->struct_size = 12;
}

static void large_desc(struct call *c)
{
    c->desc->struct_size += 8;
}

static void small_args(struct call *c)
{
    c->forward.struct_size = c->backward.struct_size = 0;
}

static void reserved_desc(struct call *c)
{
    c->desc->reserved[7] = 5;
}

static void reserved_args(struct call *c)
{
    c->forward.reserved[0] = c->backward.reserved[0] = 1;
}

static void structs(void **state)
{
    (void)state;
    // The sizes are part of the ABI.
    assert_int_equal(sizeof(attn_sdpa_desc), 272);
    assert_int_equal(sizeof(attn_sdpa_forward_args), 184);
    assert_int_equal(sizeof(attn_sdpa_backward_args), 192);
    static const struct refusal refusals[] = {
        {small_desc, ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: attn_sdpa_desc.struct_size is 12, expected 272; fill it with attn_sdpa_desc_init",
         BOTH},
        {large_desc, ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: attn_sdpa_desc.struct_size is 280, expected 272; fill it with attn_sdpa_desc_init",
         BOTH},
        {small_args, ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: attn_sdpa_forward_args.struct_size is 0, expected 184; fill it with "
         "attn_sdpa_forward_args_init",
         FORWARD},
        {small_args, ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: attn_sdpa_backward_args.struct_size is 0, expected 192; fill it with "
         "attn_sdpa_backward_args_init",
         BACKWARD},
        {reserved_desc, ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: attn_sdpa_desc.reserved[7] is 5, expected 0", BOTH},
        {reserved_args, ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: attn_sdpa_forward_args.reserved[0] is 1, expected 0", FORWARD},
        {reserved_args, ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: attn_sdpa_backward_args.reserved[0] is 1, expected 0", BACKWARD},
    };
    check_refusals(refusals, sizeof(refusals) / sizeof(refusals[0]), ATTN_F32);
}

static void null_pointers(void **state)
{
    (void)state;
    attn_context *context = test_context();
    struct call c;
    call_begin(&c, context, ATTN_F32);
    attn_error error;
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "sdpa: context is NULL",
                 attn_sdpa_forward(NULL, c.desc, &c.forward, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "sdpa: context is NULL",
                 attn_sdpa_backward(NULL, c.desc, &c.backward, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "sdpa: attn_sdpa_desc is NULL",
                 attn_sdpa_forward(context, NULL, &c.forward, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "sdpa: attn_sdpa_desc is NULL",
                 attn_sdpa_backward(context, NULL, &c.backward, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "sdpa: attn_sdpa_forward_args is NULL",
                 attn_sdpa_forward(context, c.desc, NULL, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "sdpa: attn_sdpa_backward_args is NULL",
                 attn_sdpa_backward(context, c.desc, NULL, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "sdpa: bytes is NULL",
                 attn_sdpa_forward_workspace(context, c.desc, &c.forward, NULL, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "sdpa: bytes is NULL",
                 attn_sdpa_backward_workspace(context, c.desc, &c.backward, NULL, &error));
    call_end(&c);
    attn_context_destroy(context);
}

// ---- numbers and enums --------------------------------------------------------------------------

static void unknown_scale_mode(struct call *c)
{
    c->desc->scale_mode = (attn_scale_mode)2;
}

static void set_scale(struct call *c, double scale)
{
    c->desc->scale_mode = ATTN_SCALE_GIVEN;
    c->desc->scale = scale;
}

static void nan_scale(struct call *c)
{
    set_scale(c, NAN);
}

static void infinite_scale(struct call *c)
{
    set_scale(c, -INFINITY);
}

static void large_scale(struct call *c)
{
    set_scale(c, 1e39);
}

static void scale_near_the_limit(struct call *c)
{
    set_scale(c, 3e38);
}

static void negative_softcap(struct call *c)
{
    c->desc->softcap = -1.0;
}

static void nan_softcap(struct call *c)
{
    c->desc->softcap = NAN;
}

static void infinite_softcap(struct call *c)
{
    c->desc->softcap = INFINITY;
}

static void vanishing_softcap(struct call *c)
{
    c->desc->softcap = 1e-50;
}

static void unknown_diagonal(struct call *c)
{
    c->desc->diagonal = (attn_diagonal)-1;
}

static void far_offset(struct call *c)
{
    c->desc->diagonal = ATTN_DIAGONAL_OFFSET;
    c->desc->diagonal_offset = -((INT64_C(1) << 53) + 1);
}

static void negative_window_left(struct call *c)
{
    c->desc->window_left = -2;
}

static void negative_window_right(struct call *c)
{
    c->desc->window_right = INT64_MIN;
}

static void unknown_dropout(struct call *c)
{
    c->desc->dropout = (attn_dropout_kind)3;
}

static void p_one(struct call *c)
{
    c->desc->dropout_p = 1.0;
}

static void p_negative_in_evaluation(struct call *c)
{
    c->desc->dropout = ATTN_DROPOUT_NONE;
    c->desc->dropout_p = -0.25;
}

static void p_nan(struct call *c)
{
    c->desc->dropout_p = NAN;
}

static void philox_batch(struct call *c)
{
    c->desc->dropout = ATTN_DROPOUT_PHILOX;
    c->desc->dropout_batch = -1;
}

static void philox_head(struct call *c)
{
    c->desc->dropout = ATTN_DROPOUT_PHILOX;
    c->desc->dropout_head = INT64_MAX - 3;
}

static void philox_row(struct call *c)
{
    c->desc->dropout = ATTN_DROPOUT_PHILOX;
    c->desc->dropout_row = INT64_MIN;
}

static void no_dropout_keep(struct call *c)
{
    c->desc->dropout_keep = NULL;
}

static void numbers(void **state)
{
    (void)state;
    static const struct refusal refusals[] = {
        {unknown_scale_mode, ATTN_ERR_INVALID_ARGUMENT, "sdpa: scale_mode 2 is unknown", BOTH},
        {nan_scale, ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: scale is nan, expected a value that is finite in float32", BOTH},
        {infinite_scale, ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: scale is -inf, expected a value that is finite in float32", BOTH},
        {large_scale, ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: scale is 1e+39, expected a value that is finite in float32", BOTH},
        {scale_near_the_limit, ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: scale is 3e+38, expected a value whose product with log2(e) is finite in float32",
         BOTH},
        {negative_softcap, ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: softcap is -1, expected 0 (none) or a positive value that is finite in float32",
         BOTH},
        {nan_softcap, ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: softcap is nan, expected 0 (none) or a positive value that is finite in float32",
         BOTH},
        {infinite_softcap, ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: softcap is inf, expected 0 (none) or a positive value that is finite in float32",
         BOTH},
        {vanishing_softcap, ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: softcap is 1e-50, expected 0 (none) or a positive value that is finite in float32",
         BOTH},
        {unknown_diagonal, ATTN_ERR_INVALID_ARGUMENT, "sdpa: diagonal -1 is unknown", BOTH},
        {far_offset, ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: diagonal_offset is -9007199254740993, expected -2^53 .. 2^53", BOTH},
        {negative_window_left, ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: window_left is -2, expected a number of keys or -1 (no limit)", BOTH},
        {negative_window_right, ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: window_right is -9223372036854775808, expected a number of keys or -1 (no limit)",
         BOTH},
        {unknown_dropout, ATTN_ERR_INVALID_ARGUMENT, "sdpa: dropout 3 is unknown", BOTH},
        {p_one, ATTN_ERR_INVALID_ARGUMENT, "sdpa: dropout_p is 1, expected 0 <= dropout_p < 1",
         BOTH},
        {p_negative_in_evaluation, ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: dropout_p is -0.25, expected 0 <= dropout_p < 1", BOTH},
        {p_nan, ATTN_ERR_INVALID_ARGUMENT, "sdpa: dropout_p is nan, expected 0 <= dropout_p < 1",
         BOTH},
        {philox_batch, ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: dropout_batch is -1, expected 0 .. 2^63 - 1 - 2", BOTH},
        {philox_head, ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: dropout_head is 9223372036854775804, expected 0 .. 2^63 - 1 - 4", BOTH},
        {philox_row, ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: dropout_row is -9223372036854775808, expected 0 .. 2^63 - 1 - 3", BOTH},
        {no_dropout_keep, ATTN_ERR_INVALID_ARGUMENT,
         "sdpa: dropout is KEEP but dropout_keep is NULL", BOTH},
    };
    check_refusals(refusals, sizeof(refusals) / sizeof(refusals[0]), ATTN_F32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(structs),
        cmocka_unit_test(null_pointers),
        cmocka_unit_test(numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
