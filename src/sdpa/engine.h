// sdpa/engine.h: where the public entry hands a validated problem to the code that computes it.
//
// A problem that arrives here is complete and legal: nothing is checked again, and after the
// workspace is there nothing can fail. The workspace is aligned to 64 bytes and has at least the
// bytes asked for (it may be NULL where that is 0). Everything that the problem asks for is written:
// also the rows that see nothing, and the zero gradients of keys that nobody sees.
#ifndef ATTN_SDPA_ENGINE_H
#define ATTN_SDPA_ENGINE_H

#include <stddef.h>

#include "attn/context.h"
#include "attn/status.h"
#include "sdpa/problem.h"

// The number of docs/numerics.md: raised whenever an output bit of the engine may change.
enum { ATTN_NUMERICS_VERSION = 1 };

// Errors: OVERFLOW.
attn_status attn_engine_forward_workspace(const attn_context *context,
                                          const struct attn_sdpa_problem *problem, size_t *bytes,
                                          attn_error *error);
attn_status attn_engine_forward(const attn_context *context,
                                const struct attn_sdpa_problem *problem, void *workspace,
                                size_t size, attn_error *error);

attn_status attn_engine_backward_workspace(const attn_context *context,
                                           const struct attn_sdpa_problem *problem, size_t *bytes,
                                           attn_error *error);
attn_status attn_engine_backward(const attn_context *context,
                                 const struct attn_sdpa_problem *problem, void *workspace,
                                 size_t size, attn_error *error);

// The float64 definition behind the same seam.
attn_status attn_reference_forward(const attn_context *context,
                                   const struct attn_sdpa_problem *problem, attn_error *error);
attn_status attn_reference_backward(const attn_context *context,
                                    const struct attn_sdpa_problem *problem, attn_error *error);

#endif
