// attn/tensor.h: views of typed, strided memory.
//
// An `attn_tensor` is a plain value: a pointer, an element type, up to eight dimensions with their
// sizes and strides. It owns nothing; copying it copies the view. Strides count elements, may be
// zero (the dimension is broadcast) or negative. The functions that make views never touch the
// elements; those that allocate say so and take a context.
#ifndef ATTN_TENSOR_H
#define ATTN_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attn/context.h"
#include "attn/export.h"
#include "attn/status.h"

ATTN_BEGIN_DECLS

typedef enum attn_dtype {
    ATTN_DTYPE_NONE = 0,
    ATTN_F32,
    ATTN_F64,
    ATTN_F16,  // IEEE binary16
    ATTN_BF16, // bfloat16: the upper half of a float32
    ATTN_I64,
    ATTN_I32,
    ATTN_I16,
    ATTN_I8,
    ATTN_U8,
    ATTN_BOOL, // one byte, 0 or 1
    ATTN_DTYPE_COUNT
} attn_dtype;

// Bytes per element (0 for NONE or an unknown value) and the name ("float32", "bfloat16", ...).
ATTN_API size_t attn_dtype_size(attn_dtype dtype);
ATTN_API const char *attn_dtype_name(attn_dtype dtype);

enum { ATTN_MAX_DIMS = 8 };

typedef enum attn_tensor_flags {
    ATTN_TENSOR_READ_ONLY = 1 // refused as an output
} attn_tensor_flags;

typedef struct attn_tensor {
    void *data;                    // element [0,0,...]; may be NULL when there are no elements
    int64_t shape[ATTN_MAX_DIMS];  // >= 0; entries from ndim on are ignored
    int64_t stride[ATTN_MAX_DIMS]; // in elements
    attn_dtype dtype;
    int32_t ndim; // 0 (a scalar) .. ATTN_MAX_DIMS
    uint32_t flags;
    uint32_t reserved; // zero
} attn_tensor;

// ---- create -------------------------------------------------------------------------------------

// A row-major view of the caller's memory. Checks nothing: a wrong ndim, size or pointer gives a tensor
// that attn_tensor_check, and every function that takes one, refuses.
ATTN_API attn_tensor attn_tensor_wrap(void *data, attn_dtype dtype, int32_t ndim,
                                      const int64_t *shape);

// The same for memory that must not be written.
ATTN_API attn_tensor attn_tensor_wrap_const(const void *data, attn_dtype dtype, int32_t ndim,
                                            const int64_t *shape);

// Allocates a row-major tensor of zeros from the context's allocator, aligned to 64 bytes. Give it
// back with attn_tensor_destroy. Errors: INVALID_ARGUMENT, DTYPE, OVERFLOW, OUT_OF_MEMORY.
ATTN_API attn_status attn_tensor_create(const attn_context *context, attn_dtype dtype, int32_t ndim,
                                        const int64_t *shape, attn_tensor *tensor,
                                        attn_error *error);

// Releases what attn_tensor_create (or _contiguous, _cat, _stack) allocated and clears *tensor.
// Takes NULL, and a cleared tensor. Not for views.
ATTN_API void attn_tensor_destroy(const attn_context *context, attn_tensor *tensor);

// Is this a well-formed tensor: known dtype, 0 <= ndim <= 8, sizes >= 0, data aligned to its elements
// and not NULL unless empty; element count (a size of 0 counting as 1), byte strides and byte extent
// within int64_t? `name` stands in front of the message. Errors: INVALID_ARGUMENT, DTYPE, OVERFLOW.
ATTN_API attn_status attn_tensor_check(const attn_tensor *tensor, const char *name,
                                       attn_error *error);

// Of well-formed tensors.
ATTN_API int64_t attn_tensor_count(const attn_tensor *tensor);      // number of elements
ATTN_API bool attn_tensor_is_contiguous(const attn_tensor *tensor); // row-major without gaps
ATTN_API bool attn_tensor_same_shape(const attn_tensor *a, const attn_tensor *b);

// ---- views (no copy) ----------------------------------------------------------------------------
// Errors of all, beside those named: what attn_tensor_check reports of `tensor`; INVALID_ARGUMENT (NULL,
// a dim, index or size out of range); OVERFLOW. `result` is written on success only and may be `tensor`.

// A new shape over the same elements in row-major order, as torch's view: legal exactly when the
// strides allow it. One size may be -1 (computed). Otherwise ATTN_ERR_NOT_CONTIGUOUS with
//   view: tensor of shape [2,6,4,16] with stride [384,16,96,1] is not contiguous; call contiguous
//   first
// or ATTN_ERR_SHAPE when the element counts differ.
ATTN_API attn_status attn_tensor_view(const attn_tensor *tensor, int32_t ndim, const int64_t *shape,
                                      attn_tensor *result, attn_error *error);

