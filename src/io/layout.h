// io/layout.h: what finding and loading of layers share.
#ifndef ATTN_IO_LAYOUT_H
#define ATTN_IO_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "attn/layout.h"

// Writes "the layers are h.0.attn., h.1.attn., ..." or that none is recognised; never more than
// `size` bytes, which must be at least 64.
void attn_layers_list(const attn_named_tensor *tensors, int64_t count, attn_layout layout,
                      char *buffer, size_t size);

#endif
