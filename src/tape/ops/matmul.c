// matmul and its gradient, which is two products again.
#include "core/text.h"
#include "tape/ops/ops.h"
#include "tape/product.h"
#include "tape/tape.h"

// ---- matmul -------------------------------------------------------------------------------------

// Y = A B: dA = dY B^T, dB = A^T dY, each summed over the leading dims that were broadcast. Where B
// is one matrix for all leading dims, they count as rows: dB is a single product.
static void matmul_backward(const attn_tape_back *back)
{
    const attn_var a = back->inputs[0], b = back->inputs[1], dy = back->upstream[0];
    if (back->wanted[0]) {
        const attn_var grad = attn_matmul(dy, attn_transpose(b, -2, -1));
        back->gradients[0] = attn_tape_sum_to_like(grad, a);
    }
    if (back->wanted[1] && attn_tape_value(b)->ndim == 2) {
        back->gradients[1] =
            attn_matmul(attn_transpose(attn_tape_as_matrix(a), 0, 1), attn_tape_as_matrix(dy));
    } else if (back->wanted[1]) {
        const attn_var grad = attn_matmul(attn_transpose(a, -2, -1), dy);
        back->gradients[1] = attn_tape_sum_to_like(grad, b);
    }
}

static bool check_matmul(attn_tape *tape, const attn_tensor *a, const attn_tensor *b,
                         attn_tape_shape *shape);

// a (..., M, K), b (..., K, N) -> (..., M, N)
attn_var attn_matmul(attn_var a, attn_var b)
{
    static const attn_tape_op op = {"matmul", matmul_backward};
    const attn_var inputs[] = {a, b};
    attn_tape *tape;
    attn_tape_shape shape;
    if (!attn_tape_enter(op.name, inputs, 2, &tape) ||
        !check_matmul(tape, attn_tape_value(a), attn_tape_value(b), &shape)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *const x = attn_tape_value(a), *const w = attn_tape_value(b);
    attn_tensor left, right, y;
    attn_error error;
    const int32_t row = shape.ndim - 2, column = shape.ndim - 1;
    attn_tape_shape left_shape = shape, right_shape = shape;
    left_shape.sizes[row] = x->shape[x->ndim - 2];
    left_shape.sizes[column] = x->shape[x->ndim - 1];
    right_shape.sizes[row] = w->shape[w->ndim - 2];
    right_shape.sizes[column] = w->shape[w->ndim - 1];
    if (attn_tensor_expand(x, shape.ndim, left_shape.sizes, &left, &error) != ATTN_OK ||
        attn_tensor_expand(w, shape.ndim, right_shape.sizes, &right, &error) != ATTN_OK) {
        return attn_tape_pass_on(tape, &error);
    }
    if (!attn_tape_tensor(tape, op.name, x->dtype, shape.ndim, shape.sizes, &y) ||
        !attn_tape_product(tape, op.name, &left, &right, NULL, NULL, &y)) {
        return attn_tape_failed(tape);
    }
    return attn_tape_push(tape, &op, inputs, 2, &y, NULL, 0);
}

// Fills the result's shape.
static bool check_matmul(attn_tape *tape, const attn_tensor *a, const attn_tensor *b,
                         attn_tape_shape *shape)
{
    const char *why = NULL;
    if (a->ndim < 2 || b->ndim < 2) {
        why = "both need rows and columns";
    } else if (a->shape[a->ndim - 1] != b->shape[b->ndim - 2]) {
        why = "the first's columns must be as many as the second's rows";
    } else {
        shape->ndim = a->ndim > b->ndim ? a->ndim : b->ndim;
        for (int32_t d = 0; d < shape->ndim - 2; d++) {
            const int32_t from_end = shape->ndim - d;
            const int64_t m = from_end <= a->ndim ? a->shape[a->ndim - from_end] : 1;
            const int64_t n = from_end <= b->ndim ? b->shape[b->ndim - from_end] : 1;
            shape->sizes[d] = m == 1 ? n : m;
            why = m != n && m != 1 && n != 1 ? "their leading dims do not broadcast" : why;
        }
        shape->sizes[shape->ndim - 2] = a->shape[a->ndim - 2];
        shape->sizes[shape->ndim - 1] = b->shape[b->ndim - 1];
    }
    if (why) {
        attn_tape_raise(tape, ATTN_ERR_SHAPE, "matmul: shapes %s and %s do not fit: %s",
                        attn_shape_text(a).text, attn_shape_text(b).text, why);
    }
    return !why;
}
