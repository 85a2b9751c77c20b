// The tape itself: its life, its errors, and the record.
#include "tape/tape.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/checked.h"
#include "core/context.h"
#include "core/error.h"
#include "core/layout.h"

static const attn_error no_tape = {ATTN_ERR_INVALID_ARGUMENT, "the tape is NULL"};

// ---- life ---------------------------------------------------------------------------------------

attn_status attn_tape_create(const attn_context *context, attn_tape **tape, attn_error *error)
{
    if (!context || !tape) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "tape: %s must not be NULL",
                         context ? "the result" : "the context");
    }
    attn_tape *const made = attn_allocate(context, sizeof *made);
    if (!made) {
        return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY, "tape: no memory for %zu bytes",
                         sizeof *made);
    }
    *made = (attn_tape){.context = context, .generation = 1, .backwards = 1, .recording = true};
    attn_tape_arena_init(&made->arena, context);
    *tape = made;
    return ATTN_OK;
}

void attn_tape_destroy(attn_tape *tape)
{
    if (!tape) {
        return;
    }
    attn_tape_arena_release(&tape->arena);
    attn_release(tape->context, tape->nodes, tape->capacity * sizeof *tape->nodes);
    attn_release(tape->context, tape, sizeof *tape);
}

// Vars made before this call and no longer in the record are stale from now on.
static void next_generation(attn_tape *tape)
{
    tape->generation = tape->generation == UINT32_MAX ? 1 : tape->generation + 1;
}

void attn_tape_reset(attn_tape *tape)
{
    if (!tape) {
        return;
    }
    attn_tape_arena_rewind(&tape->arena, (attn_tape_arena_position){0});
    tape->count = 0;
    next_generation(tape);
    tape->resets++;
    tape->backwards++;
    tape->error = (attn_error){.status = ATTN_OK};
}

// What a mark holds. `generation` is that of the last node before it: another one there means that
// the record was taken back further than the mark and grew again.
struct mark {
    attn_tape *tape;
    attn_tape_arena_position position;
    uint64_t resets, backwards;
    uint32_t count, generation;
};

_Static_assert(sizeof(struct mark) == sizeof(attn_tape_mark), "a mark fits its opaque words");

static uint32_t last_generation(const attn_tape *tape, uint32_t count)
{
    return count > 0 ? tape->nodes[count - 1]->generation : 0;
}

attn_tape_mark attn_tape_get_mark(attn_tape *tape)
{
    if (!tape) {
        return (attn_tape_mark){{0}};
    }
    const struct mark mark = {.tape = tape,
                              .position = attn_tape_arena_tell(&tape->arena),
                              .resets = tape->resets,
                              .backwards = tape->backwards,
                              .count = tape->count,
                              .generation = last_generation(tape, tape->count)};
    attn_tape_mark opaque;
    memcpy(&opaque, &mark, sizeof opaque);
    return opaque;
}

attn_status attn_tape_release(attn_tape *tape, attn_tape_mark opaque, attn_error *error)
{
    struct mark mark;
    memcpy(&mark, &opaque, sizeof mark);
    if (!tape) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "release: %s", no_tape.text);
    }
    if (mark.tape != tape) {
        return attn_fail(error, ATTN_ERR_STATE, "release: the mark belongs to another tape");
    }
    if (mark.resets != tape->resets) {
        return attn_fail(error, ATTN_ERR_STATE, "release: the mark is from before a reset");
    }
    if (mark.count > tape->count || mark.generation != last_generation(tape, mark.count) ||
        !attn_tape_arena_not_after(mark.position, attn_tape_arena_tell(&tape->arena))) {
        return attn_fail(error, ATTN_ERR_STATE,
                         "release: the mark itself was forgotten by an earlier release");
    }
    attn_tape_arena_rewind(&tape->arena, mark.position);
    tape->count = mark.count;
    next_generation(tape);
    if (mark.backwards != tape->backwards) {
        tape->backwards++; // the gradients of the last backward were in the memory given back
    }
    return ATTN_OK;
}

void attn_tape_set_recording(attn_tape *tape, bool recording)
{
    if (tape) {
        tape->recording = recording;
    }
}

bool attn_tape_recording(const attn_tape *tape)
{
    return tape && tape->recording;
}

const attn_context *attn_tape_context(const attn_tape *tape)
{
    return tape ? tape->context : NULL;
}

