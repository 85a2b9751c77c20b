// print.h: the shapes that every output line of the program has.
#ifndef CHAPTER03_PRINT_H
#define CHAPTER03_PRINT_H

#include <stdbool.h>

#include <attn/attn.h>

#include "demo.h"

// A text of the table, with its arguments, and a newline.
void say(const demo *d, text_id id, ...);

// The same after an empty line, in bold on a terminal: the start of a step.
void step(const demo *d, text_id id, ...);

// A section's title line: its number, its title, and the file to read beside it.
void heading(const demo *d, const char *number, text_id title, const char *source);

// A statement that the program has just computed: "[ok] ..." or "[FAILED] ...", which is counted.
void claim(demo *d, bool holds, text_id id, ...);

// Name, shape and numbers with four decimals: one line for a vector, a line per row otherwise.
void show(const demo *d, const char *name, attn_var var);

// The same for a matrix with a row per token of the sentence.
void show_tokens(const demo *d, const char *name, attn_var var);

// The same for a tensor, with a label per row (NULL: none).
void show_tensor(const demo *d, const char *name, const attn_tensor *tensor,
                 const char *const *row_labels);

// Only the rows of a tensor of two or more dimensions.
void show_rows(const demo *d, const attn_tensor *tensor, const char *const *row_labels);

// One number.
void show_number(const demo *d, const char *name, double number);

// Only the shape: "queries (2, 6, 2)".
void show_shape(const demo *d, const char *name, attn_var var);

// A matrix of numbers in [0, 1] as a text heat map, one character pair per number.
// Both label lists may be NULL.
void show_heat(const demo *d, const char *name, const attn_tensor *matrix,
               const char *const *row_labels, const char *const *column_labels);

// `text` and enough spaces to fill `columns` on a terminal, where a Chinese character takes two.
void print_padded(const char *text, int columns);

// "(2, 6, 3)" into `buffer`, which is returned.
enum { SHAPE_TEXT = 128 };
const char *shape_text(const attn_tensor *tensor, char buffer[SHAPE_TEXT]);

#endif
