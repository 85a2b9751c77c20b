// io/safetensors.h: what reading, sharded reading and writing of .safetensors share.
#ifndef ATTN_IO_SAFETENSORS_H
#define ATTN_IO_SAFETENSORS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attn/safetensors.h"
#include "io/file_map.h"

// The format's own limit on the JSON header.
#define ATTN_SAFETENSORS_MAX_HEADER ((uint64_t)100000000)

struct attn_safetensors {
    const attn_context *context;
    attn_file_map map; // cleared when the bytes are the caller's
    json_t *header;    // owns the names and the metadata's texts
    attn_named_tensor *entries;
    int64_t count;
    const char **metadata_keys;
    int64_t metadata_count;
    unsigned char *copies; // tensors that are not aligned in the file, or NULL
    size_t copies_size;
    attn_safetensors **shards; // of an index: the files that `entries` views
    int64_t shard_count, shard_capacity;
};

// "F32" for ATTN_F32; NULL where the format has no such dtype. And back: ATTN_DTYPE_NONE for an
// unknown name.
const char *attn_safetensors_dtype_name(attn_dtype dtype);
attn_dtype attn_safetensors_dtype(const char *name);

#endif
