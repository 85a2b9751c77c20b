// The trace itself: named copies of tensors, in order.
#include "modules/trace.h"

#include <string.h>

#include "core/context.h"
#include "core/error.h"
#include "modules/name.h"
#include "tape/tape.h"

typedef struct trace_entry {
    attn_named_tensor named; // with the strides that the step had
    attn_tensor storage;
} trace_entry;

struct attn_trace {
    const attn_context *context;
    trace_entry *entries;
    int64_t count, capacity;
};

static bool reserve_entry(attn_trace *trace);
static attn_status copy_with_strides(const attn_context *context, const attn_tensor *source,
                                     trace_entry *entry, attn_error *error);

attn_status attn_trace_create(const attn_context *context, attn_trace **trace, attn_error *error)
{
    if (!context || !trace) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "trace: context or result is NULL");
    }
    attn_trace *fresh = attn_allocate(context, sizeof *fresh);
    if (!fresh) {
        return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY, "trace: no memory");
    }
    *fresh = (attn_trace){.context = context};
    *trace = fresh;
    return ATTN_OK;
}

void attn_trace_destroy(attn_trace *trace)
{
    if (!trace) {
        return;
    }
    attn_trace_clear(trace);
    attn_release(trace->context, trace->entries, (size_t)trace->capacity * sizeof(trace_entry));
    attn_release(trace->context, trace, sizeof *trace);
}

void attn_trace_clear(attn_trace *trace)
{
    for (int64_t i = 0; i < trace->count; i++) {
        attn_name_release(trace->context, trace->entries[i].named.name);
        attn_tensor_destroy(trace->context, &trace->entries[i].storage);
    }
    trace->count = 0;
}

int64_t attn_trace_count(const attn_trace *trace)
{
    return trace->count;
}

const attn_named_tensor *attn_trace_entry(const attn_trace *trace, int64_t index)
{
    return index >= 0 && index < trace->count ? &trace->entries[index].named : NULL;
}

const attn_named_tensor *attn_trace_find(const attn_trace *trace, const char *name)
{
    for (int64_t i = 0; i < trace->count; i++) {
        if (strcmp(trace->entries[i].named.name, name) == 0) {
            return &trace->entries[i].named;
        }
    }
    return NULL;
}

// ---- recording ----------------------------------------------------------------------------------

void attn_trace_record(attn_trace *trace, const char *prefix, const char *name, attn_var var)
{
    if (!trace || !attn_tape_healthy(var.tape)) {
        return;
    }
    attn_error error = {.status = ATTN_ERR_OUT_OF_MEMORY, .text = "trace: no memory"};
    trace_entry entry = {.named.name = NULL};
    const attn_tensor value = attn_value(var);
    entry.named.name = attn_name_create(trace->context, prefix, name, "");
    if (!entry.named.name || !reserve_entry(trace) ||
        copy_with_strides(trace->context, &value, &entry, &error) != ATTN_OK) {
        attn_name_release(trace->context, entry.named.name);
        attn_tape_pass_on(var.tape, &error);
        return;
    }
    trace->entries[trace->count++] = entry;
}

static bool reserve_entry(attn_trace *trace)
{
    if (trace->count < trace->capacity) {
        return true;
    }
    const int64_t capacity = trace->capacity ? 2 * trace->capacity : 16;
    trace_entry *entries = attn_allocate(trace->context, (size_t)capacity * sizeof(trace_entry));
    if (!entries) {
        return false;
    }
    if (trace->count > 0) {
        memcpy(entries, trace->entries, (size_t)trace->count * sizeof(trace_entry));
    }
    attn_release(trace->context, trace->entries, (size_t)trace->capacity * sizeof(trace_entry));
    trace->entries = entries;
    trace->capacity = capacity;
    return true;
}

// Transposed views keep their strides, so that what a step looked like can be shown. Others become
// row-major.
static attn_status copy_with_strides(const attn_context *context, const attn_tensor *source,
                                     trace_entry *entry, attn_error *error)
{
    int64_t extent = 1;
    bool dense = attn_tensor_count(source) > 0;
    for (int32_t d = 0; d < source->ndim; d++) {
        dense = dense && source->stride[d] > 0;
        extent += (source->shape[d] - 1) * source->stride[d];
    }
    if (!dense || extent != attn_tensor_count(source)) {
        const attn_status status = attn_tensor_contiguous(context, source, &entry->storage, error);
        entry->named.tensor = entry->storage;
        return status;
    }
    attn_status status =
        attn_tensor_create(context, source->dtype, 1, &extent, &entry->storage, error);
    if (status != ATTN_OK) {
        return status;
    }
    entry->named.tensor = *source;
    entry->named.tensor.data = entry->storage.data;
    entry->named.tensor.flags = 0;
    status = attn_tensor_copy(source, &entry->named.tensor, error);
    if (status != ATTN_OK) {
        attn_tensor_destroy(context, &entry->storage);
    }
    return status;
}
