// core/context.h: what is inside a context, for the library's own layers.
#ifndef ATTN_CORE_CONTEXT_H
#define ATTN_CORE_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#include "attn/context.h"

struct attn_context {
    attn_allocator allocator;
    attn_executor executor;
    attn_logger logger;
    attn_tier tier;             // resolved, never AUTO; the kernels layer maps it to its table
    int64_t second_level_bytes; // of a core's cache; block sizes follow it, bits do not
};

enum { ATTN_ALIGNMENT = 64 };

// Memory from the context's allocator, aligned to ATTN_ALIGNMENT. size 0 gives NULL without an
// error; release takes NULL.
void *attn_allocate(const attn_context *context, size_t size);
void attn_release(const attn_context *context, void *memory, size_t size);

// Runs job(argument, 0 .. count-1, worker) on the context's executor; inside a job, serially.
void attn_parallel_for(const attn_context *context, int64_t count, attn_job job, void *argument);

#endif
