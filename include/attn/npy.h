// attn/npy.h: one tensor from and to a .npy file, as numpy's save and load.
//
// Read: versions 1, 2 and 3; little and big endian; C and Fortran order (as strides); rank 0 to 8;
// float16, float32, float64, int8, int16, int32, int64, uint8, bool; and bfloat16 as users of
// ml_dtypes know it: a file of '<V2' that only the reader can name, hence ATTN_NPY_BFLOAT16. Refused
// with the reason: headers over 10,000 bytes, object, structured and other types, negative or
// overflowing shapes, short data, bytes after the data. Written: byte for byte what numpy writes.
// Source: NEP 1 and the documentation of numpy.lib.format.
#ifndef ATTN_NPY_H
#define ATTN_NPY_H

#include <stddef.h>
#include <stdint.h>

#include "attn/context.h"
#include "attn/export.h"
#include "attn/io.h"
#include "attn/status.h"
#include "attn/tensor.h"

ATTN_BEGIN_DECLS

typedef enum attn_npy_flags {
    ATTN_NPY_BFLOAT16 = 1 // two opaque bytes ('V2') are a bfloat16
} attn_npy_flags;

typedef struct attn_npy attn_npy;

// Opens a file (memory-mapped), or parses a caller's buffer that must outlive the object. `flags`: of
// attn_npy_flags. Errors: INVALID_ARGUMENT, IO, FORMAT, NOT_SUPPORTED (a dtype, more than 8
// dimensions, an unknown version), OUT_OF_MEMORY.
ATTN_API attn_status attn_npy_open(const attn_context *context, const char *path, uint32_t flags,
                                   attn_npy **file, attn_error *error);
ATTN_API attn_status attn_npy_parse(const attn_context *context, const void *bytes, size_t size,
                                    uint32_t flags, attn_npy **file, attn_error *error);
ATTN_API void attn_npy_close(attn_npy *file); // takes NULL; ends the view

// The tensor, read-only: a view of the file, or of a copy where the file's byte order or alignment
// does not serve. A file that is cut short while it is mapped ends the process with SIGBUS.
ATTN_API const attn_tensor *attn_npy_tensor(const attn_npy *file);

// Writes a tensor of any strides: in Fortran order when it lies so, otherwise in C order. A bfloat16
// tensor needs ATTN_NPY_BFLOAT16, since numpy's own load does not know what the file holds.
// Errors: INVALID_ARGUMENT, DTYPE (bfloat16 without the flag), IO, OUT_OF_MEMORY.
ATTN_API attn_status attn_npy_save(const attn_context *context, const char *path,
                                   const attn_tensor *tensor, uint32_t flags, attn_error *error);
ATTN_API attn_status attn_npy_write(const attn_sink *sink, const attn_tensor *tensor,
                                    uint32_t flags, attn_error *error);

ATTN_END_DECLS

#endif
