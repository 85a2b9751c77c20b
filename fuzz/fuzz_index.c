// The index of a sharded checkpoint: every file it names stays in its folder.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "io/safetensors_index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *index = NULL;
    attn_error error;
    if (attn_safetensors_parse_index("fuzz", data, size, &index, &error) != ATTN_OK) {
        return 0;
    }
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(index, "weight_map"), name, value)
    {
        if (strchr(json_string_value(value), '/') != NULL) {
            abort();
        }
    }
    json_decref(index);
    return 0;
}
