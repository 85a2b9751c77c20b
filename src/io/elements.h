// io/elements.h: a tensor's elements as a run of bytes.
#ifndef ATTN_IO_ELEMENTS_H
#define ATTN_IO_ELEMENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "attn/io.h"
#include "attn/tensor.h"

// Gives the sink every element in row-major order, little endian, whatever the strides. Returns
// whether the sink took them all.
bool attn_write_elements(const attn_sink *sink, const attn_tensor *tensor);

// Reverses the bytes of each of `count` elements of `size` bytes.
void attn_swap_bytes(void *elements, size_t count, size_t size);

#endif