// Swaps two dimensions; negative dims count from the end.
ATTN_API attn_status attn_tensor_transpose(const attn_tensor *tensor, int32_t dim0, int32_t dim1,
                                           attn_tensor *result, attn_error *error);

// Elements start, start+step, ... below stop along `dim`; 0 <= start <= stop <= size, step >= 1.
ATTN_API attn_status attn_tensor_slice(const attn_tensor *tensor, int32_t dim, int64_t start,
                                       int64_t stop, int64_t step, attn_tensor *result,
                                       attn_error *error);

// One index along `dim`, which disappears.
ATTN_API attn_status attn_tensor_select(const attn_tensor *tensor, int32_t dim, int64_t index,
                                        attn_tensor *result, attn_error *error);

// Broadcasts to `shape`: sizes of 1 and missing leading dimensions get stride 0. Errors: SHAPE.
ATTN_API attn_status attn_tensor_expand(const attn_tensor *tensor, int32_t ndim,
                                        const int64_t *shape, attn_tensor *result,
                                        attn_error *error);

// ---- copies -------------------------------------------------------------------------------------

// Copies elements from `source` to `target` (same shape, any strides; converts between the floating
// dtypes, and between integer dtypes where every value fits). Errors: SHAPE, DTYPE, OVERLAP,
// INVALID_ARGUMENT (read-only target).
ATTN_API attn_status attn_tensor_copy(const attn_tensor *source, const attn_tensor *target,
                                      attn_error *error);

// A fresh row-major copy (allocates, even when `tensor` is contiguous already).
ATTN_API attn_status attn_tensor_contiguous(const attn_context *context, const attn_tensor *tensor,
                                            attn_tensor *result, attn_error *error);

// As torch's reshape: a view where the strides allow it, else a copy. *copied tells which; destroy
// the result only if it is true.
ATTN_API attn_status attn_tensor_reshape(const attn_context *context, const attn_tensor *tensor,
                                         int32_t ndim, const int64_t *shape, attn_tensor *result,
                                         bool *copied, attn_error *error);

// Concatenates along an existing dimension, or stacks along a new one (both allocate).
ATTN_API attn_status attn_tensor_cat(const attn_context *context, const attn_tensor *tensors,
                                     int64_t count, int32_t dim, attn_tensor *result,
                                     attn_error *error);
ATTN_API attn_status attn_tensor_stack(const attn_context *context, const attn_tensor *tensors,
                                       int64_t count, int32_t dim, attn_tensor *result,
                                       attn_error *error);

// ---- elements -----------------------------------------------------------------------------------

// Element at `index` (ndim entries) as double; integers and bool are converted. Out of range: NaN.
ATTN_API double attn_tensor_get(const attn_tensor *tensor, const int64_t *index);

// Sets every element (converted from double). Errors: INVALID_ARGUMENT (read-only, or a value that the
// dtype does not have, as 0.5 in int32).
ATTN_API attn_status attn_tensor_fill(const attn_tensor *tensor, double value, attn_error *error);

// ---- comparison ---------------------------------------------------------------------------------

// What a comparison found. An element differs when it is not within
// absolute + relative * |expected|; NaN equals only NaN, an infinity only the same infinity.
typedef struct attn_comparison {
    int64_t count;       // elements compared
    int64_t differing;   // of them outside the tolerance
    double max_absolute; // largest |actual - expected| over elements finite in both
    double max_relative; // largest |actual - expected| / |expected| where expected != 0
    uint64_t max_ulp;    // largest distance in units in the last place of `expected`'s dtype
    int64_t worst[ATTN_MAX_DIMS]; // index of the worst differing element, else of max_absolute
    double worst_actual, worst_expected;
    bool equal_bits; // every element has the same bits (same dtype)
} attn_comparison;

// Compares two tensors of one shape (floating dtypes may differ). Errors: SHAPE, DTYPE.
ATTN_API attn_status attn_tensor_compare(const attn_tensor *actual, const attn_tensor *expected,
                                         double absolute, double relative,
                                         attn_comparison *comparison, attn_error *error);

// ---- text ---------------------------------------------------------------------------------------

// All three write at most `size` bytes including the NUL and return the length that the whole text
// has (as snprintf). buffer may be NULL when size is 0.
// "[2,6,4]"; "float32 [2,6,4] stride [24,4,1]"; and the elements as nested brackets with `digits`
// decimals, as torch prints them.
ATTN_API size_t attn_tensor_format_shape(const attn_tensor *tensor, char *buffer, size_t size);
ATTN_API size_t attn_tensor_format_layout(const attn_tensor *tensor, char *buffer, size_t size);
ATTN_API size_t attn_tensor_format(const attn_tensor *tensor, int digits, char *buffer,
                                   size_t size);

ATTN_END_DECLS

#endif
