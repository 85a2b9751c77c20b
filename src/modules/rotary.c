#include "modules/rotary.h"

#include <math.h>

#include "core/element.h"
#include "tape/tape.h"

// Cosines and sines of T positions and D / 2 pairs, in double: elements are rounded once.
typedef struct rotation {
    attn_rotary_style style;
    int64_t length, pairs;
    const double *cosines, *sines; // (length, pairs)
    double direction;              // 1, or -1 to turn back
} rotation;

static bool make_rotation(attn_tape *tape, double base, int64_t position, rotation *by);
static attn_var rotate(attn_var x, const rotation *by);
static void rotate_rows(const attn_tensor *in, const attn_tensor *out, const rotation *by,
                        double *row);

attn_var attn_rotary(attn_var x, attn_rotary_style style, double base, int64_t position)
{
    // x: (..., T, D)
    attn_tape *tape;
    if (!attn_tape_enter("rotary", &x, 1, &tape)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *value = attn_tape_value(x);
    rotation by = {.style = style,
                   .length = value->shape[value->ndim - 2],
                   .pairs = value->shape[value->ndim - 1] / 2,
                   .direction = 1};
    return make_rotation(tape, base, position, &by) ? rotate(x, &by) : attn_tape_failed(tape);
}

static bool make_rotation(attn_tape *tape, double base, int64_t position, rotation *by)
{
    const int64_t length = by->length, pairs = by->pairs, count = length * pairs;
    double *cosines = attn_tape_allocate(tape, "rotary", count, sizeof *cosines);
    double *sines = attn_tape_allocate(tape, "rotary", count, sizeof *sines);
    if (!cosines || !sines) {
        return false;
    }
    for (int64_t i = 0; i < pairs; i++) {
        const double frequency = pow(base, -(double)i / (double)pairs);
        for (int64_t t = 0; t < length; t++) {
            const double angle = (double)(position + t) * frequency;
            cosines[t * pairs + i] = cos(angle);
            sines[t * pairs + i] = sin(angle);
        }
    }
    by->cosines = cosines;
    by->sines = sines;
    return true;
}

// ---- the op -------------------------------------------------------------------------------------

static void rotate_backward(const attn_tape_back *back);
static const attn_tape_op rotate_op = {"rotary", rotate_backward};

static attn_var rotate(attn_var x, const rotation *by)
{
    attn_tape *tape;
    if (!attn_tape_enter(rotate_op.name, &x, 1, &tape)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor in = *attn_tape_value(x);
    attn_tensor out;
    double *row = attn_tape_allocate(tape, rotate_op.name, 2 * by->pairs, sizeof *row);
    if (!row || !attn_tape_tensor(tape, rotate_op.name, in.dtype, in.ndim, in.shape, &out)) {
        return attn_tape_failed(tape);
    }
    rotate_rows(&in, &out, by, row);
    return attn_tape_push(tape, &rotate_op, &x, 1, &out, by, sizeof *by);
}

// A rotation's transpose turns back.
static void rotate_backward(const attn_tape_back *back)
{
    rotation by = *(const rotation *)back->payload;
    by.direction = -by.direction;
    back->gradients[0] = rotate(back->upstream[0], &by);
}

// ---- the numbers --------------------------------------------------------------------------------

static void rotate_row(double *row, const rotation *by, int64_t t)
{
    const bool half_split = by->style == ATTN_ROTARY_HALF_SPLIT;
    for (int64_t i = 0; i < by->pairs; i++) {
        const int64_t first = half_split ? i : 2 * i;
        const int64_t second = half_split ? i + by->pairs : 2 * i + 1;
        const double a = row[first], b = row[second];
        const double cosine = by->cosines[t * by->pairs + i];
        const double sine = by->direction * by->sines[t * by->pairs + i];
        row[first] = a * cosine - b * sine;
        row[second] = b * cosine + a * sine;
    }
}

// out is row-major; in has any strides. `row` holds one row.
static void rotate_rows(const attn_tensor *in, const attn_tensor *out, const rotation *by,
                        double *row)
{
    const int64_t width = 2 * by->pairs;
    const size_t size = attn_dtype_size(in->dtype);
    const int64_t rows = width > 0 ? attn_tensor_count(in) / width : 0;
    int64_t index[ATTN_MAX_DIMS] = {0}; // of the row, over all dims but the last
    for (int64_t r = 0; r < rows; r++) {
        int64_t offset = 0;
        for (int32_t d = 0; d < in->ndim - 1; d++) {
            offset += index[d] * in->stride[d];
        }
        attn_row_load(in->dtype, (const char *)in->data + offset * (int64_t)size,
                      in->stride[in->ndim - 1], width, row);
        rotate_row(row, by, index[in->ndim - 2]);
        attn_row_store(out->dtype, (char *)out->data + r * width * (int64_t)size, 1, width, row);
        for (int32_t d = in->ndim - 2; d >= 0 && ++index[d] == in->shape[d]; d--) {
            index[d] = 0;
        }
    }
}
