// tensor_file.h: tensors from and to files of any of the formats.
#ifndef ATTN_TOOL_TENSOR_FILE_H
#define ATTN_TOOL_TENSOR_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/attn.h"

// An open file: its tensors, whatever the format. A .npy holds one, named "".
typedef struct tensor_file {
    const char *format; // "npy", "npz", "safetensors", "sharded safetensors"
    attn_named_tensor *entries;
    int64_t count;
    attn_safetensors *safetensors; // for the metadata; or NULL
    attn_npy *npy;
    attn_npz *npz;
    unsigned char *bytes; // of standard input
} tensor_file;

// Opens a path, or "-" for standard input. The format is told by the content; an index of a sharded
// checkpoint by its ending .json. `flags`: of attn_npy_flags.
attn_status tensor_file_open(const attn_context *context, const char *path, uint32_t flags,
                             tensor_file *file, attn_error *error);
void tensor_file_close(tensor_file *file);

// One tensor by a name such as "x.npy" or "bundle.npz:query": what follows the last colon names the
// tensor, where the file has more than one. Keeps the file open in *file.
attn_status tensor_file_open_one(const attn_context *context, const char *spec, uint32_t flags,
                                 tensor_file *file, attn_tensor *tensor, attn_error *error);

// Writes one tensor as .npy, or "-" for standard output; or tensors as .safetensors; or, to a folder
// (an existing one, or a path that ends in '/'), each as NAME.npy. `name` is the tensor's in a
// .safetensors file.
attn_status tensor_file_save(const attn_context *context, const char *path,
                             const attn_named_tensor *tensors, int64_t count,
                             const attn_text_pair *metadata, int64_t metadata_count, uint32_t flags,
                             attn_error *error);

// Does the path end in ".npy", ...?
bool has_ending(const char *path, const char *ending);

// Fills *error with a formatted text; returns status.
attn_status tool_fail(attn_error *error, attn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
