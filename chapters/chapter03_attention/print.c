// print.c: text from the table, tensors with their names and shapes, heat maps.
#include "print.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define BOLD "\033[1m"
#define GREEN "\033[32m"
#define RED "\033[31m"
#define PLAIN "\033[0m"

static void print_coloured(const demo *d, const char *colour, const char *text)
{
    if (d->colour) {
        printf("%s%s" PLAIN, colour, text);
    } else {
        fputs(text, stdout);
    }
}

void say(const demo *d, text_id id, ...)
{
    va_list arguments;
    va_start(arguments, id);
    vprintf(d->text[id], arguments);
    va_end(arguments);
    putchar('\n');
}

void step(const demo *d, text_id id, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, id);
    vsnprintf(text, sizeof text, d->text[id], arguments);
    va_end(arguments);
    char *rest = strchr(text, '\n');
    if (rest) {
        *rest++ = '\0';
    }
    putchar('\n');
    print_coloured(d, BOLD, text);
    putchar('\n');
    if (rest) {
        puts(rest);
    }
}

void heading(const demo *d, const char *number, text_id title, const char *source)
{
    char line[256];
    snprintf(line, sizeof line, "=== %s  %s ===", number, d->text[title]);
    putchar('\n');
    print_coloured(d, BOLD, line);
    printf("\n    chapters/chapter03_attention/%s\n\n", source);
}

void claim(demo *d, bool holds, text_id id, ...)
{
    va_list arguments;
    va_start(arguments, id);
    fputs("  ", stdout);
    print_coloured(d, holds ? GREEN : RED, d->text[holds ? T_CLAIM_HOLDS : T_CLAIM_BROKEN]);
    putchar(' ');
    vprintf(d->text[id], arguments);
    putchar('\n');
    va_end(arguments);
    d->broken_claims += !holds;
}

// ---- tensors ------------------------------------------------------------------------------------

enum { NUMBER_TEXT = 32, LINE_COLUMNS = 80 };

// Four decimals, right-aligned in `width` columns; whole numbers for a mask of booleans. The
// sign of a NaN differs between machines and means nothing.
static const char *number_text(const attn_tensor *tensor, const int64_t *index, int width,
                               char buffer[NUMBER_TEXT])
{
    const double number = attn_tensor_get(tensor, index);
    if (isnan(number)) {
        snprintf(buffer, NUMBER_TEXT, "%*s", width, "nan");
    } else if (tensor->dtype == ATTN_BOOL) {
        snprintf(buffer, NUMBER_TEXT, "%.0f", number);
    } else {
        snprintf(buffer, NUMBER_TEXT, "%*.4f", width, number);
    }
    return buffer;
}

static void print_row(const attn_tensor *tensor, int64_t *index, int width)
{
    const int32_t last = tensor->ndim - 1;
    putchar('[');
    for (int64_t j = 0; j < tensor->shape[last]; ++j) {
        char number[NUMBER_TEXT];
        index[last] = j;
        printf("%s%s", j > 0 ? ", " : "", number_text(tensor, index, width, number));
    }
    puts("]");
}

// On the line of its name where it fits, else on the next.
static void print_vector(const attn_tensor *vector, int columns_used)
{
    int columns = columns_used + 3; // " [", "]"
    for (int64_t j = 0; j < vector->shape[0]; ++j) {
        char number[NUMBER_TEXT];
        columns += (j > 0 ? 2 : 0) + (int)strlen(number_text(vector, &j, 0, number));
    }
    int64_t index[ATTN_MAX_DIMS] = {0};
    fputs(columns > LINE_COLUMNS ? "\n    " : " ", stdout);
    print_row(vector, index, 0);
}

// "0," for the first row of block 0 of a three-dimensional tensor, spaces for the others.
static void print_block_index(const attn_tensor *tensor, const int64_t *index)
{
    const bool first = index[tensor->ndim - 2] == 0;
    for (int32_t dim = 0; dim < tensor->ndim - 2; ++dim) {
        if (first) {
            printf("%lld%s", (long long)index[dim], dim == tensor->ndim - 3 ? "  " : ",");
        } else {
            fputs(dim == tensor->ndim - 3 ? "   " : "  ", stdout);
        }
    }
}

void show_tensor(const demo *d, const char *name, const attn_tensor *tensor,
                 const char *const *row_labels)
{
    if (tensor->ndim == 0) {
        show_number(d, name, attn_tensor_get(tensor, NULL));
        return;
    }
    char shape[SHAPE_TEXT];
    const int columns = printf("  %s %s =", name, shape_text(tensor, shape));
    if (tensor->ndim == 1) {
        print_vector(tensor, columns);
        return;
    }
    putchar('\n');
    show_rows(d, tensor, row_labels);
}

