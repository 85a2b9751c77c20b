#include "io/safetensors.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "attn/tensor.h"
#include "core/checked.h"
#include "core/context.h"
#include "core/error.h"
#include "io/text.h"

// One tensor of the header: its bytes are [begin, end) of the data.
typedef struct item {
    const char *name;
    attn_dtype dtype;
    int32_t ndim;
    int64_t shape[ATTN_MAX_DIMS];
    int64_t begin, end;
    int64_t order; // in the header: keeps the sort of empty tensors stable
} item;

// What is known while a file is parsed. `label` stands in front of every message.
typedef struct parser {
    const attn_context *context;
    const char *label;
    const unsigned char *data;
    int64_t data_size;
    item *items;
    attn_safetensors *file;
    attn_error *error;
} parser;

static attn_status parse_labelled(const attn_context *context, const char *label,
                                  const unsigned char *bytes, size_t size, attn_safetensors **file,
                                  attn_error *error);
static attn_status read_header(const char *label, const unsigned char *bytes, size_t size,
                               json_t **header, size_t *header_size, attn_error *error);
static attn_status build(parser *p);
static attn_status read_metadata(parser *p, json_t *metadata);
static attn_status read_items(parser *p);
static attn_status read_item(const parser *p, const char *name, const json_t *value, item *out);
static attn_status read_dtype(const parser *p, const char *name, const json_t *value, item *out);
static attn_status read_shape(const parser *p, const char *name, const json_t *value, item *out);
static attn_status read_offsets(const parser *p, const char *name, const json_t *value, item *out);
static attn_status check_coverage(const parser *p);
static attn_status make_entries(parser *p);

// ---- opening and closing ------------------------------------------------------------------------

attn_status attn_safetensors_open(const attn_context *context, const char *path,
                                  attn_safetensors **file, attn_error *error)
{
    if (context == NULL || file == NULL) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "safetensors: context and file must not be NULL");
    }
    attn_file_map map = {0};
    attn_status status = attn_file_map_open(path, &map, error);
    if (status != ATTN_OK) {
        return status;
    }
    attn_safetensors *opened = NULL;
    attn_shown label = attn_show_name(path);
    status = parse_labelled(context, label.text, map.bytes, map.size, &opened, error);
    if (status != ATTN_OK) {
        attn_file_map_close(&map);
        return status;
    }
    opened->map = map;
    *file = opened;
    return ATTN_OK;
}

attn_status attn_safetensors_parse(const attn_context *context, const void *bytes, size_t size,
                                   attn_safetensors **file, attn_error *error)
{
    if (context == NULL || file == NULL || (bytes == NULL && size > 0)) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "safetensors: context, bytes and file must not be NULL");
    }
    return parse_labelled(context, "safetensors", bytes, size, file, error);
}

static attn_status parse_labelled(const attn_context *context, const char *label,
                                  const unsigned char *bytes, size_t size, attn_safetensors **file,
                                  attn_error *error)
{
    json_t *header = NULL;
    size_t header_size = 0;
    attn_status status = read_header(label, bytes, size, &header, &header_size, error);
    if (status != ATTN_OK) {
        return status;
    }
    attn_safetensors *opened = attn_allocate(context, sizeof(*opened));
    if (opened == NULL) {
        json_decref(header);
        return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY, "%s: out of memory", label);
    }
    *opened = (attn_safetensors){.context = context, .header = header};
    parser p = {
        .context = context,
        .label = label,
        .data = bytes + header_size,
        .data_size = (int64_t)(size - header_size),
        .file = opened,
        .error = error,
    };
    status = build(&p);
    if (status != ATTN_OK) {
        attn_safetensors_close(opened);
        return status;
    }
    *file = opened;
    return ATTN_OK;
}

