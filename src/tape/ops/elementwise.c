// add, subtract, multiply, divide, scale, exp, log, tanh: each with its gradient below it.
#include "core/text.h"
#include "tape/loop.h"
#include "tape/ops/ops.h"
#include "tape/rows.h"
#include "tape/tape.h"

static attn_var binary(const attn_tape_op *op, attn_row_kind kind, attn_var a, attn_var b);
static attn_var unary(const attn_tape_op *op, attn_row_kind kind, attn_var a,
                      const double *parameter);

// ---- two operands -------------------------------------------------------------------------------

// y = a + b: dy reaches both, summed over what was broadcast.
static void add_backward(const attn_tape_back *back)
{
    for (int k = 0; k < 2; k++) {
        if (back->wanted[k]) {
            back->gradients[k] = attn_tape_sum_to_like(back->upstream[0], back->inputs[k]);
        }
    }
}

attn_var attn_add(attn_var a, attn_var b)
{
    static const attn_tape_op op = {"add", add_backward};
    return binary(&op, ATTN_ROW_ADD, a, b);
}

// y = a - b: da = dy, db = -dy.
static void subtract_backward(const attn_tape_back *back)
{
    if (back->wanted[0]) {
        back->gradients[0] = attn_tape_sum_to_like(back->upstream[0], back->inputs[0]);
    }
    if (back->wanted[1]) {
        const attn_var grad = attn_tape_sum_to_like(back->upstream[0], back->inputs[1]);
        back->gradients[1] = attn_scale(grad, -1);
    }
}

attn_var attn_subtract(attn_var a, attn_var b)
{
    static const attn_tape_op op = {"subtract", subtract_backward};
    return binary(&op, ATTN_ROW_SUBTRACT, a, b);
}

// y = a b: da = dy b, db = dy a.
static void multiply_backward(const attn_tape_back *back)
{
    for (int k = 0; k < 2; k++) {
        if (back->wanted[k]) {
            const attn_var grad = attn_multiply(back->upstream[0], back->inputs[1 - k]);
            back->gradients[k] = attn_tape_sum_to_like(grad, back->inputs[k]);
        }
    }
}

attn_var attn_multiply(attn_var a, attn_var b)
{
    static const attn_tape_op op = {"multiply", multiply_backward};
    return binary(&op, ATTN_ROW_MULTIPLY, a, b);
}

// y = a / b: da = dy / b, db = -dy y / b.
static void divide_backward(const attn_tape_back *back)
{
    const attn_var b = back->inputs[1];
    if (back->wanted[0]) {
        const attn_var grad = attn_divide(back->upstream[0], b);
        back->gradients[0] = attn_tape_sum_to_like(grad, back->inputs[0]);
    }
    if (back->wanted[1]) {
        const attn_var slope = attn_scale(attn_divide(back->outputs[0], b), -1);
        const attn_var grad = attn_multiply(back->upstream[0], slope);
        back->gradients[1] = attn_tape_sum_to_like(grad, b);
    }
}

attn_var attn_divide(attn_var a, attn_var b)
{
    static const attn_tape_op op = {"divide", divide_backward};
    return binary(&op, ATTN_ROW_DIVIDE, a, b);
}

