// core/text.h: shapes and strides in messages.
#ifndef ATTN_CORE_TEXT_H
#define ATTN_CORE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "attn/tensor.h"

// "[2,6,4]". Returned by value, so that a message reads
// attn_fail(error, ATTN_ERR_SHAPE, "matmul: %s", attn_shape_text(a).text).
typedef struct attn_dims_text {
    char text[ATTN_MAX_DIMS * 21 + 3]; // 19 digits, sign and comma per entry
} attn_dims_text;

attn_dims_text attn_dims_as_text(int32_t ndim, const int64_t *dims);
attn_dims_text attn_shape_text(const attn_tensor *tensor);
attn_dims_text attn_stride_text(const attn_tensor *tensor);

// The caller's buffer as a growing text: cut at its size, counted in full, always NUL-terminated.
typedef struct attn_writer {
    char *buffer;
    size_t size, length;
} attn_writer;

attn_writer attn_writer_open(char *buffer, size_t size);
void attn_write(attn_writer *writer, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Gives the decimal number in `text`, as printf wrote it, a '.' for whatever decimal point the
// program's locale has.
void attn_use_full_stop(char *text);

#endif
