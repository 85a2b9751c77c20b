// tape/text_rows.h: the rows of tape/rows.h, once per element type; the including file defines
// ATTN_REAL_BITS. Transcendental functions are evaluated in double and rounded once.
#include <math.h>

#include "kernels/real.h"
#include "tape/rows.h"

// ---- elementwise --------------------------------------------------------------------------------

static void row_copy(const attn_row *row, const void *user)
{
    (void)user;
    real *const out = row->data[0];
    const real *const a = row->data[1];
    for (int64_t i = 0; i < row->count; i++) {
        out[i * row->stride[0]] = a[i * row->stride[1]];
    }
}

static void row_fill(const attn_row *row, const void *user)
{
    real *const out = row->data[0];
    const real value = (real) * (const double *)user;
    for (int64_t i = 0; i < row->count; i++) {
        out[i * row->stride[0]] = value;
    }
}

static void row_add(const attn_row *row, const void *user)
{
    (void)user;
    real *const out = row->data[0];
    const real *const a = row->data[1], *const b = row->data[2];
    for (int64_t i = 0; i < row->count; i++) {
        out[i * row->stride[0]] = a[i * row->stride[1]] + b[i * row->stride[2]];
    }
}

static void row_subtract(const attn_row *row, const void *user)
{
    (void)user;
    real *const out = row->data[0];
    const real *const a = row->data[1], *const b = row->data[2];
    for (int64_t i = 0; i < row->count; i++) {
        out[i * row->stride[0]] = a[i * row->stride[1]] - b[i * row->stride[2]];
    }
}

static void row_multiply(const attn_row *row, const void *user)
{
    (void)user;
    real *const out = row->data[0];
    const real *const a = row->data[1], *const b = row->data[2];
    for (int64_t i = 0; i < row->count; i++) {
        out[i * row->stride[0]] = a[i * row->stride[1]] * b[i * row->stride[2]];
    }
}

static void row_divide(const attn_row *row, const void *user)
{
    (void)user;
    real *const out = row->data[0];
    const real *const a = row->data[1], *const b = row->data[2];
    for (int64_t i = 0; i < row->count; i++) {
        out[i * row->stride[0]] = a[i * row->stride[1]] / b[i * row->stride[2]];
    }
}

static void row_scale(const attn_row *row, const void *user)
{
    real *const out = row->data[0];
    const real *const a = row->data[1];
    const real factor = (real) * (const double *)user;
    for (int64_t i = 0; i < row->count; i++) {
        out[i * row->stride[0]] = a[i * row->stride[1]] * factor;
    }
}

static void row_exp(const attn_row *row, const void *user)
{
    (void)user;
    real *const out = row->data[0];
    const real *const a = row->data[1];
    for (int64_t i = 0; i < row->count; i++) {
        out[i * row->stride[0]] = (real)exp(a[i * row->stride[1]]);
    }
}

static void row_log(const attn_row *row, const void *user)
{
    (void)user;
    real *const out = row->data[0];
    const real *const a = row->data[1];
    for (int64_t i = 0; i < row->count; i++) {
        out[i * row->stride[0]] = (real)log(a[i * row->stride[1]]);
    }
}

static void row_tanh(const attn_row *row, const void *user)
{
    (void)user;
    real *const out = row->data[0];
    const real *const a = row->data[1];
    for (int64_t i = 0; i < row->count; i++) {
        out[i * row->stride[0]] = (real)tanh(a[i * row->stride[1]]);
    }
}

static void row_select(const attn_row *row, const void *user)
{
    real *const out = row->data[0];
    const real *const a = row->data[1];
    const uint8_t *const mask = row->data[2];
    const real value = (real) * (const double *)user;
    for (int64_t i = 0; i < row->count; i++) {
        out[i * row->stride[0]] = mask[i * row->stride[2]] ? value : a[i * row->stride[1]];
    }
}

static void row_dropout(const attn_row *row, const void *user)
{
    real *const out = row->data[0];
    const real *const a = row->data[1];
    const uint8_t *const bits = row->data[2];
    const real scale = (real) * (const double *)user;
    for (int64_t i = 0; i < row->count; i++) {
        const real factor = bits[i / 8 * row->stride[2]] >> i % 8 & 1 ? scale : 0;
        out[i * row->stride[0]] = a[i * row->stride[1]] * factor;
    }
}

// ---- along a row --------------------------------------------------------------------------------

