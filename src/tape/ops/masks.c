// masked_fill, tril, triu: where the mask is applied. What is masked gets no gradient.
#include "core/text.h"
#include "tape/loop.h"
#include "tape/rows.h"
#include "tape/tape.h"

// ---- masked_fill --------------------------------------------------------------------------------

static bool copy_mask(attn_tape *tape, const attn_tensor *mask, attn_tensor *copy);

// da = mask ? 0 : dy.
static void masked_fill_backward(const attn_tape_back *back)
{
    back->gradients[0] = attn_masked_fill(back->upstream[0], back->payload, 0);
}

attn_var attn_masked_fill(attn_var a, const attn_tensor *mask, double value)
{
    static const attn_tape_op op = {"masked_fill", masked_fill_backward};
    attn_tape *tape;
    if (!attn_tape_enter(op.name, &a, 1, &tape)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *const x = attn_tape_value(a);
    attn_error error;
    if (attn_tensor_check(mask, "masked_fill: the mask", &error) != ATTN_OK) {
        return attn_tape_pass_on(tape, &error);
    }
    if (mask->dtype != ATTN_BOOL && mask->dtype != ATTN_U8) {
        attn_tape_raise(tape, ATTN_ERR_DTYPE, "masked_fill: the mask is %s, not bool or uint8",
                        attn_dtype_name(mask->dtype));
        return attn_tape_failed(tape);
    }
    attn_tensor kept = *mask, whole, y;
    if (attn_tensor_expand(mask, x->ndim, x->shape, &whole, NULL) != ATTN_OK) {
        attn_tape_raise(tape, ATTN_ERR_SHAPE,
                        "masked_fill: a mask of shape %s does not broadcast to shape %s",
                        attn_shape_text(mask).text, attn_shape_text(x).text);
        return attn_tape_failed(tape);
    }
    if (!attn_tape_tensor(tape, op.name, x->dtype, x->ndim, x->shape, &y) ||
        (attn_tape_records(tape, &a, 1) && !copy_mask(tape, mask, &kept))) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *const rows[] = {&y, x, &whole};
    attn_loop_elements(tape->context, rows, 3, attn_row_of(x->dtype, ATTN_ROW_SELECT), &value);
    return attn_tape_push(tape, &op, &a, 1, &y, &kept, sizeof kept);
}

// Copies a mask into the arena: as many bytes as it has different elements.
static bool copy_mask(attn_tape *tape, const attn_tensor *mask, attn_tensor *copy)
{
    attn_tensor source = *mask;
    for (int32_t d = 0; d < mask->ndim; d++) {
        source.shape[d] = mask->stride[d] == 0 && mask->shape[d] > 0 ? 1 : mask->shape[d];
    }
    attn_tensor made;
    attn_error error;
    if (!attn_tape_tensor(tape, "masked_fill", mask->dtype, mask->ndim, source.shape, &made)) {
        return false;
    }
    if (attn_tensor_copy(&source, &made, &error) != ATTN_OK ||
        attn_tensor_expand(&made, mask->ndim, mask->shape, copy, &error) != ATTN_OK) {
        attn_tape_pass_on(tape, &error);
        return false;
    }
    return true;
}

// ---- tril and triu ------------------------------------------------------------------------------

static attn_var triangle(const attn_tape_op *op, attn_var a, bool lower, int64_t diagonal);

static void tril_backward(const attn_tape_back *back)
{
    back->gradients[0] = attn_tril(back->upstream[0], *(const int64_t *)back->payload);
}

attn_var attn_tril(attn_var a, int64_t diagonal)
{
    static const attn_tape_op op = {"tril", tril_backward};
    return triangle(&op, a, true, diagonal);
}

static void triu_backward(const attn_tape_back *back)
{
    back->gradients[0] = attn_triu(back->upstream[0], *(const int64_t *)back->payload);
}

attn_var attn_triu(attn_var a, int64_t diagonal)
{
    static const attn_tape_op op = {"triu", triu_backward};
    return triangle(&op, a, false, diagonal);
}

static void mark_outside(const attn_tensor *mask, bool lower, int64_t diagonal);

// a (..., R, C), zero outside the triangle.
static attn_var triangle(const attn_tape_op *op, attn_var a, bool lower, int64_t diagonal)
{
    attn_tape *tape;
    if (!attn_tape_enter(op->name, &a, 1, &tape)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *const x = attn_tape_value(a);
    if (x->ndim < 2) {
        attn_tape_raise(tape, ATTN_ERR_SHAPE, "%s: shape %s has no rows and columns", op->name,
                        attn_shape_text(x).text);
        return attn_tape_failed(tape);
    }
    attn_tensor mask, whole, y;
    attn_error error;
    if (!attn_tape_tensor(tape, op->name, x->dtype, x->ndim, x->shape, &y)) {
        return attn_tape_failed(tape);
    }
    const attn_tape_arena_position scratch = attn_tape_arena_tell(&tape->arena);
    if (!attn_tape_tensor(tape, op->name, ATTN_BOOL, 2, x->shape + x->ndim - 2, &mask)) {
        return attn_tape_failed(tape);
    }
    mark_outside(&mask, lower, diagonal);
    if (attn_tensor_expand(&mask, x->ndim, x->shape, &whole, &error) != ATTN_OK) {
        return attn_tape_pass_on(tape, &error);
    }
    const double zero = 0;
    const attn_tensor *const rows[] = {&y, x, &whole};
    attn_loop_elements(tape->context, rows, 3, attn_row_of(x->dtype, ATTN_ROW_SELECT), &zero);
    attn_tape_arena_rewind(&tape->arena, scratch);
    return attn_tape_push(tape, op, &a, 1, &y, &diagonal, sizeof diagonal);
}

// Element (i, j) of the mask says whether j - i is beyond the diagonal.
static void mark_outside(const attn_tensor *mask, bool lower, int64_t diagonal)
{
    const int64_t rows = mask->shape[0], columns = mask->shape[1];
    for (int64_t i = 0; i < rows; i++) {
        bool *const row = (bool *)mask->data + i * columns;
        for (int64_t j = 0; j < columns; j++) {
            row[j] = lower ? j - i > diagonal : j - i < diagonal;
        }
    }
}
