// view, transpose, contiguous, expand, slice, select: the same elements seen differently. cat and
// stack are in join.c.
#include <string.h>

#include "core/layout.h"
#include "core/text.h"
#include "tape/loop.h"
#include "tape/ops/ops.h"
#include "tape/tape.h"

// Records a view made by core, or passes its error on. A shape op needs no payload: its gradient
// follows from the shapes of what went in and came out, or from `payload`.
static attn_var push_view(attn_tape *tape, const attn_tape_op *op, attn_var a, attn_status status,
                          const attn_tensor *view, const attn_error *error, const void *payload,
                          size_t payload_size)
{
    return status == ATTN_OK ? attn_tape_push(tape, op, &a, 1, view, payload, payload_size)
                             : attn_tape_pass_on(tape, error);
}

// ---- view ---------------------------------------------------------------------------------------

// The gradient gets the old shape back.
static void view_backward(const attn_tape_back *back)
{
    const attn_tensor *const x = attn_tape_value(back->inputs[0]);
    back->gradients[0] = attn_tape_reshape(back->upstream[0], x->ndim, x->shape);
}

attn_var attn_view(attn_var a, int32_t ndim, const int64_t *shape)
{
    static const attn_tape_op op = {"view", view_backward};
    attn_tape *tape;
    if (!attn_tape_enter(op.name, &a, 1, &tape)) {
        return attn_tape_failed(tape);
    }
    attn_tensor view;
    attn_error error;
    const attn_status status = attn_tensor_view(attn_tape_value(a), ndim, shape, &view, &error);
    return push_view(tape, &op, a, status, &view, &error, NULL, 0);
}

attn_var attn_tape_reshape(attn_var a, int32_t ndim, const int64_t *shape)
{
    attn_tape *tape;
    if (!attn_tape_enter("reshape", &a, 1, &tape)) {
        return attn_tape_failed(tape);
    }
    attn_tensor view;
    const bool as_it_is = attn_tensor_view(attn_tape_value(a), ndim, shape, &view, NULL) == ATTN_OK;
    return attn_view(as_it_is ? a : attn_contiguous(a), ndim, shape);
}

