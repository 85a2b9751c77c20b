#include "modules/rms_norm.h"

#include <math.h>

#include "core/element.h"
#include "tape/tape.h"

static attn_var inverse_sqrt(attn_var x);

attn_var attn_rms_norm(attn_var x, attn_var weight, double epsilon)
{
    // x: (..., D)  weight: (D)
    const attn_var squares = attn_mean(attn_multiply(x, x), -1, true);
    const attn_dtype dtype = attn_value(x).dtype;
    const attn_var shifted = attn_add(squares, attn_constant(x.tape, dtype, epsilon));
    return attn_multiply(attn_multiply(x, inverse_sqrt(shifted)), weight);
}

// ---- 1 / sqrt(x) as an op -----------------------------------------------------------------------

static void inverse_sqrt_backward(const attn_tape_back *back);
static const attn_tape_op inverse_sqrt_op = {"inverse_sqrt", inverse_sqrt_backward};

static attn_var inverse_sqrt(attn_var x)
{
    attn_tape *tape;
    if (!attn_tape_enter(inverse_sqrt_op.name, &x, 1, &tape)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor in = *attn_tape_value(x); // a result of add: row-major
    attn_tensor out;
    if (!attn_tape_tensor(tape, inverse_sqrt_op.name, in.dtype, in.ndim, in.shape, &out)) {
        return attn_tape_failed(tape);
    }
    const int64_t count = attn_tensor_count(&in);
    const size_t size = attn_dtype_size(in.dtype);
    for (int64_t i = 0; i < count; i++) {
        const double value = attn_element_load(in.dtype, (const char *)in.data + (size_t)i * size);
        attn_element_store(in.dtype, (char *)out.data + (size_t)i * size, 1 / sqrt(value));
    }
    return attn_tape_push(tape, &inverse_sqrt_op, &x, 1, &out, NULL, 0);
}

// y = x^(-1/2): dy/dx = -y^3 / 2
static void inverse_sqrt_backward(const attn_tape_back *back)
{
    const attn_var y = back->outputs[0];
    const attn_var cube = attn_multiply(attn_multiply(y, y), y);
    back->gradients[0] = attn_scale(attn_multiply(back->upstream[0], cube), -0.5);
}
