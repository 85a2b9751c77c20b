// softmax and log_softmax over any dim, and their gradients.
//
// A row of nothing but -inf has no softmax: it is NaN, as torch's. (The fused attention defines a
// row that sees nothing as zeros instead.)
#include "tape/loop.h"
#include "tape/ops/ops.h"
#include "tape/rows.h"
#include "tape/tape.h"

static attn_var along_dim(const attn_tape_op *op, attn_row_kind kind, attn_var a, int32_t dim);

// y_i = exp(a_i - max) / sum_j exp(a_j - max)
//
// dy_i/da_j = y_i (1[i = j] - y_j), hence da = y * (dy - sum(dy * y)): every element's upstream
// gradient is compared with the row's average under the weights y.
static void softmax_backward(const attn_tape_back *back)
{
    const attn_var y = back->outputs[0], dy = back->upstream[0];
    const int32_t dim = *(const int32_t *)back->payload;
    const attn_var average = attn_sum(attn_multiply(dy, y), dim, true);
    back->gradients[0] = attn_multiply(y, attn_subtract(dy, average));
}

attn_var attn_softmax(attn_var a, int32_t dim)
{
    static const attn_tape_op op = {"softmax", softmax_backward};
    return along_dim(&op, ATTN_ROW_SOFTMAX, a, dim);
}

// y_i = a_i - max - log(sum_j exp(a_j - max)), hence da = dy - exp(y) * sum(dy).
static void log_softmax_backward(const attn_tape_back *back)
{
    const attn_var y = back->outputs[0], dy = back->upstream[0];
    const attn_var total = attn_sum(dy, *(const int32_t *)back->payload, true);
    back->gradients[0] = attn_subtract(dy, attn_multiply(attn_exp(y), total));
}

attn_var attn_log_softmax(attn_var a, int32_t dim)
{
    static const attn_tape_op op = {"log_softmax", log_softmax_backward};
    return along_dim(&op, ATTN_ROW_LOG_SOFTMAX, a, dim);
}

static attn_var along_dim(const attn_tape_op *op, attn_row_kind kind, attn_var a, int32_t dim)
{
    attn_tape *tape;
    if (!attn_tape_enter(op->name, &a, 1, &tape) || !attn_tape_dim(tape, op->name, a, &dim)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *const x = attn_tape_value(a);
    attn_tensor y;
    if (!attn_tape_tensor(tape, op->name, x->dtype, x->ndim, x->shape, &y)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *const rows[] = {&y, x};
    attn_loop_rows(tape->context, rows, 2, dim, attn_row_of(x->dtype, kind), NULL);
    return attn_tape_push(tape, op, &a, 1, &y, &dim, sizeof dim);
}
