// Refusals of missing tensors and of shapes that do not fit together.
#include "refusals.h"
#include "support/unit.h"

static void set_query(struct call *c, const attn_tensor *query)
{
    c->forward.query = c->backward.query = query;
}

static void set_key(struct call *c, const attn_tensor *key)
{
    c->forward.key = c->backward.key = key;
}

static void set_value(struct call *c, const attn_tensor *value)
{
    c->forward.value = c->backward.value = value;
}

static void no_query(struct call *c)
{
    set_query(c, NULL);
}

static void no_value(struct call *c)
{
    set_value(c, NULL);
}

static void flat_query(struct call *c)
{
    set_query(c, own(c, ATTN_F32, 3, SHAPE(2, 4, 6)));
}

static void other_head_dim(struct call *c)
{
    set_key(c, own(c, ATTN_F32, 4, SHAPE(2, 2, 5, 64)));
}

static void other_batch(struct call *c)
{
    set_key(c, own(c, ATTN_F32, 4, SHAPE(3, 2, 5, 6)));
}

static void other_keys(struct call *c)
{
    set_value(c, own(c, ATTN_F32, 4, SHAPE(2, 2, 4, 7)));
}

static void odd_groups(struct call *c)
{
    set_key(c, own(c, ATTN_F32, 4, SHAPE(2, 3, 5, 6)));
    set_value(c, own(c, ATTN_F32, 4, SHAPE(2, 3, 5, 7)));
}

static void no_key_heads(struct call *c)
{
    set_key(c, own(c, ATTN_F32, 4, SHAPE(2, 0, 5, 6)));
    set_value(c, own(c, ATTN_F32, 4, SHAPE(2, 0, 5, 7)));
}

static void other_output(struct call *c)
{
    c->forward.output = c->backward.output = own(c, ATTN_F32, 4, SHAPE(2, 4, 3, 6));
}

static void other_row_max(struct call *c)
{
    c->forward.row_max = c->backward.row_max = own(c, ATTN_F32, 3, SHAPE(2, 4, 5));
}

static void other_lse(struct call *c)
{
    c->forward.lse = own(c, ATTN_F32, 4, SHAPE(2, 4, 3, 1));
}

static void other_weights(struct call *c)
{
    c->forward.weight_rows = own_list(c, 2, SHAPE(0, 2));
}

static void other_key_sums(struct call *c)
{
    c->forward.key_sums = own(c, ATTN_F32, 3, SHAPE(2, 4, 3));
}

static void other_keep(struct call *c)
{
    c->desc->keep = own(c, ATTN_BOOL, 4, SHAPE(2, 3, 3, 5));
}

static void deep_bias(struct call *c)
{
    c->desc->bias = own(c, ATTN_F32, 5, SHAPE(1, 1, 1, 1, 1));
}

static void other_slopes(struct call *c)
{
    c->desc->alibi_slopes = own(c, ATTN_F32, 1, SHAPE(2));
}

static void other_sinks(struct call *c)
{
    c->desc->sinks = own(c, ATTN_F32, 2, SHAPE(4, 1));
}

static void other_dropout_keep(struct call *c)
{
    c->desc->dropout_keep = own(c, ATTN_U8, 4, SHAPE(2, 4, 3, 5));
}

static void other_lengths(struct call *c)
{
    c->desc->key_lengths = own_list(c, 3, SHAPE(1, 1, 1));
}

static void other_grad_query(struct call *c)
{
    c->backward.grad_query = own(c, ATTN_F32, 4, SHAPE(2, 4, 3, 7));
}

static void repeated_grad_key(struct call *c)
{
    c->backward.grad_key = own(c, ATTN_F32, 4, SHAPE(2, 4, 5, 6));
}

static void other_grad_output(struct call *c)
{
    c->backward.grad_output = own(c, ATTN_F32, 4, SHAPE(2, 4, 3, 6));
}

static void unreduced_grad_bias(struct call *c)
{
    c->backward.grad_bias = own(c, ATTN_F32, 4, SHAPE(2, 4, 3, 5));
}

static void unreduced_expanded_bias(struct call *c)
{
    attn_tensor *bias = own(c, ATTN_F32, 4, SHAPE(2, 4, 3, 5));
    bias->stride[2] = 0;
    c->desc->bias = bias;
    c->backward.grad_bias = own(c, ATTN_F32, 4, SHAPE(2, 4, 3, 5));
}

static void other_grad_sinks(struct call *c)
{
    c->backward.grad_sinks = own(c, ATTN_F32, 1, SHAPE(3));
}

