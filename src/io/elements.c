#include "io/elements.h"

#include <stdint.h>
#include <string.h>

enum { CHUNK_SIZE = 1 << 16 };

// Elements on their way to the sink.
typedef struct chunk {
    const attn_sink *sink;
    size_t used;
    unsigned char bytes[CHUNK_SIZE];
} chunk;

static bool write_strided(const attn_sink *sink, const attn_tensor *tensor);
static bool write_row(chunk *out, const char *first, int64_t count, int64_t step, size_t size);
static bool flush(chunk *out);
static const char *next_row(const attn_tensor *tensor, int64_t *index, const char *row);

bool attn_write_elements(const attn_sink *sink, const attn_tensor *tensor)
{
    int64_t count = attn_tensor_count(tensor);
    if (count == 0) {
        return true;
    }
    if (attn_tensor_is_contiguous(tensor)) {
        return sink->write(sink->state, tensor->data,
                           (size_t)count * attn_dtype_size(tensor->dtype));
    }
    return write_strided(sink, tensor);
}

// Row by row along the last dimension; `index` counts the others like an odometer.
static bool write_strided(const attn_sink *sink, const attn_tensor *tensor)
{
    chunk out;
    out.sink = sink;
    out.used = 0;
    size_t size = attn_dtype_size(tensor->dtype);
    int32_t last = tensor->ndim - 1;
    int64_t step = tensor->stride[last] * (int64_t)size;
    int64_t index[ATTN_MAX_DIMS] = {0};
    for (const char *row = tensor->data; row != NULL; row = next_row(tensor, index, row)) {
        if (!write_row(&out, row, tensor->shape[last], step, size)) {
            return false;
        }
    }
    return flush(&out);
}

static bool write_row(chunk *out, const char *first, int64_t count, int64_t step, size_t size)
{
    for (int64_t i = 0; i < count; i++) {
        if (out->used + size > CHUNK_SIZE && !flush(out)) {
            return false;
        }
        memcpy(out->bytes + out->used, first + i * step, size);
        out->used += size;
    }
    return true;
}

static bool flush(chunk *out)
{
    size_t used = out->used;
    out->used = 0;
    return used == 0 || out->sink->write(out->sink->state, out->bytes, used);
}

// The row after the one at `index`; NULL after the last.
static const char *next_row(const attn_tensor *tensor, int64_t *index, const char *row)
{
    int64_t size = (int64_t)attn_dtype_size(tensor->dtype);
    for (int32_t d = tensor->ndim - 2; d >= 0; d--) {
        row += tensor->stride[d] * size;
        if (++index[d] < tensor->shape[d]) {
            return row;
        }
        row -= tensor->stride[d] * tensor->shape[d] * size;
        index[d] = 0;
    }
    return NULL;
}

void attn_swap_bytes(void *elements, size_t count, size_t size)
{
    unsigned char *element = elements;
    for (size_t i = 0; i < count; i++, element += size) {
        for (size_t low = 0, high = size - 1; low < high; low++, high--) {
            unsigned char kept = element[low];
            element[low] = element[high];
            element[high] = kept;
        }
    }
}
