// The engine's backward pass: one job owns a sequence and a key/value head, walks over the query rows
// of its group and adds to the keys' gradients in ascending order of rows. Where there are fewer
// owners than workers, rows and keys are cut instead: once for the queries' gradients, once for the
// keys' and values', with the same sums in the same order.
#include "sdpa/backward.h"

#include <string.h>

#include "core/context.h"
#include "core/error.h"
#include "sdpa/engine.h"
#include "sdpa/shared.h"
#include "sdpa/strip.h"

enum { PARTS_PER_WORKER = 4, BIAS_ROWS = 2 * ATTN_STRIP_LANES };

// How a pass is cut; bits do not depend on it.
struct backward_grid {
    bool whole; // one job per owner
    int64_t owners;
    int64_t row_parts, rows; // query pass: parts per query head
    int64_t key_parts, keys; // key pass: parts per owner
    int64_t bias_parts, bias_rows;
};

struct backward_call {
    const attn_context *context;
    const struct attn_sdpa_problem *problem;
    struct backward_grid grid;
    char *memory;
    size_t worker_bytes;
    void *deltas; // behind the workers' memory, or NULL
};

static struct backward_grid cut(const attn_context *context,
                                const struct attn_sdpa_problem *problem);
static void run_owner(void *argument, int64_t index, int32_t worker);
static void run_deltas(void *argument, int64_t index, int32_t worker);
static void run_rows(void *argument, int64_t index, int32_t worker);
static void run_keys(void *argument, int64_t index, int32_t worker);
static void run_bias(void *argument, int64_t index, int32_t worker);
static void run_sink(void *argument, int64_t index, int32_t worker);
static void clear_unseen(const struct attn_sdpa_problem *problem);

static size_t bytes_per_worker(const attn_context *context, const struct attn_sdpa_problem *problem)
{
    return problem->stats == ATTN_F32 ? attn_backward_worker_bytes_f32(context, problem)
                                      : attn_backward_worker_bytes_f64(context, problem);
}

// A row's delta, the sum over its keys of weight times gradient, is the dot product of its output and
// the output's gradient. An output that is stored in fewer bits than are computed with would bring its
// rounding along, magnified where gradients cancel: then the deltas are computed first.
static bool needs_deltas(const struct attn_sdpa_problem *problem)
{
    return attn_dtype_size(problem->output.dtype) < attn_dtype_size(problem->stats);
}

static bool deltas_size(const struct attn_sdpa_problem *problem, size_t *bytes)
{
    *bytes = 0;
    size_t rows;
    return !needs_deltas(problem) ||
           !(__builtin_mul_overflow(problem->batch, problem->query_heads, &rows) ||
             __builtin_mul_overflow(rows, problem->queries, &rows) ||
             __builtin_mul_overflow(rows, attn_dtype_size(problem->stats), bytes));
}

attn_status attn_engine_backward_workspace(const attn_context *context,
                                           const struct attn_sdpa_problem *problem, size_t *bytes,
                                           attn_error *error)
{
    const int64_t workers = context->executor.workers;
    size_t deltas;
    if (!deltas_size(problem, &deltas) ||
        __builtin_mul_overflow(bytes_per_worker(context, problem), (size_t)workers, bytes) ||
        __builtin_add_overflow(*bytes, deltas, bytes)) {
        return attn_fail(error, ATTN_ERR_OVERFLOW,
                         "sdpa: the workspace of %lld workers is too large", (long long)workers);
    }
    return ATTN_OK;
}

