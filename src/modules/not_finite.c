// Where a NaN or an infinity came from.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "core/error.h"
#include "modules/optimizer.h"
#include "tape/tape.h"

typedef bool (*element_test)(double value);

// What masks write, -infinity, is no fault.
static bool is_nan_or_plus_infinity(double value)
{
    return isnan(value) || value == INFINITY;
}

static bool is_not_finite(double value)
{
    return !isfinite(value);
}

static attn_not_finite find_in(const char *name, const attn_tensor *tensor, element_test wanted)
{
    attn_not_finite found = {.name = name, .tensor = *tensor};
    if (tensor->dtype != ATTN_F32 && tensor->dtype != ATTN_F64) {
        return (attn_not_finite){0};
    }
    const int64_t count = attn_tensor_count(tensor);
    for (int64_t i = 0; i < count; i++) {
        found.value = attn_tensor_get(tensor, found.index);
        if (wanted(found.value)) {
            found.found = true;
            return found;
        }
        for (int32_t d = tensor->ndim - 1; d >= 0 && ++found.index[d] == tensor->shape[d]; d--) {
            found.index[d] = 0;
        }
    }
    return (attn_not_finite){0};
}

attn_not_finite attn_tape_first_not_finite(attn_var last)
{
    const attn_tape *tape = last.tape;
    attn_not_finite found = {0};
    if (!tape || last.index >= tape->count) {
        return found;
    }
    for (uint32_t i = 0; i <= last.index && !found.found; i++) {
        const attn_tape_node *node = tape->nodes[i];
        found = find_in(node->op ? node->op->name : NULL, &node->value, is_nan_or_plus_infinity);
    }
    return found;
}

attn_not_finite attn_trace_first_not_finite(const attn_trace *trace)
{
    attn_not_finite found = {0};
    for (int64_t i = 0; i < attn_trace_count(trace) && !found.found; i++) {
        const attn_named_tensor *entry = attn_trace_entry(trace, i);
        found = find_in(entry->name, &entry->tensor, is_nan_or_plus_infinity);
    }
    return found;
}

// "[0,3,1]"
static const char *format_index(const attn_not_finite *found, char text[160])
{
    attn_tensor as_shape = found->tensor;
    for (int32_t d = 0; d < as_shape.ndim; d++) {
        as_shape.shape[d] = found->index[d];
    }
    attn_tensor_format_shape(&as_shape, text, 160);
    return text;
}

attn_status attn_optimizer_check_finite(const attn_optimizer *optimizer, attn_var loss,
                                        attn_error *error)
{
    const double value = attn_item(loss);
    if (attn_tape_status(loss.tape) != ATTN_OK) { // no loss at all: the tape says why
        const attn_error *cause = attn_tape_error(loss.tape);
        return attn_fail(error, cause->status, "%s", cause->text);
    }
    char shape[160], index[160];
    if (!isfinite(value)) {
        const attn_not_finite first = attn_tape_first_not_finite(loss);
        if (!first.found) {
            return attn_fail(error, ATTN_ERR_NOT_FINITE, "step %" PRId64 ": loss is %g",
                             optimizer->steps, attn_shown_value(value));
        }
        attn_tensor_format_shape(&first.tensor, shape, sizeof shape);
        return attn_fail(error, ATTN_ERR_NOT_FINITE,
                         "step %" PRId64 ": loss is %g; first seen in %s%s, %s %s, at %s",
                         optimizer->steps, attn_shown_value(value),
                         first.name ? "the result of " : "an input", first.name ? first.name : "",
                         attn_dtype_name(first.tensor.dtype), shape, format_index(&first, index));
    }
    for (int64_t i = 0; i < optimizer->count; i++) {
        const attn_optimizer_entry *entry = &optimizer->entries[i];
        const attn_not_finite first = find_in(entry->name, &entry->parameter->grad, is_not_finite);
        if (first.found) {
            return attn_fail(error, ATTN_ERR_NOT_FINITE,
                             "step %" PRId64 ": loss is %g; gradient of %s is %g at %s",
                             optimizer->steps, value, first.name, attn_shown_value(first.value),
                             format_index(&first, index));
        }
    }
    return ATTN_OK;
}
