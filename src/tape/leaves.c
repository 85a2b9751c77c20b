// How values come onto the tape and are read from it.
#include <math.h>

#include "core/layout.h"
#include "core/text.h"
#include "tape/loop.h"
#include "tape/tape.h"

static bool check_leaf(attn_tape *tape, const char *op, const attn_tensor *value);
static attn_var push_leaf(attn_tape *tape, const char *op, const attn_tensor *value,
                          bool requires_grad, const attn_tensor *borrowed);

attn_var attn_input(attn_tape *tape, const attn_tensor *value, bool requires_grad)
{
    attn_tensor copy;
    if (!check_leaf(tape, "input", value) ||
        !attn_tape_tensor(tape, "input", value->dtype, value->ndim, value->shape, &copy)) {
        return attn_tape_failed(tape);
    }
    attn_loop_copy(tape->context, value, &copy);
    return push_leaf(tape, "input", &copy, requires_grad, NULL);
}

attn_var attn_borrow(attn_tape *tape, const attn_tensor *value, const attn_tensor *grad)
{
    if (!check_leaf(tape, "borrow", value)) {
        return attn_tape_failed(tape);
    }
    if (!grad) {
        return push_leaf(tape, "borrow", value, false, NULL);
    }
    attn_error error;
    if (attn_tensor_check(grad, "borrow: the gradient", &error) != ATTN_OK) {
        return attn_tape_pass_on(tape, &error);
    }
    if (!attn_tensor_same_shape(value, grad)) {
        attn_tape_raise(tape, ATTN_ERR_SHAPE, "borrow: value %s and gradient %s differ in shape",
                        attn_shape_text(value).text, attn_shape_text(grad).text);
    } else if (value->dtype != grad->dtype) {
        attn_tape_raise(tape, ATTN_ERR_DTYPE, "borrow: the value is %s but the gradient is %s",
                        attn_dtype_name(value->dtype), attn_dtype_name(grad->dtype));
    } else if (grad->flags & ATTN_TENSOR_READ_ONLY) {
        attn_tape_raise(tape, ATTN_ERR_INVALID_ARGUMENT, "borrow: the gradient is read-only");
    } else if (attn_overlaps_itself(grad) || attn_overlaps(grad, value)) {
        attn_tape_raise(tape, ATTN_ERR_OVERLAP, "borrow: the gradient overlaps %s",
                        attn_overlaps_itself(grad) ? "itself" : "the value");
    }
    return push_leaf(tape, "borrow", value, true, grad);
}

attn_var attn_constant(attn_tape *tape, attn_dtype dtype, double value)
{
    if (!tape) {
        return ATTN_NO_VAR;
    }
    attn_tensor scalar;
    if (dtype != ATTN_F32 && dtype != ATTN_F64) {
        attn_tape_raise(tape, ATTN_ERR_DTYPE, "constant: %s is neither float32 nor float64",
                        attn_dtype_name(dtype));
    }
    if (!attn_tape_healthy(tape) || !attn_tape_tensor(tape, "constant", dtype, 0, NULL, &scalar)) {
        return attn_tape_failed(tape);
    }
    attn_loop_fill(tape->context, &scalar, value);
    return attn_tape_push(tape, NULL, NULL, 0, &scalar, NULL, 0);
}

static bool check_leaf(attn_tape *tape, const char *op, const attn_tensor *value)
{
    if (!tape || !attn_tape_healthy(tape)) {
        return false;
    }
    attn_error error;
    if (attn_tensor_check(value, op, &error) != ATTN_OK) {
        attn_tape_pass_on(tape, &error);
    } else if (value->dtype != ATTN_F32 && value->dtype != ATTN_F64) {
        attn_tape_raise(tape, ATTN_ERR_DTYPE, "%s: %s is neither float32 nor float64", op,
                        attn_dtype_name(value->dtype));
    }
    return attn_tape_healthy(tape);
}

static attn_var push_leaf(attn_tape *tape, const char *op, const attn_tensor *value,
                          bool requires_grad, const attn_tensor *borrowed)
{
    attn_tape_leaf *leaf = NULL;
    if (!attn_tape_healthy(tape) ||
        (requires_grad && !(leaf = attn_tape_allocate(tape, op, 1, sizeof *leaf)))) {
        return attn_tape_failed(tape);
    }
    const attn_var var = attn_tape_push(tape, NULL, NULL, 0, value, NULL, 0);
    if (requires_grad && attn_tape_healthy(tape)) {
        *leaf = (attn_tape_leaf){0};
        if (borrowed) {
            leaf->borrowed = *borrowed;
        }
        tape->nodes[var.index]->leaf = leaf;
        tape->nodes[var.index]->needs_grad = true;
    }
    return var;
}

// ---- reading ------------------------------------------------------------------------------------

// False for the absent var, a failed one, and (failing its tape) a stale one.
static bool is_readable(const char *what, attn_var var)
{
    attn_tape *tape;
    if (!var.tape || (var.index == ATTN_TAPE_NO_NODE && !attn_tape_healthy(var.tape))) {
        return false;
    }
    if (!attn_tape_healthy(var.tape)) { // what was computed before the error can still be read
        return attn_tape_is_live(var);
    }
    return attn_tape_enter(what, &var, 1, &tape);
}

attn_tensor attn_value(attn_var var)
{
    return is_readable("value", var) ? *attn_tape_value(var) : (attn_tensor){0};
}

attn_tensor attn_grad(attn_var var)
{
    if (!is_readable("grad", var)) {
        return (attn_tensor){0};
    }
    const attn_tape_leaf *const leaf = var.tape->nodes[var.index]->leaf;
    return leaf && leaf->backward == var.tape->backwards ? leaf->grad : (attn_tensor){0};
}

double attn_item(attn_var var)
{
    if (!is_readable("item", var)) {
        return NAN;
    }
    const attn_tensor *const value = attn_tape_value(var);
    if (attn_tensor_count(value) != 1) {
        attn_tape_raise(var.tape, ATTN_ERR_SHAPE, "item: the var has shape %s, not one element",
                        attn_shape_text(value).text);
        return NAN;
    }
    return value->dtype == ATTN_F32 ? (double)*(const float *)value->data
                                    : *(const double *)value->data;
}
