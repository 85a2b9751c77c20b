// attn/tape.h: eager operations that remember how to go back.
//
// An op computes its result at once and records what its gradient needs. Values live in the tape's
// arena; an `attn_var` is a small handle {tape, index, generation}, so use after a reset is found
// out. Errors are sticky: after the first one every op returns a var of the failed tape and does
// nothing (and draws no random numbers), so a chain is written without checks and the tape is asked
// once:
//
//   attn_var scores  = attn_matmul(query, attn_transpose(key, -2, -1));
//   attn_var weights = attn_softmax(attn_scale(scores, 1 / sqrt(head_dim)), -1);
//   attn_var context = attn_matmul(weights, value);
//   if (attn_tape_status(tape) != ATTN_OK) puts(attn_tape_error(tape)->text);
//
// A NULL tape counts as failed, and its ops return ATTN_NO_VAR. What an op may report: SHAPE, DTYPE,
// INVALID_ARGUMENT, STATE (a stale var, or one of another tape), NOT_CONTIGUOUS (view), OVERLAP (borrow),
// OVERFLOW, OUT_OF_MEMORY.
//
// Binary ops broadcast as torch does. Dims may be negative (from the end). Shapes in the comments:
// `...` is any number of leading dims. All vars of an op have one dtype, float32 or float64.
//
// Gradients are themselves made of tape ops: attn_backward runs them without recording;
// attn_gradients with `differentiable` records them, so that a gradient of a gradient works.
#ifndef ATTN_TAPE_H
#define ATTN_TAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attn/context.h"
#include "attn/export.h"
#include "attn/random.h"
#include "attn/sdpa.h"
#include "attn/status.h"
#include "attn/tensor.h"

ATTN_BEGIN_DECLS

typedef struct attn_tape attn_tape;

typedef struct attn_var {
    attn_tape *tape;
    uint32_t index;
    uint32_t generation;
} attn_var;

// The absent var, for optional arguments.
#define ATTN_NO_VAR ((attn_var){0})

// ---- the tape -----------------------------------------------------------------------------------

// A tape belongs to one thread at a time. Errors: OUT_OF_MEMORY.
ATTN_API attn_status attn_tape_create(const attn_context *context, attn_tape **tape,
                                      attn_error *error);
ATTN_API void attn_tape_destroy(attn_tape *tape); // takes NULL

// Forgets all vars and any error; keeps the memory, so that a repeated step allocates nothing.
ATTN_API void attn_tape_reset(attn_tape *tape);

// Forgets everything made after the mark (vars older than it stay valid); for evaluation and
// decoding loops. An error stays. Errors: STATE (a mark of another tape, of before a reset, or itself
// forgotten by an earlier release).
typedef struct attn_tape_mark {
    uint64_t opaque[6];
} attn_tape_mark;
ATTN_API attn_tape_mark attn_tape_get_mark(attn_tape *tape);
ATTN_API attn_status attn_tape_release(attn_tape *tape, attn_tape_mark mark, attn_error *error);

// Recording is on at creation. While off, ops compute but cannot be differentiated.
ATTN_API void attn_tape_set_recording(attn_tape *tape, bool recording);
ATTN_API bool attn_tape_recording(const attn_tape *tape);

ATTN_API attn_status attn_tape_status(const attn_tape *tape);
// The first error since creation or reset (its text names the op and the shapes); status ATTN_OK and
// an empty text when there was none. Never NULL.
ATTN_API const attn_error *attn_tape_error(const attn_tape *tape);
// Puts the tape into the failed state (for ops built on the tape); a first error stays.
ATTN_API void attn_tape_fail(attn_tape *tape, attn_status status, const char *text);

ATTN_API const attn_context *attn_tape_context(const attn_tape *tape);

// ---- leaves and values --------------------------------------------------------------------------

// Copies a tensor into the tape. `requires_grad`: its gradient is kept by attn_backward.
ATTN_API attn_var attn_input(attn_tape *tape, const attn_tensor *value, bool requires_grad);

