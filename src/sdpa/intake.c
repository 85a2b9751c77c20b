#include "sdpa/intake.h"

#include <assert.h>

#include "core/error.h"
#include "core/layout.h"
#include "core/text.h"

static attn_status take(struct attn_sdpa_intake *intake, const attn_tensor *tensor,
                        enum attn_sdpa_role role, const struct attn_sdpa_expectation *expectation);
static bool look_quickly(struct attn_sdpa_taken *found);
static attn_status refuse_dtype(attn_error *error, const attn_tensor *tensor,
                                const struct attn_sdpa_expectation *expectation);
static attn_status refuse_shape(attn_error *error, const attn_tensor *tensor,
                                const struct attn_sdpa_expectation *expectation);
static attn_status refuse_broadcast(attn_error *error, const attn_tensor *tensor,
                                    const struct attn_sdpa_expectation *expectation);

attn_status attn_sdpa_take(struct attn_sdpa_intake *intake, const attn_tensor *tensor,
                           enum attn_sdpa_role role,
                           const struct attn_sdpa_expectation *expectation,
                           struct attn_sdpa_view *view)
{
    if (tensor == NULL) {
        return attn_fail(intake->error, ATTN_ERR_INVALID_ARGUMENT, "sdpa: %s is NULL",
                         expectation->name);
    }
    const attn_status status = take(intake, tensor, role, expectation);
    if (status != ATTN_OK) {
        return status;
    }
    bool fits = tensor->ndim == expectation->ndim;
    for (int32_t d = 0; fits && d < expectation->ndim; d++) {
        fits = expectation->shape[d] == ATTN_SDPA_ANY || tensor->shape[d] == expectation->shape[d];
    }
    if (!fits) {
        return refuse_shape(intake->error, tensor, expectation);
    }
    view->data = tensor->data;
    view->dtype = tensor->dtype;
    for (int32_t d = 0; d < 4; d++) {
        view->stride[d] = d < tensor->ndim ? tensor->stride[d] : 0;
    }
    return ATTN_OK;
}

attn_status attn_sdpa_take_optional(struct attn_sdpa_intake *intake, const attn_tensor *tensor,
                                    enum attn_sdpa_role role,
                                    const struct attn_sdpa_expectation *expectation,
                                    struct attn_sdpa_view *view)
{
    if (tensor == NULL) {
        *view = ATTN_SDPA_ABSENT;
        return ATTN_OK;
    }
    return attn_sdpa_take(intake, tensor, role, expectation, view);
}

attn_status attn_sdpa_take_broadcast(struct attn_sdpa_intake *intake, const attn_tensor *tensor,
                                     const struct attn_sdpa_expectation *expectation,
                                     struct attn_sdpa_view *view)
{
    *view = ATTN_SDPA_ABSENT;
    if (tensor == NULL) {
        return ATTN_OK;
    }
    const attn_status status = take(intake, tensor, ATTN_SDPA_INPUT, expectation);
    if (status != ATTN_OK) {
        return status;
    }
    if (tensor->ndim > 4) {
        return refuse_broadcast(intake->error, tensor, expectation);
    }
    for (int32_t d = 0; d < 4; d++) {
        const int32_t own = d - (4 - tensor->ndim);
        const int64_t size = own < 0 ? 1 : tensor->shape[own];
        if (size != 1 && size != expectation->shape[d]) {
            return refuse_broadcast(intake->error, tensor, expectation);
        }
        view->stride[d] = size == 1 ? 0 : tensor->stride[own];
    }
    view->data = tensor->data;
    view->dtype = tensor->dtype;
    return ATTN_OK;
}

