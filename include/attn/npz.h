// attn/npz.h: the tensors of a .npz file, as numpy's savez and savez_compressed write it.
//
// A .npz is a zip archive of .npy files. Members may be stored or deflated; their check sums are
// verified. An archive over 4 GiB (zip64), encrypted members and other compressions are
// NOT_SUPPORTED. No more memory is taken than 1032 times the file's size, the most that deflate can
// hold.
// Source: PKWARE's APPNOTE.TXT 6.3, RFC 1951.
#ifndef ATTN_NPZ_H
#define ATTN_NPZ_H

#include <stddef.h>
#include <stdint.h>

#include "attn/context.h"
#include "attn/export.h"
#include "attn/module.h"
#include "attn/status.h"

ATTN_BEGIN_DECLS

typedef struct attn_npz attn_npz;

// Opens a file (memory-mapped), or parses a caller's buffer that must outlive the object. `flags`: of
// attn_npy_flags. Errors: as attn_npy_open; the text names the member.
ATTN_API attn_status attn_npz_open(const attn_context *context, const char *path, uint32_t flags,
                                   attn_npz **file, attn_error *error);
ATTN_API attn_status attn_npz_parse(const attn_context *context, const void *bytes, size_t size,
                                    uint32_t flags, attn_npz **file, attn_error *error);
ATTN_API void attn_npz_close(attn_npz *file); // takes NULL; ends all views

// Tensors in the archive's order, read-only; a name is the member's without ".npy".
ATTN_API int64_t attn_npz_count(const attn_npz *file);
ATTN_API const attn_named_tensor *attn_npz_entry(const attn_npz *file, int64_t index);
ATTN_API const attn_named_tensor *attn_npz_find(const attn_npz *file, const char *name);

ATTN_END_DECLS

#endif