static void shapes(void **state)
{
    (void)state;
    static const struct refusal refusals[] = {
        {no_query, ATTN_ERR_INVALID_ARGUMENT, "sdpa: query is NULL", BOTH},
        {no_value, ATTN_ERR_INVALID_ARGUMENT, "sdpa: value is NULL", BOTH},
        {flat_query, ATTN_ERR_SHAPE, "sdpa: query has shape [2,4,6], expected [B,Hq,Tq,D]", BOTH},
        {other_head_dim, ATTN_ERR_SHAPE,
         "sdpa: key has shape [2,2,5,64], expected [B,Hkv,Tk,D] with B = 2 and D = 6 as in query "
         "[2,4,3,6]",
         BOTH},
        {other_batch, ATTN_ERR_SHAPE,
         "sdpa: key has shape [3,2,5,6], expected [B,Hkv,Tk,D] with B = 2 and D = 6 as in query "
         "[2,4,3,6]",
         BOTH},
        {other_keys, ATTN_ERR_SHAPE,
         "sdpa: value has shape [2,2,4,7], expected [B,Hkv,Tk,Dv] with B = 2, Hkv = 2 and Tk = 5 as "
         "in key [2,2,5,6]",
         BOTH},
        {odd_groups, ATTN_ERR_SHAPE,
         "sdpa: query has Hq = 4 heads, expected a multiple of the key's Hkv = 3", BOTH},
        {no_key_heads, ATTN_ERR_SHAPE,
         "sdpa: query has Hq = 4 heads, expected a multiple of the key's Hkv = 0", BOTH},
        {other_output, ATTN_ERR_SHAPE,
         "sdpa: output has shape [2,4,3,6], expected [B,Hq,Tq,Dv] = [2,4,3,7]", BOTH},
        {other_row_max, ATTN_ERR_SHAPE,
         "sdpa: row_max has shape [2,4,5], expected [B,Hq,Tq] = [2,4,3]", BOTH},
        {other_lse, ATTN_ERR_SHAPE, "sdpa: lse has shape [2,4,3,1], expected [B,Hq,Tq] = [2,4,3]",
         FORWARD},
        {other_weights, ATTN_ERR_SHAPE,
         "sdpa: weights has shape [2,4,3,5], expected [B,Nh,Nr,Tk] = [2,4,2,5]", FORWARD},
        {other_key_sums, ATTN_ERR_SHAPE,
         "sdpa: key_sums has shape [2,4,3], expected [B,Hq,Tk] = [2,4,5]", FORWARD},
        {other_keep, ATTN_ERR_SHAPE,
         "sdpa: keep has shape [2,3,3,5], which does not broadcast to [B,Hq,Tq,Tk] = [2,4,3,5]",
         BOTH},
        {deep_bias, ATTN_ERR_SHAPE,
         "sdpa: bias has shape [1,1,1,1,1], which does not broadcast to [B,Hq,Tq,Tk] = [2,4,3,5]",
         BOTH},
        {other_slopes, ATTN_ERR_SHAPE, "sdpa: alibi_slopes has shape [2], expected [Hq] = [4]",
         BOTH},
        {other_sinks, ATTN_ERR_SHAPE, "sdpa: sinks has shape [4,1], expected [Hq] = [4]", BOTH},
        {other_dropout_keep, ATTN_ERR_SHAPE,
         "sdpa: dropout_keep has shape [2,4,3,5], which does not broadcast to "
         "[B,Hq,Tq,ceil(Tk/8)] = [2,4,3,1]",
         BOTH},
        {other_lengths, ATTN_ERR_SHAPE, "sdpa: key_lengths has shape [3], expected [B] = [2]",
         BOTH},
        {other_grad_query, ATTN_ERR_SHAPE,
         "sdpa: grad_query has shape [2,4,3,7], expected [B,Hq,Tq,D] = [2,4,3,6]", BACKWARD},
        {repeated_grad_key, ATTN_ERR_SHAPE,
         "sdpa: grad_key has shape [2,4,5,6], expected [B,Hkv,Tk,D] = [2,2,5,6]", BACKWARD},
        {other_grad_output, ATTN_ERR_SHAPE,
         "sdpa: grad_output has shape [2,4,3,6], expected [B,Hq,Tq,Dv] = [2,4,3,7]", BACKWARD},
        {unreduced_grad_bias, ATTN_ERR_SHAPE,
         "sdpa: grad_bias has shape [2,4,3,5], expected [1,Hq,Tq,Tk] = [1,4,3,5]", BACKWARD},
        {unreduced_expanded_bias, ATTN_ERR_SHAPE,
         "sdpa: grad_bias has shape [2,4,3,5], expected [B,Hq,1,Tk] = [2,4,1,5]", BACKWARD},
        {other_grad_sinks, ATTN_ERR_SHAPE, "sdpa: grad_sinks has shape [3], expected [Hq] = [4]",
         BACKWARD},
    };
    check_refusals(refusals, sizeof(refusals) / sizeof(refusals[0]), ATTN_F32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
