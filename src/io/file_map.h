// io/file_map.h: a whole regular file as read-only memory.
#ifndef ATTN_IO_FILE_MAP_H
#define ATTN_IO_FILE_MAP_H

#include <stddef.h>

#include "attn/status.h"

typedef struct attn_file_map {
    const unsigned char *bytes; // NULL for an empty file
    size_t size;
} attn_file_map;

// Maps the file. Errors: INVALID_ARGUMENT (path is NULL), IO (the text holds the system's reason, or
// says that the path is no regular file). On an error *map is not written.
attn_status attn_file_map_open(const char *path, attn_file_map *map, attn_error *error);

// Ends the mapping and clears *map; does nothing to a cleared one.
void attn_file_map_close(attn_file_map *map);

#endif
