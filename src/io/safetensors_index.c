#define _GNU_SOURCE
#include "io/safetensors_index.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/context.h"
#include "core/error.h"
#include "io/file_map.h"
#include "io/safetensors.h"
#include "io/text.h"

static attn_status open_shards(attn_safetensors *all, const char *path, attn_error *error);
static attn_status list_shards(const json_t *weight_map, const attn_context *context,
                               const char ***names, int64_t *count, attn_error *error);
static attn_status open_shard(attn_safetensors *all, const char *path, const char *name,
                              attn_error *error);
static attn_status gather_entries(attn_safetensors *all, const char *const *shard_names,
                                  const char *path, attn_error *error);
static attn_status check_names(const attn_safetensors *all, const char *path, attn_error *error);

attn_status attn_safetensors_open_index(const attn_context *context, const char *path,
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
    json_t *index = NULL;
    status =
        attn_safetensors_parse_index(attn_show_name(path).text, map.bytes, map.size, &index, error);
    attn_file_map_close(&map);
    if (status != ATTN_OK) {
        return status;
    }
    attn_safetensors *all = attn_allocate(context, sizeof(*all));
    if (all == NULL) {
        json_decref(index);
        return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY, "%s: out of memory", path);
    }
    *all = (attn_safetensors){.context = context, .header = index};
    status = open_shards(all, path, error);
    if (status != ATTN_OK) {
        attn_safetensors_close(all);
        return status;
    }
    *file = all;
    return ATTN_OK;
}

// ---- the index itself ---------------------------------------------------------------------------

attn_status attn_safetensors_parse_index(const char *label, const void *bytes, size_t size,
                                         json_t **index, attn_error *error)
{
    if (size == 0) {
        return attn_fail(error, ATTN_ERR_FORMAT, "%s: the file is empty", label);
    }
    if (size > ATTN_SAFETENSORS_MAX_HEADER) {
        return attn_fail(error, ATTN_ERR_FORMAT, "%s: %zu bytes are too many for an index", label,
                         size);
    }
    json_error_t json_error;
    json_t *parsed = json_loadb(bytes, size, JSON_REJECT_DUPLICATES, &json_error);
    if (parsed == NULL) {
        if (json_error_code(&json_error) == json_error_out_of_memory) {
            return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY, "%s: out of memory", label);
        }
        return attn_fail(error, ATTN_ERR_FORMAT, "%s: line %d: %s", label, json_error.line,
                         attn_show_name(json_error.text).text);
    }
    attn_status status = ATTN_OK;
    json_t *weight_map = json_object_get(parsed, "weight_map");
    if (!json_is_object(weight_map)) {
        status = attn_fail(error, ATTN_ERR_FORMAT, "%s: no \"weight_map\" object", label);
    }
    const char *name;
    json_t *value;
    json_object_foreach(weight_map, name, value)
    {
        const char *shard = json_string_value(value);
        if (shard == NULL) {
            status = attn_fail(error, ATTN_ERR_FORMAT, "%s: tensor \"%s\": no file name", label,
                               attn_show_name(name).text);
        } else if (!attn_stays_in_folder(shard)) {
            status = attn_fail(error, ATTN_ERR_FORMAT,
                               "%s: tensor \"%s\": the file \"%s\" is not in the index's folder",
                               label, attn_show_name(name).text, attn_show_name(shard).text);
        }
        if (status != ATTN_OK) {
            break;
        }
    }
    if (status != ATTN_OK) {
        json_decref(parsed);
        return status;
    }
    *index = parsed;
    return ATTN_OK;
}

