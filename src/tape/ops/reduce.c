// sum, mean and what is made of them; max is in pick.c. A sum adds in row-major order in double,
// whatever the strides, and rounds once.
#include <string.h>

#include "core/element.h"
#include "core/layout.h"
#include "tape/loop.h"
#include "tape/ops/ops.h"
#include "tape/rows.h"
#include "tape/tape.h"

static attn_var reduce(const attn_tape_op *op, attn_var a, const bool *reduced, int32_t ndim,
                       const int64_t *shape);
static attn_var reduce_dim(const attn_tape_op *op, attn_var a, int32_t dim, bool keep_dim);

// Every element that was added gets the sum's gradient. A reduction's payload is its shape with the
// reduced dims as size 1, which broadcasts back.
static void sum_backward(const attn_tape_back *back)
{
    const attn_tape_shape *const kept = back->payload;
    const attn_tensor *const x = attn_tape_value(back->inputs[0]);
    const attn_var grad = attn_tape_reshape(back->upstream[0], kept->ndim, kept->sizes);
    back->gradients[0] = attn_expand(grad, x->ndim, x->shape);
}

static const attn_tape_op sum_op = {"sum", sum_backward};

attn_var attn_sum(attn_var a, int32_t dim, bool keep_dim)
{
    return reduce_dim(&sum_op, a, dim, keep_dim);
}

// The sum's gradient divided by how many elements were averaged.
static void mean_backward(const attn_tape_back *back)
{
    const attn_tensor *const x = attn_tape_value(back->inputs[0]);
    const attn_tensor *const y = attn_tape_value(back->outputs[0]);
    const int64_t elements = attn_tensor_count(x);
    sum_backward(back);
    if (elements > 0) {
        const int64_t averaged = elements / attn_tensor_count(y);
        const attn_var count = attn_constant(back->tape, x->dtype, (double)averaged);
        back->gradients[0] = attn_divide(back->gradients[0], count);
    }
}

static const attn_tape_op mean_op = {"mean", mean_backward};

attn_var attn_mean(attn_var a, int32_t dim, bool keep_dim)
{
    return reduce_dim(&mean_op, a, dim, keep_dim);
}

attn_var attn_sum_all(attn_var a)
{
    const bool all[ATTN_MAX_DIMS] = {true, true, true, true, true, true, true, true};
    return reduce(&sum_op, a, all, 0, NULL);
}

attn_var attn_mean_all(attn_var a)
{
    const bool all[ATTN_MAX_DIMS] = {true, true, true, true, true, true, true, true};
    return reduce(&mean_op, a, all, 0, NULL);
}

