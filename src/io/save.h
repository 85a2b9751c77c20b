// io/save.h: the way every format becomes a file.
#ifndef ATTN_IO_SAVE_H
#define ATTN_IO_SAVE_H

#include "attn/context.h"
#include "attn/io.h"
#include "attn/status.h"

// Writes one format's bytes to the sink.
typedef attn_status (*attn_format_writer)(const attn_sink *sink, const void *what,
                                          attn_error *error);

// Runs `write` into a temporary file and puts it in place when that succeeded.
attn_status attn_save(const attn_context *context, const char *path, attn_format_writer write,
                      const void *what, attn_error *error);

#endif
