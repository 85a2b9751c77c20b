// A .npz archive: whatever is accepted can be read. The first byte chooses whether the rest is taken
// as it is, or its check sums are put right first, so that the fuzzer gets behind them.
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "fuzz.h"

static uint32_t load(const uint8_t *bytes, int count)
{
    uint32_t value = 0;
    for (int i = count - 1; i >= 0; i--) {
        value = value << 8 | bytes[i];
    }
    return value;
}

// Writes the right check sum of every stored member that can be found into the directory.
static void mend(uint8_t *bytes, size_t size)
{
    for (size_t at = 0; at + 46 <= size; at++) {
        if (memcmp(bytes + at, "PK\1\2", 4) != 0 || load(bytes + at + 10, 2) != 0) {
            continue;
        }
        const size_t local = load(bytes + at + 42, 4);
        const size_t length = load(bytes + at + 24, 4);
        if (local > size || size - local < 30) {
            continue;
        }
        const size_t start = local + 30 + load(bytes + local + 26, 2) + load(bytes + local + 28, 2);
        if (start > size || size - start < length) {
            continue;
        }
        const uint32_t sum = (uint32_t)crc32(0, bytes + start, (uInt)length);
        for (int i = 0; i < 4; i++) {
            bytes[at + 16 + (size_t)i] = (uint8_t)(sum >> 8 * i);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    uint8_t *bytes = malloc(size);
    if (bytes == NULL) {
        return 0;
    }
    memcpy(bytes, data + 1, size - 1);
    if ((data[0] & 1) != 0) {
        mend(bytes, size - 1);
    }
    attn_npz *file = NULL;
    attn_error error;
    if (attn_npz_parse(fuzz_context(), bytes, size - 1, data[0] >> 1 & 1, &file, &error) ==
        ATTN_OK) {
        for (int64_t i = 0; i < attn_npz_count(file); i++) {
            fuzz_read(attn_npz_entry(file, i));
        }
        attn_npz_close(file);
    }
    free(bytes);
    return 0;
}
