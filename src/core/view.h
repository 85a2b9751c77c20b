// core/view.h: attn_tensor_view on behalf of another operation.
#ifndef ATTN_CORE_VIEW_H
#define ATTN_CORE_VIEW_H

#include "attn/tensor.h"

// As attn_tensor_view, with `name` in front of the messages.
attn_status attn_view_named(const char *name, const attn_tensor *tensor, int32_t ndim,
                            const int64_t *shape, attn_tensor *result, attn_error *error);

#endif
