// A context and a tape for every test, and short ways to make and look at vars.
#ifndef ATTN_TESTS_TAPE_FIXTURE_H
#define ATTN_TESTS_TAPE_FIXTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/tape.h"
#include "support/status.h"
#include "support/tensors.h"
#include "support/unit.h"

struct fixture {
    attn_context *context;
    attn_tape *tape;
    struct test_pool pool;
    uint64_t random;
};

// cmocka's setup and teardown; *state is the fixture. The teardown checks that the tape is healthy
// unless the test emptied it with attn_tape_reset.
int fixture_setup(void **state);
int fixture_teardown(void **state);

#define SHAPE(...)                                                                         \
    (int32_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) \
    {                                                                                      \
        __VA_ARGS__                                                                        \
    }
#define VALUES(...)  \
    (const double[]) \
    {                \
        __VA_ARGS__  \
    }

// A leaf that wants a gradient, of given or of random normal elements.
attn_var leaf(struct fixture *f, attn_dtype dtype, int32_t ndim, const int64_t *shape,
              const double *values);
attn_var random_leaf(struct fixture *f, attn_dtype dtype, int32_t ndim, const int64_t *shape);

// The var's dtype, shape and elements (to 1e-12 relative in float64, 1e-6 in float32).
void assert_var(attn_var var, attn_dtype dtype, int32_t ndim, const int64_t *shape,
                const double *values);
void assert_elements(const attn_tensor *tensor, const double *values);

// The tape has failed with this status and exactly this text; it is reset for what comes next.
void assert_tape_failed(attn_tape *tape, attn_status status, const char *text);

// A scalar that depends on every element of `a` in its own way, also quadratically, so that first
// and second derivatives with respect to all of them matter.
attn_var mix(attn_var a);

// The sum of the squares of the mixed gradients of `scalar`: what a gradient penalty minimises.
attn_var gradient_penalty(attn_var scalar, const attn_var *inputs, int64_t count);

// The function passes attn_gradcheck at `inputs` to a relative error of 1e-7, floor 1e-2.
void assert_gradients(const attn_context *context, const char *name, attn_scalar_function function,
                      void *user, const attn_tensor *inputs, int64_t count);

#endif
