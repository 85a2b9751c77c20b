// core/element.h: single elements and rows of elements, as double.
#ifndef ATTN_CORE_ELEMENT_H
#define ATTN_CORE_ELEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/tensor.h"

bool attn_is_floating(attn_dtype dtype);
bool attn_is_integer(attn_dtype dtype); // bool counts

// True when `value` can be an element: any double for floating dtypes (it is rounded), the exact
// integers of the others, 0 and 1 for bool.
bool attn_element_fits(attn_dtype dtype, double value);

// `element` points to an element of `dtype`; the value to store fits.
double attn_element_load(attn_dtype dtype, const void *element);
void attn_element_store(attn_dtype dtype, void *element, double value);
int64_t attn_element_load_integer(attn_dtype dtype, const void *element);

// `count` elements, `stride` elements apart, to and from an array.
void attn_row_load(attn_dtype dtype, const void *first, int64_t stride, int64_t count,
                   double *values);
void attn_row_store(attn_dtype dtype, void *first, int64_t stride, int64_t count,
                    const double *values);

#endif
