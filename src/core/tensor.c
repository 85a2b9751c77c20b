#include "attn/tensor.h"

#include <string.h>

#include "core/checked.h"
#include "core/context.h"
#include "core/error.h"
#include "core/layout.h"
#include "core/text.h"

static attn_status check_extent(const attn_tensor *tensor, const char *name, attn_error *error);

// ---- element types ------------------------------------------------------------------------------

static const struct {
    const char *name;
    size_t size;
} dtypes[ATTN_DTYPE_COUNT] = {
    [ATTN_DTYPE_NONE] = {"none", 0}, [ATTN_F32] = {"float32", 4},   [ATTN_F64] = {"float64", 8},
    [ATTN_F16] = {"float16", 2},     [ATTN_BF16] = {"bfloat16", 2}, [ATTN_I64] = {"int64", 8},
    [ATTN_I32] = {"int32", 4},       [ATTN_I16] = {"int16", 2},     [ATTN_I8] = {"int8", 1},
    [ATTN_U8] = {"uint8", 1},        [ATTN_BOOL] = {"bool", 1},
};

size_t attn_dtype_size(attn_dtype dtype)
{
    return (unsigned)dtype < ATTN_DTYPE_COUNT ? dtypes[dtype].size : 0;
}

const char *attn_dtype_name(attn_dtype dtype)
{
    return (unsigned)dtype < ATTN_DTYPE_COUNT ? dtypes[dtype].name : "unknown";
}

// ---- create -------------------------------------------------------------------------------------

attn_tensor attn_tensor_wrap(void *data, attn_dtype dtype, int32_t ndim, const int64_t *shape)
{
    attn_tensor tensor = {.data = data, .dtype = dtype, .ndim = ndim};
    const int32_t dims = ndim < ATTN_MAX_DIMS ? ndim : ATTN_MAX_DIMS;
    for (int32_t d = 0; d < dims; d++) {
        tensor.shape[d] = shape[d];
    }
    attn_row_major(dims, tensor.shape, tensor.stride);
    return tensor;
}

attn_tensor attn_tensor_wrap_const(const void *data, attn_dtype dtype, int32_t ndim,
                                   const int64_t *shape)
{
    attn_tensor tensor = attn_tensor_wrap((void *)data, dtype, ndim, shape);
    tensor.flags = ATTN_TENSOR_READ_ONLY;
    return tensor;
}

// Stands in front of the elements of an allocated tensor, so that any view-like change of the
// tensor's shape cannot change what is released.
struct header {
    _Alignas(ATTN_ALIGNMENT) size_t bytes; // with this header
};

attn_status attn_tensor_create(const attn_context *context, attn_dtype dtype, int32_t ndim,
                               const int64_t *shape, attn_tensor *tensor, attn_error *error)
{
    if (!context || !tensor || (ndim > 0 && !shape)) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "tensor_create: %s is NULL",
                         !context  ? "context"
                         : !tensor ? "tensor"
                                   : "shape");
    }
    if (ndim < 0 || ndim > ATTN_MAX_DIMS) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "tensor_create: ndim (%d) must be in [0, %d]", ndim, ATTN_MAX_DIMS);
    }
    struct header unallocated; // gives the checks a pointer that is not NULL
    attn_tensor created = attn_tensor_wrap(&unallocated, dtype, ndim, shape);
    const attn_status status = attn_tensor_check(&created, "tensor_create", error);
    if (status != ATTN_OK) {
        return status;
    }
    const int64_t count = attn_tensor_count(&created);
    created.data = NULL;
    if (count > 0) {
        const size_t bytes = (size_t)count * attn_dtype_size(dtype) + sizeof(struct header);
        struct header *header = attn_allocate(context, bytes);
        if (!header) {
            return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY,
                             "tensor_create: out of memory for %s of shape %s (%zu bytes)",
                             attn_dtype_name(dtype), attn_shape_text(&created).text, bytes);
        }
        memset(header, 0, bytes);
        header->bytes = bytes;
        created.data = header + 1;
    }
    *tensor = created;
    return ATTN_OK;
}

void attn_tensor_destroy(const attn_context *context, attn_tensor *tensor)
{
    if (!tensor) {
        return;
    }
    if (tensor->data) {
        struct header *header = (struct header *)tensor->data - 1;
        attn_release(context, header, header->bytes);
    }
    *tensor = (attn_tensor){0};
}

