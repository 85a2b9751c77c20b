// gemm/product.c: batches, threads, and which operand plays which part.
#include "gemm/gemm.h"

#include "core/context.h"
#include "core/error.h"
#include "core/layout.h"
#include "gemm/block.h"
#include "gemm/packed_weight.h"

enum {
    SERIAL_TERMS = 100000, // products below this many multiply-adds are not worth a second thread
    JOBS_PER_WORKER = 4,
    TALL_ROWS = 256 // from here on a job may pack b for its own rows
};

// How a product is cut: every job is one matrix of the batch, and a part of its rows and columns.
struct plan {
    const struct attn_kernels *kernels;
    attn_dtype dtype;
    struct attn_block block; // of matrix 0, with the operands' roles settled
    int64_t batch;
    int32_t batch_dims;
    int64_t batch_shape[ATTN_MAX_DIMS];
    int64_t a_stride[ATTN_MAX_DIMS], b_stride[ATTN_MAX_DIMS], c_stride[ATTN_MAX_DIMS];
    int64_t row_parts, column_parts;
    int64_t rows_per_part, columns_per_part;
    size_t scratch; // bytes per worker
    char *workspace;
};

static attn_status check(const attn_context *context, const struct attn_product *product,
                         attn_error *error);
// Rows or columns of the part at `index` of those that `whole` is cut into.
static int64_t part_size(int64_t whole, int64_t per_part, int64_t index)
{
    const int64_t left = whole - index * per_part;
    return left < per_part ? left : per_part;
}

// The last part of either side may be smaller than the others, and need more: it is blocked otherwise.
static size_t scratch_of_parts(const struct plan *plan)
{
    size_t most = 0;
    for (int last = 0; last < 4; last++) {
        const int64_t row_part = last % 2 ? plan->row_parts - 1 : 0;
        const int64_t column_part = last / 2 ? plan->column_parts - 1 : 0;
        struct attn_block part = plan->block;
        part.rows = part_size(part.rows, plan->rows_per_part, row_part);
        part.columns = part_size(part.columns, plan->columns_per_part, column_part);
        const size_t bytes = plan->dtype == ATTN_F32 ? attn_block_scratch_f32(plan->kernels, &part)
                                                     : attn_block_scratch_f64(plan->kernels, &part);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static struct plan make_plan(const attn_context *context, const struct attn_product *product);
static void run_part(void *argument, int64_t index, int32_t worker);

size_t attn_product_workspace(const attn_context *context, const struct attn_product *product)
{
    if (check(context, product, NULL) != ATTN_OK) {
        return 0;
    }
    const struct plan plan = make_plan(context, product);
    return plan.scratch * (size_t)context->executor.workers;
}

attn_status attn_product_run(const attn_context *context, const struct attn_product *product,
                             void *workspace, attn_error *error)
{
    const attn_status status = check(context, product, error);
    if (status != ATTN_OK) {
        return status;
    }
    struct plan plan = make_plan(context, product);
    const int64_t jobs = plan.batch * plan.row_parts * plan.column_parts;
    const size_t bytes = plan.scratch * (size_t)context->executor.workers;
    void *const own = workspace ? NULL : attn_allocate(context, bytes);
    if (bytes > 0 && !workspace && !own) {
        return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY,
                         "matmul: no memory for %zu bytes of scratch", bytes);
    }
    plan.workspace = workspace ? workspace : own;
    attn_parallel_for(context, jobs, run_part, &plan);
    attn_release(context, own, bytes);
    return ATTN_OK;
}

// ---- checks ---------------------------------------------------------------------------------------

static attn_status check_packed(const attn_context *context, const struct attn_product *product,
                                attn_error *error)
{
    const struct attn_packed_weight *const packed = product->packed;
    const attn_tensor *const b = product->b;
    if (packed->context != context && packed->context->tier != context->tier) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "matmul: the packed weight was made for another tier (%s, not %s)",
                         attn_tier_name(packed->context->tier), attn_tier_name(context->tier));
    }
    if (b->ndim != 2 || packed->in != b->shape[0] || packed->out != b->shape[1] ||
        packed->dtype != b->dtype) {
        return attn_fail(error, ATTN_ERR_SHAPE,
                         "matmul: the packed weight is [%lld,%lld], b is not its transpose",
                         (long long)packed->out, (long long)packed->in);
    }
    return ATTN_OK;
}

