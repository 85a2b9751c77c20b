// text.h: text on a terminal.
#ifndef ATTN_TOOL_TEXT_H
#define ATTN_TOOL_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// Prints words with line breaks before column 79. `at` is the column that the output has reached;
// every line begins at `indent` (the first on a new line when `at` is beyond it). '\n' ends a
// paragraph.
void print_wrapped(FILE *out, const char *text, int at, int indent);

// "12.3 MiB".
void format_bytes(double bytes, char buffer[32]);

// "1,234,567".
void format_count(int64_t count, char buffer[32]);

#endif
