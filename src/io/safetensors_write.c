#include "io/safetensors.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attn/tensor.h"
#include "core/checked.h"
#include "core/context.h"
#include "core/error.h"
#include "io/elements.h"
#include "io/save.h"
#include "io/text.h"

// Everything that is to be written.
typedef struct contents {
    const attn_context *context;
    const attn_named_tensor *tensors;
    int64_t count;
    const attn_text_pair *metadata;
    int64_t metadata_count;
} contents;

static attn_status write_contents(const attn_sink *sink, const void *what, attn_error *error);
static attn_status sort_tensors(const contents *all, const attn_named_tensor **sorted,
                                attn_error *error);
static attn_status check_tensors(const attn_named_tensor *const *sorted, int64_t count,
                                 attn_error *error);
static attn_status make_header(const contents *all, const attn_named_tensor *const *sorted,
                               json_t *header, attn_error *error);
static attn_status add_metadata(const contents *all, json_t *header, attn_error *error);
static attn_status add_tensor(json_t *header, const attn_named_tensor *named, int64_t *offset,
                              attn_error *error);
static attn_status write_header(const attn_sink *sink, const json_t *header, attn_error *error);

attn_status attn_safetensors_save(const attn_context *context, const char *path,
                                  const attn_named_tensor *tensors, int64_t count,
                                  const attn_text_pair *metadata, int64_t metadata_count,
                                  attn_error *error)
{
    contents all = {context, tensors, count, metadata, metadata_count};
    return attn_save(context, path, write_contents, &all, error);
}

attn_status attn_safetensors_write(const attn_context *context, const attn_sink *sink,
                                   const attn_named_tensor *tensors, int64_t count,
                                   const attn_text_pair *metadata, int64_t metadata_count,
                                   attn_error *error)
{
    if (context == NULL || sink == NULL || sink->write == NULL) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "safetensors: context and sink must not be NULL");
    }
    contents all = {context, tensors, count, metadata, metadata_count};
    return write_contents(sink, &all, error);
}

static attn_status write_contents(const attn_sink *sink, const void *what, attn_error *error)
{
    const contents *all = what;
    if (all->count < 0 || (all->count > 0 && all->tensors == NULL) || all->metadata_count < 0 ||
        (all->metadata_count > 0 && all->metadata == NULL)) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "safetensors: tensors or metadata is NULL, or a count is negative");
    }
    size_t room = (size_t)all->count * sizeof(const attn_named_tensor *);
    const attn_named_tensor **sorted = attn_allocate(all->context, room);
    json_t *header = json_object();
    attn_status status = ATTN_OK;
    if ((sorted == NULL && room > 0) || header == NULL) {
        status = attn_fail(error, ATTN_ERR_OUT_OF_MEMORY, "safetensors: out of memory");
    }
    if (status == ATTN_OK) {
        status = sort_tensors(all, sorted, error);
    }
    if (status == ATTN_OK) {
        status = make_header(all, sorted, header, error);
    }
    if (status == ATTN_OK) {
        status = write_header(sink, header, error);
    }
    for (int64_t i = 0; status == ATTN_OK && i < all->count; i++) {
        if (!attn_write_elements(sink, &sorted[i]->tensor)) {
            status = attn_fail(error, ATTN_ERR_IO, "%s", strerror(errno));
        }
    }
    json_decref(header);
    attn_release(all->context, (void *)sorted, room);
    return status;
}

// ---- the order ----------------------------------------------------------------------------------

static int by_size_then_name(const void *left, const void *right)
{
    const attn_named_tensor *a = *(const attn_named_tensor *const *)left;
    const attn_named_tensor *b = *(const attn_named_tensor *const *)right;
    size_t a_size = attn_dtype_size(a->tensor.dtype);
    size_t b_size = attn_dtype_size(b->tensor.dtype);
    if (a_size != b_size) {
        return a_size > b_size ? -1 : 1;
    }
    return strcmp(a->name, b->name);
}

static int by_name(const void *left, const void *right)
{
    const attn_named_tensor *a = *(const attn_named_tensor *const *)left;
    const attn_named_tensor *b = *(const attn_named_tensor *const *)right;
    return strcmp(a->name, b->name);
}

// Checks everything on the way: sorted by name, a name given twice stands beside itself.
static attn_status sort_tensors(const contents *all, const attn_named_tensor **sorted,
                                attn_error *error)
{
    for (int64_t i = 0; i < all->count; i++) {
        if (all->tensors[i].name == NULL) {
            return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                             "safetensors: tensor %lld has no name", (long long)i);
        }
        sorted[i] = &all->tensors[i];
    }
    if (all->count == 0) {
        return ATTN_OK;
    }
    qsort((void *)sorted, (size_t)all->count, sizeof(*sorted), by_name);
    attn_status status = check_tensors(sorted, all->count, error);
    if (status == ATTN_OK) {
        qsort((void *)sorted, (size_t)all->count, sizeof(*sorted), by_size_then_name);
    }
    return status;
}

