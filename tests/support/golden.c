#include "golden.h"

#include <stdio.h>

#include "status.h"

attn_safetensors *golden_open(const attn_context *context, const char *name)
{
    char path[1024];
    const int length =
        snprintf(path, sizeof path, "%s/golden/%s.safetensors", ATTN_TEST_DATA, name);
    assert_in_range(length, 1, sizeof path - 1);
    attn_safetensors *file = NULL;
    attn_error error;
    ASSERT_OK(attn_safetensors_open(context, path, &file, &error));
    return file;
}

attn_tensor golden_tensor(const attn_safetensors *file, const char *name)
{
    const attn_named_tensor *entry = attn_safetensors_find(file, name);
    if (!entry) {
        fail_msg("no tensor %s", name);
    }
    return entry->tensor;
}
