#include <inttypes.h>

#include "core/checked.h"
#include "core/error.h"
#include "core/layout.h"
#include "core/text.h"
#include "core/view.h"

static attn_status check_view(const char *name, const attn_tensor *tensor,
                              const attn_tensor *result, attn_error *error);
static attn_status check_dim(const char *name, const attn_tensor *tensor, int32_t *dim,
                             attn_error *error);
static attn_status check_new_shape(const char *name, int32_t ndim, const int64_t *shape,
                                   attn_error *error);
static attn_status resolve_shape(const char *name, const attn_tensor *tensor, int32_t ndim,
                                 const int64_t *shape, attn_tensor *viewed, attn_error *error);
static bool resolve_strides(const attn_tensor *tensor, attn_tensor *viewed);
static void move_to(attn_tensor *view, const attn_tensor *tensor, int32_t dim, int64_t index);

// ---- view ---------------------------------------------------------------------------------------

attn_status attn_tensor_view(const attn_tensor *tensor, int32_t ndim, const int64_t *shape,
                             attn_tensor *result, attn_error *error)
{
    return attn_view_named("view", tensor, ndim, shape, result, error);
}

attn_status attn_view_named(const char *name, const attn_tensor *tensor, int32_t ndim,
                            const int64_t *shape, attn_tensor *result, attn_error *error)
{
    attn_status status = check_view(name, tensor, result, error);
    if (status != ATTN_OK) {
        return status;
    }
    attn_tensor viewed;
    status = resolve_shape(name, tensor, ndim, shape, &viewed, error);
    if (status != ATTN_OK) {
        return status;
    }
    if (!resolve_strides(tensor, &viewed)) {
        return attn_fail(error, ATTN_ERR_NOT_CONTIGUOUS,
                         "%s: tensor of shape %s with stride %s is not contiguous; "
                         "call contiguous first",
                         name, attn_shape_text(tensor).text, attn_stride_text(tensor).text);
    }
    *result = viewed;
    return ATTN_OK;
}

// The same elements with the new shape, row-major strides for now; a size of -1 is filled in.
static attn_status resolve_shape(const char *name, const attn_tensor *tensor, int32_t ndim,
                                 const int64_t *shape, attn_tensor *viewed, attn_error *error)
{
    const attn_status status = check_new_shape(name, ndim, shape, error);
    if (status != ATTN_OK) {
        return status;
    }
    *viewed = attn_tensor_wrap(tensor->data, tensor->dtype, ndim, shape);
    viewed->flags = tensor->flags;
    int32_t unknown = -1;
    for (int32_t d = 0; d < ndim; d++) {
        if (shape[d] == -1 && unknown < 0) {
            unknown = d;
            viewed->shape[d] = 1;
        } else if (shape[d] < 0) {
            return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                             "%s: shape %s: one size may be -1, the others must be >= 0", name,
                             attn_dims_as_text(ndim, shape).text);
        }
    }
    const int64_t count = attn_tensor_count(tensor), known = attn_tensor_count(viewed);
    const bool divides = unknown >= 0 && known > 0 && count % known == 0;
    if (divides) {
        viewed->shape[unknown] = count / known;
    }
    if (unknown >= 0 ? !divides : count != known) {
        return attn_fail(error, ATTN_ERR_SHAPE,
                         "%s: shape %s does not hold the %" PRId64 " elements of shape %s", name,
                         attn_dims_as_text(ndim, shape).text, count, attn_shape_text(tensor).text);
    }
    attn_row_major(ndim, viewed->shape, viewed->stride);
    return attn_tensor_check(viewed, name,
                             error); // the other sizes of an empty one may be anything
}

// The new strides, where there are any. The old dimensions fall into runs that are evenly spaced in
// memory, where a step along one equals all steps along the next; a run's elements lie `step` apart.
// Each run must be the product of some of the new sizes, taken in order from the last.
static bool resolve_strides(const attn_tensor *tensor, attn_tensor *viewed)
{
    if (attn_tensor_count(tensor) == 0) {
        return true;
    }
    int32_t d = tensor->ndim - 1, v = viewed->ndim - 1;
    while (d >= 0) {
        const int64_t step = tensor->stride[d];
        int64_t run = 1;
        for (bool more = true; more; d--) {
            int64_t whole;
            run *= tensor->shape[d];
            more = d > 0 && (tensor->shape[d - 1] == 1 || (attn_checked_mul(run, step, &whole) &&
                                                           tensor->stride[d - 1] == whole));
        }
        int64_t filled = 1;
        while (v >= 0 && (filled < run || viewed->shape[v] == 1)) {
            // Only beside a size of 1 can the product not fit, and then it is never stepped along.
            (void)attn_checked_mul(filled, step, &viewed->stride[v]);
            filled *= viewed->shape[v];
            v--;
        }
        if (filled != run) {
            return false;
        }
    }
    return true;
}

// ---- the other views ----------------------------------------------------------------------------

