// One attention call for tests: its inputs, its descriptor, its results, run through the public call
// or through the reference.
//
//   struct attention a;
//   attention_begin(&a, (struct attention_shape){.batch = 2, ..., .dtype = ATTN_F32}, seed);
//   attention_add_bias(&a, ATTN_F32, (int64_t[]){1, 4, 9, 9}, 1.0);
//   struct attention_results r;
//   attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &r);
//   ... r.of[ATTENTION_OUTPUT] ...
//   attention_results_end(&r);
//   attention_end(&a);
#ifndef ATTN_TESTS_SUPPORT_ATTENTION_H
#define ATTN_TESTS_SUPPORT_ATTENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/sdpa.h"
#include "tensors.h"

struct attention_shape {
    int64_t batch, query_heads, key_heads, queries, keys, head_dim, value_dim;
    attn_dtype dtype; // of query, key, value, output, grad_output
};

// The descriptor points into the struct, so that it must not be copied.
struct attention {
    struct attention_shape shape;
    struct test_pool pool;
    uint64_t random;
    attn_sdpa_desc desc;
    attn_tensor query, key, value, grad_output;
    attn_tensor grad_lse; // data NULL: none
    attn_tensor query_lengths, key_lengths, query_starts, key_starts;
    attn_tensor keep, bias, alibi_slopes, sinks, dropout_keep;
};

// Random normal operands and grad_output, and the descriptor's defaults.
void attention_begin(struct attention *a, struct attention_shape shape, uint64_t seed);
void attention_end(struct attention *a);

// Features; sizes are (B, Hq, Tq, Tk), 1 where shared.
void attention_add_keep(struct attention *a, const int64_t sizes[4], double p);
void attention_add_bias(struct attention *a, attn_dtype dtype, const int64_t sizes[4],
                        double scale);
void attention_add_alibi(struct attention *a);
void attention_add_sinks(struct attention *a);
void attention_add_grad_lse(struct attention *a);
void attention_add_query_lengths(struct attention *a, const int64_t *lengths);
void attention_add_key_lengths(struct attention *a, const int64_t *lengths);
void attention_add_starts(struct attention *a, int64_t count, const int64_t *query_starts,
                          const int64_t *key_starts);
void attention_add_philox(struct attention *a, double p);
// A random keep-mask; of the sizes the last is of keys, not of bytes.
void attention_add_dropout_keep(struct attention *a, const int64_t sizes[4], double p);

enum attention_path { ATTENTION_PUBLIC, ATTENTION_REFERENCE };

enum attention_result {
    ATTENTION_OUTPUT,
    ATTENTION_ROW_MAX,
    ATTENTION_ROW_SUM,
    ATTENTION_LSE,
    ATTENTION_WEIGHTS,
    ATTENTION_KEY_SUMS,
    ATTENTION_GRAD_QUERY,
    ATTENTION_GRAD_KEY,
    ATTENTION_GRAD_VALUE,
    ATTENTION_GRAD_BIAS,  // absent without a bias
    ATTENTION_GRAD_SINKS, // absent without sinks
    ATTENTION_RESULT_COUNT
};

enum { ATTENTION_FORWARD_COUNT = ATTENTION_KEY_SUMS + 1 };

extern const char *const attention_result_names[ATTENTION_RESULT_COUNT];

struct attention_results {
    struct test_pool pool;
    attn_tensor of[ATTENTION_RESULT_COUNT];
    bool present[ATTENTION_RESULT_COUNT];
};

// Every result that the problem can have, full of garbage. `dtype` is forced on all of them; NONE
// gives the forward tensors' own types and the statistics'.
void attention_results_begin(struct attention_results *r, const struct attention *a,
                             attn_dtype dtype);
void attention_results_end(struct attention_results *r);

// Calls with the results' tensors as the call's outputs; a failure fails the test.
void attention_forward(const attn_context *context, const struct attention *a,
                       enum attention_path path, struct attention_results *r);
void attention_backward(const attn_context *context, const struct attention *a,
                        enum attention_path path, struct attention_results *r);

// results_begin, forward, backward.
void attention_run(const attn_context *context, const struct attention *a, enum attention_path path,
                   attn_dtype dtype, struct attention_results *r);

// The argument structs that these calls use, for tests that change them.
attn_sdpa_forward_args attention_forward_args(const struct attention *a,
                                              const struct attention_results *r);
attn_sdpa_backward_args attention_backward_args(const struct attention *a,
                                                const struct attention_results *r);

// Every present result of `actual` against the same of `expected`.
void assert_attention_close(const struct attention_results *actual,
                            const struct attention_results *expected, double absolute,
                            double relative);
void assert_attention_same_bits(const struct attention_results *actual,
                                const struct attention_results *expected);

// A serial context with all defaults.
attn_context *test_context(void);
// One with `threads` plain threads, and one of a tier.
attn_context *test_context_with(int32_t threads, attn_tier tier);

#endif