void attn_safetensors_close(attn_safetensors *file)
{
    if (file == NULL) {
        return;
    }
    const attn_context *context = file->context;
    for (int64_t i = 0; i < file->shard_count; i++) {
        attn_safetensors_close(file->shards[i]);
    }
    attn_release(context, (void *)file->shards,
                 (size_t)file->shard_capacity * sizeof(*file->shards));
    attn_release(context, file->copies, file->copies_size);
    attn_release(context, (void *)file->metadata_keys,
                 (size_t)file->metadata_count * sizeof(*file->metadata_keys));
    attn_release(context, file->entries, (size_t)file->count * sizeof(*file->entries));
    json_decref(file->header);
    attn_file_map_close(&file->map);
    attn_release(context, file, sizeof(*file));
}

// ---- what is in it ------------------------------------------------------------------------------

int64_t attn_safetensors_count(const attn_safetensors *file)
{
    return file->count;
}

const attn_named_tensor *attn_safetensors_entry(const attn_safetensors *file, int64_t index)
{
    return index >= 0 && index < file->count ? &file->entries[index] : NULL;
}

const attn_named_tensor *attn_safetensors_find(const attn_safetensors *file, const char *name)
{
    for (int64_t i = 0; name != NULL && i < file->count; i++) {
        if (strcmp(file->entries[i].name, name) == 0) {
            return &file->entries[i];
        }
    }
    return NULL;
}

const char *attn_safetensors_metadata(const attn_safetensors *file, const char *key)
{
    if (key == NULL || file->metadata_count == 0) {
        return NULL;
    }
    const json_t *metadata = json_object_get(file->header, "__metadata__");
    return json_string_value(json_object_get(metadata, key));
}

int64_t attn_safetensors_metadata_count(const attn_safetensors *file)
{
    return file->metadata_count;
}

const char *attn_safetensors_metadata_key(const attn_safetensors *file, int64_t index)
{
    return index >= 0 && index < file->metadata_count ? file->metadata_keys[index] : NULL;
}

// ---- the header ---------------------------------------------------------------------------------

// On success *header_size counts the eight bytes of the length as well.
static attn_status read_header(const char *label, const unsigned char *bytes, size_t size,
                               json_t **header, size_t *header_size, attn_error *error)
{
    enum { LENGTH_SIZE = 8 };
    if (size < LENGTH_SIZE) {
        return attn_fail(error, ATTN_ERR_FORMAT,
                         "%s: %zu bytes are too few for a .safetensors file, which starts with the "
                         "8-byte length of its header",
                         label, size);
    }
    uint64_t length = 0;
    for (int i = LENGTH_SIZE - 1; i >= 0; i--) {
        length = length << 8 | bytes[i];
    }
    if (length > ATTN_SAFETENSORS_MAX_HEADER) {
        return attn_fail(error, ATTN_ERR_FORMAT,
                         "%s: header of %llu bytes; the format allows 100000000 (is this a "
                         ".safetensors file?)",
                         label, (unsigned long long)length);
    }
    if (length > size - LENGTH_SIZE) {
        return attn_fail(error, ATTN_ERR_FORMAT,
                         "%s: header of %llu bytes, but only %zu follow (file cut short?)", label,
                         (unsigned long long)length, size - LENGTH_SIZE);
    }
    if (length == 0 || bytes[LENGTH_SIZE] != '{') {
        return attn_fail(error, ATTN_ERR_FORMAT, "%s: the header does not start with '{'", label);
    }
    if (size > (size_t)INT64_MAX) {
        return attn_fail(error, ATTN_ERR_OVERFLOW, "%s: file too large", label);
    }

    json_error_t json_error;
    json_t *parsed = json_loadb((const char *)bytes + LENGTH_SIZE, (size_t)length,
                                JSON_REJECT_DUPLICATES, &json_error);
    if (parsed == NULL) {
        if (json_error_code(&json_error) == json_error_out_of_memory) {
            return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY, "%s: out of memory", label);
        }
        attn_shown reason = attn_show_name(json_error.text);
        return attn_fail(error, ATTN_ERR_FORMAT, "%s: header, byte %d: %s", label,
                         json_error.position, reason.text);
    }
    assert(json_is_object(parsed));
    *header = parsed;
    *header_size = LENGTH_SIZE + (size_t)length;
    return ATTN_OK;
}

