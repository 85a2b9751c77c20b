#include "refusals.h"

#include "support/status.h"
#include "support/unit.h"

void call_begin(struct call *c, const attn_context *context, attn_dtype dtype)
{
    c->context = context;
    c->owned = 0;
    attention_begin(&c->a, (struct attention_shape){2, 4, 2, 3, 5, 6, 7, dtype}, 21);
    attention_add_keep(&c->a, (int64_t[]){2, 1, 3, 5}, 0.9);
    attention_add_bias(&c->a, ATTN_F32, (int64_t[]){1, 4, 3, 5}, 1.0);
    attention_add_alibi(&c->a);
    attention_add_sinks(&c->a);
    attention_add_query_lengths(&c->a, (int64_t[]){3, 2});
    attention_add_key_lengths(&c->a, (int64_t[]){4, 5});
    attention_add_dropout_keep(&c->a, (int64_t[]){2, 4, 3, 5}, 0.5);
    attention_add_grad_lse(&c->a);
    attention_results_begin(&c->r, &c->a, ATTN_DTYPE_NONE);
    c->desc = &c->a.desc;
    c->forward = attention_forward_args(&c->a, &c->r);
    c->backward = attention_backward_args(&c->a, &c->r);
}

void call_end(struct call *c)
{
    attention_results_end(&c->r);
    attention_end(&c->a);
}

attn_tensor *own(struct call *c, attn_dtype dtype, int32_t ndim, const int64_t *shape)
{
    assert_in_range(c->owned, 0, 3);
    attn_tensor *tensor = &c->own[c->owned++];
    *tensor = test_tensor(&c->a.pool, dtype, ndim, shape);
    return tensor;
}

attn_tensor *own_list(struct call *c, int64_t count, const int64_t *values)
{
    assert_in_range(c->owned, 0, 3);
    attn_tensor *tensor = &c->own[c->owned++];
    *tensor = test_list(&c->a.pool, ATTN_I64, count, values);
    return tensor;
}

void check_refusals(const struct refusal *refusals, size_t count, attn_dtype dtype)
{
    attn_context *context = test_context();
    for (size_t n = 0; n < count; n++) {
        struct call c;
        call_begin(&c, context, dtype);
        refusals[n].change(&c);
        uint64_t before[ATTENTION_RESULT_COUNT];
        for (int m = 0; m < ATTENTION_RESULT_COUNT; m++) {
            before[m] = test_digest(TEST_DIGEST_START, &c.r.of[m]);
        }
        attn_error error = {ATTN_OK, ""};
        size_t bytes = 12345;
        if (refusals[n].pass != BACKWARD) {
            ASSERT_FAILS(refusals[n].status, refusals[n].text,
                         attn_sdpa_forward(context, c.desc, &c.forward, &error));
            ASSERT_FAILS(refusals[n].status, refusals[n].text,
                         attn_sdpa_forward_workspace(context, c.desc, &c.forward, &bytes, &error));
            assert_int_equal(attn_sdpa_forward(context, c.desc, &c.forward, NULL),
                             refusals[n].status);
        }
        if (refusals[n].pass != FORWARD) {
            ASSERT_FAILS(refusals[n].status, refusals[n].text,
                         attn_sdpa_backward(context, c.desc, &c.backward, &error));
            ASSERT_FAILS(
                refusals[n].status, refusals[n].text,
                attn_sdpa_backward_workspace(context, c.desc, &c.backward, &bytes, &error));
        }
        assert_int_equal(bytes, 12345);
        for (int m = 0; m < ATTENTION_RESULT_COUNT; m++) {
            assert_true(before[m] == test_digest(TEST_DIGEST_START, &c.r.of[m]));
        }
        call_end(&c);
    }
    attn_context_destroy(context);
}
