#define _GNU_SOURCE
#include "io/file_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"

static attn_status map_descriptor(int descriptor, const char *path, attn_file_map *map,
                                  attn_error *error);

attn_status attn_file_map_open(const char *path, attn_file_map *map, attn_error *error)
{
    if (path == NULL) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "open: path is NULL");
    }
    // O_NONBLOCK: a named pipe is refused below instead of being waited for.
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) {
        return attn_fail(error, ATTN_ERR_IO, "%s: %s", path, strerror(errno));
    }
    attn_status status = map_descriptor(descriptor, path, map, error);
    close(descriptor);
    return status;
}

static attn_status map_descriptor(int descriptor, const char *path, attn_file_map *map,
                                  attn_error *error)
{
    struct stat info;
    if (fstat(descriptor, &info) != 0) {
        return attn_fail(error, ATTN_ERR_IO, "%s: %s", path, strerror(errno));
    }
    if (S_ISDIR(info.st_mode)) {
        return attn_fail(error, ATTN_ERR_IO, "%s: %s", path, strerror(EISDIR));
    }
    if (!S_ISREG(info.st_mode)) {
        return attn_fail(error, ATTN_ERR_IO, "%s: not a regular file", path);
    }
    if ((uintmax_t)info.st_size > SIZE_MAX) {
        return attn_fail(error, ATTN_ERR_IO, "%s: %s", path, strerror(EFBIG));
    }
    size_t size = (size_t)info.st_size;
    if (size == 0) {
        *map = (attn_file_map){0};
        return ATTN_OK;
    }
    void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (bytes == MAP_FAILED) {
        return attn_fail(error, ATTN_ERR_IO, "%s: %s", path, strerror(errno));
    }
    *map = (attn_file_map){.bytes = bytes, .size = size};
    return ATTN_OK;
}

void attn_file_map_close(attn_file_map *map)
{
    if (map->bytes != NULL) {
        munmap((void *)(uintptr_t)map->bytes, map->size);
    }
    *map = (attn_file_map){0};
}
