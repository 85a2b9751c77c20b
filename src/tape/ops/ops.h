// tape/ops/ops.h: ops that only other ops need, and what several ops share.
#ifndef ATTN_TAPE_OPS_OPS_H
#define ATTN_TAPE_OPS_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/tape.h"

// Turns a negative dim of `a` into its positive one; false after failing the tape.
bool attn_tape_dim(attn_tape *tape, const char *op, attn_var a, int32_t *dim);

// The shape that all of the vars broadcast to; false after failing the tape.
typedef struct attn_tape_shape {
    int32_t ndim;
    int64_t sizes[ATTN_MAX_DIMS];
} attn_tape_shape;

bool attn_tape_broadcast(attn_tape *tape, const char *op, attn_var a, attn_var b,
                         attn_tape_shape *shape);

// The opposite of broadcasting: sums over the dims by which `a` is larger than `shape`.
attn_var attn_tape_sum_to(attn_var a, int32_t ndim, const int64_t *shape);
// The same to the shape of `like`.
attn_var attn_tape_sum_to_like(attn_var a, attn_var like);

// attn_linear with the weight once more in packed form, or NULL; the gradient reads `weight`.
struct attn_packed_weight;
attn_var attn_tape_linear(attn_var x, attn_var weight, attn_var bias,
                          const struct attn_packed_weight *packed);

// A view where the strides allow it, else a view of a copy.
attn_var attn_tape_reshape(attn_var a, int32_t ndim, const int64_t *shape);

// All leading dims as rows: (..., N) -> (M, N).
attn_var attn_tape_as_matrix(attn_var a);

// A dim of size 1 before `dim` (0 .. ndim).
attn_var attn_tape_insert_dim(attn_var a, int32_t dim);

// `value` in the shape of `like`.
attn_var attn_tape_full_like(attn_var like, double value);

// The element of each row along `dim` that `indices` names: int64 of a's shape with size 1 at `dim`,
// in the arena, every index in range. The result has that shape.
attn_var attn_tape_pick(attn_var a, int32_t dim, const attn_tensor *indices);

// Multiplies by `scale` where the bit is set and by 0 elsewhere: bit j % 8 of byte j / 8 of a row
// belongs to element j of the last dim. `bits` (uint8) lies in the arena and broadcasts by stride 0.
attn_var attn_tape_keep_bits(attn_var a, const attn_tensor *bits, double scale);

// Draws such bits from torch's stream, in row-major order: 1 with probability 1 - p for each of the
// `columns` elements of a row. `bits` is row-major, its rows padded to whole bytes.
attn_status attn_tape_draw_bits(attn_generator *generator, double p, const attn_tensor *bits,
                                int64_t columns, attn_error *error);

// Copies integers (int32 or int64) to int64 in the arena, checking 0 <= index < limit. NULL after
// failing the tape.
const attn_tensor *attn_tape_indices(attn_tape *tape, const char *op, const attn_tensor *indices,
                                     const char *name, int64_t limit);

#endif