static attn_status build(parser *p)
{
    attn_status status = read_metadata(p, json_object_get(p->file->header, "__metadata__"));
    if (status != ATTN_OK) {
        return status;
    }
    size_t tensors = json_object_size(p->file->header);
    if (json_object_get(p->file->header, "__metadata__") != NULL) {
        tensors--;
    }
    if (tensors > 0) {
        p->items = attn_allocate(p->context, tensors * sizeof(*p->items));
        p->file->entries = attn_allocate(p->context, tensors * sizeof(*p->file->entries));
        if (p->items != NULL && p->file->entries != NULL) {
            p->file->count = (int64_t)tensors;
        } else {
            attn_release(p->context, p->items, tensors * sizeof(*p->items));
            attn_release(p->context, p->file->entries, tensors * sizeof(*p->file->entries));
            p->file->entries = NULL;
            return attn_fail(p->error, ATTN_ERR_OUT_OF_MEMORY, "%s: out of memory", p->label);
        }
    }
    status = read_items(p);
    if (status == ATTN_OK) {
        status = check_coverage(p);
    }
    if (status == ATTN_OK) {
        status = make_entries(p);
    }
    attn_release(p->context, p->items, tensors * sizeof(*p->items));
    return status;
}

static attn_status read_metadata(parser *p, json_t *metadata)
{
    if (metadata == NULL) {
        return ATTN_OK;
    }
    if (!json_is_object(metadata)) {
        return attn_fail(p->error, ATTN_ERR_FORMAT, "%s: __metadata__ is not an object", p->label);
    }
    size_t count = json_object_size(metadata);
    if (count == 0) {
        return ATTN_OK;
    }
    p->file->metadata_keys = attn_allocate(p->context, count * sizeof(*p->file->metadata_keys));
    if (p->file->metadata_keys == NULL) {
        return attn_fail(p->error, ATTN_ERR_OUT_OF_MEMORY, "%s: out of memory", p->label);
    }
    p->file->metadata_count = (int64_t)count;
    const char *key;
    json_t *value;
    int64_t index = 0;
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value)) {
            return attn_fail(p->error, ATTN_ERR_FORMAT,
                             "%s: __metadata__ \"%s\": the value is not a string", p->label,
                             attn_show_name(key).text);
        }
        p->file->metadata_keys[index++] = key;
    }
    return ATTN_OK;
}

static attn_status read_items(parser *p)
{
    const char *name;
    json_t *value;
    int64_t index = 0;
    json_object_foreach(p->file->header, name, value)
    {
        if (strcmp(name, "__metadata__") == 0) {
            continue;
        }
        assert(p->items != NULL && index < p->file->count);
        attn_status status = read_item(p, name, value, &p->items[index]);
        if (status != ATTN_OK) {
            return status;
        }
        p->items[index].order = index;
        index++;
    }
    return ATTN_OK;
}

static attn_status read_item(const parser *p, const char *name, const json_t *value, item *out)
{
    *out = (item){.name = name};
    if (!json_is_object(value)) {
        return attn_fail(p->error, ATTN_ERR_FORMAT, "%s: tensor \"%s\" is not an object", p->label,
                         attn_show_name(name).text);
    }
    attn_status status = read_dtype(p, name, json_object_get(value, "dtype"), out);
    if (status == ATTN_OK) {
        status = read_shape(p, name, json_object_get(value, "shape"), out);
    }
    if (status == ATTN_OK) {
        status = read_offsets(p, name, json_object_get(value, "data_offsets"), out);
    }
    if (status == ATTN_OK && json_object_size(value) != 3) {
        status = attn_fail(p->error, ATTN_ERR_FORMAT,
                           "%s: tensor \"%s\": only dtype, shape and data_offsets may be given",
                           p->label, attn_show_name(name).text);
    }
    return status;
}

