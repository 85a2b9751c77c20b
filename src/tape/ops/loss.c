// cross_entropy and mse_loss: made of other ops, which bring their gradients along.
#include "core/text.h"
#include "tape/ops/ops.h"
#include "tape/tape.h"

// logits (..., C), targets (...) -> ()
attn_var attn_cross_entropy(attn_var logits, const attn_tensor *targets)
{
    attn_tape *tape;
    if (!attn_tape_enter("cross_entropy", &logits, 1, &tape)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *const x = attn_tape_value(logits);
    const int32_t last = x->ndim - 1;
    attn_tensor rows = *x; // the shape that the targets must have
    rows.ndim = last;
    const attn_tensor *chosen = NULL;
    if (last < 0) {
        attn_tape_raise(tape, ATTN_ERR_SHAPE, "cross_entropy: the logits have no classes");
    } else {
        chosen = attn_tape_indices(tape, "cross_entropy", targets, "the targets", x->shape[last]);
    }
    if (chosen && !attn_tensor_same_shape(chosen, &rows)) {
        attn_tape_raise(tape, ATTN_ERR_SHAPE,
                        "cross_entropy: targets of shape %s do not fit logits of shape %s",
                        attn_shape_text(chosen).text, attn_shape_text(x).text);
    }
    if (!chosen || !attn_tape_healthy(tape)) {
        return attn_tape_failed(tape);
    }
    attn_tensor indices = *chosen;
    indices.shape[indices.ndim] = 1;
    indices.stride[indices.ndim++] = 1;
    const attn_var log_probabilities = attn_log_softmax(logits, -1);
    const attn_var of_targets = attn_tape_pick(log_probabilities, last, &indices);
    return attn_scale(attn_mean_all(of_targets), -1);
}

// a and b of one shape -> ()
attn_var attn_mse_loss(attn_var a, attn_var b)
{
    const attn_var inputs[] = {a, b};
    attn_tape *tape;
    if (!attn_tape_enter("mse_loss", inputs, 2, &tape)) {
        return attn_tape_failed(tape);
    }
    if (!attn_tensor_same_shape(attn_tape_value(a), attn_tape_value(b))) {
        attn_tape_raise(tape, ATTN_ERR_SHAPE, "mse_loss: shapes %s and %s differ",
                        attn_shape_text(attn_tape_value(a)).text,
                        attn_shape_text(attn_tape_value(b)).text);
        return attn_tape_failed(tape);
    }
    const attn_var difference = attn_subtract(a, b);
    return attn_mean_all(attn_multiply(difference, difference));
}
