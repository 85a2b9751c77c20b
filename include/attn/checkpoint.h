// attn/checkpoint.h: a training's whole state in one file.
//
// A checkpoint is a .safetensors file with the parameters ("model.W_query.weight"), the optimizer's
// moments ("optimizer.exp_avg.W_query.weight"), the generators' words and cached normals, the step
// count (which is also the schedule's), the modules' counts of dropout calls and the caller's cursor.
// A training that goes on from it produces the same bits as one that never stopped.
//
// Saving never damages an older file: the bytes go to a temporary name in the same folder, are flushed
// to the disk and renamed. Loading is strict and all or nothing.
#ifndef ATTN_CHECKPOINT_H
#define ATTN_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>

#include "attn/context.h"
#include "attn/export.h"
#include "attn/module.h"
#include "attn/optim.h"
#include "attn/random.h"
#include "attn/status.h"

ATTN_BEGIN_DECLS

// What a checkpoint covers. The same structure saves and loads; everything it points to is the
// caller's. Counts may be 0.
typedef struct attn_checkpoint {
    size_t struct_size;        // set by attn_checkpoint_init
    attn_optimizer *optimizer; // its parameters, moments and step count; required

    // Modules with dropout by position: their counts of calls, in this order.
    attn_module *const *modules;
    int64_t module_count;

    attn_generator *const *generators;
    int64_t generator_count;

    // Where the data stands: any integers that the caller needs to go on (epoch, next example).
    int64_t *cursor;
    int64_t cursor_count;

    uint64_t reserved[8]; // zero
} attn_checkpoint;

ATTN_API void attn_checkpoint_init(attn_checkpoint *checkpoint);

// Writes to a temporary file beside `path`, flushes it, renames it, and flushes the folder. On failure
// the temporary file is removed and an older file at `path` is untouched. A process that is killed may
// leave its temporary file behind. Errors: INVALID_ARGUMENT, IO, OUT_OF_MEMORY.
ATTN_API attn_status attn_checkpoint_save(const attn_context *context, const char *path,
                                          const attn_checkpoint *checkpoint, attn_error *error);

// Restores everything, or, on any error, nothing. The optimizer must hold the same parameters (names,
// shapes, dtypes) and be of the same kind, and the counts must be those of the file. The optimizer's
// config (rates, schedule) stays the caller's. Errors: INVALID_ARGUMENT, IO, FORMAT (not a
// checkpoint, or counts that differ), NOT_FOUND, SHAPE, DTYPE, OUT_OF_MEMORY.
ATTN_API attn_status attn_checkpoint_load(const attn_context *context, const char *path,
                                          const attn_checkpoint *checkpoint, attn_error *error);

ATTN_END_DECLS

#endif