attn_var attn_tape_as_matrix(attn_var a)
{
    attn_tape *tape;
    if (!attn_tape_enter("reshape", &a, 1, &tape)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *const x = attn_tape_value(a);
    int64_t shape[2] = {1, x->shape[x->ndim - 1]};
    for (int32_t d = 0; d < x->ndim - 1; d++) {
        shape[0] *= x->shape[d];
    }
    return attn_tape_reshape(a, 2, shape);
}

attn_var attn_tape_insert_dim(attn_var a, int32_t dim)
{
    attn_tape *tape;
    if (!attn_tape_enter("insert_dim", &a, 1, &tape)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *const x = attn_tape_value(a);
    int64_t shape[ATTN_MAX_DIMS + 1];
    for (int32_t d = 0; d <= x->ndim; d++) {
        shape[d] = d < dim ? x->shape[d] : (d == dim ? 1 : x->shape[d - 1]);
    }
    return attn_view(a, x->ndim + 1, shape);
}

bool attn_tape_dim(attn_tape *tape, const char *op, attn_var a, int32_t *dim)
{
    const attn_tensor *const x = attn_tape_value(a);
    if (!attn_normalize_dim(x->ndim, dim)) {
        attn_tape_raise(tape, ATTN_ERR_INVALID_ARGUMENT, "%s: dim %d is out of range for shape %s",
                        op, *dim, attn_shape_text(x).text);
        return false;
    }
    return true;
}

// ---- transpose ----------------------------------------------------------------------------------

struct transposed {
    int32_t dim0, dim1;
};

// Swapping twice is the identity.
static void transpose_backward(const attn_tape_back *back)
{
    const struct transposed *const dims = back->payload;
    back->gradients[0] = attn_transpose(back->upstream[0], dims->dim0, dims->dim1);
}

attn_var attn_transpose(attn_var a, int32_t dim0, int32_t dim1)
{
    static const attn_tape_op op = {"transpose", transpose_backward};
    attn_tape *tape;
    if (!attn_tape_enter(op.name, &a, 1, &tape)) {
        return attn_tape_failed(tape);
    }
    const struct transposed dims = {dim0, dim1};
    attn_tensor view;
    attn_error error;
    const attn_status status = attn_tensor_transpose(attn_tape_value(a), dim0, dim1, &view, &error);
    return push_view(tape, &op, a, status, &view, &error, &dims, sizeof dims);
}

// ---- contiguous ---------------------------------------------------------------------------------

static void contiguous_backward(const attn_tape_back *back)
{
    back->gradients[0] = back->upstream[0];
}

attn_var attn_contiguous(attn_var a)
{
    static const attn_tape_op op = {"contiguous", contiguous_backward};
    attn_tape *tape;
    if (!attn_tape_enter(op.name, &a, 1, &tape)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *const x = attn_tape_value(a);
    if (attn_tensor_is_contiguous(x)) {
        return a;
    }
    attn_tensor y;
    if (!attn_tape_tensor(tape, op.name, x->dtype, x->ndim, x->shape, &y)) {
        return attn_tape_failed(tape);
    }
    attn_loop_copy(tape->context, x, &y);
    return attn_tape_push(tape, &op, &a, 1, &y, NULL, 0);
}

// ---- expand -------------------------------------------------------------------------------------

// What was read several times gets the sum.
static void expand_backward(const attn_tape_back *back)
{
    back->gradients[0] = attn_tape_sum_to_like(back->upstream[0], back->inputs[0]);
}

attn_var attn_expand(attn_var a, int32_t ndim, const int64_t *shape)
{
    static const attn_tape_op op = {"expand", expand_backward};
    attn_tape *tape;
    if (!attn_tape_enter(op.name, &a, 1, &tape)) {
        return attn_tape_failed(tape);
    }
    attn_tensor view;
    attn_error error;
    const attn_status status = attn_tensor_expand(attn_tape_value(a), ndim, shape, &view, &error);
    return push_view(tape, &op, a, status, &view, &error, NULL, 0);
}

attn_var attn_tape_full_like(attn_var like, double value)
{
    attn_tape *tape;
    if (!attn_tape_enter("full", &like, 1, &tape)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *const x = attn_tape_value(like);
    return attn_expand(attn_constant(tape, x->dtype, value), x->ndim, x->shape);
}

// ---- slice and select ---------------------------------------------------------------------------

// A range of one dim; `size` is that of the whole.
struct range {
    int32_t dim;
    int64_t start, stop, size;
};

static attn_var embed(attn_var part, const struct range *range);

static void slice_backward(const attn_tape_back *back)
{
    back->gradients[0] = embed(back->upstream[0], back->payload);
}

attn_var attn_slice(attn_var a, int32_t dim, int64_t start, int64_t stop)
{
    static const attn_tape_op op = {"slice", slice_backward};
    attn_tape *tape;
    if (!attn_tape_enter(op.name, &a, 1, &tape)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *const x = attn_tape_value(a);
    attn_tensor view;
    attn_error error;
    const attn_status status = attn_tensor_slice(x, dim, start, stop, 1, &view, &error);
    if (status != ATTN_OK) {
        return attn_tape_pass_on(tape, &error);
    }
    (void)attn_normalize_dim(x->ndim, &dim);
    const struct range range = {dim, start, stop, x->shape[dim]};
    return attn_tape_push(tape, &op, &a, 1, &view, &range, sizeof range);
}

attn_var attn_select(attn_var a, int32_t dim, int64_t index)
{
    attn_tape *tape;
    if (!attn_tape_enter("select", &a, 1, &tape)) {
        return attn_tape_failed(tape);
    }
    attn_tensor view;
    attn_error error;
    if (attn_tensor_select(attn_tape_value(a), dim, index, &view, &error) != ATTN_OK) {
        return attn_tape_pass_on(tape, &error);
    }
    return attn_view(attn_slice(a, dim, index, index + 1), view.ndim, view.shape);
}

static void embed_backward(const attn_tape_back *back)
{
    const struct range *const range = back->payload;
    back->gradients[0] = attn_slice(back->upstream[0], range->dim, range->start, range->stop);
}

// Zeros of the whole size around a part of it: the gradient of slice.
static attn_var embed(attn_var part, const struct range *range)
{
    static const attn_tape_op op = {"embed", embed_backward};
    attn_tape *tape;
    if (!attn_tape_enter(op.name, &part, 1, &tape)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *const x = attn_tape_value(part);
    attn_tensor y, place;
    int64_t shape[ATTN_MAX_DIMS];
    memcpy(shape, x->shape, sizeof shape);
    shape[range->dim] = range->size;
    if (!attn_tape_tensor(tape, op.name, x->dtype, x->ndim, shape, &y)) {
        return attn_tape_failed(tape);
    }
    attn_loop_fill(tape->context, &y, 0);
    attn_error error;
    if (attn_tensor_slice(&y, range->dim, range->start, range->stop, 1, &place, &error) !=
        ATTN_OK) {
        return attn_tape_pass_on(tape, &error);
    }
    attn_loop_copy(tape->context, x, &place);
    return attn_tape_push(tape, &op, &part, 1, &y, range, sizeof *range);
}