attn_status attn_engine_backward(const attn_context *context,
                                 const struct attn_sdpa_problem *problem, void *workspace,
                                 size_t size, attn_error *error)
{
    (void)size, (void)error;
    struct backward_call call = {
        .context = context,
        .problem = problem,
        .grid = cut(context, problem),
        .memory = workspace,
        .worker_bytes = bytes_per_worker(context, problem),
    };
    const struct backward_grid *grid = &call.grid;
    clear_unseen(problem);
    size_t deltas;
    if (deltas_size(problem, &deltas) && deltas > 0) {
        call.deltas = call.memory + call.worker_bytes * (size_t)context->executor.workers;
        memset(call.deltas, 0, deltas);
        attn_sdpa_for_each(context, problem, grid->owners * problem->group * grid->row_parts,
                           run_deltas, &call);
    }
    const bool of_keys = problem->grad_key.data || problem->grad_value.data;
    if (grid->whole && (of_keys || problem->grad_query.data)) {
        attn_sdpa_for_each(context, problem, grid->owners, run_owner, &call);
    }
    if (!grid->whole && problem->grad_query.data) {
        attn_sdpa_for_each(context, problem, grid->owners * problem->group * grid->row_parts,
                           run_rows, &call);
    }
    if (!grid->whole && of_keys) {
        attn_sdpa_for_each(context, problem, grid->owners * grid->key_parts, run_keys, &call);
    }
    if (problem->grad_bias.data) {
        const int64_t *shape = problem->grad_bias_shape;
        attn_sdpa_for_each(context, problem, shape[0] * shape[1] * grid->bias_parts, run_bias,
                           &call);
    }
    if (problem->grad_sinks.data) {
        attn_sdpa_for_each(context, problem, problem->query_heads, run_sink, &call);
    }
    return ATTN_OK;
}

// ---- jobs ---------------------------------------------------------------------------------------

