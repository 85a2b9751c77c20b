#include "text.h"

#include <string.h>

void print_wrapped(FILE *out, const char *text, int at, int indent)
{
    enum { WIDTH = 79 };
    if (at > indent - 2 && indent > 0) {
        fputc('\n', out);
        at = 0;
    }
    while (*text != '\0') {
        if (*text == '\n') {
            fputc('\n', out);
            at = 0;
            text++;
            continue;
        }
        const int word = (int)strcspn(text, " \n");
        if (at > indent && at + 1 + word > WIDTH) {
            fputc('\n', out);
            at = 0;
        }
        if (at < indent || at == 0) {
            fprintf(out, "%*s", indent - at, "");
            at = indent;
        } else if (at > indent) {
            fputc(' ', out);
            at++;
        }
        fwrite(text, 1, (size_t)word, out);
        at += word;
        text += word;
        text += *text == ' ';
    }
    fputc('\n', out);
}

void format_bytes(double bytes, char buffer[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    while (bytes >= 1024 && unit < 4) {
        bytes /= 1024;
        unit++;
    }
    snprintf(buffer, 32, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
}

void format_count(int64_t count, char buffer[32])
{
    char digits[24];
    const int length = snprintf(digits, sizeof(digits), "%lld", (long long)count);
    int used = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0 && digits[i - 1] != '-') {
            buffer[used++] = ',';
        }
        buffer[used++] = digits[i];
    }
    buffer[used] = '\0';
}
