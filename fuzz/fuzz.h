// What the fuzz targets share: a context, and reading every byte of a tensor.
#ifndef ATTN_FUZZ_H
#define ATTN_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "attn/attn.h"

// The entry point of libFuzzer.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// One serial context for the whole run.
const attn_context *fuzz_context(void);

// Looks at every element (so that a view beyond its memory is found) and at the texts about it.
void fuzz_read(const attn_named_tensor *named);

#endif