attn_var attn_tape_sum_to(attn_var a, int32_t ndim, const int64_t *shape)
{
    attn_tape *tape;
    if (!attn_tape_enter("sum", &a, 1, &tape)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *const x = attn_tape_value(a);
    bool reduced[ATTN_MAX_DIMS] = {false}, any = x->ndim != ndim;
    for (int32_t d = 0; d < x->ndim; d++) {
        const int32_t to = d - (x->ndim - ndim);
        reduced[d] = to < 0 || shape[to] != x->shape[d];
        any = any || reduced[d];
    }
    return any ? reduce(&sum_op, a, reduced, ndim, shape) : a;
}

attn_var attn_tape_sum_to_like(attn_var a, attn_var like)
{
    const attn_tensor *const x = attn_tape_value(like);
    return attn_tape_sum_to(a, x->ndim, x->shape);
}

static attn_var reduce_dim(const attn_tape_op *op, attn_var a, int32_t dim, bool keep_dim)
{
    attn_tape *tape;
    if (!attn_tape_enter(op->name, &a, 1, &tape) || !attn_tape_dim(tape, op->name, a, &dim)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *const x = attn_tape_value(a);
    bool reduced[ATTN_MAX_DIMS] = {false};
    int64_t shape[ATTN_MAX_DIMS];
    int32_t ndim = 0;
    reduced[dim] = true;
    for (int32_t d = 0; d < x->ndim; d++) {
        if (d != dim || keep_dim) {
            shape[ndim++] = d == dim ? 1 : x->shape[d];
        }
    }
    return reduce(op, a, reduced, ndim, shape);
}

// ---- the computation ----------------------------------------------------------------------------

// What every row of the result needs: the dims it sums over, outermost first.
struct reduction {
    int32_t ndim;
    int64_t shape[ATTN_MAX_DIMS], stride[ATTN_MAX_DIMS]; // of the reduced dims, in elements
    double divisor;
    attn_dtype dtype;
};

static void reduce_row(const attn_row *row, const void *user);

// Sums `a` over the reduced dims into a tensor of `shape`, which has them as size 1 or not at all.
static attn_var reduce(const attn_tape_op *op, attn_var a, const bool *reduced, int32_t ndim,
                       const int64_t *shape)
{
    attn_tape *tape;
    if (!attn_tape_enter(op->name, &a, 1, &tape)) {
        return attn_tape_failed(tape);
    }
    const attn_tensor *const x = attn_tape_value(a);
    struct reduction reduction = {.divisor = 1, .dtype = x->dtype};
    attn_tape_shape kept = {.ndim = x->ndim};
    int64_t averaged = 1;
    attn_tensor start = *x; // the first of the elements behind each result
    for (int32_t d = 0; d < x->ndim; d++) {
        kept.sizes[d] = reduced[d] ? 1 : x->shape[d];
        start.shape[d] = kept.sizes[d];
        if (reduced[d]) {
            averaged *= x->shape[d];
            reduction.shape[reduction.ndim] = x->shape[d];
            reduction.stride[reduction.ndim++] = x->stride[d];
        }
    }
    if (op == &mean_op) {
        reduction.divisor = (double)averaged;
    }
    attn_tensor y;
    if (!attn_tape_tensor(tape, op->name, x->dtype, ndim, shape, &y)) {
        return attn_tape_failed(tape);
    }
    attn_tensor result = y; // with the reduced dims as size 1
    result.ndim = x->ndim;
    memcpy(result.shape, kept.sizes, sizeof result.shape);
    attn_row_major(result.ndim, result.shape, result.stride);
    const attn_tensor *const rows[] = {&result, &start};
    attn_loop_elements(tape->context, rows, 2, reduce_row, &reduction);
    return attn_tape_push(tape, op, &a, 1, &y, &kept, sizeof kept);
}

enum { TILE = 64 }; // results summed side by side, so that neighbours share cache lines

static void accumulate(const struct reduction *reduction, double *sums, int64_t count,
                       const char *first, int64_t stride);

static void reduce_row(const attn_row *row, const void *user)
{
    const struct reduction *const reduction = user;
    const int64_t size = (int64_t)attn_dtype_size(reduction->dtype);
    for (int64_t done = 0; done < row->count; done += TILE) {
        const int64_t count = row->count - done < TILE ? row->count - done : TILE;
        double sums[TILE] = {0};
        accumulate(reduction, sums, count, (char *)row->data[1] + done * row->stride[1] * size,
                   row->stride[1]);
        char *const out = (char *)row->data[0] + done * row->stride[0] * size;
        for (int64_t i = 0; i < count; i++) {
            sums[i] /= reduction->divisor;
        }
        attn_row_store(reduction->dtype, out, row->stride[0], count, sums);
    }
}

// Adds all elements at the indices of the reduced dims, in row-major order.
static void accumulate(const struct reduction *reduction, double *sums, int64_t count,
                       const char *first, int64_t stride)
{
    const int64_t size = (int64_t)attn_dtype_size(reduction->dtype);
    const int32_t last = reduction->ndim - 1; // the dim that the kernel runs along; -1: none
    const int64_t depth = last >= 0 ? reduction->shape[last] : 1;
    const int64_t depth_stride = last >= 0 ? reduction->stride[last] : 0;
    int64_t index[ATTN_MAX_DIMS] = {0}, steps = 1;
    for (int32_t d = 0; d < last; d++) {
        steps *= reduction->shape[d];
    }
    const char *at = first;
    for (int64_t step = 0; step < steps; step++) {
        if (reduction->dtype == ATTN_F32) {
            attn_row_accumulate_f32(sums, count, at, stride, depth, depth_stride);
        } else {
            attn_row_accumulate_f64(sums, count, at, stride, depth, depth_stride);
        }
        for (int32_t d = last - 1; d >= 0; d--) {
            at += reduction->stride[d] * size;
            if (++index[d] < reduction->shape[d]) {
                break;
            }
            at -= reduction->shape[d] * reduction->stride[d] * size;
            index[d] = 0;
        }
    }
}
