// A plain attention kernel in float32: three loops for each product, sums in their natural order,
// expf and tanhf of libm. The measure that the engine's errors are held against.
#ifndef ATTN_TESTS_ACCURACY_PLAIN_H
#define ATTN_TESTS_ACCURACY_PLAIN_H

#include "support/attention.h"

// Fills the results that the problem asks for, as attention_forward and attention_backward do.
void plain_forward(const struct attention *a, struct attention_results *r);
void plain_backward(const struct attention *a, struct attention_results *r);

#endif
