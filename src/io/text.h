// io/text.h: names and shapes from files, made fit for a message.
#ifndef ATTN_IO_TEXT_H
#define ATTN_IO_TEXT_H

#include <stddef.h>
#include <stdint.h>

enum { ATTN_SHOWN_SIZE = 112 };

// A name for an error text: control characters become '?', a long one is cut at a character's border
// and ends in "...".
typedef struct attn_shown {
    char text[ATTN_SHOWN_SIZE];
} attn_shown;
attn_shown attn_show_name(const char *name);

// The same for `size` bytes that need not be text: whatever is not printable ASCII becomes '?'.
attn_shown attn_show_bytes(const void *bytes, size_t size);

// "[768, 2304]".
attn_shown attn_show_shape(int32_t ndim, const int64_t *shape);

#endif
