#include "attn/dlpack.h"

#include <string.h>

#include "core/context.h"
#include "core/error.h"

// What an exported tensor owns.
typedef struct exported {
    DLManagedTensorVersioned managed;
    const attn_context *context;
    void *owner;
    void (*release)(void *owner);
    int64_t shape[ATTN_MAX_DIMS];
    int64_t strides[ATTN_MAX_DIMS];
} exported;

static const struct {
    uint8_t code, bits;
} types[ATTN_DTYPE_COUNT] = {
    [ATTN_F32] = {kDLFloat, 32},   [ATTN_F64] = {kDLFloat, 64}, [ATTN_F16] = {kDLFloat, 16},
    [ATTN_BF16] = {kDLBfloat, 16}, [ATTN_I64] = {kDLInt, 64},   [ATTN_I32] = {kDLInt, 32},
    [ATTN_I16] = {kDLInt, 16},     [ATTN_I8] = {kDLInt, 8},     [ATTN_U8] = {kDLUInt, 8},
    [ATTN_BOOL] = {kDLBool, 8},
};

// ---- out ----------------------------------------------------------------------------------------

static void delete_exported(DLManagedTensorVersioned *managed)
{
    exported *e = managed->manager_ctx;
    if (e->release != NULL) {
        e->release(e->owner);
    }
    attn_release(e->context, e, sizeof(*e));
}

attn_status attn_dlpack_export(const attn_context *context, const attn_tensor *tensor, void *owner,
                               void (*release)(void *owner), DLManagedTensorVersioned **managed,
                               attn_error *error)
{
    if (context == NULL || tensor == NULL || managed == NULL) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "dlpack: context, tensor or managed is NULL");
    }
    const attn_status status = attn_tensor_check(tensor, "dlpack", error);
    if (status != ATTN_OK) {
        return status;
    }
    exported *e = attn_allocate(context, sizeof(*e));
    if (e == NULL) {
        return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY, "dlpack: out of memory");
    }
    *e = (exported){.context = context, .owner = owner, .release = release};
    memcpy(e->shape, tensor->shape, sizeof(e->shape));
    memcpy(e->strides, tensor->stride, sizeof(e->strides));
    const bool read_only = (tensor->flags & ATTN_TENSOR_READ_ONLY) != 0;
    e->managed = (DLManagedTensorVersioned){
        .version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
        .manager_ctx = e,
        .deleter = delete_exported,
        .flags = read_only ? DLPACK_FLAG_BITMASK_READ_ONLY : 0,
        .dl_tensor = {.data = tensor->data,
                      .device = {kDLCPU, 0},
                      .ndim = tensor->ndim,
                      .dtype = {types[tensor->dtype].code, types[tensor->dtype].bits, 1},
                      .shape = e->shape,
                      .strides = e->strides},
    };
    *managed = &e->managed;
    return ATTN_OK;
}

// ---- in -----------------------------------------------------------------------------------------

static attn_status check_source(const DLTensor *source, attn_error *error);
static attn_dtype dtype_of(DLDataType type);

attn_status attn_dlpack_import(const DLManagedTensorVersioned *managed, attn_tensor *tensor,
                               attn_error *error)
{
    if (managed == NULL || tensor == NULL) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "dlpack: managed or tensor is NULL");
    }
    if (managed->version.major != DLPACK_MAJOR_VERSION) {
        return attn_fail(error, ATTN_ERR_NOT_SUPPORTED,
                         "dlpack: the tensor is of version %u.%u; major version %d is known",
                         (unsigned)managed->version.major, (unsigned)managed->version.minor,
                         DLPACK_MAJOR_VERSION);
    }
    return attn_dlpack_view(&managed->dl_tensor, managed->flags, tensor, error);
}

attn_status attn_dlpack_view(const DLTensor *source, uint64_t flags, attn_tensor *tensor,
                             attn_error *error)
{
    if (source == NULL || tensor == NULL) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "dlpack: source or tensor is NULL");
    }
    attn_status status = check_source(source, error);
    if (status != ATTN_OK) {
        return status;
    }
    const attn_dtype dtype = dtype_of(source->dtype);
    unsigned char *data = source->data;
    attn_tensor view = attn_tensor_wrap(data == NULL ? NULL : data + source->byte_offset, dtype,
                                        source->ndim, source->shape);
    if (source->strides != NULL) {
        memcpy(view.stride, source->strides, (size_t)source->ndim * sizeof(*source->strides));
    }
    if ((flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0) {
        view.flags = ATTN_TENSOR_READ_ONLY;
    }
    status = attn_tensor_check(&view, "dlpack", error);
    if (status == ATTN_OK) {
        *tensor = view;
    }
    return status;
}

static attn_status check_source(const DLTensor *source, attn_error *error)
{
    const int device = (int)source->device.device_type;
    if (device != kDLCPU && device != kDLCUDAHost && device != kDLROCMHost) {
        return attn_fail(error, ATTN_ERR_NOT_SUPPORTED,
                         "dlpack: the data is on device type %d, not in the CPU's memory", device);
    }
    if (source->ndim < 0 || source->ndim > ATTN_MAX_DIMS) {
        return attn_fail(error, ATTN_ERR_NOT_SUPPORTED,
                         "dlpack: %d dimensions; 0 to 8 are supported", (int)source->ndim);
    }
    if (source->shape == NULL && source->ndim > 0) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "dlpack: shape is NULL");
    }
    if (source->dtype.lanes != 1) {
        return attn_fail(error, ATTN_ERR_NOT_SUPPORTED,
                         "dlpack: vector elements of %u lanes are not supported",
                         (unsigned)source->dtype.lanes);
    }
    if (dtype_of(source->dtype) == ATTN_DTYPE_NONE) {
        return attn_fail(error, ATTN_ERR_DTYPE,
                         "dlpack: elements of type code %u with %u bits are not supported",
                         (unsigned)source->dtype.code, (unsigned)source->dtype.bits);
    }
    return ATTN_OK;
}

static attn_dtype dtype_of(DLDataType type)
{
    for (int dtype = ATTN_DTYPE_NONE + 1; dtype < ATTN_DTYPE_COUNT; dtype++) {
        if (types[dtype].code == type.code && types[dtype].bits == type.bits) {
            return (attn_dtype)dtype;
        }
    }
    return ATTN_DTYPE_NONE;
}

void attn_dlpack_release(DLManagedTensorVersioned *managed)
{
    if (managed != NULL && managed->deleter != NULL) {
        managed->deleter(managed);
    }
}
