#include "attn/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"

static const struct {
    const char *name, *message;
} statuses[ATTN_STATUS_COUNT] = {
    [ATTN_OK] = {"ATTN_OK", "success"},
    [ATTN_ERR_INVALID_ARGUMENT] = {"ATTN_ERR_INVALID_ARGUMENT", "invalid argument"},
    [ATTN_ERR_SHAPE] = {"ATTN_ERR_SHAPE", "shape mismatch"},
    [ATTN_ERR_DTYPE] = {"ATTN_ERR_DTYPE", "unsuitable element type"},
    [ATTN_ERR_NOT_CONTIGUOUS] = {"ATTN_ERR_NOT_CONTIGUOUS", "strides do not allow this view"},
    [ATTN_ERR_OVERLAP] = {"ATTN_ERR_OVERLAP", "output overlaps itself or an input"},
    [ATTN_ERR_OVERFLOW] = {"ATTN_ERR_OVERFLOW", "size too large"},
    [ATTN_ERR_OUT_OF_MEMORY] = {"ATTN_ERR_OUT_OF_MEMORY", "out of memory"},
    [ATTN_ERR_WORKSPACE] = {"ATTN_ERR_WORKSPACE", "workspace too small or misaligned"},
    [ATTN_ERR_NOT_SUPPORTED] = {"ATTN_ERR_NOT_SUPPORTED", "not supported"},
    [ATTN_ERR_STATE] = {"ATTN_ERR_STATE", "wrong state for this call"},
    [ATTN_ERR_NOT_FOUND] = {"ATTN_ERR_NOT_FOUND", "not found"},
    [ATTN_ERR_IO] = {"ATTN_ERR_IO", "input or output failed"},
    [ATTN_ERR_FORMAT] = {"ATTN_ERR_FORMAT", "malformed file"},
    [ATTN_ERR_NOT_FINITE] = {"ATTN_ERR_NOT_FINITE", "not a finite number"},
    [ATTN_ERR_INTERRUPTED] = {"ATTN_ERR_INTERRUPTED", "interrupted"},
};

static int is_known(attn_status status)
{
    return (unsigned)status < ATTN_STATUS_COUNT;
}

const char *attn_status_message(attn_status status)
{
    return is_known(status) ? statuses[status].message : "unknown status";
}

const char *attn_status_name(attn_status status)
{
    return is_known(status) ? statuses[status].name : "unknown status";
}

attn_status(attn_fail)(attn_error *error, attn_status status, const char *format, ...)
{
    if (error) {
        // Not straight into error->text: an argument may be that text, being wrapped.
        char text[ATTN_ERROR_TEXT_SIZE];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(text, sizeof text, format, arguments);
        va_end(arguments);
        error->status = status;
        memcpy(error->text, text, sizeof text);
    }
    return status;
}
