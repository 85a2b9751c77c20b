// dropout by torch's stream, and multiplying by a mask of bits.
#include <string.h>

#include "tape/loop.h"
#include "tape/ops/ops.h"
#include "tape/rows.h"
#include "tape/tape.h"

static double survivor_scale(attn_dtype dtype, double p);

attn_var attn_dropout(attn_var a, double p, bool training, attn_generator *generator)
{
    attn_tape *tape;
    if (!attn_tape_enter("dropout", &a, 1, &tape)) {
        return attn_tape_failed(tape);
    }
    if (!(p >= 0 && p < 1)) {
        attn_tape_raise(tape, ATTN_ERR_INVALID_ARGUMENT, "dropout: p (%g) must be in [0, 1)", p);
        return attn_tape_failed(tape);
    }
    if (!training || p == 0) {
        return a;
    }
    if (!generator) {
        attn_tape_raise(tape, ATTN_ERR_INVALID_ARGUMENT,
                        "dropout: training with p = %g needs a generator", p);
        return attn_tape_failed(tape);
    }
    // One row of bits per row of the last dim, each padded to whole bytes.
    const attn_tensor *const x = attn_tape_value(a);
    attn_tensor bits = *x;
    const int64_t columns = x->ndim > 0 ? x->shape[x->ndim - 1] : 1;
    if (x->ndim > 0) {
        bits.shape[x->ndim - 1] = columns / 8 + (columns % 8 != 0);
    }
    if (!attn_tape_tensor(tape, "dropout", ATTN_U8, x->ndim, bits.shape, &bits)) {
        return attn_tape_failed(tape);
    }
    attn_generator_state before;
    attn_generator_save(generator, &before);
    attn_error error;
    if (attn_tape_draw_bits(generator, p, &bits, columns, &error) != ATTN_OK) {
        return attn_tape_pass_on(tape, &error);
    }
    const attn_var y = attn_tape_keep_bits(a, &bits, survivor_scale(x->dtype, p));
    if (!attn_tape_healthy(tape)) {
        (void)attn_generator_restore(generator, &before, NULL); // as if nothing had been drawn
    }
    return y;
}

// torch divides its mask by 1 - p in the tensor's own precision.
static double survivor_scale(attn_dtype dtype, double p)
{
    return dtype == ATTN_F32 ? (double)(1.0F / (float)(1 - p)) : 1 / (1 - p);
}

// A piece of a row at a time: a whole mask of bytes never exists.
attn_status attn_tape_draw_bits(attn_generator *generator, double p, const attn_tensor *bits,
                                int64_t columns, attn_error *error)
{
    enum { PIECE = 1024 };
    const int64_t row_bytes = columns / 8 + (columns % 8 != 0);
    const int64_t rows = row_bytes > 0 ? attn_tensor_count(bits) / row_bytes : 0;
    for (int64_t r = 0; r < rows; r++) {
        uint8_t *const row = (uint8_t *)bits->data + r * row_bytes;
        memset(row, 0, (size_t)row_bytes);
        for (int64_t done = 0; done < columns; done += PIECE) {
            const int64_t count = columns - done < PIECE ? columns - done : PIECE;
            uint8_t keep[PIECE];
            const attn_tensor piece = attn_tensor_wrap(keep, ATTN_U8, 1, &count);
            const attn_status status = attn_dropout_mask(generator, p, &piece, error);
            if (status != ATTN_OK) {
                return status;
            }
            for (int64_t i = 0; i < count; i++) {
                row[(done + i) / 8] |= (uint8_t)(keep[i] << (done + i) % 8);
            }
        }
    }
    return ATTN_OK;
}

// ---- the mask as an op --------------------------------------------------------------------------

struct kept {
    attn_tensor bits;
    double scale;
};

// The mask is a constant factor: the gradient meets it again.
static void keep_bits_backward(const attn_tape_back *back)
{
    const struct kept *const kept = back->payload;
    back->gradients[0] = attn_tape_keep_bits(back->upstream[0], &kept->bits, kept->scale);
}

attn_var attn_tape_keep_bits(attn_var a, const attn_tensor *bits, double scale)
{
    static const attn_tape_op op = {"dropout", keep_bits_backward};
    attn_tape *tape;
    if (!attn_tape_enter(op.name, &a, 1, &tape)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *const x = attn_tape_value(a);
    attn_tensor y;
    if (!attn_tape_tensor(tape, op.name, x->dtype, x->ndim, x->shape, &y)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *const rows[] = {&y, x, bits};
    attn_loop_rows(tape->context, rows, 3, x->ndim - 1, attn_row_of(x->dtype, ATTN_ROW_DROPOUT),
                   &scale);
    const struct kept kept = {*bits, scale};
    return attn_tape_push(tape, &op, &a, 1, &y, &kept, sizeof kept);
}
