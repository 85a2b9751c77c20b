// tape/rows.h: the arithmetic of the ops on one row, for both element types (text_rows.h).
//
// float32 rows round every result once from an exact or double intermediate; sums are kept in
// double, in ascending order. Operand 0 is the result unless the comment says otherwise.
#ifndef ATTN_TAPE_ROWS_H
#define ATTN_TAPE_ROWS_H

#include <stdint.h>

#include "attn/tensor.h"
#include "tape/loop.h"

typedef enum attn_row_kind {
    ATTN_ROW_COPY = 0,
    ATTN_ROW_FILL, // user: const double *
    ATTN_ROW_ADD,
    ATTN_ROW_SUBTRACT,
    ATTN_ROW_MULTIPLY,
    ATTN_ROW_DIVIDE,
    ATTN_ROW_SCALE, // user: const double *, rounded to the element type
    ATTN_ROW_EXP,
    ATTN_ROW_LOG,
    ATTN_ROW_TANH,
    ATTN_ROW_SELECT,  // user's double where operand 2 (bytes) is not 0, else operand 1
    ATTN_ROW_DROPOUT, // operand 1 times (bit of operand 2 ? user's double : 0); bits from the lowest
    ATTN_ROW_SOFTMAX,
    ATTN_ROW_LOG_SOFTMAX,
    ATTN_ROW_ARGMAX,  // operand 0 is read; operand 1 (int64): its first largest element, or NaN
    ATTN_ROW_PICK,    // element number operand 2 (int64) of operand 1
    ATTN_ROW_PLACE,   // zeros, but operand 1 at number operand 2 (int64)
    ATTN_ROW_LOOK_UP, // row number operand 1 (int64) of the matrix `user`
    ATTN_ROW_KINDS
} attn_row_kind;

extern const attn_row_function attn_row_table_f32[ATTN_ROW_KINDS];
extern const attn_row_function attn_row_table_f64[ATTN_ROW_KINDS];

static inline attn_row_function attn_row_of(attn_dtype dtype, attn_row_kind kind)
{
    return dtype == ATTN_F32 ? attn_row_table_f32[kind] : attn_row_table_f64[kind];
}

// sums[i] += a[i * stride + j * depth_stride] for j ascending below depth, 0 <= i < count.
void attn_row_accumulate_f32(double *sums, int64_t count, const void *a, int64_t stride,
                             int64_t depth, int64_t depth_stride);
void attn_row_accumulate_f64(double *sums, int64_t count, const void *a, int64_t stride,
                             int64_t depth, int64_t depth_stride);

#endif
