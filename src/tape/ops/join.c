// cat and stack: several tensors in one; each gets its part of the gradient.
#include <string.h>

#include "core/checked.h"
#include "core/layout.h"
#include "core/text.h"
#include "tape/loop.h"
#include "tape/ops/ops.h"
#include "tape/tape.h"

static bool check_join(attn_tape *tape, const char *op, const attn_var *vars, int64_t count,
                       int32_t *dim, int32_t places);

// ---- cat ----------------------------------------------------------------------------------------

static void cat_backward(const attn_tape_back *back)
{
    const int32_t dim = *(const int32_t *)back->payload;
    int64_t start = 0;
    for (int32_t k = 0; k < back->input_count; k++) {
        const int64_t stop = start + attn_tape_value(back->inputs[k])->shape[dim];
        if (back->wanted[k]) {
            back->gradients[k] = attn_slice(back->upstream[0], dim, start, stop);
        }
        start = stop;
    }
}

attn_var attn_cat(const attn_var *vars, int64_t count, int32_t dim)
{
    static const attn_tape_op op = {"cat", cat_backward};
    attn_tape *tape;
    if (!attn_tape_enter(op.name, vars, count, &tape) ||
        !check_join(tape, op.name, vars, count, &dim, attn_tape_value(vars[0])->ndim)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *const first = attn_tape_value(vars[0]);
    int64_t shape[ATTN_MAX_DIMS];
    memcpy(shape, first->shape, sizeof shape);
    shape[dim] = 0;
    for (int64_t k = 0; k < count; k++) {
        if (!attn_checked_add(shape[dim], attn_tape_value(vars[k])->shape[dim], &shape[dim])) {
            attn_tape_raise(tape, ATTN_ERR_OVERFLOW, "cat: the result has too many elements");
            return attn_tape_failed(tape);
        }
    }
    attn_tensor y;
    if (!attn_tape_tensor(tape, op.name, first->dtype, first->ndim, shape, &y)) {
        return attn_tape_failed(tape);
    }
    attn_tensor place = y;
    for (int64_t k = 0; k < count; k++) {
        const attn_tensor *const part = attn_tape_value(vars[k]);
        place.shape[dim] = part->shape[dim];
        attn_loop_copy(tape->context, part, &place);
        place.data = (char *)place.data +
                     part->shape[dim] * y.stride[dim] * (int64_t)attn_dtype_size(y.dtype);
    }
    return attn_tape_push(tape, &op, vars, (int32_t)count, &y, &dim, sizeof dim);
}

// ---- stack --------------------------------------------------------------------------------------

static void stack_backward(const attn_tape_back *back)
{
    const int32_t dim = *(const int32_t *)back->payload;
    for (int32_t k = 0; k < back->input_count; k++) {
        if (back->wanted[k]) {
            back->gradients[k] = attn_select(back->upstream[0], dim, k);
        }
    }
}

attn_var attn_stack(const attn_var *vars, int64_t count, int32_t dim)
{
    static const attn_tape_op op = {"stack", stack_backward};
    attn_tape *tape;
    if (!attn_tape_enter(op.name, vars, count, &tape) ||
        !check_join(tape, op.name, vars, count, &dim, attn_tape_value(vars[0])->ndim + 1)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *const first = attn_tape_value(vars[0]);
    int64_t shape[ATTN_MAX_DIMS];
    for (int32_t d = 0; d <= first->ndim; d++) {
        shape[d] = d < dim ? first->shape[d] : (d == dim ? count : first->shape[d - 1]);
    }
    attn_tensor y;
    if (!attn_tape_tensor(tape, op.name, first->dtype, first->ndim + 1, shape, &y)) {
        return attn_tape_failed(tape);
    }
    for (int64_t k = 0; k < count; k++) {
        attn_tensor place;
        attn_error error;
        if (attn_tensor_select(&y, dim, k, &place, &error) != ATTN_OK) {
            return attn_tape_pass_on(tape, &error);
        }
        attn_loop_copy(tape->context, attn_tape_value(vars[k]), &place);
    }
    return attn_tape_push(tape, &op, vars, (int32_t)count, &y, &dim, sizeof dim);
}

// ---- both ---------------------------------------------------------------------------------------

// `places`: how many dims there are to choose from. All shapes must agree; in cat, but for `dim`.
static bool check_join(attn_tape *tape, const char *op, const attn_var *vars, int64_t count,
                       int32_t *dim, int32_t places)
{
    const attn_tensor *const first = attn_tape_value(vars[0]);
    const bool is_cat = places == first->ndim;
    if (count > INT32_MAX) {
        attn_tape_raise(tape, ATTN_ERR_OVERFLOW, "%s: too many operands", op);
    } else if (places > ATTN_MAX_DIMS) {
        attn_tape_raise(tape, ATTN_ERR_SHAPE, "%s: shape %s has %d dims already, the most", op,
                        attn_shape_text(first).text, ATTN_MAX_DIMS);
    } else if (!attn_normalize_dim(places, dim)) {
        attn_tape_raise(tape, ATTN_ERR_INVALID_ARGUMENT,
                        "%s: dim %d is out of range for operands of shape %s", op, *dim,
                        attn_shape_text(first).text);
    }
    for (int64_t k = 1; k < count && attn_tape_healthy(tape); k++) {
        attn_tensor other = *attn_tape_value(vars[k]);
        if (is_cat && other.ndim == first->ndim) {
            other.shape[*dim] = first->shape[*dim];
        }
        if (!attn_tensor_same_shape(first, &other)) {
            attn_tape_raise(tape, ATTN_ERR_SHAPE,
                            "%s: operand 1 has shape %s but operand %lld has %s", op,
                            attn_shape_text(first).text, (long long)k + 1,
                            attn_shape_text(attn_tape_value(vars[k])).text);
        }
    }
    return attn_tape_healthy(tape);
}