static attn_status read_dtype(const parser *p, const char *name, const json_t *value, item *out)
{
    static const char *const unsupported[] = {"U16",     "U32",         "U64",         "C64",
                                              "F8_E4M3", "F8_E5M2",     "F8_E8M0",     "F6_E2M3",
                                              "F6_E3M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F4"};
    if (!json_is_string(value)) {
        return attn_fail(p->error, ATTN_ERR_FORMAT, "%s: tensor \"%s\": no dtype string", p->label,
                         attn_show_name(name).text);
    }
    const char *dtype = json_string_value(value);
    out->dtype = attn_safetensors_dtype(dtype);
    if (out->dtype != ATTN_DTYPE_NONE) {
        return ATTN_OK;
    }
    for (size_t i = 0; i < sizeof(unsupported) / sizeof(*unsupported); i++) {
        if (strcmp(dtype, unsupported[i]) == 0) {
            return attn_fail(p->error, ATTN_ERR_NOT_SUPPORTED,
                             "%s: tensor \"%s\": dtype %s is not supported", p->label,
                             attn_show_name(name).text, dtype);
        }
    }
    return attn_fail(p->error, ATTN_ERR_FORMAT, "%s: tensor \"%s\": unknown dtype \"%s\"", p->label,
                     attn_show_name(name).text, attn_show_name(dtype).text);
}

static attn_status read_shape(const parser *p, const char *name, const json_t *value, item *out)
{
    if (!json_is_array(value)) {
        return attn_fail(p->error, ATTN_ERR_FORMAT, "%s: tensor \"%s\": no shape array", p->label,
                         attn_show_name(name).text);
    }
    size_t ndim = json_array_size(value);
    if (ndim > ATTN_MAX_DIMS) {
        return attn_fail(p->error, ATTN_ERR_NOT_SUPPORTED,
                         "%s: tensor \"%s\": %zu dimensions; at most 8 are supported", p->label,
                         attn_show_name(name).text, ndim);
    }
    for (size_t d = 0; d < ndim; d++) {
        const json_t *size = json_array_get(value, d);
        if (!json_is_integer(size) || json_integer_value(size) < 0) {
            return attn_fail(p->error, ATTN_ERR_FORMAT,
                             "%s: tensor \"%s\": shape[%zu] is not a whole number >= 0", p->label,
                             attn_show_name(name).text, d);
        }
        out->shape[d] = json_integer_value(size);
    }
    out->ndim = (int32_t)ndim;
    return ATTN_OK;
}

static attn_status read_offsets(const parser *p, const char *name, const json_t *value, item *out)
{
    attn_shown shown = attn_show_name(name);
    if (!json_is_array(value) || json_array_size(value) != 2) {
        return attn_fail(p->error, ATTN_ERR_FORMAT,
                         "%s: tensor \"%s\": data_offsets is not an array of two", p->label,
                         shown.text);
    }
    const json_t *begin = json_array_get(value, 0);
    const json_t *end = json_array_get(value, 1);
    if (!json_is_integer(begin) || !json_is_integer(end) || json_integer_value(begin) < 0 ||
        json_integer_value(end) < json_integer_value(begin)) {
        return attn_fail(p->error, ATTN_ERR_FORMAT,
                         "%s: tensor \"%s\": data_offsets are not 0 <= begin <= end", p->label,
                         shown.text);
    }
    out->begin = json_integer_value(begin);
    out->end = json_integer_value(end);
    if (out->end > p->data_size) {
        return attn_fail(p->error, ATTN_ERR_FORMAT,
                         "%s: tensor \"%s\": its data ends at byte %lld, the file's at %lld (cut "
                         "short?)",
                         p->label, shown.text, (long long)out->end, (long long)p->data_size);
    }
    // A size of 0 does not excuse the others from fitting.
    int64_t bytes = (int64_t)attn_dtype_size(out->dtype);
    bool empty = false;
    for (int32_t d = 0; d < out->ndim; d++) {
        empty = empty || out->shape[d] == 0;
        if (out->shape[d] > 0 && !attn_checked_mul(bytes, out->shape[d], &bytes)) {
            return attn_fail(p->error, ATTN_ERR_FORMAT, "%s: tensor \"%s\": shape %s overflows",
                             p->label, shown.text, attn_show_shape(out->ndim, out->shape).text);
        }
    }
    if (out->end - out->begin != (empty ? 0 : bytes)) {
        return attn_fail(p->error, ATTN_ERR_FORMAT,
                         "%s: tensor \"%s\": shape %s of %s takes %lld bytes, data_offsets give "
                         "%lld",
                         p->label, shown.text, attn_show_shape(out->ndim, out->shape).text,
                         attn_safetensors_dtype_name(out->dtype), empty ? 0LL : (long long)bytes,
                         (long long)(out->end - out->begin));
    }
    return ATTN_OK;
}

