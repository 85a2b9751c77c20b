// Dropout in the attention call: when it acts, on what, and where its decisions stand.
#include <math.h>
#include <string.h>

#include "attn/random.h"
#include "support/attention.h"
#include "support/status.h"
#include "support/unit.h"

static const struct attention_shape small = {.batch = 2,
                                             .query_heads = 4,
                                             .key_heads = 2,
                                             .queries = 6,
                                             .keys = 9,
                                             .head_dim = 5,
                                             .value_dim = 3,
                                             .dtype = ATTN_F32};

static void dropout_of_nothing(void **state)
{
    (void)state;
    attn_context *context = test_context();
    struct attention a;
    struct attention_results evaluation, training;
    attention_begin(&a, small, 49);
    a.desc.dropout_p = 0.5; // kept in the descriptor, not active
    attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &evaluation);
    attention_add_philox(&a, 0.0);
    attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &training);
    assert_attention_same_bits(&training, &evaluation);
    attention_results_end(&training);
    attention_add_dropout_keep(&a, (int64_t[]){2, 4, 6, 9}, 0.9);
    a.desc.dropout_p = 0.0; // the mask is not looked at
    attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &training);
    assert_attention_same_bits(&training, &evaluation);
    attention_results_end(&training);
    a.desc.dropout_p = 0.9;
    attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &training);
    assert_other_bits("dropout", &training.of[ATTENTION_OUTPUT], &evaluation.of[ATTENTION_OUTPUT]);
    attention_results_end(&training);
    attention_results_end(&evaluation);
    attention_end(&a);
    attn_context_destroy(context);
}

// The decisions stand where the header says, survivors are scaled by 1 / (1 - p) (at p = 0.25, where
// 1 / p is something else), statistics and key sums are those before dropout.
static void philox_decisions(void **state)
{
    (void)state;
    attn_context *context = test_context();
    struct attention a;
    struct attention_results plain, dropped;
    attention_begin(&a, small, 50);
    attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &plain);
    attention_add_philox(&a, 0.25);
    a.desc.dropout_batch = 10;
    a.desc.dropout_head = 20;
    a.desc.dropout_row = 30;
    attention_results_begin(&dropped, &a, ATTN_DTYPE_NONE);
    attn_sdpa_forward_args args = attention_forward_args(&a, &dropped);
    args.weights_dropped = true;
    attn_error error;
    ASSERT_OK(attn_sdpa_forward(context, &a.desc, &args, &error));
    int kept_count = 0;
    for (int64_t b = 0; b < 2; b++) {
        for (int64_t h = 0; h < 4; h++) {
            const attn_philox_address address = {a.desc.dropout_seed, 7, 3, 10 + b, 20 + h};
            uint32_t head_key[2];
            attn_philox_head_key(&address, head_key);
            for (int64_t i = 0; i < 6; i++) {
                for (int64_t j = 0; j < 9; j++) {
                    const bool kept = attn_philox_word(head_key, 30 + i, j) < 0xc0000000u;
                    const double weight = test_at(&plain.of[ATTENTION_WEIGHTS], b, h, i, j);
                    const double now = test_at(&dropped.of[ATTENTION_WEIGHTS], b, h, i, j);
                    assert_true(kept ? fabs(now - weight / 0.75) <= 1e-6 : now == 0.0);
                    kept_count += kept;
                }
            }
        }
    }
    assert_in_range(kept_count, 280, 368); // 324 of 432 expected
    assert_same_bits("lse", &dropped.of[ATTENTION_LSE], &plain.of[ATTENTION_LSE]);
    assert_same_bits("key_sums", &dropped.of[ATTENTION_KEY_SUMS], &plain.of[ATTENTION_KEY_SUMS]);
    attention_results_end(&dropped);
    attention_results_end(&plain);
    attention_end(&a);
    attn_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dropout_of_nothing),
        cmocka_unit_test(philox_decisions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
