#include "io/tensor_list.h"

#include <assert.h>
#include <string.h>

#include "core/context.h"
#include "core/error.h"

struct attn_tensor_list {
    const attn_context *context;
    attn_named_tensor *entries;
    int64_t count, capacity;
};

attn_status attn_tensor_list_create(const attn_context *context, int64_t capacity,
                                    attn_tensor_list **list, attn_error *error)
{
    attn_tensor_list *made = attn_allocate(context, sizeof(*made));
    attn_named_tensor *entries =
        attn_allocate(context, (size_t)capacity * sizeof(attn_named_tensor));
    if (made == NULL || (entries == NULL && capacity > 0)) {
        attn_release(context, made, sizeof(*made));
        attn_release(context, entries, (size_t)capacity * sizeof(attn_named_tensor));
        return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY, "layers: out of memory");
    }
    *made = (attn_tensor_list){context, entries, 0, capacity};
    *list = made;
    return ATTN_OK;
}

attn_status attn_tensor_list_add(attn_tensor_list *list, const char *prefix, const char *name,
                                 attn_dtype dtype, int32_t ndim, const int64_t *shape,
                                 attn_tensor *added, attn_error *error)
{
    assert(list->count < list->capacity);
    const size_t size = strlen(prefix) + strlen(name) + 1;
    char *whole = attn_allocate(list->context, size);
    if (whole == NULL) {
        return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY, "layers: out of memory");
    }
    memcpy(whole, prefix, strlen(prefix));
    memcpy(whole + strlen(prefix), name, strlen(name) + 1);
    attn_named_tensor *entry = &list->entries[list->count];
    const attn_status status =
        attn_tensor_create(list->context, dtype, ndim, shape, &entry->tensor, error);
    if (status != ATTN_OK) {
        attn_release(list->context, whole, size);
        return status;
    }
    entry->name = whole;
    list->count++;
    *added = entry->tensor;
    return ATTN_OK;
}

int64_t attn_tensor_list_count(const attn_tensor_list *list)
{
    return list->count;
}

const attn_named_tensor *attn_tensor_list_entries(const attn_tensor_list *list)
{
    return list->entries;
}

void attn_tensor_list_destroy(attn_tensor_list *list)
{
    if (list == NULL) {
        return;
    }
    const attn_context *context = list->context;
    for (int64_t i = 0; i < list->count; i++) {
        char *name = (char *)(uintptr_t)list->entries[i].name;
        attn_release(context, name, strlen(name) + 1);
        attn_tensor_destroy(context, &list->entries[i].tensor);
    }
    attn_release(context, list->entries, (size_t)list->capacity * sizeof(attn_named_tensor));
    attn_release(context, list, sizeof(*list));
}