static int64_t ceil_divide(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static struct backward_grid cut(const attn_context *context,
                                const struct attn_sdpa_problem *problem)
{
    const int64_t workers = context->executor.workers;
    struct backward_grid grid = {.owners = problem->sequences * problem->key_heads};
    grid.whole = grid.owners >= workers || !attn_sdpa_is_shared(problem);
    const int64_t parts = grid.owners > 0 ? ceil_divide(workers * PARTS_PER_WORKER, grid.owners)
                                          : 1;
    grid.rows = attn_max(ATTN_STRIP_LANES,
                         attn_round_up(ceil_divide(problem->queries, parts), ATTN_STRIP_LANES));
    grid.row_parts = ceil_divide(problem->queries, grid.rows);
    grid.keys = attn_max(ATTN_BACKWARD_KEYS,
                         attn_round_up(ceil_divide(problem->keys, parts), ATTN_BACKWARD_KEYS));
    grid.key_parts = ceil_divide(problem->keys, grid.keys);
    // Rows that share a row of the bias stay together.
    const bool shared_row = problem->grad_bias.data && problem->grad_bias_shape[2] == 1;
    grid.bias_rows = shared_row ? attn_max(1, problem->queries) : BIAS_ROWS;
    grid.bias_parts = ceil_divide(problem->queries, grid.bias_rows);
    if (problem->grad_bias.data && grid.bias_parts == 0) {
        grid.bias_parts = 1; // an empty sum is still a gradient
    }
    return grid;
}

static struct attn_backward_piece owner_piece(const struct attn_sdpa_problem *problem,
                                              int64_t owner)
{
    const int64_t key_head = owner % problem->key_heads;
    const int64_t group = problem->query_heads > 0 ? problem->group : 0;
    return (struct attn_backward_piece){
        .sequence = owner / problem->key_heads,
        .key_head = key_head,
        .head = key_head * group,
        .head_end = (key_head + 1) * group,
        .row_end = problem->queries,
        .key_end = problem->keys,
    };
}

static void run(const struct backward_call *call, struct attn_backward_piece *piece,
                const struct attn_backward_piece *next, int32_t worker)
{
    void *const memory = call->memory + (size_t)worker * call->worker_bytes;
    piece->deltas = call->deltas;
    if (call->problem->stats == ATTN_F32) {
        attn_backward_run_f32(call->context, call->problem, piece, next, memory);
    } else {
        attn_backward_run_f64(call->context, call->problem, piece, next, memory);
    }
}

static void run_owner(void *argument, int64_t index, int32_t worker)
{
    const struct backward_call *call = argument;
    const int64_t owners = call->grid.owners;
    const int64_t owner = attn_sdpa_in_turns(index, owners, 1, call->context->executor.workers);
    struct attn_backward_piece piece = owner_piece(call->problem, owner);
    struct attn_backward_piece next = owner_piece(call->problem, owner + 1);
    piece.of_query = next.of_query = call->problem->grad_query.data != NULL;
    piece.of_keys = next.of_keys = true;
    run(call, &piece, owner + 1 < owners ? &next : NULL, worker);
}

// A head's last rows come first: under a causal mask they take longest.
static struct attn_backward_piece row_piece(const struct backward_call *call, int64_t index)
{
    const struct backward_grid *grid = &call->grid;
    const int64_t part = grid->row_parts - 1 - index % grid->row_parts;
    const int64_t head = index / grid->row_parts % call->problem->group;
    struct attn_backward_piece piece =
        owner_piece(call->problem, index / grid->row_parts / call->problem->group);
    piece.head += head;
    piece.head_end = piece.head + 1;
    piece.row = part * grid->rows;
    piece.row_end = attn_min(piece.row + grid->rows, call->problem->queries);
    return piece;
}

static void run_deltas(void *argument, int64_t index, int32_t worker)
{
    const struct backward_call *call = argument;
    struct attn_backward_piece piece = row_piece(call, index);
    piece.of_deltas = true;
    run(call, &piece, NULL, worker);
}

static void run_rows(void *argument, int64_t index, int32_t worker)
{
    const struct backward_call *call = argument;
    struct attn_backward_piece piece = row_piece(call, index);
    piece.of_query = true;
    run(call, &piece, NULL, worker);
}

static void run_keys(void *argument, int64_t index, int32_t worker)
{
    const struct backward_call *call = argument;
    const struct backward_grid *grid = &call->grid;
    struct attn_backward_piece piece = owner_piece(call->problem, index / grid->key_parts);
    piece.key = index % grid->key_parts * grid->keys;
    piece.key_end = attn_min(piece.key + grid->keys, call->problem->keys);
    piece.of_keys = true;
    run(call, &piece, NULL, worker);
}

static void run_bias(void *argument, int64_t index, int32_t worker)
{
    const struct backward_call *call = argument;
    const struct backward_grid *grid = &call->grid;
    const int64_t *shape = call->problem->grad_bias_shape;
    const int64_t part = index % grid->bias_parts;
    const struct attn_backward_bias_piece piece = {
        .batch = index / grid->bias_parts / shape[1],
        .head = index / grid->bias_parts % shape[1],
        .row = part * grid->bias_rows,
        .row_end = attn_max(1, attn_min((part + 1) * grid->bias_rows, call->problem->queries)),
        .deltas = call->deltas,
    };
    void *const memory = call->memory + (size_t)worker * call->worker_bytes;
    if (call->problem->stats == ATTN_F32) {
        attn_backward_bias_f32(call->context, call->problem, &piece, memory);
    } else {
        attn_backward_bias_f64(call->context, call->problem, &piece, memory);
    }
}

static void run_sink(void *argument, int64_t index, int32_t worker)
{
    const struct backward_call *call = argument;
    (void)worker;
    attn_backward_sink(call->context, call->problem, call->deltas, index);
}

// ---- what nobody sees ---------------------------------------------------------------------------

// Rows [first, last) of all (batch, head) of a gradient become 0.
static void clear_rows(const struct attn_sdpa_view *view, int64_t batch, int64_t heads,
                       int64_t first, int64_t last, int64_t columns)
{
    const int64_t size = (int64_t)attn_dtype_size(view->dtype);
    for (int64_t h = 0; view->data && h < heads; h++) {
        for (int64_t row = first; row < last; row++) {
            char *at = (char *)view->data +
                       (batch * view->stride[0] + h * view->stride[1] + row * view->stride[2]) *
                           size;
            for (int64_t c = 0; c < columns; c++) {
                memset(at + c * view->stride[3] * size, 0, (size_t)size);
            }
        }
    }
}

static void clear_unseen(const struct attn_sdpa_problem *problem)
{
    for (int64_t b = 0; b < problem->batch; b++) {
        const int64_t rows = attn_sdpa_live_rows(problem, b);
        const int64_t keys = attn_sdpa_live_keys(problem, b);
        clear_rows(&problem->grad_query, b, problem->query_heads, rows, problem->queries,
                   problem->head_dim);
        clear_rows(&problem->grad_key, b, problem->key_heads, keys, problem->keys,
                   problem->head_dim);
        clear_rows(&problem->grad_value, b, problem->key_heads, keys, problem->keys,
                   problem->value_dim);
    }
}
