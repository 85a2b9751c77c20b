// A .safetensors file: whatever is accepted can be read, and written again to the same tensors.
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

// Bytes that are written go to memory of the size they came in; more is refused.
typedef struct written {
    unsigned char *bytes;
    size_t size, capacity;
} written;

static bool collect(void *state, const void *bytes, size_t size)
{
    written *w = state;
    if (w->size + size > w->capacity) {
        const size_t capacity = 2 * (w->size + size);
        unsigned char *grown = realloc(w->bytes, capacity);
        if (grown == NULL) {
            return false;
        }
        w->bytes = grown;
        w->capacity = capacity;
    }
    memcpy(w->bytes + w->size, bytes, size);
    w->size += size;
    return true;
}

static void write_again(const attn_safetensors *file)
{
    written w = {0};
    const attn_sink to = {&w, collect};
    const int64_t count = attn_safetensors_count(file);
    const int64_t pairs = attn_safetensors_metadata_count(file);
    attn_text_pair *metadata = calloc((size_t)pairs + 1, sizeof(*metadata));
    for (int64_t i = 0; metadata != NULL && i < pairs; i++) {
        const char *key = attn_safetensors_metadata_key(file, i);
        metadata[i] = (attn_text_pair){key, attn_safetensors_metadata(file, key)};
    }
    const attn_status status = attn_safetensors_write(
        fuzz_context(), &to, attn_safetensors_entry(file, 0), count, metadata, pairs, NULL);
    attn_safetensors *again = NULL;
    if (status != ATTN_OK ||
        attn_safetensors_parse(fuzz_context(), w.bytes, w.size, &again, NULL) != ATTN_OK ||
        attn_safetensors_count(again) != count || attn_safetensors_metadata_count(again) != pairs) {
        abort();
    }
    attn_safetensors_close(again);
    free(metadata);
    free(w.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    attn_safetensors *file = NULL;
    attn_error error;
    if (attn_safetensors_parse(fuzz_context(), data, size, &file, &error) != ATTN_OK) {
        return 0;
    }
    for (int64_t i = 0; i < attn_safetensors_count(file); i++) {
        fuzz_read(attn_safetensors_entry(file, i));
    }
    write_again(file);
    attn_safetensors_close(file);
    return 0;
}