static attn_status check(const attn_context *context, const struct attn_product *product,
                         attn_error *error)
{
    const attn_tensor *const a = product->a;
    const attn_tensor *const b = product->b;
    const attn_tensor *const c = product->c;
    const int32_t n = c->ndim;
    if (c->dtype != ATTN_F32 && c->dtype != ATTN_F64) {
        return attn_fail(error, ATTN_ERR_DTYPE, "matmul: c is %s, expected float32 or float64",
                         attn_dtype_name(c->dtype));
    }
    if (a->dtype != c->dtype || b->dtype != c->dtype) {
        return attn_fail(error, ATTN_ERR_DTYPE, "matmul: dtypes differ: %s times %s into %s",
                         attn_dtype_name(a->dtype), attn_dtype_name(b->dtype),
                         attn_dtype_name(c->dtype));
    }
    bool fits = n >= 2 && a->ndim == n && (b->ndim == n || (product->packed && b->ndim == 2));
    for (int32_t d = 0; fits && d < n - 2; d++) {
        fits = a->shape[d] == c->shape[d] && (product->packed || b->shape[d] == c->shape[d]);
    }
    if (!fits || a->shape[n - 2] != c->shape[n - 2] || a->shape[n - 1] != b->shape[b->ndim - 2] ||
        b->shape[b->ndim - 1] != c->shape[n - 1]) {
        char shapes[3][96];
        attn_tensor_format_shape(a, shapes[0], sizeof shapes[0]);
        attn_tensor_format_shape(b, shapes[1], sizeof shapes[1]);
        attn_tensor_format_shape(c, shapes[2], sizeof shapes[2]);
        return attn_fail(error, ATTN_ERR_SHAPE, "matmul: %s times %s does not give %s", shapes[0],
                         shapes[1], shapes[2]);
    }
    if (product->bias && (product->bias->ndim != 1 || product->bias->shape[0] != c->shape[n - 1] ||
                          product->bias->dtype != c->dtype)) {
        char shape[96];
        attn_tensor_format_shape(product->bias, shape, sizeof shape);
        return attn_fail(error, ATTN_ERR_SHAPE, "matmul: bias is %s %s, expected %s [%lld]",
                         attn_dtype_name(product->bias->dtype), shape, attn_dtype_name(c->dtype),
                         (long long)c->shape[n - 1]);
    }
    if (product->bias && product->accumulate) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "matmul: a bias and accumulate exclude each other");
    }
    return product->packed ? check_packed(context, product, error) : ATTN_OK;
}

// ---- the plan -------------------------------------------------------------------------------------

// c^T = b^T a^T: the same chains, with rows and columns in each other's place.
static struct attn_block swapped(const struct attn_block *block)
{
    return (struct attn_block){
        .rows = block->columns,
        .columns = block->rows,
        .depth = block->depth,
        .a = block->b,
        .a_row = block->b_column,
        .a_depth = block->b_depth,
        .b = block->a,
        .b_depth = block->a_depth,
        .b_column = block->a_row,
        .c = block->c,
        .c_row = block->c_column,
        .c_column = block->c_row,
        .bias = block->bias,
        .bias_row = block->bias_column,
        .bias_column = block->bias_row,
        .accumulate = block->accumulate,
        .cache_bytes = block->cache_bytes,
    };
}