attn_status attn_sdpa_check_overlaps(const struct attn_sdpa_intake *intake, const void *workspace,
                                     size_t workspace_size)
{
    const uintptr_t scratch_low = (uintptr_t)workspace;
    const uintptr_t scratch_high = workspace == NULL ? 0 : scratch_low + workspace_size;
    for (int n = 0; n < intake->output_count; n++) {
        const struct attn_sdpa_taken *output = &intake->outputs[n];
        if (!output->row_major && attn_overlaps_itself(output->tensor)) {
            return attn_fail(intake->error, ATTN_ERR_OVERLAP,
                             "sdpa: %s with shape %s and stride %s overlaps itself", output->name,
                             attn_shape_text(output->tensor).text,
                             attn_stride_text(output->tensor).text);
        }
        if (output->low < scratch_high && scratch_low < output->high) {
            return attn_fail(intake->error, ATTN_ERR_OVERLAP, "sdpa: %s overlaps workspace",
                             output->name);
        }
        for (int m = 0; m < intake->input_count + n; m++) {
            const struct attn_sdpa_taken *other = m < intake->input_count
                                                      ? &intake->inputs[m]
                                                      : &intake->outputs[m - intake->input_count];
            if (output->low < other->high && other->low < output->high &&
                attn_overlaps(output->tensor, other->tensor)) {
                return attn_fail(intake->error, ATTN_ERR_OVERLAP, "sdpa: %s overlaps %s",
                                 output->name, other->name);
            }
        }
    }
    for (int n = 0; n < intake->input_count; n++) {
        const struct attn_sdpa_taken *input = &intake->inputs[n];
        if (input->low < scratch_high && scratch_low < input->high) {
            return attn_fail(intake->error, ATTN_ERR_OVERLAP, "sdpa: %s overlaps workspace",
                             input->name);
        }
    }
    return ATTN_OK;
}

// Well formed, writable if it must be, of an expected element type; noted for the overlap check.
static attn_status take(struct attn_sdpa_intake *intake, const attn_tensor *tensor,
                        enum attn_sdpa_role role, const struct attn_sdpa_expectation *expectation)
{
    struct attn_sdpa_taken found = {.tensor = tensor, .name = expectation->name};
    if (!look_quickly(&found)) {
        if (attn_tensor_check(tensor, expectation->name, NULL) != ATTN_OK) {
            char name[64];
            attn_writer writer = attn_writer_open(name, sizeof(name));
            attn_write(&writer, "sdpa: %s", expectation->name);
            return attn_tensor_check(tensor, name, intake->error);
        }
        int64_t low, high;
        attn_byte_range(tensor, &low, &high);
        found.low = (uintptr_t)tensor->data + (uintptr_t)low;
        found.high = (uintptr_t)tensor->data + (uintptr_t)high;
    }
    if ((1 << tensor->dtype & expectation->dtypes) == 0) {
        return refuse_dtype(intake->error, tensor, expectation);
    }
    if (role == ATTN_SDPA_OUTPUT && (tensor->flags & ATTN_TENSOR_READ_ONLY) != 0) {
        return attn_fail(intake->error, ATTN_ERR_INVALID_ARGUMENT,
                         "sdpa: %s is read-only and cannot be written", expectation->name);
    }
    if (role == ATTN_SDPA_OUTPUT) {
        assert(intake->output_count < ATTN_SDPA_MOST_OUTPUTS);
        intake->outputs[intake->output_count++] = found;
    } else {
        assert(intake->input_count < ATTN_SDPA_MOST_INPUTS);
        intake->inputs[intake->input_count++] = found;
    }
    return ATTN_OK;
}

// Small problems spend much of their time here: a row-major tensor with elements, which most are, is
// known to be well formed, with its bytes, after one pass over its dims. False: look closely.
static bool look_quickly(struct attn_sdpa_taken *found)
{
    const attn_tensor *tensor = found->tensor;
    if (tensor->ndim < 0 || tensor->ndim > 4 || tensor->data == NULL || tensor->reserved != 0 ||
        (tensor->flags & ~(uint32_t)ATTN_TENSOR_READ_ONLY) != 0) {
        return false;
    }
    const uintptr_t size = attn_dtype_size(tensor->dtype);
    const uintptr_t first = (uintptr_t)tensor->data;
    int64_t count = 1;
    for (int32_t d = tensor->ndim - 1; d >= 0; d--) {
        const int64_t entries = tensor->shape[d];
        if (entries <= 0 || entries > INT32_MAX || count > INT32_MAX ||
            tensor->stride[d] != count) {
            return false;
        }
        count *= entries;
    }
    if (size == 0 || (first & (size - 1)) != 0 || count > INT64_MAX / 16 ||
        first > UINTPTR_MAX - (uintptr_t)count * size) {
        return false;
    }
    found->low = first;
    found->high = first + (uintptr_t)count * size;
    found->row_major = true;
    return true;
}