void show_rows(const demo *d, const attn_tensor *tensor, const char *const *row_labels)
{
    (void)d;
    int64_t index[ATTN_MAX_DIMS] = {0};
    int64_t rows = 1;
    for (int32_t dim = 0; dim < tensor->ndim - 1; ++dim) {
        rows *= tensor->shape[dim];
    }
    for (int64_t row = 0; row < rows; ++row) {
        int64_t rest = row;
        for (int32_t dim = tensor->ndim - 2; dim >= 0; --dim) {
            index[dim] = rest % tensor->shape[dim];
            rest /= tensor->shape[dim];
        }
        fputs("    ", stdout);
        print_block_index(tensor, index);
        if (row_labels) {
            print_padded(row_labels[index[tensor->ndim - 2]], 9);
        }
        print_row(tensor, index, 7);
    }
}

void show(const demo *d, const char *name, attn_var var)
{
    const attn_tensor value = attn_value(var);
    show_tensor(d, name, &value, NULL);
}

void show_tokens(const demo *d, const char *name, attn_var var)
{
    const attn_tensor value = attn_value(var);
    show_tensor(d, name, &value, token_names);
}

void show_number(const demo *d, const char *name, double number)
{
    (void)d;
    printf("  %s = %.4f\n", name, number);
}

void show_shape(const demo *d, const char *name, attn_var var)
{
    (void)d;
    char shape[SHAPE_TEXT];
    const attn_tensor value = attn_value(var);
    printf("  %-28s %s\n", name, shape_text(&value, shape));
}

const char *shape_text(const attn_tensor *tensor, char buffer[SHAPE_TEXT])
{
    size_t used = 0;
    buffer[used++] = '(';
    for (int32_t dim = 0; dim < tensor->ndim; ++dim) {
        const int written = snprintf(buffer + used, SHAPE_TEXT - used, "%s%lld",
                                     dim > 0 ? ", " : "", (long long)tensor->shape[dim]);
        used += (size_t)written < SHAPE_TEXT - used ? (size_t)written : 0;
    }
    snprintf(buffer + used, SHAPE_TEXT - used, ")");
    return buffer;
}

// ---- heat maps ----------------------------------------------------------------------------------

static char heat_character(double value)
{
    static const char ramp[] = " .:-=+*#@";
    const int steps = (int)sizeof ramp - 1;
    const int level = value > 0 ? (int)(value * steps) : 0;
    return ramp[level >= steps ? steps - 1 : level];
}

void show_heat(const demo *d, const char *name, const attn_tensor *matrix,
               const char *const *row_labels, const char *const *column_labels)
{
    char shape[SHAPE_TEXT];
    printf("  %s %s  %s\n", name, shape_text(matrix, shape), d->text[T_HEAT_SCALE]);
    if (column_labels) {
        fputs("             ", stdout);
        for (int64_t j = 0; j < matrix->shape[1]; ++j) {
            print_padded(column_labels[j], j + 1 < matrix->shape[1] ? 8 : 0);
        }
        putchar('\n');
    }
    for (int64_t i = 0; i < matrix->shape[0]; ++i) {
        fputs("    ", stdout);
        if (row_labels) {
            print_padded(row_labels[i], 8);
        } else {
            printf("%3lld ", (long long)i);
        }
        putchar('|');
        for (int64_t j = 0; j < matrix->shape[1]; ++j) {
            const double value = attn_tensor_get(matrix, (int64_t[ATTN_MAX_DIMS]){i, j});
            const char mark = heat_character(value);
            if (column_labels) {
                printf("%c%c %.2f ", mark, mark, value);
            } else {
                printf("%c%c", mark, mark);
            }
        }
        puts("|");
    }
}

// ---- widths -------------------------------------------------------------------------------------

// Columns that a UTF-8 text takes: the characters of three bytes used here (Chinese and full-width
// punctuation) take two, except mathematical signs.
static int display_columns(const char *text)
{
    int columns = 0;
    for (const unsigned char *byte = (const unsigned char *)text; *byte; ++byte) {
        if ((*byte & 0xC0) == 0x80) {
            continue; // a byte inside a character
        }
        columns += *byte >= 0xE3 ? 2 : 1;
    }
    return columns;
}

void print_padded(const char *text, int columns)
{
    fputs(text, stdout);
    for (int used = display_columns(text); used < columns; ++used) {
        putchar(' ');
    }
}
