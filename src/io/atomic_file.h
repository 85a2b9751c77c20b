// io/atomic_file.h: a file that is there whole or not at all.
//
// Bytes go to a temporary file in the target's folder; the commit flushes it to the disk, renames it
// over the target and flushes the folder. Until then, and after any error (disk full, a killed
// process), the target is what it was. A process that is killed may leave the temporary file,
// ".NAME.PID-N.tmp", behind.
#ifndef ATTN_IO_ATOMIC_FILE_H
#define ATTN_IO_ATOMIC_FILE_H

#include <stddef.h>

#include "attn/context.h"
#include "attn/io.h"
#include "attn/status.h"

typedef struct attn_atomic_file attn_atomic_file;

// An existing regular file keeps its permissions, a symbolic link its name (what it points to is
// replaced). A device or named pipe is written directly. Errors: INVALID_ARGUMENT (path is NULL or
// empty), IO, OUT_OF_MEMORY.
attn_status attn_atomic_file_open(const attn_context *context, const char *path,
                                  attn_atomic_file **file, attn_error *error);

// Errors: IO; the file must then be given to attn_atomic_file_discard.
attn_status attn_atomic_file_write(attn_atomic_file *file, const void *bytes, size_t size,
                                   attn_error *error);

// The same as a sink, for writers that take one.
attn_sink attn_atomic_file_sink(attn_atomic_file *file);

// Both end the file object; after a failed commit the target is what it was. discard takes NULL.
attn_status attn_atomic_file_commit(attn_atomic_file *file, attn_error *error);
void attn_atomic_file_discard(attn_atomic_file *file);

#endif