// ---- messages -----------------------------------------------------------------------------------

// "float32, float16 or bfloat16"
static void write_dtypes(attn_writer *writer, int dtypes)
{
    const char *separator = "";
    for (int dtype = 0; dtype < ATTN_DTYPE_COUNT; dtype++) {
        if ((dtypes & 1 << dtype) != 0) {
            attn_write(writer, "%s%s", separator, attn_dtype_name((attn_dtype)dtype));
            dtypes &= ~(1 << dtype);
            const bool last = (dtypes & (dtypes - 1)) == 0;
            separator = last ? " or " : ", ";
        }
    }
}

// "[B,Hkv,Tk,D]"
static void write_symbols(attn_writer *writer, const struct attn_sdpa_expectation *expectation)
{
    for (int32_t d = 0; d < expectation->ndim; d++) {
        attn_write(writer, "%s%s", d == 0 ? "[" : ",", expectation->symbols[d]);
    }
    attn_write(writer, "]");
}

static attn_status refuse_dtype(attn_error *error, const attn_tensor *tensor,
                                const struct attn_sdpa_expectation *expectation)
{
    if (expectation->dtypes == ATTN_SDPA_BOOLEANS && (1 << tensor->dtype & ATTN_SDPA_FLOATS) != 0) {
        return attn_fail(error, ATTN_ERR_DTYPE,
                         "sdpa: %s is %s; a keep mask is bool (true = may attend); an additive "
                         "mask goes into bias",
                         expectation->name, attn_dtype_name(tensor->dtype));
    }
    char expected[160];
    attn_writer writer = attn_writer_open(expected, sizeof(expected));
    write_dtypes(&writer, expectation->dtypes);
    if (expectation->like != NULL && expectation->like != tensor) {
        attn_write(&writer, " as %s is %s", expectation->like_name,
                   attn_dtype_name(expectation->like->dtype));
    }
    return attn_fail(error, ATTN_ERR_DTYPE, "sdpa: %s is %s, expected %s", expectation->name,
                     attn_dtype_name(tensor->dtype), expected);
}

// "expected [B,Hq,Tq,D]", followed by the fixed sizes: " = [2,8,9,32]" when all are, else
// " with B = 2 and D = 32 as in query [2,8,9,32]".
static attn_status refuse_shape(attn_error *error, const attn_tensor *tensor,
                                const struct attn_sdpa_expectation *expectation)
{
    int fixed = 0;
    for (int32_t d = 0; d < expectation->ndim; d++) {
        fixed += expectation->shape[d] != ATTN_SDPA_ANY;
    }
    char expected[400];
    attn_writer writer = attn_writer_open(expected, sizeof(expected));
    write_symbols(&writer, expectation);
    if (fixed == expectation->ndim) {
        attn_write(&writer, " = %s", attn_dims_as_text(expectation->ndim, expectation->shape).text);
    } else if (fixed > 0) {
        const char *separator = " with ";
        for (int32_t d = 0, left = fixed; d < expectation->ndim; d++) {
            if (expectation->shape[d] != ATTN_SDPA_ANY) {
                attn_write(&writer, "%s%s = %lld", separator, expectation->symbols[d],
                           (long long)expectation->shape[d]);
                left--;
                separator = left == 1 ? " and " : ", ";
            }
        }
        attn_write(&writer, " as in %s %s", expectation->like_name,
                   attn_shape_text(expectation->like).text);
    }
    return attn_fail(error, ATTN_ERR_SHAPE, "sdpa: %s has shape %s, expected %s", expectation->name,
                     attn_shape_text(tensor).text, expected);
}

static attn_status refuse_broadcast(attn_error *error, const attn_tensor *tensor,
                                    const struct attn_sdpa_expectation *expectation)
{
    char symbols[64];
    attn_writer writer = attn_writer_open(symbols, sizeof(symbols));
    write_symbols(&writer, expectation);
    return attn_fail(error, ATTN_ERR_SHAPE,
                     "sdpa: %s has shape %s, which does not broadcast to %s = %s",
                     expectation->name, attn_shape_text(tensor).text, symbols,
                     attn_dims_as_text(4, expectation->shape).text);
}
