#include "core/layout.h"

#include <stdlib.h>

#include "core/checked.h"

static int32_t spread_dims(const attn_tensor *tensor, int32_t dims[ATTN_MAX_DIMS]);
static bool disjoint_columns(const attn_tensor *a, const attn_tensor *b, int64_t pitch);
static int64_t byte_stride(const attn_tensor *tensor, int32_t dim);

void attn_row_major(int32_t ndim, const int64_t *shape, int64_t *stride)
{
    int64_t next = 1;
    for (int32_t d = ndim - 1; d >= 0; d--) {
        stride[d] = next;
        int64_t product;
        // A product that does not fit belongs to a tensor without elements or to no tensor.
        if (shape[d] > 1 && attn_checked_mul(next, shape[d], &product)) {
            next = product;
        }
    }
}

void attn_byte_range(const attn_tensor *tensor, int64_t *low, int64_t *high)
{
    int64_t first = 0, last = 0; // in elements
    for (int32_t d = 0; d < tensor->ndim; d++) {
        if (tensor->shape[d] == 0) {
            *low = *high = 0;
            return;
        }
        const int64_t extent = (tensor->shape[d] - 1) * tensor->stride[d];
        *(extent < 0 ? &first : &last) += extent;
    }
    const int64_t size = (int64_t)attn_dtype_size(tensor->dtype);
    *low = first * size;
    *high = (last + 1) * size;
}

// No two index tuples meet when each dimension steps over all that the smaller strides reach.
bool attn_overlaps_itself(const attn_tensor *tensor)
{
    int32_t dims[ATTN_MAX_DIMS];
    const int32_t count = spread_dims(tensor, dims);
    int64_t reach = 0; // of the dimensions with smaller strides
    for (int32_t i = 0; i < count; i++) {
        const int64_t step = llabs(tensor->stride[dims[i]]);
        if (step <= reach) {
            return true;
        }
        reach += (tensor->shape[dims[i]] - 1) * step;
    }
    return false;
}

// The dimensions with more than one entry by ascending size of their stride; none when the tensor
// is empty.
static int32_t spread_dims(const attn_tensor *tensor, int32_t dims[ATTN_MAX_DIMS])
{
    int32_t count = 0;
    for (int32_t d = 0; d < tensor->ndim; d++) {
        if (tensor->shape[d] == 0) {
            return 0;
        }
        if (tensor->shape[d] == 1) {
            continue;
        }
        int32_t place = count++;
        for (; place > 0 && llabs(tensor->stride[dims[place - 1]]) > llabs(tensor->stride[d]);
             place--) {
            dims[place] = dims[place - 1];
        }
        dims[place] = d;
    }
    return count;
}

bool attn_overlaps(const attn_tensor *a, const attn_tensor *b)
{
    int64_t low_a, high_a, low_b, high_b;
    attn_byte_range(a, &low_a, &high_a);
    attn_byte_range(b, &low_b, &high_b);
    if (low_a == high_a || low_b == high_b) {
        return false;
    }
    const uintptr_t base_a = (uintptr_t)a->data, base_b = (uintptr_t)b->data;
    if (base_a + (uintptr_t)high_a <= base_b + (uintptr_t)low_b ||
        base_b + (uintptr_t)high_b <= base_a + (uintptr_t)low_a) {
        return false;
    }
    // The ranges meet. The views may still lie in different columns of a matrix whose row pitch is
    // one of the strides, as the parts of a fused query-key-value buffer do.
    const attn_tensor *views[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        for (int32_t d = 0; d < views[i]->ndim; d++) {
            const int64_t pitch = llabs(byte_stride(views[i], d));
            if (views[i]->shape[d] > 1 && pitch != 0 && disjoint_columns(a, b, pitch)) {
                return false;
            }
        }
    }
    return true;
}

static int64_t byte_stride(const attn_tensor *tensor, int32_t dim)
{
    return tensor->stride[dim] * (int64_t)attn_dtype_size(tensor->dtype);
}

// The columns [*first, *first + *width) of a matrix with rows of `pitch` bytes that a view touches,
// counted around the row: steps by multiples of the pitch stay in their column.
static void columns_of(const attn_tensor *tensor, int64_t pitch, int64_t *first, int64_t *width)
{
    int64_t low = 0, high = (int64_t)attn_dtype_size(tensor->dtype);
    for (int32_t d = 0; d < tensor->ndim; d++) {
        const int64_t step = tensor->shape[d] > 1 ? byte_stride(tensor, d) : 0;
        if (step % pitch != 0) {
            const int64_t extent = (tensor->shape[d] - 1) * step;
            *(extent < 0 ? &low : &high) += extent;
        }
    }
    const uintptr_t column = ((uintptr_t)tensor->data + (uintptr_t)low) % (uintptr_t)pitch;
    *first = (int64_t)column;
    *width = high - low;
}

static bool disjoint_columns(const attn_tensor *a, const attn_tensor *b, int64_t pitch)
{
    int64_t first_a, first_b, width_a, width_b;
    columns_of(a, pitch, &first_a, &width_a);
    columns_of(b, pitch, &first_b, &width_b);
    const int64_t from_a_to_b = first_b < first_a ? first_b - first_a + pitch : first_b - first_a;
    return from_a_to_b >= width_a && pitch - from_a_to_b >= width_b;
}

void attn_index_at(const attn_tensor *tensor, int64_t position, int64_t index[ATTN_MAX_DIMS])
{
    for (int32_t d = tensor->ndim - 1; d >= 0; d--) {
        const int64_t size = tensor->shape[d] > 0 ? tensor->shape[d] : 1;
        index[d] = position % size;
        position /= size;
    }
}

bool attn_normalize_dim(int32_t ndim, int32_t *dim)
{
    const int32_t positive = *dim < 0 ? *dim + ndim : *dim;
    if (positive < 0 || positive >= ndim) {
        return false;
    }
    *dim = positive;
    return true;
}
