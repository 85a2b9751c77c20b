// tape/loop.h: walking over the elements of several tensors together.
//
// A walk is cut into jobs by its shape alone, and every element or row is computed by one job, so
// results do not depend on the number of threads.
#ifndef ATTN_TAPE_LOOP_H
#define ATTN_TAPE_LOOP_H

#include <stdint.h>

#include "attn/context.h"
#include "attn/tensor.h"

enum { ATTN_LOOP_OPERANDS = 4 };

// One row of every operand: element i of operand k is data[k] + i * stride[k], counted in elements.
typedef struct attn_row {
    int64_t count;
    void *data[ATTN_LOOP_OPERANDS];
    int64_t stride[ATTN_LOOP_OPERANDS];
} attn_row;

typedef void (*attn_row_function)(const attn_row *row, const void *user);

// Covers all elements of operands of one shape by rows of any length, in any order.
void attn_loop_elements(const attn_context *context, const attn_tensor *const *operands,
                        int32_t count, attn_row_function function, const void *user);

// One call for every row along `dim`; row->count is operand 0's size there, the other operands may
// have another one. Scalars are one row of one element.
void attn_loop_rows(const attn_context *context, const attn_tensor *const *operands, int32_t count,
                    int32_t dim, attn_row_function function, const void *user);

// Copies float32 or float64 elements between tensors of one shape and dtype, or fills a tensor.
void attn_loop_copy(const attn_context *context, const attn_tensor *source,
                    const attn_tensor *target);
void attn_loop_fill(const attn_context *context, const attn_tensor *target, double value);

#endif
