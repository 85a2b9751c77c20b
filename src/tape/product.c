#include "tape/product.h"

bool attn_tape_product(attn_tape *tape, const char *op, const attn_tensor *a, const attn_tensor *b,
                       const struct attn_packed_weight *packed, const attn_tensor *bias,
                       const attn_tensor *out)
{
    const struct attn_product product = {.a = a, .b = b, .c = out, .bias = bias, .packed = packed};
    const attn_tape_arena_position scratch = attn_tape_arena_tell(&tape->arena);
    const size_t bytes = attn_product_workspace(tape->context, &product);
    void *const workspace = attn_tape_allocate(tape, op, 1, bytes);
    if (!workspace) {
        return false;
    }
    attn_error error;
    if (attn_product_run(tape->context, &product, workspace, &error) != ATTN_OK) {
        attn_tape_pass_on(tape, &error);
        return false;
    }
    attn_tape_arena_rewind(&tape->arena, scratch);
    return true;
}
