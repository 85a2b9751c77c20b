// Layers from names and shapes: every recognised one of small width makes a module, loads, saves and
// loads again. The input is a list of tensors, each a line "NAME SIZE SIZE ...".
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { MOST_TENSORS = 24, WIDEST = 8, ROOM = WIDEST * WIDEST * 4 };

static float numbers[ROOM];

// Cuts one line into a tensor over `numbers`; false where it is none.
static bool read_line(char *line, attn_named_tensor *named)
{
    int64_t shape[ATTN_MAX_DIMS];
    int32_t ndim = 0;
    int64_t count = 1;
    char *space = strchr(line, ' ');
    named->name = line;
    while (space != NULL && ndim < ATTN_MAX_DIMS) {
        *space = '\0';
        char *end;
        const long size = strtol(space + 1, &end, 10);
        if (size < 0 || size > 4 * WIDEST) {
            return false;
        }
        shape[ndim++] = size;
        count *= size;
        space = *end == ' ' ? end : NULL;
    }
    named->tensor = attn_tensor_wrap_const(numbers, ATTN_F32, ndim, shape);
    return count <= ROOM;
}

// Saves to one layout, which the input's size chooses.
static void round_trip(const attn_layer *layer, const attn_named_tensor *tensors, int64_t count,
                       size_t size)
{
    attn_module *module = NULL;
    attn_error error;
    if (attn_layer_create_module(fuzz_context(), layer, &module, &error) != ATTN_OK) {
        return;
    }
    if (attn_layer_load(module, layer, tensors, count, &error) == ATTN_OK) {
        const attn_layout layout = (attn_layout)(ATTN_LAYOUT_ATTN + size % 4);
        attn_tensor_list *list = NULL;
        attn_layer saved;
        if (attn_layer_save(fuzz_context(), module, layout, "p.", false, &list, &error) ==
                ATTN_OK &&
            (attn_layer_init(&saved, layout, "p.", &error) != ATTN_OK ||
             attn_layer_load(module, &saved, attn_tensor_list_entries(list),
                             attn_tensor_list_count(list), &error) != ATTN_OK)) {
            abort(); // what is saved can be loaded
        }
        attn_tensor_list_destroy(list);
    }
    attn_module_destroy(module);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (text == NULL) {
        return 0;
    }
    memcpy(text, data, size);
    text[size] = '\0';
    attn_named_tensor tensors[MOST_TENSORS];
    int64_t count = 0;
    for (char *line = text; count < MOST_TENSORS && line < text + size;) {
        char *end = line + strcspn(line, "\n");
        *end = '\0';
        count += read_line(line, &tensors[count]);
        line = end + 1;
    }
    attn_layer layers[4];
    int64_t found = 0;
    attn_error error;
    if (attn_layers_find(tensors, count, ATTN_LAYOUT_ANY, layers, 4, &found, &error) != ATTN_OK) {
        abort();
    }
    for (int64_t i = 0; i < found && i < 4; i++) {
        if (!layers[i].knows_heads) {
            attn_layer_set_heads(&layers[i], 1 + (int64_t)(size % 3), &error);
        }
        if (layers[i].config.context_length == 0 || layers[i].config.context_length > WIDEST) {
            layers[i].config.context_length =
                strncmp(layers[i].kind, "self_attention", 14) == 0 ? 0 : WIDEST;
        }
        if (layers[i].config.d_in <= 4 * WIDEST && layers[i].query_width <= 4 * WIDEST) {
            round_trip(&layers[i], tensors, count, size);
        }
    }
    attn_layer_find(tensors, count, ATTN_LAYOUT_ANY, "none.", -1, layers, &error);
    free(text);
    return 0;
}
