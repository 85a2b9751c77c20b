// A legal attention call and tables of what makes it illegal.
#ifndef ATTN_TESTS_SDPA_REFUSALS_H
#define ATTN_TESTS_SDPA_REFUSALS_H

#include "support/attention.h"

// A legal call with every option that can stand beside the others: (2, 4, 3, 6, 2) queries over
// (2, 2, 5, 6) keys and (2, 2, 5, 7) values. A case changes it to something illegal.
struct call {
    const attn_context *context;
    struct attention a;
    struct attention_results r;
    attn_sdpa_desc *desc; // the one in `a`
    attn_sdpa_forward_args forward;
    attn_sdpa_backward_args backward;
    attn_tensor own[4]; // for the case
    int owned;
};

void call_begin(struct call *c, const attn_context *context, attn_dtype dtype);
void call_end(struct call *c);

// A tensor or an int64 list of the case's own, which lives as long as the call.
attn_tensor *own(struct call *c, attn_dtype dtype, int32_t ndim, const int64_t *shape);
attn_tensor *own_list(struct call *c, int64_t count, const int64_t *values);

#define SHAPE(...) ((int64_t[]){__VA_ARGS__})

enum pass { BOTH, FORWARD, BACKWARD };

struct refusal {
    void (*change)(struct call *c);
    attn_status status;
    const char *text;
    enum pass pass; // which calls see the change
};

// Makes the call for every refusal in turn, with operands of `dtype`, and checks status and text of
// the call and of its workspace query, and that neither wrote anything.
void check_refusals(const struct refusal *refusals, size_t count, attn_dtype dtype);

#endif
