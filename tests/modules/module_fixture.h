// What the tests of modules share: one run of a module forward and backward, and golden module cases.
#ifndef ATTN_TESTS_MODULES_MODULE_FIXTURE_H
#define ATTN_TESTS_MODULES_MODULE_FIXTURE_H

#include "attn/attn.h"
#include "support/golden.h"

// A golden module case.
typedef struct module_case {
    attn_safetensors *file;
    char variant[40];
    attn_attention_config config; // dtype float32
    uint64_t weight_seed, dropout_seed;
    bool reseeded; // the dropout mask is drawn after seeding with dropout_seed
} module_case;

module_case case_open(const attn_context *context, const char *name);
void case_close(module_case *opened);

// A module of the case's variant with the given dtype.
attn_module *case_module(const attn_context *context, const module_case *from, attn_dtype dtype,
                         attn_generator *generator);
// Copies the case's parameters into a module.
void case_load(const module_case *from, attn_module *module);

// A module of a variant by name, "CausalAttention"; a failure fails the test.
attn_module *make_module(const attn_context *context, const char *variant,
                         const attn_attention_config *config, attn_generator *generator);

// The parts of a training and one forward and backward of it, from a reset tape and zero gradients to
// the mean squared error, which it returns.
typedef struct training {
    attn_module *module;
    attn_generator *generator;
    attn_optimizer *optimizer;
    attn_tape *tape;
    attn_tensor x, target;
} training;
double training_loss(const training *t);

// A copy of a tensor in another dtype; destroy it.
attn_tensor converted(const attn_context *context, const attn_tensor *source, attn_dtype dtype);

// A tensor of pseudo-random values in [-1, 1) that depend on `seed`; destroy it.
attn_tensor random_tensor(const attn_context *context, attn_dtype dtype, int32_t ndim,
                          const int64_t *shape, uint64_t seed);

// Within absolute + relative * |expected| everywhere, or the test fails with the worst element.
#define assert_close(actual, expected, absolute, relative, name) \
    test_assert_close((actual), (expected), (absolute), (relative), (name), __FILE__, __LINE__)
void test_assert_close(const attn_tensor *actual, const attn_tensor *expected, double absolute,
                       double relative, const char *name, const char *file, int line);

// The same bits everywhere, or the test fails.
#define assert_same_bits(actual, expected, name) \
    test_assert_same_bits((actual), (expected), (name), __FILE__, __LINE__)
void test_assert_same_bits(const attn_tensor *actual, const attn_tensor *expected, const char *name,
                           const char *file, int line);

#endif
