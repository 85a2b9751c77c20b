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
#include "attn/io.h"
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

// Opens a sharded checkpoint by its index, model.safetensors.index.json, which holds
// {"weight_map": {name: file}}.
// The files lie in the index's folder; a file name that leaves it is refused. The object holds the
// tensors of all files, file by file in the order of their names. Strict: a name that its file does
// not hold, and a tensor that the index does not name, is FORMAT. It has no metadata. Errors: as
// attn_safetensors_open; the text names the file.
ATTN_API attn_status attn_safetensors_open_index(const attn_context *context, const char *path,
                                                 attn_safetensors **file, attn_error *error);

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

// ---- writing ------------------------------------------------------------------------------------

// Writes a file: tensors by element size, largest first, then by name (bytes compared); the header
// padded with spaces to a multiple of 8, so that every tensor is aligned. Any strides. The same
// tensors give the same bytes in whatever order they come. `metadata` may be NULL when
// its count is 0. Errors: INVALID_ARGUMENT (a name that is NULL, given twice, no UTF-8, or
// "__metadata__"; a malformed tensor), OVERFLOW, OUT_OF_MEMORY, IO.
ATTN_API attn_status attn_safetensors_save(const attn_context *context, const char *path,
                                           const attn_named_tensor *tensors, int64_t count,
                                           const attn_text_pair *metadata, int64_t metadata_count,
                                           attn_error *error);
ATTN_API attn_status attn_safetensors_write(const attn_context *context, const attn_sink *sink,
                                            const attn_named_tensor *tensors, int64_t count,
                                            const attn_text_pair *metadata, int64_t metadata_count,
                                            attn_error *error);

ATTN_END_DECLS

#endif
