// core/layout.h: questions about a view's memory, for the library's own layers.
#ifndef ATTN_CORE_LAYOUT_H
#define ATTN_CORE_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/tensor.h"

// Fills `stride` with row-major strides of `shape`.
void attn_row_major(int32_t ndim, const int64_t *shape, int64_t *stride);

// Lowest and highest byte offset that the view touches relative to data; both 0 when empty.
void attn_byte_range(const attn_tensor *tensor, int64_t *low, int64_t *high);

// True when two index tuples may reach the same element (exact for the usual views, and on the safe
// side otherwise): a stride 0 over a size > 1, or interleaved dims.
bool attn_overlaps_itself(const attn_tensor *tensor);

// True when the memory ranges of two views intersect (bounding ranges; views that interleave in
// disjoint columns of one matrix count as disjoint where the strides show it).
bool attn_overlaps(const attn_tensor *a, const attn_tensor *b);

// The index of the element at `position` in logical (row-major) order. All zeros when empty.
void attn_index_at(const attn_tensor *tensor, int64_t position, int64_t index[ATTN_MAX_DIMS]);

// Turns a negative dim into its positive one; false when out of range.
bool attn_normalize_dim(int32_t ndim, int32_t *dim);

#endif
