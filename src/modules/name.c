#include "modules/name.h"

#include <string.h>

#include "core/context.h"

char *attn_name_create(const attn_context *context, const char *prefix, const char *name,
                       const char *suffix)
{
    const size_t first = strlen(prefix), second = strlen(name), third = strlen(suffix);
    char *text = attn_allocate(context, first + second + third + 1);
    if (!text) {
        return NULL;
    }
    memcpy(text, prefix, first);
    memcpy(text + first, name, second);
    memcpy(text + first + second, suffix, third + 1);
    return text;
}

void attn_name_release(const attn_context *context, const char *name)
{
    if (name) {
        attn_release(context, (void *)(uintptr_t)name, strlen(name) + 1);
    }
}