// The largest element, ignoring NaN (which reaches the result through its own exponential).
static double largest(const real *a, int64_t stride, int64_t count)
{
    double most = -INFINITY;
    for (int64_t i = 0; i < count; i++) {
        const double x = a[i * stride];
        most = x > most ? x : most;
    }
    return most;
}

static void row_softmax(const attn_row *row, const void *user)
{
    (void)user;
    real *const out = row->data[0];
    const real *const a = row->data[1];
    const double most = largest(a, row->stride[1], row->count);
    double sum = 0;
    for (int64_t i = 0; i < row->count; i++) {
        const double e = exp(a[i * row->stride[1]] - most);
        out[i * row->stride[0]] = (real)e;
        sum += e;
    }
    for (int64_t i = 0; i < row->count; i++) {
        out[i * row->stride[0]] = (real)(out[i * row->stride[0]] / sum);
    }
}

static void row_log_softmax(const attn_row *row, const void *user)
{
    (void)user;
    real *const out = row->data[0];
    const real *const a = row->data[1];
    const double most = largest(a, row->stride[1], row->count);
    double sum = 0;
    for (int64_t i = 0; i < row->count; i++) {
        sum += exp(a[i * row->stride[1]] - most);
    }
    const double log_sum = log(sum);
    for (int64_t i = 0; i < row->count; i++) {
        out[i * row->stride[0]] = (real)(a[i * row->stride[1]] - most - log_sum);
    }
}

static void row_argmax(const attn_row *row, const void *user)
{
    (void)user;
    const real *const a = row->data[0];
    int64_t first = 0;
    for (int64_t i = 1; i < row->count && !isnan(a[first * row->stride[0]]); i++) {
        const real x = a[i * row->stride[0]];
        first = x > a[first * row->stride[0]] || isnan(x) ? i : first;
    }
    *(int64_t *)row->data[1] = first;
}

static void row_pick(const attn_row *row, const void *user)
{
    (void)user;
    const int64_t index = *(const int64_t *)row->data[2];
    *(real *)row->data[0] = ((const real *)row->data[1])[index * row->stride[1]];
}

static void row_place(const attn_row *row, const void *user)
{
    (void)user;
    real *const out = row->data[0];
    for (int64_t i = 0; i < row->count; i++) {
        out[i * row->stride[0]] = 0;
    }
    const int64_t index = *(const int64_t *)row->data[2];
    out[index * row->stride[0]] = *(const real *)row->data[1];
}

static void row_look_up(const attn_row *row, const void *user)
{
    const attn_tensor *const table = user;
    real *const out = row->data[0];
    const int64_t index = *(const int64_t *)row->data[1];
    const real *const chosen = (const real *)table->data + index * table->stride[0];
    for (int64_t i = 0; i < row->count; i++) {
        out[i * row->stride[0]] = chosen[i * table->stride[1]];
    }
}

void REAL_NAME(attn_row_accumulate)(double *sums, int64_t count, const void *a, int64_t stride,
                                    int64_t depth, int64_t depth_stride)
{
    for (int64_t j = 0; j < depth; j++) {
        const real *const x = (const real *)a + j * depth_stride;
        for (int64_t i = 0; i < count; i++) {
            sums[i] += x[i * stride];
        }
    }
}

const attn_row_function REAL_NAME(attn_row_table)[ATTN_ROW_KINDS] = {
    [ATTN_ROW_COPY] = row_copy,         [ATTN_ROW_FILL] = row_fill,
    [ATTN_ROW_ADD] = row_add,           [ATTN_ROW_SUBTRACT] = row_subtract,
    [ATTN_ROW_MULTIPLY] = row_multiply, [ATTN_ROW_DIVIDE] = row_divide,
    [ATTN_ROW_SCALE] = row_scale,       [ATTN_ROW_EXP] = row_exp,
    [ATTN_ROW_LOG] = row_log,           [ATTN_ROW_TANH] = row_tanh,
    [ATTN_ROW_SELECT] = row_select,     [ATTN_ROW_DROPOUT] = row_dropout,
    [ATTN_ROW_SOFTMAX] = row_softmax,   [ATTN_ROW_LOG_SOFTMAX] = row_log_softmax,
    [ATTN_ROW_ARGMAX] = row_argmax,     [ATTN_ROW_PICK] = row_pick,
    [ATTN_ROW_PLACE] = row_place,       [ATTN_ROW_LOOK_UP] = row_look_up,
};
