#include "tape/product.h"

#include "tape/loop.h"
#include "tape/rows.h"

// One row of the result needs one row of a, which the loop gives, and the whole of b, whose place
// follows from operand 2, its first element.
struct product {
    int64_t depth;
    int64_t a_stride, b_depth_stride; // bytes
    int64_t b_stride;                 // elements
    attn_row_function multiply_add;
    attn_row_function fill;
};

static void product_row(const attn_row *row, const void *user);

void attn_tape_product(const attn_context *context, const attn_tensor *a, const attn_tensor *b,
                       const attn_tensor *out)
{
    const int32_t last = out->ndim - 1, row = out->ndim - 2;
    const int64_t size = (int64_t)attn_dtype_size(out->dtype);
    const struct product product = {.depth = a->shape[last],
                                    .a_stride = a->stride[last] * size,
                                    .b_depth_stride = b->stride[row] * size,
                                    .b_stride = b->stride[last],
                                    .multiply_add = attn_row_of(out->dtype, ATTN_ROW_MULTIPLY_ADD),
                                    .fill = attn_row_of(out->dtype, ATTN_ROW_FILL)};
    attn_tensor b_start = *b;
    b_start.stride[row] = 0; // every row of the result starts at b's first
    const attn_tensor *const operands[] = {out, a, &b_start};
    attn_loop_rows(context, operands, 3, last, product_row, &product);
}

static void product_row(const attn_row *row, const void *user)
{
    const struct product *const product = user;
    const double zero = 0;
    product->fill(row, &zero);
    attn_row step = *row;
    step.stride[2] = product->b_stride;
    for (int64_t k = 0; k < product->depth; k++) {
        product->multiply_add(&step, NULL);
        step.data[1] = (char *)step.data[1] + product->a_stride;
        step.data[2] = (char *)step.data[2] + product->b_depth_stride;
    }
}
