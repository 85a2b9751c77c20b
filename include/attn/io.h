// attn/io.h: what the file formats share.
#ifndef ATTN_IO_H
#define ATTN_IO_H

#include <stdbool.h>
#include <stddef.h>

#include "attn/export.h"
#include "attn/status.h"

ATTN_BEGIN_DECLS

// Where bytes go: called once or more, in order. Returns whether all `size` bytes were taken; a
// refusal should leave its reason in errno, which becomes part of the error's text.
typedef struct attn_sink {
    void *state;
    bool (*write)(void *state, const void *bytes, size_t size);
} attn_sink;

// A key and its value, both text in UTF-8.
typedef struct attn_text_pair {
    const char *key;
    const char *value;
} attn_text_pair;

ATTN_END_DECLS

#endif
