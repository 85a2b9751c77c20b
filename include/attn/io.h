// attn/io.h: what the file formats share.
//
// Every save writes to a temporary file in the target's folder, flushes it to the disk and renames
// it, so that a file is there whole or not at all: a full disk or a killed process leaves what was
// there before. An existing file keeps its permissions, a symbolic link its name; a device or named
// pipe is written directly. A process that is killed may leave ".NAME.PID-N.tmp" behind.
#ifndef ATTN_IO_H
#define ATTN_IO_H

#include <stdbool.h>
#include <stddef.h>

#include "attn/context.h"
#include "attn/export.h"
#include "attn/status.h"

ATTN_BEGIN_DECLS

// Where bytes go: called once or more, in order. Returns whether all `size` bytes were taken; a
// refusal should leave its reason in errno, which becomes part of the error's text.
typedef struct attn_sink {
    void *state;
    bool (*write)(void *state, const void *bytes, size_t size);
} attn_sink;

// A key and its value, both text in UTF-8.
typedef struct attn_text_pair {
    const char *key;
    const char *value;
} attn_text_pair;

// Saves bytes of the caller's own format the same way. Errors: INVALID_ARGUMENT, IO, OUT_OF_MEMORY.
ATTN_API attn_status attn_save_bytes(const attn_context *context, const char *path,
                                     const void *bytes, size_t size, attn_error *error);

ATTN_END_DECLS

#endif
