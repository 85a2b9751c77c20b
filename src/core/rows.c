#include "core/rows.h"

#include <stdbool.h>

#include "core/checked.h"

static bool joins(const attn_rows *rows, int32_t last, int64_t size, int64_t a, int64_t b);

attn_rows attn_rows_of(const attn_tensor *a, const attn_tensor *b)
{
    attn_rows rows = {.left = 1, .count = 1};
    int32_t last = -1; // the innermost dimension so far
    for (int32_t d = 0; d < a->ndim; d++) {
        const int64_t size = a->shape[d];
        const int64_t stride_a = a->stride[d], stride_b = b ? b->stride[d] : 0;
        if (size == 0) {
            rows.left = 0;
            return rows;
        }
        if (size == 1) {
            continue;
        }
        if (last >= 0 && joins(&rows, last, size, stride_a, stride_b)) {
            rows.shape[last] *= size;
        } else {
            rows.shape[++last] = size;
        }
        rows.outer_stride[0][last] = stride_a;
        rows.outer_stride[1][last] = stride_b;
    }
    if (last >= 0) {
        rows.ndim = last;
        rows.count = rows.shape[last];
        rows.stride[0] = rows.outer_stride[0][last];
        rows.stride[1] = rows.outer_stride[1][last];
    }
    for (int32_t d = 0; d < rows.ndim; d++) {
        rows.left *= rows.shape[d];
    }
    return rows;
}

// Does a step along dimension `last` equal `size` steps of the next one?
static bool joins(const attn_rows *rows, int32_t last, int64_t size, int64_t a, int64_t b)
{
    int64_t whole_a, whole_b;
    return attn_checked_mul(a, size, &whole_a) && attn_checked_mul(b, size, &whole_b) &&
           rows->outer_stride[0][last] == whole_a && rows->outer_stride[1][last] == whole_b;
}

void attn_rows_next(attn_rows *rows)
{
    rows->left--;
    for (int32_t d = rows->ndim - 1; d >= 0; d--) {
        if (++rows->index[d] < rows->shape[d]) {
            rows->offset[0] += rows->outer_stride[0][d];
            rows->offset[1] += rows->outer_stride[1][d];
            return;
        }
        rows->index[d] = 0;
        rows->offset[0] -= (rows->shape[d] - 1) * rows->outer_stride[0][d];
        rows->offset[1] -= (rows->shape[d] - 1) * rows->outer_stride[1][d];
    }
}
