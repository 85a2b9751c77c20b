// core/rows.h: one or two views of one shape, walked row by row in logical (row-major) order.
//
//   for (attn_rows rows = attn_rows_of(a, b); rows.left > 0; attn_rows_next(&rows))
//       elements a->data[rows.offset[0] + i * rows.stride[0]], the same with 1 for b, i < rows.count
//
// Neighbouring dimensions that are evenly spaced in both views are joined, so that a contiguous
// tensor is a single row.
#ifndef ATTN_CORE_ROWS_H
#define ATTN_CORE_ROWS_H

#include <stdint.h>

#include "attn/tensor.h"

typedef struct attn_rows {
    int64_t left;      // rows from the current one to the last
    int64_t count;     // elements in each
    int64_t offset[2]; // of the row's first element, in elements
    int64_t stride[2]; // between the row's elements
    int32_t ndim;      // outer dimensions
    int64_t shape[ATTN_MAX_DIMS], index[ATTN_MAX_DIMS], outer_stride[2][ATTN_MAX_DIMS];
} attn_rows;

// b may be NULL; then its offset and stride are 0. Both are checked tensors.
attn_rows attn_rows_of(const attn_tensor *a, const attn_tensor *b);
void attn_rows_next(attn_rows *rows);

#endif
