// modules/dropout.h: dropout on attention weights, by torch's stream or by position.
#ifndef ATTN_MODULES_DROPOUT_H
#define ATTN_MODULES_DROPOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "modules/module.h"

// The attention weights that one call of the engine computes.
typedef struct attn_weights_shape {
    int64_t batch, heads, queries, keys;
} attn_weights_shape;

// True when a forward now would use Philox dropout, and so counts as a call.
bool attn_module_drops_by_position(const attn_module *module);

// Fills the descriptor's dropout for query heads first_head, first_head + 1, ... of the module. From a
// generator, one decision is drawn for each weight in the order (batch, head, query, key), and the
// bits are kept on the tape. False after failing the tape.
bool attn_describe_dropout(const attn_module *module, const attn_module_call *call,
                           int64_t first_head, attn_weights_shape shape, attn_sdpa_desc *desc);

// What dropout multiplies each weight with: 0 or 1 / (1 - p), in row-major order of `shape`.
// `factors` is contiguous float32 or float64.
void attn_dropout_factors(const attn_sdpa_desc *desc, attn_weights_shape shape,
                          const attn_tensor *factors);

#endif
