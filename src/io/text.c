#include "io/text.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static void copy_shown(attn_shown *shown, const unsigned char *bytes, size_t size, bool utf8);

attn_shown attn_show_name(const char *name)
{
    attn_shown shown;
    copy_shown(&shown, (const unsigned char *)name, strlen(name), true);
    return shown;
}

attn_shown attn_show_bytes(const void *bytes, size_t size)
{
    attn_shown shown;
    copy_shown(&shown, bytes, size, false);
    return shown;
}

static void copy_shown(attn_shown *shown, const unsigned char *bytes, size_t size, bool utf8)
{
    static const char dots[] = "...";
    bool cut = size >= ATTN_SHOWN_SIZE;
    size_t length = cut ? ATTN_SHOWN_SIZE - sizeof(dots) : size;
    if (cut && utf8) {
        while (length > 0 && (bytes[length] & 0xC0) == 0x80) {
            length--;
        }
    }
    for (size_t i = 0; i < length; i++) {
        bool printable = bytes[i] >= 0x20 && bytes[i] != 0x7F && (utf8 || bytes[i] < 0x7F);
        shown->text[i] = printable ? (char)bytes[i] : '?';
    }
    shown->text[length] = '\0';
    if (cut) {
        memcpy(shown->text + length, dots, sizeof(dots));
    }
}

attn_shown attn_show_shape(int32_t ndim, const int64_t *shape)
{
    attn_shown shown = {"["};
    size_t length = 1;
    for (int32_t d = 0; d < ndim; d++) {
        int written = snprintf(shown.text + length, sizeof(shown.text) - length, "%s%lld",
                               d == 0 ? "" : ", ", (long long)shape[d]);
        // Room is kept for the bracket; eight sizes of 19 digits do not fit and are cut.
        if (written < 0 || length + (size_t)written + 2 > sizeof(shown.text)) {
            break;
        }
        length += (size_t)written;
    }
    shown.text[length] = ']';
    shown.text[length + 1] = '\0';
    return shown;
}
