// io/safetensors_index.h: the index of a sharded checkpoint, apart from the files it names.
#ifndef ATTN_IO_SAFETENSORS_INDEX_H
#define ATTN_IO_SAFETENSORS_INDEX_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "attn/status.h"

// Parses and checks an index; the caller owns *index. Its "weight_map" is an object of texts, each
// the name of a file that lies in the index's own folder. Errors: FORMAT, OUT_OF_MEMORY.
attn_status attn_safetensors_parse_index(const char *label, const void *bytes, size_t size,
                                         json_t **index, attn_error *error);

// Is this the name of a file in the folder itself: no separator, not "." or "..", not hidden behind
// an empty name?
bool attn_stays_in_folder(const char *name);

#endif
