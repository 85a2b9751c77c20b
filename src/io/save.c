#include "io/save.h"

#include <errno.h>
#include <string.h>

#include "attn/io.h"
#include "core/error.h"
#include "io/atomic_file.h"

attn_status attn_save(const attn_context *context, const char *path, attn_format_writer write,
                      const void *what, attn_error *error)
{
    attn_atomic_file *file = NULL;
    attn_status status = attn_atomic_file_open(context, path, &file, error);
    if (status != ATTN_OK) {
        return status;
    }
    attn_sink sink = attn_atomic_file_sink(file);
    attn_error reason = {0};
    status = write(&sink, what, &reason);
    if (status == ATTN_OK) {
        return attn_atomic_file_commit(file, error);
    }
    attn_atomic_file_discard(file);
    return attn_fail(error, status, "%s: %s", path, reason.text);
}

// ---- plain bytes --------------------------------------------------------------------------------

typedef struct plain_bytes {
    const void *bytes;
    size_t size;
} plain_bytes;

static attn_status write_plain(const attn_sink *sink, const void *what, attn_error *error)
{
    const plain_bytes *plain = what;
    if (plain->size > 0 && !sink->write(sink->state, plain->bytes, plain->size)) {
        return attn_fail(error, ATTN_ERR_IO, "%s", strerror(errno));
    }
    return ATTN_OK;
}

attn_status attn_save_bytes(const attn_context *context, const char *path, const void *bytes,
                            size_t size, attn_error *error)
{
    if (bytes == NULL && size > 0) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "save: bytes is NULL");
    }
    plain_bytes plain = {.bytes = bytes, .size = size};
    return attn_save(context, path, write_plain, &plain, error);
}
