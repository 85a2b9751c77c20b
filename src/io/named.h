// io/named.h: finding tensors by name, and saying what is there when a name is not.
#ifndef ATTN_IO_NAMED_H
#define ATTN_IO_NAMED_H

#include <stddef.h>
#include <stdint.h>

#include "attn/module.h"

// The tensor named prefix + name, or NULL.
const attn_named_tensor *attn_named_find(const attn_named_tensor *tensors, int64_t count,
                                         const char *prefix, const char *name);

// Writes up to three names that are closest to `name` to `buffer`, as "a, b, c"; nothing where none
// is close.
void attn_named_nearest(const attn_named_tensor *tensors, int64_t count, const char *name,
                        char *buffer, size_t size);

// The number of letters to put in, take out or change to make one text of the other; at most `limit`.
int64_t attn_edit_distance(const char *a, const char *b, int64_t limit);

#endif
