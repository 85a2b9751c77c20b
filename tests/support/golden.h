// The golden files of tests/data/golden.
#ifndef ATTN_TESTS_SUPPORT_GOLDEN_H
#define ATTN_TESTS_SUPPORT_GOLDEN_H

#include "attn/safetensors.h"

// Opens golden/<name>.safetensors; a file that is missing or malformed fails the test.
attn_safetensors *golden_open(const attn_context *context, const char *name);

// The tensor of that name; a missing one fails the test.
attn_tensor golden_tensor(const attn_safetensors *file, const char *name);

#endif