attn_status attn_tensor_transpose(const attn_tensor *tensor, int32_t dim0, int32_t dim1,
                                  attn_tensor *result, attn_error *error)
{
    attn_status status = check_view("transpose", tensor, result, error);
    if (status == ATTN_OK) {
        status = check_dim("transpose", tensor, &dim0, error);
    }
    if (status == ATTN_OK) {
        status = check_dim("transpose", tensor, &dim1, error);
    }
    if (status != ATTN_OK) {
        return status;
    }
    attn_tensor swapped = *tensor;
    swapped.shape[dim0] = tensor->shape[dim1];
    swapped.shape[dim1] = tensor->shape[dim0];
    swapped.stride[dim0] = tensor->stride[dim1];
    swapped.stride[dim1] = tensor->stride[dim0];
    *result = swapped;
    return ATTN_OK;
}

attn_status attn_tensor_slice(const attn_tensor *tensor, int32_t dim, int64_t start, int64_t stop,
                              int64_t step, attn_tensor *result, attn_error *error)
{
    attn_status status = check_view("slice", tensor, result, error);
    if (status == ATTN_OK) {
        status = check_dim("slice", tensor, &dim, error);
    }
    if (status != ATTN_OK) {
        return status;
    }
    if (start < 0 || start > stop || stop > tensor->shape[dim] || step < 1) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "slice: %" PRId64 ":%" PRId64 ":%" PRId64 " along dim %d of shape %s; "
                         "0 <= start <= stop <= size and step >= 1 must hold",
                         start, stop, step, dim, attn_shape_text(tensor).text);
    }
    attn_tensor sliced = *tensor;
    const int64_t length = stop - start;
    sliced.shape[dim] = length / step + (length % step != 0);
    if (sliced.shape[dim] > 1) { // else the product may not fit, and nothing is stepped over
        sliced.stride[dim] *= step;
    }
    move_to(&sliced, tensor, dim, start);
    *result = sliced;
    return ATTN_OK;
}

attn_status attn_tensor_select(const attn_tensor *tensor, int32_t dim, int64_t index,
                               attn_tensor *result, attn_error *error)
{
    attn_status status = check_view("select", tensor, result, error);
    if (status == ATTN_OK) {
        status = check_dim("select", tensor, &dim, error);
    }
    if (status != ATTN_OK) {
        return status;
    }
    if (index < 0 || index >= tensor->shape[dim]) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "select: index %" PRId64 " is out of range for dim %d of shape %s", index,
                         dim, attn_shape_text(tensor).text);
    }
    attn_tensor selected = *tensor;
    move_to(&selected, tensor, dim, index);
    selected.ndim--;
    for (int32_t d = dim; d < selected.ndim; d++) {
        selected.shape[d] = tensor->shape[d + 1];
        selected.stride[d] = tensor->stride[d + 1];
    }
    *result = selected;
    return ATTN_OK;
}

attn_status attn_tensor_expand(const attn_tensor *tensor, int32_t ndim, const int64_t *shape,
                               attn_tensor *result, attn_error *error)
{
    attn_status status = check_view("expand", tensor, result, error);
    if (status == ATTN_OK) {
        status = check_new_shape("expand", ndim, shape, error);
    }
    if (status != ATTN_OK) {
        return status;
    }
    attn_tensor expanded = attn_tensor_wrap(tensor->data, tensor->dtype, ndim, shape);
    expanded.flags = tensor->flags;
    const int32_t added = ndim - tensor->ndim;
    bool fits = added >= 0;
    for (int32_t d = 0; d < ndim && fits; d++) {
        const bool exists = d >= added, same = exists && tensor->shape[d - added] == shape[d];
        fits = same || !exists || tensor->shape[d - added] == 1;
        expanded.stride[d] = same ? tensor->stride[d - added] : 0;
    }
    if (!fits) {
        return attn_fail(error, ATTN_ERR_SHAPE, "expand: shape %s does not broadcast to %s",
                         attn_shape_text(tensor).text, attn_dims_as_text(ndim, shape).text);
    }
    status = attn_tensor_check(&expanded, "expand", error);
    if (status != ATTN_OK) {
        return status;
    }
    *result = expanded;
    return ATTN_OK;
}

// Lets the view begin at `index`; an empty one keeps its pointer, which may be NULL.
static void move_to(attn_tensor *view, const attn_tensor *tensor, int32_t dim, int64_t index)
{
    if (attn_tensor_count(view) > 0) {
        const int64_t size = (int64_t)attn_dtype_size(tensor->dtype);
        view->data = (char *)tensor->data + index * tensor->stride[dim] * size;
    }
}

// ---- checks -------------------------------------------------------------------------------------

static attn_status check_view(const char *name, const attn_tensor *tensor,
                              const attn_tensor *result, attn_error *error)
{
    if (!result) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "%s: result is NULL", name);
    }
    return attn_tensor_check(tensor, name, error);
}

static attn_status check_dim(const char *name, const attn_tensor *tensor, int32_t *dim,
                             attn_error *error)
{
    if (!attn_normalize_dim(tensor->ndim, dim)) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "%s: dim %d is out of range for shape %s", name, *dim,
                         attn_shape_text(tensor).text);
    }
    return ATTN_OK;
}

static attn_status check_new_shape(const char *name, int32_t ndim, const int64_t *shape,
                                   attn_error *error)
{
    if (ndim < 0 || ndim > ATTN_MAX_DIMS) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "%s: ndim (%d) must be in [0, %d]", name,
                         ndim, ATTN_MAX_DIMS);
    }
    if (ndim > 0 && !shape) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "%s: shape is NULL", name);
    }
    return ATTN_OK;
}
