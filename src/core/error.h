// core/error.h: the one way to report a failure.
#ifndef ATTN_CORE_ERROR_H
#define ATTN_CORE_ERROR_H

#include "attn/status.h"

// Writes status and formatted text to *error (which may be NULL) and returns status, so that a check
// reads `return attn_fail(error, ATTN_ERR_SHAPE, "matmul: ...", ...)`.
attn_status attn_fail(attn_error *error, attn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// clang's analyzer does not look into variadic functions: it is told what the result is.
#ifdef __clang_analyzer__
#define attn_fail(error, status, ...) (attn_fail(error, status, __VA_ARGS__), (status))
#endif

#endif
