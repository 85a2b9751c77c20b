// attn/safetensors.h: tensors by name from and to .safetensors files.
//
// A file is a 64-bit header length, a JSON header (name -> dtype, shape, byte range) and the data.
// Reading is strict: duplicate keys, unknown dtypes, ranges that leave the file, overlap, leave
// holes or do not match shape and dtype, and trailing bytes are refused with the reason. Nothing is
// allocated before the header's size has been checked against the file's. Dtypes: F64, F32, F16,
// BF16, I64, I32, I16, I8, U8, BOOL; others are NOT_SUPPORTED. The tensors are views of the mapped
// file, except those whose bytes do not lie at a multiple of their element size (files with an
// unpadded header): these are copied when the file is opened. A file that another program cuts short
// while it is mapped ends the process with SIGBUS, as with every mapped file; writers that rename a
// complete file into place, as this one does, never do that.
// Source: the format description of the safetensors project.
#ifndef ATTN_SAFETENSORS_H
#define ATTN_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "attn/context.h"
#include "attn/export.h"
#include "attn/module.h"
#include "attn/status.h"

ATTN_BEGIN_DECLS

typedef struct attn_safetensors attn_safetensors;

// Opens a file (memory-mapped), or parses a caller's buffer that must outlive the object.
// Errors: IO, FORMAT, NOT_SUPPORTED (a dtype, more than 8 dimensions), OUT_OF_MEMORY.
ATTN_API attn_status attn_safetensors_open(const attn_context *context, const char *path,
                                           attn_safetensors **file, attn_error *error);
ATTN_API attn_status attn_safetensors_parse(const attn_context *context, const void *bytes,
                                            size_t size, attn_safetensors **file,
                                            attn_error *error);
ATTN_API void attn_safetensors_close(attn_safetensors *file); // takes NULL; ends all views

// Tensors in the order of their data, read-only.
ATTN_API int64_t attn_safetensors_count(const attn_safetensors *file);
ATTN_API const attn_named_tensor *attn_safetensors_entry(const attn_safetensors *file,
                                                         int64_t index);
ATTN_API const attn_named_tensor *attn_safetensors_find(const attn_safetensors *file,
                                                        const char *name);

// The value of a key in __metadata__, or NULL; and the keys in file order.
ATTN_API const char *attn_safetensors_metadata(const attn_safetensors *file, const char *key);
ATTN_API int64_t attn_safetensors_metadata_count(const attn_safetensors *file);
ATTN_API const char *attn_safetensors_metadata_key(const attn_safetensors *file, int64_t index);

ATTN_END_DECLS

#endif