// Borrows `value` (which must live until the reset or release) and, where `grad` is not NULL, adds
// this var's gradient to *grad in attn_backward: the way parameters enter a tape.
ATTN_API attn_var attn_borrow(attn_tape *tape, const attn_tensor *value, const attn_tensor *grad);

// A scalar constant.
ATTN_API attn_var attn_constant(attn_tape *tape, attn_dtype dtype, double value);

// The var's value: a read-only view into the tape. A stale or failed var gives an empty tensor of
// dtype NONE (and a stale one fails the tape).
ATTN_API attn_tensor attn_value(attn_var var);

// The gradient that the last attn_backward left for a leaf that requires one; dtype NONE when there
// is none. For a borrowed leaf it is the borrowed gradient, with all that was ever added to it.
ATTN_API attn_tensor attn_grad(attn_var var);

// The only element of a var with one element; NaN (and a failed tape) otherwise.
ATTN_API double attn_item(attn_var var);

// ---- going back ---------------------------------------------------------------------------------

// Gradients of a scalar with respect to every leaf that wants one; borrowed gradients are added to.
// All memory is reserved, and every gradient computed, before the first borrowed gradient is
// written. May be called again on the same record. A failure leaves the tape as it was. Errors: SHAPE
// (not a scalar), STATE (stale var, failed tape, not recorded, nothing to differentiate by),
// OUT_OF_MEMORY.
ATTN_API attn_status attn_backward(attn_var scalar, attn_error *error);

// The same from any var with an upstream gradient of its shape (vector-Jacobian product).
ATTN_API attn_status attn_backward_from(attn_var output, const attn_tensor *upstream,
                                        attn_error *error);

// d(scalar)/d(inputs[k]) as new vars on the tape; with `differentiable` they are recorded and can be
// differentiated again. An input that the scalar does not depend on gets zeros. Borrowed gradients
// are not touched. Errors: as attn_backward; STATE for an input that requires no gradient.
ATTN_API attn_status attn_gradients(attn_var scalar, const attn_var *inputs, int64_t count,
                                    bool differentiable, attn_var *gradients, attn_error *error);

// ---- elementwise --------------------------------------------------------------------------------

ATTN_API attn_var attn_add(attn_var a, attn_var b);
ATTN_API attn_var attn_subtract(attn_var a, attn_var b);
ATTN_API attn_var attn_multiply(attn_var a, attn_var b);
ATTN_API attn_var attn_divide(attn_var a, attn_var b);
ATTN_API attn_var attn_scale(attn_var a, double factor);
ATTN_API attn_var attn_exp(attn_var a);
ATTN_API attn_var attn_log(attn_var a);
ATTN_API attn_var attn_tanh(attn_var a);

// ---- shape (views where strides allow; `view` is refused where they do not) -----------------------

ATTN_API attn_var attn_view(attn_var a, int32_t ndim, const int64_t *shape);
ATTN_API attn_var attn_transpose(attn_var a, int32_t dim0, int32_t dim1);
ATTN_API attn_var attn_contiguous(attn_var a);
ATTN_API attn_var attn_expand(attn_var a, int32_t ndim, const int64_t *shape);
ATTN_API attn_var attn_slice(attn_var a, int32_t dim, int64_t start, int64_t stop);
ATTN_API attn_var attn_select(attn_var a, int32_t dim, int64_t index);
ATTN_API attn_var attn_cat(const attn_var *vars, int64_t count, int32_t dim);
ATTN_API attn_var attn_stack(const attn_var *vars, int64_t count, int32_t dim);

// ---- masks: over the last two dims ----------------------------------------------------------------

ATTN_API attn_var attn_tril(attn_var a, int64_t diagonal); // keeps column - row <= diagonal
ATTN_API attn_var attn_triu(attn_var a, int64_t diagonal); // keeps column - row >= diagonal
// value where `mask` (bool or uint8, broadcast to a's shape) is true; a elsewhere. The mask is copied.
ATTN_API attn_var attn_masked_fill(attn_var a, const attn_tensor *mask, double value);

