#include <string.h>

#include "core/checked.h"
#include "core/element.h"
#include "core/error.h"
#include "core/layout.h"
#include "core/rows.h"
#include "core/text.h"
#include "core/view.h"

static attn_status check_copy(const attn_tensor *source, const attn_tensor *target,
                              attn_error *error);
static bool converts(attn_dtype from, attn_dtype to);
static void copy_elements(const attn_tensor *source, const attn_tensor *target);

// ---- copy ---------------------------------------------------------------------------------------

attn_status attn_tensor_copy(const attn_tensor *source, const attn_tensor *target,
                             attn_error *error)
{
    const attn_status status = check_copy(source, target, error);
    if (status == ATTN_OK) {
        copy_elements(source, target);
    }
    return status;
}

static attn_status check_copy(const attn_tensor *source, const attn_tensor *target,
                              attn_error *error)
{
    attn_status status = attn_tensor_check(source, "copy: source", error);
    if (status == ATTN_OK) {
        status = attn_tensor_check(target, "copy: target", error);
    }
    if (status != ATTN_OK) {
        return status;
    }
    if (target->flags & ATTN_TENSOR_READ_ONLY) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "copy: the target is read-only");
    }
    if (!attn_tensor_same_shape(source, target)) {
        return attn_fail(error, ATTN_ERR_SHAPE, "copy: source of shape %s, target of shape %s",
                         attn_shape_text(source).text, attn_shape_text(target).text);
    }
    if (!converts(source->dtype, target->dtype)) {
        return attn_fail(error, ATTN_ERR_DTYPE, "copy: %s does not convert to %s",
                         attn_dtype_name(source->dtype), attn_dtype_name(target->dtype));
    }
    if (attn_overlaps_itself(target)) {
        return attn_fail(error, ATTN_ERR_OVERLAP,
                         "copy: the target of shape %s with stride %s overlaps itself",
                         attn_shape_text(target).text, attn_stride_text(target).text);
    }
    if (attn_overlaps(source, target)) {
        return attn_fail(error, ATTN_ERR_OVERLAP, "copy: source and target overlap");
    }
    return ATTN_OK;
}

// Between floating dtypes always; from an integer dtype to those that hold all its values.
static bool converts(attn_dtype from, attn_dtype to)
{
    if (from == to || (attn_is_floating(from) && attn_is_floating(to))) {
        return true;
    }
    if (!attn_is_integer(from) || !attn_is_integer(to) || to == ATTN_BOOL) {
        return false;
    }
    return from == ATTN_BOOL || (attn_dtype_size(from) < attn_dtype_size(to));
}

static inline __attribute__((always_inline)) void copy_row(size_t size, const char *source,
                                                           int64_t source_step, char *target,
                                                           int64_t target_step, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        memcpy(target + i * target_step, source + i * source_step, size);
    }
}

// Elements of one size, bit for bit.
static void copy_bits(size_t size, const char *source, int64_t source_step, char *target,
                      int64_t target_step, int64_t count)
{
    if (source_step == (int64_t)size && target_step == (int64_t)size) {
        memcpy(target, source, (size_t)count * size);
        return;
    }
    switch (size) { // a constant size makes the element's memcpy a load and a store
    case 1: copy_row(1, source, source_step, target, target_step, count); break;
    case 2: copy_row(2, source, source_step, target, target_step, count); break;
    case 4: copy_row(4, source, source_step, target, target_step, count); break;
    default: copy_row(8, source, source_step, target, target_step, count); break;
    }
}

