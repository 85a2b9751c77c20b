// Tensors from names and shapes, for the tests of layers.
#ifndef ATTN_TESTS_IO_LAYER_FIXTURE_H
#define ATTN_TESTS_IO_LAYER_FIXTURE_H

#include "attn/layout.h"

enum { FIXTURE_MOST = 16 };

// Up to 16 float32 tensors with values that count up, so that no two places hold the same.
typedef struct layer_fixture {
    const attn_context *context;
    attn_named_tensor tensors[FIXTURE_MOST];
    int64_t count;
    float next;
} layer_fixture;

// Adds a matrix, or with 0 columns a vector.
attn_tensor *fixture_add(layer_fixture *f, const char *name, int64_t rows, int64_t columns);
void fixture_clear(layer_fixture *f);

#endif