// ---- errors -------------------------------------------------------------------------------------

attn_status attn_tape_status(const attn_tape *tape)
{
    return attn_tape_error(tape)->status;
}

const attn_error *attn_tape_error(const attn_tape *tape)
{
    return tape ? &tape->error : &no_tape;
}

bool attn_tape_healthy(const attn_tape *tape)
{
    return tape->error.status == ATTN_OK;
}

void attn_tape_fail(attn_tape *tape, attn_status status, const char *text)
{
    if (tape) {
        attn_tape_raise(tape, status, "%s", text ? text : attn_status_message(status));
    }
}

void attn_tape_raise(attn_tape *tape, attn_status status, const char *format, ...)
{
    if (!attn_tape_healthy(tape) || status == ATTN_OK) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    tape->error.status = status;
    vsnprintf(tape->error.text, sizeof tape->error.text, format, arguments);
    va_end(arguments);
}

attn_var attn_tape_pass_on(attn_tape *tape, const attn_error *error)
{
    attn_tape_raise(tape, error->status, "%s", error->text);
    return attn_tape_failed(tape);
}

attn_var attn_tape_failed(attn_tape *tape)
{
    return tape ? (attn_var){.tape = tape, .index = ATTN_TAPE_NO_NODE} : ATTN_NO_VAR;
}

// ---- checking inputs ----------------------------------------------------------------------------

bool attn_tape_is_live(attn_var var)
{
    return var.index < var.tape->count && var.tape->nodes[var.index]->generation == var.generation;
}

bool attn_tape_enter(const char *op, const attn_var *inputs, int64_t count, attn_tape **tape)
{
    attn_tape *owner = NULL;
    for (int64_t k = 0; inputs && k < count && !owner; k++) {
        owner = inputs[k].tape;
    }
    *tape = owner;
    if (!owner || !attn_tape_healthy(owner)) {
        return false;
    }
    for (int64_t k = 0; k < count; k++) {
        const long long number = (long long)k + 1;
        if (!inputs[k].tape) {
            attn_tape_raise(owner, ATTN_ERR_INVALID_ARGUMENT, "%s: operand %lld is absent", op,
                            number);
            return false;
        }
        if (inputs[k].tape != owner) {
            attn_tape_raise(owner, ATTN_ERR_STATE, "%s: operand %lld belongs to another tape", op,
                            number);
            attn_tape_raise(inputs[k].tape, ATTN_ERR_STATE,
                            "%s: operand %lld belongs to this tape, operand 1 to another", op,
                            number);
            return false;
        }
        if (!attn_tape_is_live(inputs[k])) {
            attn_tape_raise(owner, ATTN_ERR_STATE,
                            "%s: operand %lld is stale: it was made before a reset or a release",
                            op, number);
            return false;
        }
        const attn_dtype first = attn_tape_value(inputs[0])->dtype;
        const attn_dtype dtype = attn_tape_value(inputs[k])->dtype;
        if (dtype != first) {
            attn_tape_raise(owner, ATTN_ERR_DTYPE, "%s: operand 1 is %s but operand %lld is %s", op,
                            attn_dtype_name(first), number, attn_dtype_name(dtype));
            return false;
        }
    }
    return true;
}

const attn_tensor *attn_tape_value(attn_var var)
{
    return &var.tape->nodes[var.index]->value;
}

// ---- memory -------------------------------------------------------------------------------------

void *attn_tape_allocate(attn_tape *tape, const char *op, int64_t count, size_t size)
{
    int64_t bytes;
    if (!attn_checked_mul(count, (int64_t)size, &bytes)) {
        attn_tape_raise(tape, ATTN_ERR_OVERFLOW, "%s: %lld elements of %zu bytes are too many", op,
                        (long long)count, size);
        return NULL;
    }
    void *const memory = attn_tape_arena_allocate(&tape->arena, (size_t)bytes);
    if (!memory) {
        attn_tape_raise(tape, ATTN_ERR_OUT_OF_MEMORY, "%s: no memory for %lld bytes", op,
                        (long long)bytes);
    }
    return memory;
}