// Through double, which holds every value that may be converted: integers of 32 bits and less, and
// all floating dtypes.
static void convert_row(attn_dtype from, const char *source, int64_t source_stride, attn_dtype to,
                        char *target, int64_t target_stride, int64_t count)
{
    enum { CHUNK = 128 };
    double values[CHUNK];
    const int64_t source_step = source_stride * (int64_t)attn_dtype_size(from);
    const int64_t target_step = target_stride * (int64_t)attn_dtype_size(to);
    for (int64_t done = 0; done < count; done += CHUNK) {
        const int64_t length = count - done < CHUNK ? count - done : CHUNK;
        attn_row_load(from, source + done * source_step, source_stride, length, values);
        attn_row_store(to, target + done * target_step, target_stride, length, values);
    }
}

static void copy_elements(const attn_tensor *source, const attn_tensor *target)
{
    const int64_t source_size = (int64_t)attn_dtype_size(source->dtype);
    const int64_t target_size = (int64_t)attn_dtype_size(target->dtype);
    for (attn_rows rows = attn_rows_of(source, target); rows.left > 0; attn_rows_next(&rows)) {
        const char *from = (const char *)source->data + rows.offset[0] * source_size;
        char *to = (char *)target->data + rows.offset[1] * target_size;
        if (source->dtype == target->dtype) {
            copy_bits((size_t)source_size, from, rows.stride[0] * source_size, to,
                      rows.stride[1] * target_size, rows.count);
        } else {
            convert_row(source->dtype, from, rows.stride[0], target->dtype, to, rows.stride[1],
                        rows.count);
        }
    }
}

// ---- copies into fresh memory -------------------------------------------------------------------

attn_status attn_tensor_contiguous(const attn_context *context, const attn_tensor *tensor,
                                   attn_tensor *result, attn_error *error)
{
    if (!result) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "contiguous: result is NULL");
    }
    attn_status status = attn_tensor_check(tensor, "contiguous", error);
    if (status != ATTN_OK) {
        return status;
    }
    attn_tensor copy;
    status = attn_tensor_create(context, tensor->dtype, tensor->ndim, tensor->shape, &copy, error);
    if (status != ATTN_OK) {
        return status;
    }
    copy_elements(tensor, &copy);
    *result = copy;
    return ATTN_OK;
}

attn_status attn_tensor_reshape(const attn_context *context, const attn_tensor *tensor,
                                int32_t ndim, const int64_t *shape, attn_tensor *result,
                                bool *copied, attn_error *error)
{
    if (!result || !copied) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "reshape: %s is NULL",
                         result ? "copied" : "result");
    }
    attn_error refused;
    attn_tensor viewed;
    attn_status status = attn_view_named("reshape", tensor, ndim, shape, &viewed, &refused);
    if (status != ATTN_OK && status != ATTN_ERR_NOT_CONTIGUOUS) {
        return attn_fail(error, status, "%s", refused.text);
    }
    const bool copies = status == ATTN_ERR_NOT_CONTIGUOUS;
    if (copies) {
        attn_tensor copy;
        status = attn_tensor_contiguous(context, tensor, &copy, error);
        if (status != ATTN_OK) {
            return status;
        }
        // Cannot fail: the sizes were right, and the copy is contiguous.
        attn_view_named("reshape", &copy, ndim, shape, &viewed, NULL);
    }
    *result = viewed;
    *copied = copies;
    return ATTN_OK;
}

// ---- cat and stack ------------------------------------------------------------------------------

static attn_status check_parts(const char *name, const attn_tensor *tensors, int64_t count,
                               const attn_tensor *result, attn_error *error);
static void put_part(const attn_tensor *part, const attn_tensor *whole, int32_t dim, int64_t start);

