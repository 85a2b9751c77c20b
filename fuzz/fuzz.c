#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

const attn_context *fuzz_context(void)
{
    static attn_context *context;
    if (context == NULL && attn_context_create(NULL, &context, NULL) != ATTN_OK) {
        abort();
    }
    return context;
}

static volatile double sink;

void fuzz_read(const attn_named_tensor *named)
{
    const attn_tensor *tensor = &named->tensor;
    attn_error error;
    // What a reader gives out is well formed, or the reader is at fault.
    if (attn_tensor_check(tensor, "fuzz", &error) != ATTN_OK || strlen(named->name) > 1 << 20) {
        abort();
    }
    char text[64];
    attn_tensor_format_layout(tensor, text, sizeof(text));
    int64_t index[ATTN_MAX_DIMS] = {0};
    for (int64_t left = attn_tensor_count(tensor); left > 0; left--) {
        sink = attn_tensor_get(tensor, index);
        for (int32_t d = tensor->ndim - 1; d >= 0 && ++index[d] == tensor->shape[d]; d--) {
            index[d] = 0;
        }
    }
}
