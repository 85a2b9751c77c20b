// Where a NaN or an infinity came from.
#include <inttypes.h>
#include <math.h>

#include "core/element.h"
#include "core/error.h"
#include "core/layout.h"
#include "core/rows.h"
#include "core/text.h"
#include "modules/optimizer.h"
#include "tape/tape.h"

// -infinity is what masks write: whether it is a fault depends on the tensor.
typedef enum minus_infinity { MINUS_INFINITY_IS_FINE, MINUS_INFINITY_IS_WRONG } minus_infinity;

static bool find_in_values(const double *values, int64_t count, minus_infinity rule, int64_t *at)
{
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(values[i]) && (rule == MINUS_INFINITY_IS_WRONG || values[i] != -INFINITY)) {
            *at = i;
            return true;
        }
    }
    return false;
}

static attn_not_finite find_in(const char *name, const attn_tensor *tensor, minus_infinity rule)
{
    enum { CHUNK = 256 };
    double values[CHUNK];
    attn_not_finite found = {.name = name, .tensor = *tensor};
    if (tensor->dtype != ATTN_F32 && tensor->dtype != ATTN_F64) {
        return (attn_not_finite){0};
    }
    const int64_t size = (int64_t)attn_dtype_size(tensor->dtype);
    int64_t before = 0; // elements of earlier rows
    for (attn_rows rows = attn_rows_of(tensor, NULL); rows.left > 0; attn_rows_next(&rows)) {
        const char *row = (const char *)tensor->data + rows.offset[0] * size;
        for (int64_t done = 0; done < rows.count; done += CHUNK) {
            const int64_t count = rows.count - done < CHUNK ? rows.count - done : CHUNK;
            int64_t at;
            attn_row_load(tensor->dtype, row + done * rows.stride[0] * size, rows.stride[0], count,
                          values);
            if (find_in_values(values, count, rule, &at)) {
                found.found = true;
                found.value = values[at];
                attn_index_at(tensor, before + done + at, found.index);
                return found;
            }
        }
        before += rows.count;
    }
    return (attn_not_finite){0};
}

attn_not_finite attn_tape_first_not_finite(attn_var last)
{
    const attn_tape *tape = last.tape;
    attn_not_finite found = {0};
    if (!tape || !attn_tape_is_live(last)) {
        return found;
    }
    for (uint32_t i = 0; i <= last.index && !found.found; i++) {
        const attn_tape_node *node = tape->nodes[i];
        found = find_in(node->op ? node->op->name : NULL, &node->value, MINUS_INFINITY_IS_FINE);
    }
    return found;
}

attn_not_finite attn_trace_first_not_finite(const attn_trace *trace)
{
    attn_not_finite found = {0};
    for (int64_t i = 0; i < attn_trace_count(trace) && !found.found; i++) {
        const attn_named_tensor *entry = attn_trace_entry(trace, i);
        found = find_in(entry->name, &entry->tensor, MINUS_INFINITY_IS_FINE);
    }
    return found;
}

// "[0,3,1]"
static attn_dims_text index_text(const attn_not_finite *found)
{
    return attn_dims_as_text(found->tensor.ndim, found->index);
}

attn_status attn_optimizer_check_finite(const attn_optimizer *optimizer, attn_var loss,
                                        attn_error *error)
{
    const double value = attn_item(loss);
    if (attn_tape_status(loss.tape) != ATTN_OK) { // no loss at all: the tape says why
        const attn_error *cause = attn_tape_error(loss.tape);
        return attn_fail(error, cause->status, "%s", cause->text);
    }
    if (!isfinite(value)) {
        const attn_not_finite first = attn_tape_first_not_finite(loss);
        if (!first.found) {
            return attn_fail(error, ATTN_ERR_NOT_FINITE, "step %" PRId64 ": loss is %g",
                             optimizer->steps, attn_shown_value(value));
        }
        return attn_fail(error, ATTN_ERR_NOT_FINITE,
                         "step %" PRId64 ": loss is %g; first seen in %s%s, %s %s, at %s",
                         optimizer->steps, attn_shown_value(value),
                         first.name ? "the result of " : "an input", first.name ? first.name : "",
                         attn_dtype_name(first.tensor.dtype), attn_shape_text(&first.tensor).text,
                         index_text(&first).text);
    }
    for (int64_t i = 0; i < optimizer->count; i++) {
        const attn_optimizer_entry *entry = &optimizer->entries[i];
        const attn_not_finite first =
            find_in(entry->name, &entry->parameter->grad, MINUS_INFINITY_IS_WRONG);
        if (first.found) {
            return attn_fail(error, ATTN_ERR_NOT_FINITE,
                             "step %" PRId64 ": loss is %g; gradient of %s is %g at %s",
                             optimizer->steps, value, first.name, attn_shown_value(first.value),
                             index_text(&first).text);
        }
    }
    return ATTN_OK;
}