// ---- questions ----------------------------------------------------------------------------------

attn_status attn_tensor_check(const attn_tensor *tensor, const char *name, attn_error *error)
{
    const attn_status invalid = ATTN_ERR_INVALID_ARGUMENT;
    if (!tensor) {
        return attn_fail(error, invalid, "%s: the tensor is NULL", name);
    }
    const size_t size = attn_dtype_size(tensor->dtype);
    if (size == 0) {
        return attn_fail(error, ATTN_ERR_DTYPE, "%s: unknown dtype %d", name, (int)tensor->dtype);
    }
    if (tensor->ndim < 0 || tensor->ndim > ATTN_MAX_DIMS) {
        return attn_fail(error, invalid, "%s: ndim (%d) must be in [0, %d]", name, tensor->ndim,
                         ATTN_MAX_DIMS);
    }
    if ((tensor->flags & ~(uint32_t)ATTN_TENSOR_READ_ONLY) || tensor->reserved) {
        return attn_fail(error, invalid, "%s: unknown flags 0x%x or reserved bits 0x%x", name,
                         (unsigned)tensor->flags, (unsigned)tensor->reserved);
    }
    bool empty = false;
    for (int32_t d = 0; d < tensor->ndim; d++) {
        if (tensor->shape[d] < 0) {
            return attn_fail(error, invalid, "%s: shape %s has a negative size", name,
                             attn_shape_text(tensor).text);
        }
        empty = empty || tensor->shape[d] == 0;
    }
    if (!empty && !tensor->data) {
        return attn_fail(error, invalid, "%s: data of a tensor of shape %s is NULL", name,
                         attn_shape_text(tensor).text);
    }
    if (!empty && (uintptr_t)tensor->data % size) {
        return attn_fail(error, invalid, "%s: data is not aligned to its %zu-byte elements", name,
                         size);
    }
    return check_extent(tensor, name, error);
}

// Do the number of elements, every stride in bytes, and the byte offsets of the first and last
// element fit in int64_t? A size of 0 counts as 1, and a stride over a single entry counts too, so
// that whoever computes with them need not ask first.
static attn_status check_extent(const attn_tensor *tensor, const char *name, attn_error *error)
{
    const int64_t size = (int64_t)attn_dtype_size(tensor->dtype);
    int64_t count = size, below = 0, above = size; // in bytes
    bool fits = true;
    for (int32_t d = 0; d < tensor->ndim && fits; d++) {
        const int64_t entries = tensor->shape[d] > 0 ? tensor->shape[d] : 1;
        int64_t step, extent;
        fits = attn_checked_mul(count, entries, &count) &&
               attn_checked_mul(tensor->stride[d], size, &step) && step != INT64_MIN &&
               attn_checked_mul(entries - 1, step, &extent) &&
               (extent < 0 ? attn_checked_add(below, extent, &below)
                           : attn_checked_add(above, extent, &above));
    }
    int64_t width;
    if (!fits || count == INT64_MAX || below == INT64_MIN ||
        !attn_checked_add(above, -below, &width)) {
        return attn_fail(error, ATTN_ERR_OVERFLOW, "%s: shape %s with stride %s is too large", name,
                         attn_shape_text(tensor).text, attn_stride_text(tensor).text);
    }
    return ATTN_OK;
}

int64_t attn_tensor_count(const attn_tensor *tensor)
{
    int64_t count = 1;
    bool fits = true;
    for (int32_t d = 0; d < tensor->ndim; d++) {
        if (tensor->shape[d] == 0) {
            return 0;
        }
        fits = fits && attn_checked_mul(count, tensor->shape[d], &count);
    }
    return fits ? count : INT64_MAX; // which no well-formed tensor has
}

bool attn_tensor_is_contiguous(const attn_tensor *tensor)
{
    if (attn_tensor_count(tensor) == 0) {
        return true;
    }
    int64_t expected = 1;
    for (int32_t d = tensor->ndim - 1; d >= 0; d--) {
        if (tensor->shape[d] != 1 && tensor->stride[d] != expected) {
            return false;
        }
        expected *= tensor->shape[d];
    }
    return true;
}

bool attn_tensor_same_shape(const attn_tensor *a, const attn_tensor *b)
{
    return a->ndim == b->ndim &&
           (a->ndim == 0 || memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof a->shape[0]) == 0);
}