// The tile stores along columns and streams b: c decides where it has a preference; otherwise a few
// rows against a b that would have to be transposed are better taken as the columns.
static bool wants_swap(const struct attn_block *block, int64_t vector_lanes)
{
    if (block->panels) {
        return false;
    }
    if (block->c_column != 1 && block->c_row == 1) {
        return true;
    }
    return block->b_column != 1 && block->b_depth == 1 && block->rows <= 2 * vector_lanes &&
           block->columns > 4 * block->rows;
}

static int64_t ceil_divide(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

// Cuts rows where there are many (each part packs its own b), then columns.
static void cut(struct plan *plan, int32_t workers, int64_t tile_rows, int64_t tile_lanes)
{
    const struct attn_block *const block = &plan->block;
    plan->rows_per_part = block->rows;
    plan->columns_per_part = block->columns;
    const double terms = (double)plan->batch * (double)block->rows * (double)block->columns *
                         (double)block->depth;
    plan->row_parts = block->rows > 0;
    plan->column_parts = block->columns > 0;
    if (workers == 1 || terms < SERIAL_TERMS) {
        return;
    }
    const int64_t wanted =
        ceil_divide((int64_t)workers * JOBS_PER_WORKER, plan->batch > 0 ? plan->batch : 1);
    if (wanted > 1) {
        const int64_t unit = block->panels ? 4 * tile_rows : TALL_ROWS;
        const int64_t most = block->rows / unit;
        const int64_t row_parts = most < 1 ? 1 : (most < wanted ? most : wanted);
        const int64_t column_parts = ceil_divide(wanted, row_parts);
        plan->rows_per_part = ceil_divide(ceil_divide(block->rows, row_parts), tile_rows) *
                              tile_rows;
        plan->columns_per_part =
            ceil_divide(ceil_divide(block->columns, column_parts), tile_lanes) * tile_lanes;
    }
    plan->row_parts = block->rows > 0 ? ceil_divide(block->rows, plan->rows_per_part) : 0;
    plan->column_parts = block->columns > 0 ? ceil_divide(block->columns, plan->columns_per_part)
                                            : 0;
}

static void describe_batch(struct plan *plan, const struct attn_product *product)
{
    plan->batch = 1;
    plan->batch_dims = product->c->ndim - 2;
    for (int32_t d = 0; d < plan->batch_dims; d++) {
        plan->batch_shape[d] = product->c->shape[d];
        plan->a_stride[d] = plan->block.depth > 0 ? product->a->stride[d] : 0;
        plan->b_stride[d] = plan->block.depth > 0 && !product->packed ? product->b->stride[d] : 0;
        plan->c_stride[d] = product->c->stride[d];
        plan->batch *= plan->batch_shape[d];
    }
}

// A linear layer's leading dims are rows like any other where a and c lie row after row.
static void fold_batch_into_rows(struct plan *plan)
{
    struct attn_block *const block = &plan->block;
    while (plan->batch_dims > 0) {
        const int32_t d = plan->batch_dims - 1;
        if (plan->b_stride[d] != 0 || plan->a_stride[d] != block->rows * block->a_row ||
            plan->c_stride[d] != block->rows * block->c_row) {
            return;
        }
        const int64_t size = plan->batch_shape[d];
        if (size > 0) {
            plan->batch /= size;
        }
        block->rows *= size;
        plan->batch_dims = d;
    }
    plan->batch = 1;
}

static struct plan make_plan(const attn_context *context, const struct attn_product *product)
{
    const attn_tensor *const a = product->a;
    const attn_tensor *const b = product->b;
    const attn_tensor *const c = product->c;
    const int32_t n = c->ndim;
    struct plan plan = {
        .kernels = attn_kernels_select(context->tier),
        .dtype = c->dtype,
        .block = {.rows = c->shape[n - 2],
                  .columns = c->shape[n - 1],
                  .depth = a->shape[n - 1],
                  .a = a->data,
                  .a_row = a->stride[n - 2],
                  .a_depth = a->stride[n - 1],
                  .b = b->data,
                  .b_depth = b->stride[b->ndim - 2],
                  .b_column = b->stride[b->ndim - 1],
                  .panels = product->packed ? product->packed->panels : NULL,
                  .c = c->data,
                  .c_row = c->stride[n - 2],
                  .c_column = c->stride[n - 1],
                  .bias = product->bias ? product->bias->data : NULL,
                  .bias_column = product->bias ? product->bias->stride[0] : 0,
                  .accumulate = product->accumulate,
                  .cache_bytes = context->second_level_bytes},
    };
    if (plan.block.depth == 0) { // empty operands may have no memory to point into
        plan.block.a = plan.block.b = c->data;
        plan.block.a_row = plan.block.b_column = 0;
        plan.block.panels = NULL;
    }
    const bool single = c->dtype == ATTN_F32;
    const struct attn_kernels *const kernels = plan.kernels;
    describe_batch(&plan, product);
    fold_batch_into_rows(&plan);
    if (wants_swap(&plan.block, single ? kernels->f32->vector_lanes : kernels->f64->vector_lanes)) {
        plan.block = swapped(&plan.block);
        for (int32_t d = 0; d < plan.batch_dims; d++) {
            const int64_t stride = plan.a_stride[d];
            plan.a_stride[d] = plan.b_stride[d];
            plan.b_stride[d] = stride;
        }
    }
    cut(&plan, context->executor.workers,
        single ? kernels->f32->tile_rows : kernels->f64->tile_rows,
        single ? kernels->f32->tile_lanes : kernels->f64->tile_lanes);

    if (plan.batch > 0 && plan.row_parts > 0 && plan.column_parts > 0) {
        plan.scratch = scratch_of_parts(&plan);
    }
    return plan;
}

// ---- one job --------------------------------------------------------------------------------------

static void *advance(const void *data, int64_t elements, attn_dtype dtype)
{
    return data ? (char *)(uintptr_t)data + elements * (int64_t)attn_dtype_size(dtype) : NULL;
}

static void run_part(void *argument, int64_t index, int32_t worker)
{
    const struct plan *const plan = argument;
    const bool whole = plan->row_parts == 1 && plan->column_parts == 1; // no divisions
    const int64_t column_part = whole ? 0 : index % plan->column_parts;
    const int64_t row_part = whole ? 0 : index / plan->column_parts % plan->row_parts;
    int64_t matrix = whole ? index : index / plan->column_parts / plan->row_parts;
    int64_t a = 0;
    int64_t b = 0;
    int64_t c = 0;
    for (int32_t d = plan->batch_dims - 1; d >= 0 && matrix > 0; d--) {
        const int64_t at = matrix % plan->batch_shape[d];
        matrix /= plan->batch_shape[d];
        a += at * plan->a_stride[d];
        b += at * plan->b_stride[d];
        c += at * plan->c_stride[d];
    }

    struct attn_block block = plan->block;
    const int64_t row = row_part * plan->rows_per_part;
    const int64_t column = column_part * plan->columns_per_part;
    block.rows = part_size(block.rows, plan->rows_per_part, row_part);
    block.columns = part_size(block.columns, plan->columns_per_part, column_part);
    block.a = advance(block.a, a + row * block.a_row, plan->dtype);
    block.b = advance(block.b, b + column * block.b_column, plan->dtype);
    block.panels = advance(block.panels, column * block.depth, plan->dtype);
    block.c = advance(block.c, c + row * block.c_row + column * block.c_column, plan->dtype);
    block.bias =
        advance(block.bias, row * block.bias_row + column * block.bias_column, plan->dtype);
    void *const scratch = plan->workspace ? plan->workspace + (size_t)worker * plan->scratch : NULL;
    if (plan->dtype == ATTN_F32) {
        attn_block_run_f32(plan->kernels, &block, scratch);
    } else {
        attn_block_run_f64(plan->kernels, &block, scratch);
    }
}
