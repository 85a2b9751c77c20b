#include "io/npy.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "core/context.h"
#include "core/error.h"
#include "io/elements.h"
#include "io/npy_header.h"
#include "io/save.h"
#include "io/text.h"

static attn_status take_data(attn_npy *file, const attn_npy_header *header,
                             const unsigned char *data, const char *label, attn_error *error);
static attn_tensor reversed(const attn_tensor *tensor);

// ---- reading ------------------------------------------------------------------------------------

attn_status attn_npy_open(const attn_context *context, const char *path, uint32_t flags,
                          attn_npy **file, attn_error *error)
{
    if (context == NULL || file == NULL) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "npy: context and file must not be NULL");
    }
    attn_file_map map = {0};
    attn_status status = attn_npy_check_flags(flags, error);
    if (status == ATTN_OK) {
        status = attn_file_map_open(path, &map, error);
    }
    if (status != ATTN_OK) {
        return status;
    }
    attn_npy *opened = NULL;
    status = attn_npy_parse_labelled(context, attn_show_name(path).text, map.bytes, map.size, flags,
                                     &opened, error);
    if (status != ATTN_OK) {
        attn_file_map_close(&map);
        return status;
    }
    opened->map = map;
    *file = opened;
    return ATTN_OK;
}

attn_status attn_npy_parse(const attn_context *context, const void *bytes, size_t size,
                           uint32_t flags, attn_npy **file, attn_error *error)
{
    if (context == NULL || file == NULL || (bytes == NULL && size > 0)) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "npy: context, bytes and file must not be NULL");
    }
    attn_status status = attn_npy_check_flags(flags, error);
    if (status != ATTN_OK) {
        return status;
    }
    return attn_npy_parse_labelled(context, "npy", bytes, size, flags, file, error);
}

attn_status attn_npy_check_flags(uint32_t flags, attn_error *error)
{
    if ((flags & ~(uint32_t)ATTN_NPY_BFLOAT16) != 0) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "npy: unknown flags 0x%x",
                         (unsigned)flags);
    }
    return ATTN_OK;
}

attn_status attn_npy_parse_labelled(const attn_context *context, const char *label,
                                    const unsigned char *bytes, size_t size, uint32_t flags,
                                    attn_npy **file, attn_error *error)
{
    attn_npy_header header = {0};
    attn_status status = attn_npy_read_header(label, bytes, size, flags, &header, error);
    if (status != ATTN_OK) {
        return status;
    }
    assert(bytes != NULL); // they hold at least the header
    size_t rest = size - header.size;
    size_t data_size = (size_t)header.data_size;
    if (rest != data_size) {
        return attn_fail(error, ATTN_ERR_FORMAT,
                         "%s: shape %s of %s takes %zu bytes, but %s%zu follow the header", label,
                         attn_show_shape(header.ndim, header.shape).text,
                         attn_dtype_name(header.dtype), data_size, rest < data_size ? "only " : "",
                         rest);
    }
    attn_npy *opened = attn_allocate(context, sizeof(*opened));
    if (opened == NULL) {
        return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY, "%s: out of memory", label);
    }
    *opened = (attn_npy){.context = context};
    status = take_data(opened, &header, bytes + header.size, label, error);
    if (status != ATTN_OK) {
        attn_npy_close(opened);
        return status;
    }
    *file = opened;
    return ATTN_OK;
}

// Makes the tensor a view of the data, or of a copy that this machine can read.
static attn_status take_data(attn_npy *file, const attn_npy_header *header,
                             const unsigned char *data, const char *label, attn_error *error)
{
    size_t size = (size_t)header->data_size;
    size_t element = attn_dtype_size(header->dtype);
    if (size > 0 && (header->swapped || (uintptr_t)data % element != 0)) {
        file->copy = attn_allocate(file->context, size);
        if (file->copy == NULL) {
            return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY, "%s: out of memory", label);
        }
        file->copy_size = size;
        memcpy(file->copy, data, size);
        if (header->swapped) {
            attn_swap_bytes(file->copy, size / element, element);
        }
        data = file->copy;
    }
    if (size == 0) {
        data = NULL;
    }
    file->tensor = attn_tensor_wrap_const(data, header->dtype, header->ndim, header->shape);
    if (header->fortran_order) {
        attn_tensor turned = reversed(&file->tensor);
        turned = attn_tensor_wrap_const(data, header->dtype, header->ndim, turned.shape);
        file->tensor = reversed(&turned);
    }
    return ATTN_OK;
}

void attn_npy_close(attn_npy *file)
{
    if (file == NULL) {
        return;
    }
    attn_release(file->context, file->copy, file->copy_size);
    attn_file_map_close(&file->map);
    attn_release(file->context, file, sizeof(*file));
}

const attn_tensor *attn_npy_tensor(const attn_npy *file)
{
    return &file->tensor;
}

// The same elements with the order of the dimensions turned round: Fortran order becomes row-major.
static attn_tensor reversed(const attn_tensor *tensor)
{
    attn_tensor result = *tensor;
    for (int32_t d = 0; d < tensor->ndim; d++) {
        result.shape[d] = tensor->shape[tensor->ndim - 1 - d];
        result.stride[d] = tensor->stride[tensor->ndim - 1 - d];
    }
    return result;
}

// ---- writing ------------------------------------------------------------------------------------

static attn_status write_tensor(const attn_sink *sink, const void *what, attn_error *error)
{
    const attn_tensor *tensor = what;
    attn_tensor turned = reversed(tensor);
    bool fortran_order = !attn_tensor_is_contiguous(tensor) && attn_tensor_is_contiguous(&turned);
    unsigned char header[ATTN_NPY_HEADER_ROOM];
    size_t size = attn_npy_format_header(attn_npy_descr(tensor->dtype), fortran_order, tensor->ndim,
                                         tensor->shape, header);
    if (!sink->write(sink->state, header, size) ||
        !attn_write_elements(sink, fortran_order ? &turned : tensor)) {
        return attn_fail(error, ATTN_ERR_IO, "%s", strerror(errno));
    }
    return ATTN_OK;
}

static attn_status check_tensor(const attn_tensor *tensor, uint32_t flags, attn_error *error)
{
    attn_status status = attn_npy_check_flags(flags, error);
    if (status == ATTN_OK) {
        status = attn_tensor_check(tensor, "npy", error);
    }
    if (status == ATTN_OK && tensor->dtype == ATTN_BF16 && (flags & ATTN_NPY_BFLOAT16) == 0) {
        status = attn_fail(error, ATTN_ERR_DTYPE,
                           "npy: bfloat16 would be written as opaque 'V2' elements; allow it "
                           "(ATTN_NPY_BFLOAT16, --bfloat16) or convert to float32");
    }
    return status;
}

attn_status attn_npy_save(const attn_context *context, const char *path, const attn_tensor *tensor,
                          uint32_t flags, attn_error *error)
{
    attn_status status = check_tensor(tensor, flags, error);
    if (status != ATTN_OK) {
        return status;
    }
    return attn_save(context, path, write_tensor, tensor, error);
}

attn_status attn_npy_write(const attn_sink *sink, const attn_tensor *tensor, uint32_t flags,
                           attn_error *error)
{
    if (sink == NULL || sink->write == NULL) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "npy: sink must not be NULL");
    }
    attn_status status = check_tensor(tensor, flags, error);
    if (status != ATTN_OK) {
        return status;
    }
    return write_tensor(sink, tensor, error);
}