static attn_var binary(const attn_tape_op *op, attn_row_kind kind, attn_var a, attn_var b)
{
    const attn_var inputs[] = {a, b};
    attn_tape *tape;
    attn_tape_shape shape;
    attn_tensor y;
    if (!attn_tape_enter(op->name, inputs, 2, &tape) ||
        !attn_tape_broadcast(tape, op->name, a, b, &shape)) {
        return attn_tape_failed(tape);
    }
    attn_tensor operands[2];
    for (int k = 0; k < 2; k++) {
        attn_error error;
        if (attn_tensor_expand(attn_tape_value(inputs[k]), shape.ndim, shape.sizes, &operands[k],
                               &error) != ATTN_OK) {
            return attn_tape_pass_on(tape, &error);
        }
    }
    const attn_dtype dtype = operands[0].dtype;
    if (!attn_tape_tensor(tape, op->name, dtype, shape.ndim, shape.sizes, &y)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *const rows[] = {&y, &operands[0], &operands[1]};
    attn_loop_elements(tape->context, rows, 3, attn_row_of(dtype, kind), NULL);
    return attn_tape_push(tape, op, inputs, 2, &y, NULL, 0);
}

bool attn_tape_broadcast(attn_tape *tape, const char *op, attn_var a, attn_var b,
                         attn_tape_shape *shape)
{
    const attn_tensor *const x = attn_tape_value(a), *const y = attn_tape_value(b);
    shape->ndim = x->ndim > y->ndim ? x->ndim : y->ndim;
    for (int32_t d = 0; d < shape->ndim; d++) {
        const int32_t from_end = shape->ndim - d;
        const int64_t m = from_end <= x->ndim ? x->shape[x->ndim - from_end] : 1;
        const int64_t n = from_end <= y->ndim ? y->shape[y->ndim - from_end] : 1;
        if (m != n && m != 1 && n != 1) {
            attn_tape_raise(tape, ATTN_ERR_SHAPE, "%s: shapes %s and %s do not broadcast", op,
                            attn_shape_text(x).text, attn_shape_text(y).text);
            return false;
        }
        shape->sizes[d] = m == 1 ? n : m;
    }
    return true;
}

// ---- one operand --------------------------------------------------------------------------------

// y = c a: da = c dy.
static void scale_backward(const attn_tape_back *back)
{
    back->gradients[0] = attn_scale(back->upstream[0], *(const double *)back->payload);
}

attn_var attn_scale(attn_var a, double factor)
{
    static const attn_tape_op op = {"scale", scale_backward};
    return unary(&op, ATTN_ROW_SCALE, a, &factor);
}

// y = exp(a): da = dy y.
static void exp_backward(const attn_tape_back *back)
{
    back->gradients[0] = attn_multiply(back->upstream[0], back->outputs[0]);
}

attn_var attn_exp(attn_var a)
{
    static const attn_tape_op op = {"exp", exp_backward};
    return unary(&op, ATTN_ROW_EXP, a, NULL);
}

// y = log(a): da = dy / a.
static void log_backward(const attn_tape_back *back)
{
    back->gradients[0] = attn_divide(back->upstream[0], back->inputs[0]);
}

attn_var attn_log(attn_var a)
{
    static const attn_tape_op op = {"log", log_backward};
    return unary(&op, ATTN_ROW_LOG, a, NULL);
}

// y = tanh(a): da = dy (1 - y^2).
static void tanh_backward(const attn_tape_back *back)
{
    const attn_var y = back->outputs[0];
    const attn_var one = attn_constant(back->tape, attn_tape_value(y)->dtype, 1);
    const attn_var slope = attn_subtract(one, attn_multiply(y, y));
    back->gradients[0] = attn_multiply(back->upstream[0], slope);
}

attn_var attn_tanh(attn_var a)
{
    static const attn_tape_op op = {"tanh", tanh_backward};
    return unary(&op, ATTN_ROW_TANH, a, NULL);
}

static attn_var unary(const attn_tape_op *op, attn_row_kind kind, attn_var a,
                      const double *parameter)
{
    attn_tape *tape;
    if (!attn_tape_enter(op->name, &a, 1, &tape)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *const x = attn_tape_value(a);
    attn_tensor y;
    if (!attn_tape_tensor(tape, op->name, x->dtype, x->ndim, x->shape, &y)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *const rows[] = {&y, x};
    attn_loop_elements(tape->context, rows, 2, attn_row_of(x->dtype, kind), parameter);
    return attn_tape_push(tape, op, &a, 1, &y, parameter, sizeof *parameter);
}
