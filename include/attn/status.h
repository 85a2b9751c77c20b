// attn/status.h: what went wrong, as a code and as a sentence.
//
// Every function that can fail returns an `attn_status` and takes, last, an `attn_error *` that may
// be NULL. On failure the code says the kind and `error->text` says which field, which shapes and
// what was expected, as in
//   multi_head_attention: d_out (10) must be divisible by num_heads (4)
// On success the error object is left untouched. A failed call leaves its other arguments as they
// were. Nothing in the library prints or aborts.
#ifndef ATTN_STATUS_H
#define ATTN_STATUS_H

#include "attn/export.h"

ATTN_BEGIN_DECLS

typedef enum attn_status {
    ATTN_OK = 0,
    ATTN_ERR_INVALID_ARGUMENT, // a value out of its range, a NULL that must not be, unknown enum
    ATTN_ERR_SHAPE,            // shapes or ranks that do not fit together
    ATTN_ERR_DTYPE,            // an element type that does not fit here
    ATTN_ERR_NOT_CONTIGUOUS,   // the strides do not allow this view
    ATTN_ERR_OVERLAP,          // an output overlaps itself or an input
    ATTN_ERR_OVERFLOW,         // a size does not fit in int64_t or size_t
    ATTN_ERR_OUT_OF_MEMORY,    // the allocator returned NULL
    ATTN_ERR_WORKSPACE,        // the given workspace is too small or misaligned
    ATTN_ERR_NOT_SUPPORTED,    // a legal request that this build cannot serve; the text names it
    ATTN_ERR_STATE,            // wrong time: use after reset, other tape, other context, ...
    ATTN_ERR_NOT_FOUND,        // no such name
    ATTN_ERR_IO,               // the operating system refused; the text holds its reason
    ATTN_ERR_FORMAT,           // a file breaks its format's rules
    ATTN_ERR_NOT_FINITE,       // a loss or gradient became NaN or infinite
    ATTN_ERR_INTERRUPTED,      // the caller asked to stop
    ATTN_STATUS_COUNT
} attn_status;

enum { ATTN_ERROR_TEXT_SIZE = 512 };

// Caller-owned detail of a failure; `text` is always NUL-terminated and cut if it is too long.
typedef struct attn_error {
    attn_status status;
    char text[ATTN_ERROR_TEXT_SIZE];
} attn_error;

// A short constant description, "shape mismatch" for ATTN_ERR_SHAPE; "unknown status" for a value
// outside the enum. Never NULL.
ATTN_API const char *attn_status_message(attn_status status);

// The enumerator's own name, "ATTN_ERR_SHAPE". Never NULL.
ATTN_API const char *attn_status_name(attn_status status);

ATTN_END_DECLS

#endif
