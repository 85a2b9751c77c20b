#define _GNU_SOURCE
#include "io/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/context.h"
#include "core/error.h"

// A temporary name is the target's with a prefix and a suffix; both paths end before PATH_MAX.
struct attn_atomic_file {
    const attn_context *context;
    int descriptor;
    bool direct; // a device or pipe: there is no temporary file
    char target[PATH_MAX];
    char temporary[PATH_MAX];
};

static attn_status open_target(attn_atomic_file *file, const char *path, attn_error *error);
static attn_status open_temporary(attn_atomic_file *file, const struct stat *old,
                                  attn_error *error);
static bool name_temporary(attn_atomic_file *file, int attempt);
static bool write_all(void *state, const void *bytes, size_t size);
static attn_status flush_and_rename(attn_atomic_file *file, attn_error *error);
static attn_status flush_folder(const attn_atomic_file *file, attn_error *error);

attn_status attn_atomic_file_open(const attn_context *context, const char *path,
                                  attn_atomic_file **file, attn_error *error)
{
    if (context == NULL || path == NULL || *path == '\0' || file == NULL) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "save: no path was given");
    }
    attn_atomic_file *opened = attn_allocate(context, sizeof(*opened));
    if (opened == NULL) {
        return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY, "%s: out of memory", path);
    }
    *opened = (attn_atomic_file){.context = context, .descriptor = -1};
    attn_status status = open_target(opened, path, error);
    if (status != ATTN_OK) {
        attn_release(context, opened, sizeof(*opened));
        return status;
    }
    *file = opened;
    return ATTN_OK;
}

attn_status attn_atomic_file_write(attn_atomic_file *file, const void *bytes, size_t size,
                                   attn_error *error)
{
    if (!write_all(file, bytes, size)) {
        return attn_fail(error, ATTN_ERR_IO, "%s: %s", file->target, strerror(errno));
    }
    return ATTN_OK;
}

attn_sink attn_atomic_file_sink(attn_atomic_file *file)
{
    return (attn_sink){.state = file, .write = write_all};
}

attn_status attn_atomic_file_commit(attn_atomic_file *file, attn_error *error)
{
    attn_status status = ATTN_OK;
    if (!file->direct) {
        status = flush_and_rename(file, error);
    } else if (close(file->descriptor) != 0) {
        status = attn_fail(error, ATTN_ERR_IO, "%s: %s", file->target, strerror(errno));
    }
    attn_release(file->context, file, sizeof(*file));
    return status;
}

void attn_atomic_file_discard(attn_atomic_file *file)
{
    if (file == NULL) {
        return;
    }
    close(file->descriptor);
    if (!file->direct) {
        unlink(file->temporary);
    }
    attn_release(file->context, file, sizeof(*file));
}

// ---- opening ------------------------------------------------------------------------------------

static attn_status open_target(attn_atomic_file *file, const char *path, attn_error *error)
{
    if (strlen(path) >= sizeof(file->target)) {
        return attn_fail(error, ATTN_ERR_IO, "%s: %s", path, strerror(ENAMETOOLONG));
    }
    if (realpath(path, file->target) == NULL) {
        if (errno != ENOENT) {
            return attn_fail(error, ATTN_ERR_IO, "%s: %s", path, strerror(errno));
        }
        memcpy(file->target, path, strlen(path) + 1);
    }
    struct stat old;
    bool exists = stat(file->target, &old) == 0;
    if (exists && S_ISDIR(old.st_mode)) {
        return attn_fail(error, ATTN_ERR_IO, "%s: %s", path, strerror(EISDIR));
    }
    if (!exists || S_ISREG(old.st_mode)) {
        return open_temporary(file, exists ? &old : NULL, error);
    }
    file->direct = true;
    file->descriptor = open(file->target, O_WRONLY | O_CLOEXEC);
    if (file->descriptor < 0) {
        return attn_fail(error, ATTN_ERR_IO, "%s: %s", path, strerror(errno));
    }
    return ATTN_OK;
}

static attn_status open_temporary(attn_atomic_file *file, const struct stat *old, attn_error *error)
{
    enum { ATTEMPTS = 1000 };
    if (old != NULL && access(file->target, W_OK) != 0) {
        return attn_fail(error, ATTN_ERR_IO, "%s: %s", file->target, strerror(errno));
    }
    for (int attempt = 0; attempt < ATTEMPTS && file->descriptor < 0; attempt++) {
        if (!name_temporary(file, attempt)) {
            return attn_fail(error, ATTN_ERR_IO, "%s: %s", file->target, strerror(ENAMETOOLONG));
        }
        file->descriptor = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file->descriptor < 0 && errno != EEXIST) {
            break;
        }
    }
    if (file->descriptor < 0) {
        return attn_fail(error, ATTN_ERR_IO, "%s: %s", file->target, strerror(errno));
    }
    if (old != NULL && fchmod(file->descriptor, old->st_mode & 0777) != 0) {
        int reason = errno;
        close(file->descriptor);
        unlink(file->temporary);
        return attn_fail(error, ATTN_ERR_IO, "%s: %s", file->target, strerror(reason));
    }
    return ATTN_OK;
}

static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? 0 : (size_t)(slash - path) + 1;
}

static bool name_temporary(attn_atomic_file *file, int attempt)
{
    size_t folder = folder_length(file->target);
    int length = snprintf(file->temporary, sizeof(file->temporary), "%.*s.%s.%ld-%d.tmp",
                          (int)folder, file->target, file->target + folder, (long)getpid(),
                          attempt);
    return length > 0 && (size_t)length < sizeof(file->temporary);
}

// ---- writing ------------------------------------------------------------------------------------

static bool write_all(void *state, const void *bytes, size_t size)
{
    const attn_atomic_file *file = state;
    const char *next = bytes;
    while (size > 0) {
        ssize_t written = write(file->descriptor, next, size);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            return false;
        }
        next += written;
        size -= (size_t)written;
    }
    return true;
}

// Ends the descriptor in any case, and the temporary file.
static attn_status flush_and_rename(attn_atomic_file *file, attn_error *error)
{
    int reason = fsync(file->descriptor) == 0 ? 0 : errno;
    if (close(file->descriptor) != 0 && reason == 0) {
        reason = errno;
    }
    if (reason == 0 && rename(file->temporary, file->target) != 0) {
        reason = errno;
    }
    if (reason != 0) {
        unlink(file->temporary);
        return attn_fail(error, ATTN_ERR_IO, "%s: %s", file->target, strerror(reason));
    }
    return flush_folder(file, error);
}

// Makes the new name last. Some file systems cannot flush a folder and say EINVAL; theirs is then
// the best that can be had.
static attn_status flush_folder(const attn_atomic_file *file, attn_error *error)
{
    char folder[PATH_MAX] = ".";
    size_t length = folder_length(file->target);
    if (length > 0) {
        memcpy(folder, file->target, length);
        folder[length] = '\0';
    }
    int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) {
        return ATTN_OK; // a folder that may be written but not read
    }
    int reason = fsync(descriptor) == 0 || errno == EINVAL ? 0 : errno;
    close(descriptor);
    if (reason != 0) {
        return attn_fail(error, ATTN_ERR_IO, "%s: flushing its folder: %s", file->target,
                         strerror(reason));
    }
    return ATTN_OK;
}
