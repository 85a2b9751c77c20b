// attn/dlpack.h: tensors from and to other libraries in the same process, without a copy.
//
// DLPack 1.1: numpy, torch, JAX and others hand out and take a DLManagedTensorVersioned. Only memory
// that the CPU can read is taken (plain, or pinned for a GPU).
// Source: the DLPack specification, https://dmlc.github.io/dlpack/latest/.
#ifndef ATTN_DLPACK_H
#define ATTN_DLPACK_H

#include "attn/context.h"
#include "attn/dlpack_abi.h"
#include "attn/export.h"
#include "attn/status.h"
#include "attn/tensor.h"

ATTN_BEGIN_DECLS

// Makes a managed tensor that views the tensor's memory; the consumer calls its deleter once, on any
// thread. That calls release(owner) (release may be NULL), which is where the memory's owner learns
// that it is free; on an error release is not called. The context must live until then. A read-only
// tensor is flagged so. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY.
ATTN_API attn_status attn_dlpack_export(const attn_context *context, const attn_tensor *tensor,
                                        void *owner, void (*release)(void *owner),
                                        DLManagedTensorVersioned **managed, attn_error *error);

// Makes *tensor a view of a managed tensor's memory: byte offset, NULL strides (row-major), and
// read-only flag are honoured. The managed tensor stays the caller's, who gives it to
// attn_dlpack_release when the view is no longer used, also after an error. Another major version is
// NOT_SUPPORTED; then, as the specification asks, nothing of it but the version is read. Errors:
// INVALID_ARGUMENT (NULL, misaligned data), DTYPE, NOT_SUPPORTED (a version, a device, more than 8
// dimensions, vector or packed elements), OVERFLOW.
ATTN_API attn_status attn_dlpack_import(const DLManagedTensorVersioned *managed,
                                        attn_tensor *tensor, attn_error *error);

// The same for a bare DLTensor, as in the older DLManagedTensor; `flags` as above, 0 where unknown.
ATTN_API attn_status attn_dlpack_view(const DLTensor *source, uint64_t flags, attn_tensor *tensor,
                                      attn_error *error);

// Calls the deleter where there is one. Takes NULL.
ATTN_API void attn_dlpack_release(DLManagedTensorVersioned *managed);

ATTN_END_DECLS

#endif
