// linear and its gradient.
#include "core/text.h"
#include "tape/ops/ops.h"
#include "tape/product.h"
#include "tape/tape.h"

static bool check_shapes(attn_tape *tape, const attn_tensor *x, const attn_tensor *weight,
                         const attn_tensor *bias);
static attn_var linear_rows(attn_var x, attn_var weight, attn_var bias,
                            const struct attn_packed_weight *packed);

attn_var attn_linear(attn_var x, attn_var weight, attn_var bias)
{
    return attn_tape_linear(x, weight, bias, NULL);
}

// x (..., in), weight (out, in), bias (out) -> (..., out)
attn_var attn_tape_linear(attn_var x, attn_var weight, attn_var bias,
                          const struct attn_packed_weight *packed)
{
    const attn_var inputs[] = {x, weight, bias};
    attn_tape *tape;
    if (!attn_tape_enter("linear", inputs, bias.tape ? 3 : 2, &tape) ||
        !check_shapes(tape, attn_tape_value(x), attn_tape_value(weight),
                      bias.tape ? attn_tape_value(bias) : NULL)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *const in = attn_tape_value(x);
    attn_tensor out = *in;
    out.shape[in->ndim - 1] = attn_tape_value(weight)->shape[0];
    const attn_var y = linear_rows(attn_tape_as_matrix(x), weight, bias, packed);
    return in->ndim == 2 ? y : attn_view(y, out.ndim, out.shape);
}

static bool check_shapes(attn_tape *tape, const attn_tensor *x, const attn_tensor *weight,
                         const attn_tensor *bias)
{
    if (x->ndim < 1 || weight->ndim != 2 || x->shape[x->ndim - 1] != weight->shape[1]) {
        attn_tape_raise(tape, ATTN_ERR_SHAPE,
                        "linear: x of shape %s does not fit a weight (out, in) of shape %s",
                        attn_shape_text(x).text, attn_shape_text(weight).text);
    } else if (bias && (bias->ndim != 1 || bias->shape[0] != weight->shape[0])) {
        attn_tape_raise(tape, ATTN_ERR_SHAPE,
                        "linear: a bias of shape %s does not fit a weight (out, in) of shape %s",
                        attn_shape_text(bias).text, attn_shape_text(weight).text);
    }
    return attn_tape_healthy(tape);
}

// Y = X W^T + b: dX = dY W, dW = dY^T X, db = the sum of dY's rows.
static void linear_backward(const attn_tape_back *back)
{
    const attn_var x = back->inputs[0], weight = back->inputs[1], dy = back->upstream[0];
    if (back->wanted[2]) {
        back->gradients[2] = attn_tape_sum_to_like(dy, back->inputs[2]);
    }
    if (back->wanted[1]) {
        back->gradients[1] = attn_matmul(attn_transpose(dy, 0, 1), x);
    }
    if (back->wanted[0]) {
        back->gradients[0] = attn_matmul(dy, weight);
    }
}

// x (M, in) -> (M, out)
static attn_var linear_rows(attn_var x, attn_var weight, attn_var bias,
                            const struct attn_packed_weight *packed)
{
    static const attn_tape_op op = {"linear", linear_backward};
    const attn_var inputs[] = {x, weight, bias};
    attn_tape *tape;
    if (!attn_tape_enter(op.name, inputs, bias.tape ? 3 : 2, &tape)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *const rows = attn_tape_value(x), *const w = attn_tape_value(weight);
    const int64_t shape[2] = {rows->shape[0], w->shape[0]};
    attn_tensor transposed, y;
    attn_error error;
    if (!attn_tape_tensor(tape, op.name, rows->dtype, 2, shape, &y)) {
        return attn_tape_failed(tape);
    }
    if (attn_tensor_transpose(w, 0, 1, &transposed, &error) != ATTN_OK) {
        return attn_tape_pass_on(tape, &error);
    }
    if (!attn_tape_product(tape, op.name, rows, &transposed, packed,
                           bias.tape ? attn_tape_value(bias) : NULL, &y)) {
        return attn_tape_failed(tape);
    }
    return attn_tape_push(tape, &op, inputs, 3, &y, NULL, 0);
}
