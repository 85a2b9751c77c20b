// A .npy file: whatever is accepted can be read, and comes back the same when it is written.
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

typedef struct written {
    unsigned char bytes[1 << 16];
    size_t size;
} written;

static bool collect(void *state, const void *bytes, size_t size)
{
    written *w = state;
    if (size > sizeof(w->bytes) - w->size) {
        return false;
    }
    memcpy(w->bytes + w->size, bytes, size);
    w->size += size;
    return true;
}

static void write_again(const attn_tensor *tensor)
{
    static written w;
    w.size = 0;
    const attn_sink to = {&w, collect};
    const attn_status status = attn_npy_write(&to, tensor, ATTN_NPY_BFLOAT16, NULL);
    if (status == ATTN_ERR_IO) {
        return;
    }
    attn_npy *again = NULL;
    attn_comparison comparison;
    if (status != ATTN_OK ||
        attn_npy_parse(fuzz_context(), w.bytes, w.size, ATTN_NPY_BFLOAT16, &again, NULL) !=
            ATTN_OK ||
        attn_tensor_compare(attn_npy_tensor(again), tensor, 0, 0, &comparison, NULL) != ATTN_OK ||
        !comparison.equal_bits) {
        abort();
    }
    attn_npy_close(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (uint32_t flags = 0; flags <= ATTN_NPY_BFLOAT16; flags++) {
        attn_npy *file = NULL;
        attn_error error;
        if (attn_npy_parse(fuzz_context(), data, size, flags, &file, &error) == ATTN_OK) {
            fuzz_read(&(attn_named_tensor){"", *attn_npy_tensor(file)});
            write_again(attn_npy_tensor(file));
            attn_npy_close(file);
        }
    }
    return 0;
}
