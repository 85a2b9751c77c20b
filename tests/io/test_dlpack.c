// DLPack: out and in without a copy, ownership, and what is refused.
#include <string.h>

#include "attn/dlpack.h"
#include "io_support.h"
#include "status.h"

static test_allocator memory;
static attn_context *context;

static void count_release(void *owner)
{
    ++*(int *)owner;
}

static void test_out_and_back(void **state)
{
    (void)state;
    float data[24];
    const int64_t shape[] = {2, 3, 4};
    attn_tensor tensor = attn_tensor_wrap(data, ATTN_F32, 3, shape);
    attn_error error;
    ASSERT_OK(attn_tensor_transpose(&tensor, 0, 2, &tensor, &error));
    int released = 0;
    DLManagedTensorVersioned *managed = NULL;
    ASSERT_OK(attn_dlpack_export(context, &tensor, &released, count_release, &managed, &error));
    assert_int_equal(managed->version.major, 1);
    assert_int_equal(managed->version.minor, 1);
    assert_int_equal(managed->flags, 0);
    assert_ptr_equal(managed->dl_tensor.data, data);
    assert_int_equal(managed->dl_tensor.device.device_type, kDLCPU);
    assert_int_equal(managed->dl_tensor.dtype.code, kDLFloat);
    assert_int_equal(managed->dl_tensor.dtype.bits, 32);
    assert_int_equal(managed->dl_tensor.dtype.lanes, 1);
    assert_int_equal(managed->dl_tensor.strides[0], 1);

    attn_tensor back;
    ASSERT_OK(attn_dlpack_import(managed, &back, &error));
    assert_memory_equal(back.shape, tensor.shape, 3 * sizeof(int64_t));
    assert_memory_equal(back.stride, tensor.stride, 3 * sizeof(int64_t));
    assert_ptr_equal(back.data, data);
    assert_int_equal(back.dtype, ATTN_F32);
    assert_int_equal(released, 0);
    attn_dlpack_release(managed);
    assert_int_equal(released, 1);
    assert_int_equal(blocks_left(&memory), 0);
    attn_dlpack_release(NULL);
}

static void test_every_dtype_and_read_only(void **state)
{
    (void)state;
    static const uint64_t data[1] = {0};
    for (int dtype = ATTN_DTYPE_NONE + 1; dtype < ATTN_DTYPE_COUNT; dtype++) {
        const attn_tensor tensor = attn_tensor_wrap_const(data, (attn_dtype)dtype, 0, NULL);
        attn_error error;
        DLManagedTensorVersioned *managed = NULL;
        ASSERT_OK(attn_dlpack_export(context, &tensor, NULL, NULL, &managed, &error));
        assert_int_equal(managed->flags, DLPACK_FLAG_BITMASK_READ_ONLY);
        attn_tensor back;
        ASSERT_OK(attn_dlpack_import(managed, &back, &error));
        assert_int_equal(back.dtype, dtype);
        assert_int_equal(back.flags, ATTN_TENSOR_READ_ONLY);
        attn_dlpack_release(managed);
    }
}

static void test_byte_offset_and_null_strides(void **state)
{
    (void)state;
    double data[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    int64_t shape[] = {2, 3};
    DLTensor source = {.data = data,
                       .device = {kDLCUDAHost, 0},
                       .ndim = 2,
                       .dtype = {kDLFloat, 64, 1},
                       .shape = shape,
                       .byte_offset = 16};
    attn_tensor view;
    attn_error error;
    ASSERT_OK(attn_dlpack_view(&source, 0, &view, &error));
    assert_ptr_equal(view.data, data + 2);
    assert_int_equal(view.stride[0], 3);
    assert_int_equal(view.stride[1], 1);
    source.byte_offset = 4;
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "dlpack: data is not aligned to its 8-byte elements",
                 attn_dlpack_view(&source, 0, &view, &error));
    assert_ptr_equal(view.data, data + 2);
    // Nothing to see needs no memory.
    source.data = NULL;
    source.byte_offset = 0;
    shape[0] = 0;
    ASSERT_OK(attn_dlpack_view(&source, 0, &view, &error));
}

static void test_refusals(void **state)
{
    (void)state;
    float data[2];
    int64_t shape[] = {2};
    const DLTensor good = {
        .data = data, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLFloat, 32, 1}, .shape = shape};
    attn_tensor view = {0};
    attn_error error;
    DLTensor bad = good;
    bad.device.device_type = kDLCUDA;
    ASSERT_FAILS(ATTN_ERR_NOT_SUPPORTED,
                 "dlpack: the data is on device type 2, not in the CPU's memory",
                 attn_dlpack_view(&bad, 0, &view, &error));
    bad = good;
    bad.ndim = 9;
    ASSERT_FAILS(ATTN_ERR_NOT_SUPPORTED, "dlpack: 9 dimensions; 0 to 8 are supported",
                 attn_dlpack_view(&bad, 0, &view, &error));
    bad = good;
    bad.dtype.lanes = 4;
    ASSERT_FAILS(ATTN_ERR_NOT_SUPPORTED, "dlpack: vector elements of 4 lanes are not supported",
                 attn_dlpack_view(&bad, 0, &view, &error));
    bad = good;
    bad.dtype = (DLDataType){kDLComplex, 64, 1};
    ASSERT_FAILS(ATTN_ERR_DTYPE, "dlpack: elements of type code 5 with 64 bits are not supported",
                 attn_dlpack_view(&bad, 0, &view, &error));
    bad = good;
    bad.shape = NULL;
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "dlpack: shape is NULL",
                 attn_dlpack_view(&bad, 0, &view, &error));

    // Of another major version only the version is read: the rest may mean something else.
    DLManagedTensorVersioned future;
    memset(&future, 0xFF, sizeof(future));
    future.version.major = 2;
    future.version.minor = 0;
    ASSERT_FAILS(ATTN_ERR_NOT_SUPPORTED,
                 "dlpack: the tensor is of version 2.0; major version 1 is known",
                 attn_dlpack_import(&future, &view, &error));
    // A newer minor version is compatible.
    DLManagedTensorVersioned newer = {.version = {1, 9}, .dl_tensor = good};
    ASSERT_OK(attn_dlpack_import(&newer, &view, &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "dlpack: managed or tensor is NULL",
                 attn_dlpack_import(NULL, &view, &error));
    fail_nth(&memory, 1);
    DLManagedTensorVersioned *managed = NULL;
    int released = 0;
    ASSERT_FAILS(ATTN_ERR_OUT_OF_MEMORY, "dlpack: out of memory",
                 attn_dlpack_export(context, &view, &released, count_release, &managed, &error));
    fail_nth(&memory, 0);
    assert_int_equal(released, 0);
    assert_null(managed);
}

int main(void)
{
    context = io_context(&memory);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_out_and_back),
        cmocka_unit_test(test_every_dtype_and_read_only),
        cmocka_unit_test(test_byte_offset_and_null_strides),
        cmocka_unit_test(test_refusals),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    test_context_end(context, &memory);
    return failed;
}
