// Ops that choose elements by index: max, embedding, and the picking behind cross-entropy. Each has
// its opposite, which puts the gradient where the element came from.
#include <string.h>

#include "core/text.h"
#include "tape/loop.h"
#include "tape/ops/ops.h"
#include "tape/rows.h"
#include "tape/tape.h"

// ---- pick and place -----------------------------------------------------------------------------

// Which element of every row along `dim`, and how many a row has.
struct picked {
    int32_t dim;
    int64_t size;
    attn_tensor indices;
};

static attn_var place(attn_var a, const struct picked *picked);

static void pick_backward(const attn_tape_back *back)
{
    back->gradients[0] = place(back->upstream[0], back->payload);
}

attn_var attn_tape_pick(attn_var a, int32_t dim, const attn_tensor *indices)
{
    static const attn_tape_op op = {"pick", pick_backward};
    attn_tape *tape;
    if (!attn_tape_enter(op.name, &a, 1, &tape)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *const x = attn_tape_value(a);
    attn_tensor y;
    if (!attn_tape_tensor(tape, op.name, x->dtype, x->ndim, indices->shape, &y)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *const rows[] = {&y, x, indices};
    attn_loop_rows(tape->context, rows, 3, dim, attn_row_of(x->dtype, ATTN_ROW_PICK), NULL);
    const struct picked picked = {dim, x->shape[dim], *indices};
    return attn_tape_push(tape, &op, &a, 1, &y, &picked, sizeof picked);
}

static void place_backward(const attn_tape_back *back)
{
    const struct picked *const picked = back->payload;
    back->gradients[0] = attn_tape_pick(back->upstream[0], picked->dim, &picked->indices);
}

// Zeros, but every row's element goes to its index.
static attn_var place(attn_var a, const struct picked *picked)
{
    static const attn_tape_op op = {"place", place_backward};
    attn_tape *tape;
    if (!attn_tape_enter(op.name, &a, 1, &tape)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *const x = attn_tape_value(a);
    int64_t shape[ATTN_MAX_DIMS];
    memcpy(shape, x->shape, sizeof shape);
    shape[picked->dim] = picked->size;
    attn_tensor y;
    if (!attn_tape_tensor(tape, op.name, x->dtype, x->ndim, shape, &y)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *const rows[] = {&y, x, &picked->indices};
    attn_loop_rows(tape->context, rows, 3, picked->dim, attn_row_of(x->dtype, ATTN_ROW_PLACE),
                   NULL);
    return attn_tape_push(tape, &op, &a, 1, &y, picked, sizeof *picked);
}

// ---- max ----------------------------------------------------------------------------------------

// The first largest element of every row, or the first NaN, picked.
attn_var attn_max(attn_var a, int32_t dim, bool keep_dim)
{
    attn_tape *tape;
    if (!attn_tape_enter("max", &a, 1, &tape) || !attn_tape_dim(tape, "max", a, &dim)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *const x = attn_tape_value(a);
    attn_tensor indices = *x, y;
    indices.shape[dim] = 1;
    if (x->shape[dim] == 0 && attn_tensor_count(&indices) > 0) {
        attn_tape_raise(tape, ATTN_ERR_SHAPE, "max: dim %d of shape %s has no elements", dim,
                        attn_shape_text(x).text);
        return attn_tape_failed(tape);
    }
    if (!attn_tape_tensor(tape, "max", ATTN_I64, x->ndim, indices.shape, &indices)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *const rows[] = {x, &indices};
    attn_loop_rows(tape->context, rows, 2, dim, attn_row_of(x->dtype, ATTN_ROW_ARGMAX), NULL);
    const attn_var most = attn_tape_pick(a, dim, &indices);
    if (keep_dim) {
        return most;
    }
    y = indices;
    y.ndim--;
    for (int32_t d = dim; d < y.ndim; d++) {
        y.shape[d] = indices.shape[d + 1];
    }
    return attn_view(most, y.ndim, y.shape);
}

// ---- embedding ----------------------------------------------------------------------------------

static attn_var collect(attn_var a, const attn_tensor *indices, int64_t size);
static attn_var look_up(attn_var weight, const attn_tensor *indices);

static void embedding_backward(const attn_tape_back *back)
{
    const int64_t size = attn_tape_value(back->inputs[0])->shape[0];
    back->gradients[0] = collect(back->upstream[0], back->payload, size);
}

// weight (N, E), indices (...) -> (..., E)
attn_var attn_embedding(attn_var weight, const attn_tensor *indices)
{
    attn_tape *tape;
    if (!attn_tape_enter("embedding", &weight, 1, &tape)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *const w = attn_tape_value(weight);
    if (w->ndim != 2) {
        attn_tape_raise(tape, ATTN_ERR_SHAPE, "embedding: a weight of shape %s is no matrix",
                        attn_shape_text(w).text);
        return attn_tape_failed(tape);
    }
    const attn_tensor *const rows =
        attn_tape_indices(tape, "embedding", indices, "the indices", w->shape[0]);
    if (!rows) {
        return attn_tape_failed(tape);
    }
    if (rows->ndim == ATTN_MAX_DIMS) {
        attn_tape_raise(tape, ATTN_ERR_SHAPE, "embedding: indices of shape %s have too many dims",
                        attn_shape_text(rows).text);
        return attn_tape_failed(tape);
    }
    return look_up(weight, rows);
}

static attn_var look_up(attn_var weight, const attn_tensor *indices)
{
    static const attn_tape_op op = {"embedding", embedding_backward};
    attn_tape *tape;
    if (!attn_tape_enter(op.name, &weight, 1, &tape)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *const w = attn_tape_value(weight);
    attn_tensor rows = *indices, y; // rows: the indices with a last dim of size 1
    rows.shape[rows.ndim++] = w->shape[1];
    if (!attn_tape_tensor(tape, op.name, w->dtype, rows.ndim, rows.shape, &y)) {
        return attn_tape_failed(tape);
    }
    rows.shape[rows.ndim - 1] = 1;
    rows.stride[rows.ndim - 1] = 1;
    const attn_tensor *const operands[] = {&y, &rows};
    attn_loop_rows(tape->context, operands, 2, y.ndim - 1, attn_row_of(w->dtype, ATTN_ROW_LOOK_UP),
                   w);
    return attn_tape_push(tape, &op, &weight, 1, &y, indices, sizeof *indices);
}

static void collect_backward(const attn_tape_back *back)
{
    back->gradients[0] = look_up(back->upstream[0], back->payload);
}

// Sums rows (..., E) with the same index, in their order, into (size, E).
static attn_var collect(attn_var a, const attn_tensor *indices, int64_t size)
{
    static const attn_tape_op op = {"collect", collect_backward};
    const attn_var matrix = attn_tape_as_matrix(a);
    attn_tape *tape;
    if (!attn_tape_enter(op.name, &matrix, 1, &tape)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *const x = attn_tape_value(matrix);
    const int64_t shape[2] = {size, x->shape[1]};
    attn_tensor y;
    if (!attn_tape_tensor(tape, op.name, x->dtype, 2, shape, &y)) {
        return attn_tape_failed(tape);
    }
    attn_loop_fill(tape->context, &y, 0);
    const attn_row_function add = attn_row_of(x->dtype, ATTN_ROW_ADD);
    const int64_t bytes = (int64_t)attn_dtype_size(x->dtype);
    const int64_t *const index = indices->data;
    for (int64_t m = 0; m < x->shape[0]; m++) {
        char *const sum = (char *)y.data + index[m] * y.stride[0] * bytes;
        const attn_row row = {.count = shape[1],
                              .data = {sum, sum, (char *)x->data + m * x->stride[0] * bytes},
                              .stride = {1, 1, x->stride[1]}};
        add(&row, NULL);
    }
    return attn_tape_push(tape, &op, &matrix, 1, &y, indices, sizeof *indices);
}

// ---- indices ------------------------------------------------------------------------------------

const attn_tensor *attn_tape_indices(attn_tape *tape, const char *op, const attn_tensor *indices,
                                     const char *name, int64_t limit)
{
    attn_error error;
    if (attn_tensor_check(indices, op, &error) != ATTN_OK) {
        attn_tape_pass_on(tape, &error);
        return NULL;
    }
    if (indices->dtype != ATTN_I64 && indices->dtype != ATTN_I32) {
        attn_tape_raise(tape, ATTN_ERR_DTYPE, "%s: %s are %s, not int64 or int32", op, name,
                        attn_dtype_name(indices->dtype));
        return NULL;
    }
    attn_tensor *const kept = attn_tape_allocate(tape, op, 1, sizeof *kept);
    if (!kept || !attn_tape_tensor(tape, op, ATTN_I64, indices->ndim, indices->shape, kept)) {
        return NULL;
    }
    if (attn_tensor_copy(indices, kept, &error) != ATTN_OK) {
        attn_tape_pass_on(tape, &error);
        return NULL;
    }
    const int64_t count = attn_tensor_count(kept);
    for (int64_t m = 0; m < count; m++) {
        const int64_t index = ((const int64_t *)kept->data)[m];
        if (index < 0 || index >= limit) {
            attn_tape_raise(tape, ATTN_ERR_INVALID_ARGUMENT,
                            "%s: element %lld of %s is %lld, which is not in [0, %lld)", op,
                            (long long)m, name, (long long)index, (long long)limit);
            return NULL;
        }
    }
    return kept;
}
