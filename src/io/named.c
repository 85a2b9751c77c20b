#include "io/named.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "io/text.h"

enum { NEAREST = 3, LONGEST = 255 };

const attn_named_tensor *attn_named_find(const attn_named_tensor *tensors, int64_t count,
                                         const char *prefix, const char *name)
{
    size_t length = strlen(prefix);
    for (int64_t i = 0; i < count; i++) {
        if (strncmp(tensors[i].name, prefix, length) == 0 &&
            strcmp(tensors[i].name + length, name) == 0) {
            return &tensors[i];
        }
    }
    return NULL;
}

void attn_named_nearest(const attn_named_tensor *tensors, int64_t count, const char *name,
                        char *buffer, size_t size)
{
    // Half of the letters may differ; beyond that a name is no help.
    int64_t limit = (int64_t)(strlen(name) / 2 + 1);
    struct {
        int64_t distance, index;
    } best[NEAREST];
    int kept = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t distance = attn_edit_distance(name, tensors[i].name, limit);
        if (distance >= limit || (kept == NEAREST && distance >= best[kept - 1].distance)) {
            continue;
        }
        int at = kept < NEAREST ? kept++ : kept - 1;
        for (; at > 0 && best[at - 1].distance > distance; at--) {
            best[at] = best[at - 1];
        }
        best[at].distance = distance;
        best[at].index = i;
    }
    size_t used = 0;
    buffer[0] = '\0';
    for (int k = 0; k < kept && used < size; k++) {
        used += (size_t)snprintf(buffer + used, size - used, "%s%s", k == 0 ? "" : ", ",
                                 attn_show_name(tensors[best[k].index].name).text);
    }
}

static int64_t smallest(int64_t a, int64_t b, int64_t c)
{
    int64_t least = a < b ? a : b;
    return least < c ? least : c;
}

// Levenshtein's distance, one row of its table at a time.
int64_t attn_edit_distance(const char *a, const char *b, int64_t limit)
{
    int64_t a_length = (int64_t)strlen(a);
    int64_t b_length = (int64_t)strlen(b);
    int64_t gap = a_length > b_length ? a_length - b_length : b_length - a_length;
    if (gap >= limit || b_length > LONGEST) {
        return limit;
    }
    int64_t row[LONGEST + 1];
    for (int64_t j = 0; j <= b_length; j++) {
        row[j] = j;
    }
    for (int64_t i = 1; i <= a_length; i++) {
        int64_t diagonal = row[0];
        row[0] = i;
        for (int64_t j = 1; j <= b_length; j++) {
            int64_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = smallest(row[j] + 1, row[j - 1] + 1, changed);
        }
    }
    return row[b_length] < limit ? row[b_length] : limit;
}
