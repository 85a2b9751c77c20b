// io/tensor_list.h: a list of named tensors that is built up.
#ifndef ATTN_IO_TENSOR_LIST_H
#define ATTN_IO_TENSOR_LIST_H

#include "attn/layout.h"

// An empty list with room for `capacity` tensors. Errors: OUT_OF_MEMORY.
attn_status attn_tensor_list_create(const attn_context *context, int64_t capacity,
                                    attn_tensor_list **list, attn_error *error);

// Adds zeros under the name prefix + name and gives the tensor to be filled; there must be room.
// Errors: OUT_OF_MEMORY, OVERFLOW.
attn_status attn_tensor_list_add(attn_tensor_list *list, const char *prefix, const char *name,
                                 attn_dtype dtype, int32_t ndim, const int64_t *shape,
                                 attn_tensor *added, attn_error *error);

#endif
