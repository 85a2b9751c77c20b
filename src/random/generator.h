// random/generator.h: the generator's inside, and how a tensor is filled from it.
#ifndef ATTN_RANDOM_GENERATOR_H
#define ATTN_RANDOM_GENERATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/random.h"

struct attn_generator {
    const attn_context *context;
    attn_generator_state state;
};

// Uniform in [0, 1): one word and 24 bits, or two words and 53 bits.
float attn_generator_uniform_f32(attn_generator *generator);
double attn_generator_uniform_f64(attn_generator *generator);

// The dtypes that a fill accepts, as bits 1 << dtype.
typedef uint32_t attn_dtype_set;

// Everything that is checked before the first number is drawn.
attn_status attn_check_fill(const char *name, const attn_generator *generator,
                            const attn_tensor *out, attn_dtype_set dtypes, attn_error *error);

// A tensor's elements by their position in logical order.
typedef struct attn_elements {
    attn_tensor tensor;
    int64_t count, element_size;
    bool contiguous;
} attn_elements;

attn_elements attn_elements_of(const attn_tensor *tensor);
void *attn_element_at(const attn_elements *elements, int64_t position);

#endif