static attn_status check_tensors(const attn_named_tensor *const *sorted, int64_t count,
                                 attn_error *error)
{
    for (int64_t i = 0; i < count; i++) {
        attn_shown shown = attn_show_name(sorted[i]->name);
        if (strcmp(sorted[i]->name, "__metadata__") == 0) {
            return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                             "safetensors: no tensor may be named __metadata__");
        }
        if (i > 0 && strcmp(sorted[i]->name, sorted[i - 1]->name) == 0) {
            return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                             "safetensors: tensor \"%s\" is given twice", shown.text);
        }
        attn_status status = attn_tensor_check(&sorted[i]->tensor, shown.text, error);
        if (status != ATTN_OK) {
            return status;
        }
    }
    return ATTN_OK;
}

// ---- the header ---------------------------------------------------------------------------------

static attn_status make_header(const contents *all, const attn_named_tensor *const *sorted,
                               json_t *header, attn_error *error)
{
    attn_status status = add_metadata(all, header, error);
    int64_t offset = 0;
    for (int64_t i = 0; status == ATTN_OK && i < all->count; i++) {
        assert(sorted != NULL);
        status = add_tensor(header, sorted[i], &offset, error);
    }
    return status;
}

static attn_status add_metadata(const contents *all, json_t *header, attn_error *error)
{
    if (all->metadata_count == 0) {
        return ATTN_OK;
    }
    json_t *metadata = json_object();
    if (json_object_set_new(header, "__metadata__", metadata) != 0) {
        return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY, "safetensors: out of memory");
    }
    for (int64_t i = 0; i < all->metadata_count; i++) {
        const attn_text_pair *pair = &all->metadata[i];
        if (pair->key == NULL || pair->value == NULL) {
            return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                             "safetensors: metadata %lld has no key or no value", (long long)i);
        }
        attn_shown shown = attn_show_name(pair->key);
        if (json_object_get(metadata, pair->key) != NULL) {
            return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                             "safetensors: metadata \"%s\" is given twice", shown.text);
        }
        if (json_object_set_new(metadata, pair->key, json_string(pair->value)) != 0) {
            return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                             "safetensors: metadata \"%s\" is not UTF-8", shown.text);
        }
    }
    return ATTN_OK;
}

static attn_status add_tensor(json_t *header, const attn_named_tensor *named, int64_t *offset,
                              attn_error *error)
{
    const attn_tensor *tensor = &named->tensor;
    int64_t begin = *offset;
    int64_t bytes;
    if (!attn_checked_mul(attn_tensor_count(tensor), (int64_t)attn_dtype_size(tensor->dtype),
                          &bytes) ||
        !attn_checked_add(begin, bytes, offset)) {
        return attn_fail(error, ATTN_ERR_OVERFLOW, "safetensors: more bytes than fit in a file");
    }
    json_t *shape = json_array();
    for (int32_t d = 0; d < tensor->ndim; d++) {
        if (json_array_append_new(shape, json_integer(tensor->shape[d])) != 0) {
            json_decref(shape);
            return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY, "safetensors: out of memory");
        }
    }
    json_t *value = json_pack("{s:s, s:o, s:[I, I]}", "dtype",
                              attn_safetensors_dtype_name(tensor->dtype), "shape", shape,
                              "data_offsets", (json_int_t)begin, (json_int_t)*offset);
    if (value == NULL) {
        return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY, "safetensors: out of memory");
    }
    if (json_object_set_new(header, named->name, value) != 0) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "safetensors: the name \"%s\" is not UTF-8",
                         attn_show_bytes(named->name, strlen(named->name)).text);
    }
    return ATTN_OK;
}

static attn_status write_header(const attn_sink *sink, const json_t *header, attn_error *error)
{
    static const char spaces[] = "        ";
    char *text = json_dumps(header, JSON_COMPACT);
    if (text == NULL) {
        return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY, "safetensors: out of memory");
    }
    size_t length = strlen(text);
    size_t padding = (8 - length % 8) % 8;
    attn_status status = ATTN_OK;
    if (length + padding > ATTN_SAFETENSORS_MAX_HEADER) {
        status = attn_fail(error, ATTN_ERR_OVERFLOW,
                           "safetensors: header of %zu bytes; the format allows 100000000", length);
    } else {
        unsigned char prefix[8];
        for (size_t i = 0; i < sizeof(prefix); i++) {
            prefix[i] = (unsigned char)((length + padding) >> 8 * i);
        }
        if (!sink->write(sink->state, prefix, sizeof(prefix)) ||
            !sink->write(sink->state, text, length) ||
            (padding > 0 && !sink->write(sink->state, spaces, padding))) {
            status = attn_fail(error, ATTN_ERR_IO, "%s", strerror(errno));
        }
    }
    free(text);
    return status;
}