bool attn_stays_in_folder(const char *name)
{
    return *name != '\0' && strchr(name, '/') == NULL && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

// ---- the files ----------------------------------------------------------------------------------

static attn_status open_shards(attn_safetensors *all, const char *path, attn_error *error)
{
    const json_t *weight_map = json_object_get(all->header, "weight_map");
    const char **names = NULL;
    int64_t count = 0;
    attn_status status = list_shards(weight_map, all->context, &names, &count, error);
    if (status != ATTN_OK) {
        return status;
    }
    all->shards = attn_allocate(all->context, (size_t)count * sizeof(*all->shards));
    if (all->shards == NULL && count > 0) {
        status = attn_fail(error, ATTN_ERR_OUT_OF_MEMORY, "%s: out of memory", path);
    } else {
        all->shard_capacity = count;
    }
    for (int64_t i = 0; status == ATTN_OK && i < count; i++) {
        status = open_shard(all, path, names[i], error);
    }
    if (status == ATTN_OK) {
        status = gather_entries(all, names, path, error);
    }
    if (status == ATTN_OK) {
        status = check_names(all, path, error);
    }
    attn_release(all->context, (void *)names, json_object_size(weight_map) * sizeof(*names));
    return status;
}

static int by_text(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

// The different file names, sorted. The array has room for one per tensor.
static attn_status list_shards(const json_t *weight_map, const attn_context *context,
                               const char ***names, int64_t *count, attn_error *error)
{
    size_t tensors = json_object_size(weight_map);
    if (tensors == 0) {
        return ATTN_OK;
    }
    const char **list = attn_allocate(context, tensors * sizeof(*list));
    if (list == NULL) {
        return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY, "safetensors: out of memory");
    }
    const char *name;
    json_t *value;
    size_t used = 0;
    json_object_foreach((json_t *)(uintptr_t)weight_map, name, value)
    {
        list[used++] = json_string_value(value);
    }
    qsort((void *)list, used, sizeof(*list), by_text);
    int64_t different = 0;
    for (size_t i = 0; i < used; i++) {
        if (i == 0 || strcmp(list[i], list[different - 1]) != 0) {
            list[different++] = list[i];
        }
    }
    *names = list;
    *count = different;
    return ATTN_OK;
}

static attn_status open_shard(attn_safetensors *all, const char *path, const char *name,
                              attn_error *error)
{
    char shard_path[PATH_MAX];
    const char *slash = strrchr(path, '/');
    int folder = slash == NULL ? 0 : (int)(slash - path) + 1;
    int length = snprintf(shard_path, sizeof(shard_path), "%.*s%s", folder, path, name);
    if (length < 0 || (size_t)length >= sizeof(shard_path)) {
        return attn_fail(error, ATTN_ERR_IO, "%s: path too long", attn_show_name(name).text);
    }
    attn_status status =
        attn_safetensors_open(all->context, shard_path, &all->shards[all->shard_count], error);
    if (status == ATTN_OK) {
        all->shard_count++;
    }
    return status;
}

// One list of all shards' tensors; each must be one that the index puts there.
static attn_status gather_entries(attn_safetensors *all, const char *const *shard_names,
                                  const char *path, attn_error *error)
{
    const json_t *weight_map = json_object_get(all->header, "weight_map");
    int64_t total = 0;
    for (int64_t i = 0; i < all->shard_count; i++) {
        total += all->shards[i]->count;
    }
    all->entries = attn_allocate(all->context, (size_t)total * sizeof(*all->entries));
    if (all->entries == NULL && total > 0) {
        return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY, "%s: out of memory", path);
    }
    all->count = total;
    attn_named_tensor *next = all->entries;
    for (int64_t i = 0; i < all->shard_count; i++) {
        const attn_safetensors *shard = all->shards[i];
        for (int64_t k = 0; k < shard->count; k++) {
            const char *name = shard->entries[k].name;
            const char *place = json_string_value(json_object_get(weight_map, name));
            if (place == NULL || strcmp(place, shard_names[i]) != 0) {
                return attn_fail(error, ATTN_ERR_FORMAT,
                                 "%s: %s holds the tensor \"%s\", which the index does not put "
                                 "there",
                                 attn_show_name(path).text, attn_show_name(shard_names[i]).text,
                                 attn_show_name(name).text);
            }
            *next++ = shard->entries[k];
        }
    }
    return ATTN_OK;
}

// Every tensor of every shard is in the index; equal numbers mean that the reverse holds as well.
static attn_status check_names(const attn_safetensors *all, const char *path, attn_error *error)
{
    json_t *weight_map = json_object_get(all->header, "weight_map");
    if ((int64_t)json_object_size(weight_map) == all->count) {
        return ATTN_OK;
    }
    const char *name;
    json_t *value;
    json_object_foreach(weight_map, name, value)
    {
        if (attn_safetensors_find(all, name) == NULL) {
            return attn_fail(error, ATTN_ERR_FORMAT, "%s: the file \"%s\" has no tensor \"%s\"",
                             attn_show_name(path).text,
                             attn_show_name(json_string_value(value)).text,
                             attn_show_name(name).text);
        }
    }
    return ATTN_OK;
}