// ---- the data -----------------------------------------------------------------------------------

static int by_position(const void *left, const void *right)
{
    const item *a = left;
    const item *b = right;
    if (a->begin != b->begin) {
        return a->begin < b->begin ? -1 : 1;
    }
    if (a->end != b->end) {
        return a->end < b->end ? -1 : 1;
    }
    return a->order < b->order ? -1 : 1;
}

// Sorts the items by their data and checks that they cover it exactly.
static attn_status check_coverage(const parser *p)
{
    if (p->file->count > 0) {
        qsort(p->items, (size_t)p->file->count, sizeof(*p->items), by_position);
    }
    int64_t covered = 0;
    for (int64_t i = 0; i < p->file->count; i++) {
        const item *current = &p->items[i];
        if (current->begin > covered) {
            return attn_fail(p->error, ATTN_ERR_FORMAT,
                             "%s: bytes %lld to %lld of the data belong to no tensor", p->label,
                             (long long)covered, (long long)current->begin);
        }
        if (current->begin < covered) {
            return attn_fail(p->error, ATTN_ERR_FORMAT, "%s: tensors \"%s\" and \"%s\" overlap",
                             p->label, attn_show_name(p->items[i - 1].name).text,
                             attn_show_name(current->name).text);
        }
        covered = current->end;
    }
    if (covered < p->data_size) {
        return attn_fail(p->error, ATTN_ERR_FORMAT, "%s: %lld bytes after the last tensor",
                         p->label, (long long)(p->data_size - covered));
    }
    return ATTN_OK;
}

static bool is_aligned(const parser *p, const item *current)
{
    return (uintptr_t)(p->data + current->begin) % attn_dtype_size(current->dtype) == 0;
}

static size_t room_for_copy(const item *current)
{
    size_t size = (size_t)(current->end - current->begin);
    return (size + ATTN_ALIGNMENT - 1) / ATTN_ALIGNMENT * ATTN_ALIGNMENT;
}

// Turns the items into tensors; those that are not aligned are copied.
static attn_status make_entries(parser *p)
{
    size_t copies_size = 0;
    for (int64_t i = 0; i < p->file->count; i++) {
        if (!is_aligned(p, &p->items[i])) {
            copies_size += room_for_copy(&p->items[i]);
        }
    }
    unsigned char *copy = attn_allocate(p->context, copies_size);
    if (copy == NULL && copies_size > 0) {
        return attn_fail(p->error, ATTN_ERR_OUT_OF_MEMORY, "%s: out of memory", p->label);
    }
    p->file->copies = copy;
    p->file->copies_size = copies_size;
    for (int64_t i = 0; i < p->file->count; i++) {
        const item *current = &p->items[i];
        size_t size = (size_t)(current->end - current->begin);
        const unsigned char *data = size > 0 ? p->data + current->begin : NULL;
        if (size > 0 && !is_aligned(p, current)) {
            assert(copy != NULL);
            memcpy(copy, data, size);
            data = copy;
            copy += room_for_copy(current);
        }
        p->file->entries[i] = (attn_named_tensor){
            .name = current->name,
            .tensor = attn_tensor_wrap_const(data, current->dtype, current->ndim, current->shape),
        };
    }
    return ATTN_OK;
}
