// sdpa/intake.h: takes the tensors of a call one by one: is each well formed, of the right shape and
// element type, and do the outputs keep clear of everything else?
#ifndef ATTN_SDPA_INTAKE_H
#define ATTN_SDPA_INTAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attn/status.h"
#include "attn/tensor.h"
#include "sdpa/problem.h"

// Sets of element types: one bit per attn_dtype.
enum {
    ATTN_SDPA_REALS = 1 << ATTN_F32 | 1 << ATTN_F64,
    ATTN_SDPA_NARROW = 1 << ATTN_F32 | 1 << ATTN_F16 | 1 << ATTN_BF16,
    ATTN_SDPA_FLOATS = ATTN_SDPA_NARROW | 1 << ATTN_F64,
    ATTN_SDPA_INTEGERS = 1 << ATTN_I32 | 1 << ATTN_I64,
    ATTN_SDPA_BOOLEANS = 1 << ATTN_BOOL | 1 << ATTN_U8,
    ATTN_SDPA_BITS = 1 << ATTN_U8
};

enum attn_sdpa_role { ATTN_SDPA_INPUT, ATTN_SDPA_OUTPUT };

enum { ATTN_SDPA_ANY = -1 }; // a size that the tensor itself decides

// What a tensor has to be. `like` is the tensor that the fixed sizes come from, for the message.
struct attn_sdpa_expectation {
    const char *name; // the field
    int32_t ndim;
    const char *const *symbols; // ndim of them: "B", "Hq", ...
    const int64_t *shape;       // ndim sizes, ATTN_SDPA_ANY where free
    int dtypes;
    const attn_tensor *like;
    const char *like_name;
};

enum { ATTN_SDPA_MOST_INPUTS = 20, ATTN_SDPA_MOST_OUTPUTS = 8 };

struct attn_sdpa_taken {
    const attn_tensor *tensor;
    const char *name;
    uintptr_t low, high; // the bytes [low, high) that it reaches
    bool row_major;      // found well formed and without gaps by a quick look
};

struct attn_sdpa_intake {
    attn_error *error;
    int input_count, output_count;
    struct attn_sdpa_taken inputs[ATTN_SDPA_MOST_INPUTS];
    struct attn_sdpa_taken outputs[ATTN_SDPA_MOST_OUTPUTS];
};

// Takes a tensor whose rank and fixed sizes must be met. NULL is refused.
attn_status attn_sdpa_take(struct attn_sdpa_intake *intake, const attn_tensor *tensor,
                           enum attn_sdpa_role role,
                           const struct attn_sdpa_expectation *expectation,
                           struct attn_sdpa_view *view);

// The same where NULL means absent: view->data is NULL then.
attn_status attn_sdpa_take_optional(struct attn_sdpa_intake *intake, const attn_tensor *tensor,
                                    enum attn_sdpa_role role,
                                    const struct attn_sdpa_expectation *expectation,
                                    struct attn_sdpa_view *view);

// Takes an input that broadcasts to four fixed sizes: aligned at the last dim, sizes of 1 and
// missing leading dims get stride 0. NULL means absent.
attn_status attn_sdpa_take_broadcast(struct attn_sdpa_intake *intake, const attn_tensor *tensor,
                                     const struct attn_sdpa_expectation *expectation,
                                     struct attn_sdpa_view *view);

// Takes query, key and value and everything that the descriptor says.
attn_status attn_sdpa_take_descriptor(struct attn_sdpa_intake *intake, const attn_sdpa_desc *desc,
                                      const attn_tensor *query, const attn_tensor *key,
                                      const attn_tensor *value, struct attn_sdpa_problem *problem);

// Fails when an output overlaps itself, an input, another output, or the workspace.
attn_status attn_sdpa_check_overlaps(const struct attn_sdpa_intake *intake, const void *workspace,
                                     size_t workspace_size);

#endif