bool attn_tape_tensor(attn_tape *tape, const char *op, attn_dtype dtype, int32_t ndim,
                      const int64_t *shape, attn_tensor *tensor)
{
    attn_tensor made = {.dtype = dtype, .ndim = ndim};
    int64_t extent = 1, count = 1; // extent: as if sizes of 0 were 1, which the strides need
    for (int32_t d = 0; d < ndim; d++) {
        made.shape[d] = shape[d];
        count *= shape[d] > 0;
        if (!attn_checked_mul(extent, shape[d] > 0 ? shape[d] : 1, &extent)) {
            attn_tape_raise(tape, ATTN_ERR_OVERFLOW, "%s: the result has too many elements", op);
            return false;
        }
    }
    made.data = attn_tape_allocate(tape, op, count ? extent : 0, attn_dtype_size(dtype));
    if (!made.data) {
        return false;
    }
    attn_row_major(ndim, made.shape, made.stride);
    *tensor = made;
    return true;
}

// ---- the record ---------------------------------------------------------------------------------

static bool wants_gradient(const attn_tape *tape, attn_var input)
{
    return input.tape && tape->nodes[input.index]->needs_grad;
}

bool attn_tape_records(const attn_tape *tape, const attn_var *inputs, int32_t count)
{
    for (int32_t k = 0; k < count && tape->recording; k++) {
        if (wants_gradient(tape, inputs[k])) {
            return true;
        }
    }
    return false;
}

// Makes room for `more` nodes in the table.
static bool grow_table(attn_tape *tape, const char *op, uint32_t more)
{
    if (tape->capacity - tape->count >= more) {
        return true;
    }
    if (tape->capacity > UINT32_MAX / 4) {
        attn_tape_raise(tape, ATTN_ERR_OVERFLOW, "%s: the tape holds %u vars already", op,
                        tape->count);
        return false;
    }
    const uint32_t capacity = tape->capacity ? 2 * tape->capacity : 256;
    attn_tape_node **const nodes = attn_allocate(tape->context, capacity * sizeof *nodes);
    if (!nodes) {
        attn_tape_raise(tape, ATTN_ERR_OUT_OF_MEMORY, "%s: no memory for %u vars", op, capacity);
        return false;
    }
    if (tape->count > 0) {
        memcpy(nodes, tape->nodes, tape->count * sizeof *nodes);
    }
    attn_release(tape->context, tape->nodes, tape->capacity * sizeof *nodes);
    tape->nodes = nodes;
    tape->capacity = capacity;
    return true;
}

attn_var attn_tape_push(attn_tape *tape, const attn_tape_op *op, const attn_var *inputs,
                        int32_t count, const attn_tensor *value, const void *payload,
                        size_t payload_size)
{
    attn_var output;
    return attn_tape_push_outputs(tape, op, inputs, count, value, 1, payload, payload_size, &output)
               ? output
               : attn_tape_failed(tape);
}

bool attn_tape_push_outputs(attn_tape *tape, const attn_tape_op *op, const attn_var *inputs,
                            int32_t count, const attn_tensor *values, int32_t output_count,
                            const void *payload, size_t payload_size, attn_var *outputs)
{
    const char *const name = op ? op->name : "constant";
    const bool recorded = op && attn_tape_records(tape, inputs, count);
    uint32_t *numbers = NULL;
    void *kept = NULL;
    attn_tape_node *nodes = NULL;
    if (!grow_table(tape, name, (uint32_t)output_count) ||
        !(nodes = attn_tape_allocate(tape, name, output_count, sizeof *nodes)) ||
        (recorded && !(numbers = attn_tape_allocate(tape, name, count, sizeof *numbers))) ||
        (recorded && payload && !(kept = attn_tape_allocate(tape, name, 1, payload_size)))) {
        return false;
    }
    if (kept) {
        memcpy(kept, payload, payload_size);
    }
    for (int32_t k = 0; recorded && k < count; k++) {
        numbers[k] = inputs[k].tape ? inputs[k].index : ATTN_TAPE_NO_NODE;
    }
    for (int32_t m = 0; m < output_count; m++) {
        nodes[m] = (attn_tape_node){.op = recorded ? op : NULL,
                                    .value = values[m],
                                    .payload = kept,
                                    .inputs = numbers,
                                    .input_count = recorded ? count : 0,
                                    .output_count = output_count,
                                    .output = m,
                                    .generation = tape->generation,
                                    .recorded = tape->recording,
                                    .needs_grad = recorded};
        nodes[m].value.flags |= ATTN_TENSOR_READ_ONLY;
        outputs[m] = (attn_var){tape, tape->count, tape->generation};
        tape->nodes[tape->count++] = &nodes[m];
    }
    return true;
}