attn_status attn_tensor_cat(const attn_context *context, const attn_tensor *tensors, int64_t count,
                            int32_t dim, attn_tensor *result, attn_error *error)
{
    attn_status status = check_parts("cat", tensors, count, result, error);
    if (status != ATTN_OK) {
        return status;
    }
    if (!attn_normalize_dim(tensors[0].ndim, &dim)) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "cat: dim %d is out of range for shape %s", dim,
                         attn_shape_text(&tensors[0]).text);
    }
    attn_tensor expected = tensors[0]; // but for its size along dim
    int64_t size = 0;
    for (int64_t i = 0; i < count; i++) {
        expected.shape[dim] = tensors[i].ndim == expected.ndim ? tensors[i].shape[dim] : 0;
        if (!attn_tensor_same_shape(&tensors[i], &expected)) {
            return attn_fail(
                error, ATTN_ERR_SHAPE, "cat: shapes %s and %s must be equal except along dim %d",
                attn_shape_text(&tensors[0]).text, attn_shape_text(&tensors[i]).text, dim);
        }
        if (!attn_checked_add(size, tensors[i].shape[dim], &size)) {
            return attn_fail(error, ATTN_ERR_OVERFLOW, "cat: the size along dim %d is too large",
                             dim);
        }
    }
    expected.shape[dim] = size;
    attn_tensor whole;
    status =
        attn_tensor_create(context, expected.dtype, expected.ndim, expected.shape, &whole, error);
    if (status != ATTN_OK) {
        return status;
    }
    for (int64_t i = 0, start = 0; i < count; start += tensors[i].shape[dim], i++) {
        put_part(&tensors[i], &whole, dim, start);
    }
    *result = whole;
    return ATTN_OK;
}

attn_status attn_tensor_stack(const attn_context *context, const attn_tensor *tensors,
                              int64_t count, int32_t dim, attn_tensor *result, attn_error *error)
{
    attn_status status = check_parts("stack", tensors, count, result, error);
    if (status != ATTN_OK) {
        return status;
    }
    const int32_t ndim = tensors[0].ndim + 1;
    if (ndim > ATTN_MAX_DIMS || !attn_normalize_dim(ndim, &dim)) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "stack: a new dim %d is out of range for shape %s", dim,
                         attn_shape_text(&tensors[0]).text);
    }
    for (int64_t i = 1; i < count; i++) {
        if (!attn_tensor_same_shape(&tensors[i], &tensors[0])) {
            return attn_fail(error, ATTN_ERR_SHAPE, "stack: shapes %s and %s must be equal",
                             attn_shape_text(&tensors[0]).text, attn_shape_text(&tensors[i]).text);
        }
    }
    int64_t shape[ATTN_MAX_DIMS];
    for (int32_t d = 0; d < ndim; d++) {
        shape[d] = d == dim ? count : tensors[0].shape[d < dim ? d : d - 1];
    }
    attn_tensor whole;
    status = attn_tensor_create(context, tensors[0].dtype, ndim, shape, &whole, error);
    if (status != ATTN_OK) {
        return status;
    }
    for (int64_t i = 0; i < count; i++) {
        attn_tensor slot;
        attn_tensor_select(&whole, dim, i, &slot, NULL);
        copy_elements(&tensors[i], &slot);
    }
    *result = whole;
    return ATTN_OK;
}

static attn_status check_parts(const char *name, const attn_tensor *tensors, int64_t count,
                               const attn_tensor *result, attn_error *error)
{
    if (!result) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "%s: result is NULL", name);
    }
    if (!tensors || count < 1) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "%s: at least one tensor is needed",
                         name);
    }
    for (int64_t i = 0; i < count; i++) {
        const attn_status status = attn_tensor_check(&tensors[i], name, error);
        if (status != ATTN_OK) {
            return status;
        }
        if (tensors[i].dtype != tensors[0].dtype) {
            return attn_fail(error, ATTN_ERR_DTYPE, "%s: dtypes %s and %s must be equal", name,
                             attn_dtype_name(tensors[0].dtype), attn_dtype_name(tensors[i].dtype));
        }
    }
    return ATTN_OK;
}

static void put_part(const attn_tensor *part, const attn_tensor *whole, int32_t dim, int64_t start)
{
    attn_tensor slot;
    attn_tensor_slice(whole, dim, start, start + part->shape[dim], 1, &slot, NULL);
    copy_elements(part, &slot);
}
