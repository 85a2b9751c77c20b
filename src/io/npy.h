// io/npy.h: what is inside an open .npy file.
#ifndef ATTN_IO_NPY_H
#define ATTN_IO_NPY_H

#include <stddef.h>

#include "attn/npy.h"
#include "io/file_map.h"

struct attn_npy {
    const attn_context *context;
    attn_file_map map; // cleared when the bytes are the caller's
    attn_tensor tensor;
    void *copy; // of the data, or NULL
    size_t copy_size;
};

// Parses with a label of its own in front of every message; the flags are checked already.
attn_status attn_npy_parse_labelled(const attn_context *context, const char *label,
                                    const unsigned char *bytes, size_t size, uint32_t flags,
                                    attn_npy **file, attn_error *error);

attn_status attn_npy_check_flags(uint32_t flags, attn_error *error);

#endif