// ---- reductions -----------------------------------------------------------------------------------

ATTN_API attn_var attn_sum(attn_var a, int32_t dim, bool keep_dim);
ATTN_API attn_var attn_mean(attn_var a, int32_t dim, bool keep_dim);
ATTN_API attn_var attn_max(attn_var a, int32_t dim, bool keep_dim); // gradient to the first maximum
ATTN_API attn_var attn_sum_all(attn_var a);
ATTN_API attn_var attn_mean_all(attn_var a);
// A row of nothing but -inf gives NaN, as torch's.
ATTN_API attn_var attn_softmax(attn_var a, int32_t dim);
ATTN_API attn_var attn_log_softmax(attn_var a, int32_t dim);

// ---- products -------------------------------------------------------------------------------------

// a (..., M, K) times b (..., K, N) = (..., M, N); leading dims broadcast; any strides.
ATTN_API attn_var attn_matmul(attn_var a, attn_var b);

// x (..., in) times weight (out, in) transposed, plus bias (out) unless it is ATTN_NO_VAR.
ATTN_API attn_var attn_linear(attn_var x, attn_var weight, attn_var bias);

// attn_sdpa_forward on vars: query (B,Hq,Tq,D), key, value. `desc` and the lists it names are copied;
// the elements of keep, bias and dropout_keep are borrowed and must live until the reset. bias and
// sinks, where not ATTN_NO_VAR, replace desc's fields and get gradients. lse may be NULL. Gradients
// that are to be differentiated again are composed from other ops and take T x T memory.
ATTN_API attn_var attn_scaled_dot_product_attention(attn_var query, attn_var key, attn_var value,
                                                    attn_var bias, attn_var sinks,
                                                    const attn_sdpa_desc *desc, attn_var *lse);

// ---- training -------------------------------------------------------------------------------------

// torch's element-wise dropout: draws a keep-mask from the generator (nothing when p = 0 or not
// training), survivors times 1/(1-p).
ATTN_API attn_var attn_dropout(attn_var a, double p, bool training, attn_generator *generator);

// Rows of weight (N, E) chosen by int64 or int32 indices of any shape (...): (..., E).
ATTN_API attn_var attn_embedding(attn_var weight, const attn_tensor *indices);

// Mean over rows of -log_softmax(logits (..., C))[target], targets (...) int64 or int32 in [0, C).
ATTN_API attn_var attn_cross_entropy(attn_var logits, const attn_tensor *targets);

// Mean of (a - b)^2 over all elements of two vars of one shape.
ATTN_API attn_var attn_mse_loss(attn_var a, attn_var b);

// ---- checking gradients ---------------------------------------------------------------------------

// A scalar function of `count` inputs on a tape.
typedef attn_var (*attn_scalar_function)(attn_tape *tape, const attn_var *inputs, int64_t count,
                                         void *user);

typedef struct attn_gradcheck_report {
    int64_t input;                // which input holds the worst element
    int64_t index[ATTN_MAX_DIMS]; // where
    double analytic, numeric;     // its two derivatives
    double error;                 // |analytic - numeric| / max(floor, |analytic|, |numeric|)
    int64_t checked;              // elements compared
    bool passed;                  // error <= tolerance for every element
} attn_gradcheck_report;

// Compares attn_backward with central differences (step `step` * max(1, |x|), Richardson
// extrapolated once) for every element of every float64 input. `floor` is the absolute size below
// which errors count as absolute. Errors: INVALID_ARGUMENT, DTYPE (not float64), and whatever the
// function's tape reports.
ATTN_API attn_status attn_gradcheck(const attn_context *context, attn_scalar_function function,
                                    void *user, const attn_tensor *inputs, int64_t count,
                                    double step, double tolerance, double floor,
                                    attn_gradcheck_report *report, attn_error *error);

ATTN_END_DECLS

#endif
