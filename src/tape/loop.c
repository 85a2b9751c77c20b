#include "tape/loop.h"

#include <stdbool.h>

#include "core/context.h"
#include "tape/rows.h"

enum {
    SERIAL_ELEMENTS = 1 << 15, // below it, waking threads costs more than they save
    JOB_ELEMENTS = 1 << 14
};

// The rows stand at all indices of the outer dims; each is cut into pieces.
struct walk {
    int32_t ndim, operands;
    int64_t shape[ATTN_MAX_DIMS];
    char *data[ATTN_LOOP_OPERANDS];
    int64_t step[ATTN_LOOP_OPERANDS][ATTN_MAX_DIMS]; // bytes per index of an outer dim

    int64_t row_count;                    // elements of a row
    int64_t row_step[ATTN_LOOP_OPERANDS]; // bytes
    int64_t size[ATTN_LOOP_OPERANDS];     // bytes per element
    int64_t piece, pieces;                // elements of a piece, pieces of a row

    int64_t units, units_per_job; // unit: a piece of a row
    attn_row_function function;
    const void *user;
};

static struct walk begin_walk(const attn_tensor *const *operands, int32_t count);
static void merge_dims(struct walk *walk);
static void take_row_dim(struct walk *walk, int32_t dim);
static void run_walk(struct walk *walk, const attn_context *context);

void attn_loop_elements(const attn_context *context, const attn_tensor *const *operands,
                        int32_t count, attn_row_function function, const void *user)
{
    struct walk walk = begin_walk(operands, count);
    walk.function = function;
    walk.user = user;
    merge_dims(&walk);
    take_row_dim(&walk, walk.ndim - 1);
    walk.piece = walk.row_count < JOB_ELEMENTS ? walk.row_count : JOB_ELEMENTS;
    run_walk(&walk, context);
}

void attn_loop_rows(const attn_context *context, const attn_tensor *const *operands, int32_t count,
                    int32_t dim, attn_row_function function, const void *user)
{
    struct walk walk = begin_walk(operands, count);
    walk.function = function;
    walk.user = user;
    take_row_dim(&walk, walk.ndim > 0 ? dim : -1);
    walk.piece = walk.row_count;
    run_walk(&walk, context);
}

static struct walk begin_walk(const attn_tensor *const *operands, int32_t count)
{
    struct walk walk = {.ndim = operands[0]->ndim, .operands = count};
    for (int32_t d = 0; d < walk.ndim; d++) {
        walk.shape[d] = operands[0]->shape[d];
    }
    for (int32_t k = 0; k < count; k++) {
        // An empty tensor may have no memory: then no pointer moves, and nothing is read.
        static const char nothing = 0;
        const bool absent = operands[k]->data == NULL;
        walk.data[k] = absent ? (char *)&nothing : operands[k]->data;
        walk.size[k] = (int64_t)attn_dtype_size(operands[k]->dtype);
        for (int32_t d = 0; d < walk.ndim; d++) {
            walk.step[k][d] = absent ? 0 : operands[k]->stride[d] * walk.size[k];
        }
    }
    return walk;
}

static bool can_merge(const struct walk *walk, int32_t outer, int32_t inner)
{
    for (int32_t k = 0; k < walk->operands; k++) {
        if (walk->step[k][outer] != walk->step[k][inner] * walk->shape[inner]) {
            return false;
        }
    }
    return true;
}

// Drops dims of size 1 and joins neighbours that every operand steps through evenly.
static void merge_dims(struct walk *walk)
{
    int32_t kept = 0;
    for (int32_t d = 0; d < walk->ndim; d++) {
        if (walk->shape[d] == 1) {
            continue;
        }
        const bool merge = kept > 0 && can_merge(walk, kept - 1, d);
        const int32_t to = merge ? kept - 1 : kept++;
        walk->shape[to] = merge ? walk->shape[to] * walk->shape[d] : walk->shape[d];
        for (int32_t k = 0; k < walk->operands; k++) {
            walk->step[k][to] = walk->step[k][d];
        }
    }
    walk->ndim = kept;
}

// Makes `dim` the row and takes it out of the outer dims; -1: rows of one element.
static void take_row_dim(struct walk *walk, int32_t dim)
{
    walk->row_count = dim < 0 ? 1 : walk->shape[dim];
    for (int32_t k = 0; k < walk->operands; k++) {
        walk->row_step[k] = dim < 0 ? 0 : walk->step[k][dim];
    }
    if (dim < 0) {
        return;
    }
    walk->ndim--;
    for (int32_t d = dim; d < walk->ndim; d++) {
        walk->shape[d] = walk->shape[d + 1];
        for (int32_t k = 0; k < walk->operands; k++) {
            walk->step[k][d] = walk->step[k][d + 1];
        }
    }
}

static void run_job(void *argument, int64_t job, int32_t worker);

static void run_walk(struct walk *walk, const attn_context *context)
{
    int64_t rows = 1;
    for (int32_t d = 0; d < walk->ndim; d++) {
        rows *= walk->shape[d];
    }
    if (rows == 0) {
        return;
    }
    walk->pieces = walk->piece > 0 ? (walk->row_count + walk->piece - 1) / walk->piece : 1;
    walk->units = rows * walk->pieces;
    walk->units_per_job = walk->units;
    if (walk->units * walk->piece >= SERIAL_ELEMENTS) {
        walk->units_per_job = (JOB_ELEMENTS + walk->piece - 1) / walk->piece;
    }
    const int64_t jobs = (walk->units + walk->units_per_job - 1) / walk->units_per_job;
    attn_parallel_for(context, jobs, run_job, walk);
}

static void run_row_pieces(const struct walk *walk, char *const *data, int64_t first, int64_t last);

static void run_job(void *argument, int64_t job, int32_t worker)
{
    (void)worker;
    const struct walk *const walk = argument;
    const int64_t begin = job * walk->units_per_job;
    const int64_t end = begin + walk->units_per_job < walk->units ? begin + walk->units_per_job
                                                                  : walk->units;
    int64_t index[ATTN_MAX_DIMS] = {0};
    char *data[ATTN_LOOP_OPERANDS] = {0};
    for (int32_t k = 0; k < walk->operands; k++) {
        data[k] = walk->data[k];
    }
    int64_t rest = begin / walk->pieces;
    for (int32_t d = walk->ndim - 1; d >= 0; d--) {
        index[d] = rest % walk->shape[d];
        rest /= walk->shape[d];
        for (int32_t k = 0; k < walk->operands; k++) {
            data[k] += index[d] * walk->step[k][d];
        }
    }
    for (int64_t unit = begin; unit < end;) {
        const int64_t first = unit % walk->pieces;
        const int64_t last = first + (end - unit) < walk->pieces ? first + (end - unit)
                                                                 : walk->pieces;
        run_row_pieces(walk, data, first, last);
        unit += last - first;
        for (int32_t d = walk->ndim - 1; d >= 0; d--) {
            const bool carry = ++index[d] == walk->shape[d];
            for (int32_t k = 0; k < walk->operands; k++) {
                data[k] += carry ? (1 - walk->shape[d]) * walk->step[k][d] : walk->step[k][d];
            }
            if (!carry) {
                break;
            }
            index[d] = 0;
        }
    }
}

static void run_row_pieces(const struct walk *walk, char *const *data, int64_t first, int64_t last)
{
    for (int64_t p = first; p < last; p++) {
        const int64_t start = p * walk->piece;
        const int64_t rest = walk->row_count - start;
        attn_row row = {.count = rest < walk->piece ? rest : walk->piece};
        for (int32_t k = 0; k < walk->operands; k++) {
            row.data[k] = data[k] + start * walk->row_step[k];
            row.stride[k] = walk->row_step[k] / walk->size[k];
        }
        walk->function(&row, walk->user);
    }
}

void attn_loop_copy(const attn_context *context, const attn_tensor *source,
                    const attn_tensor *target)
{
    const attn_tensor *const operands[] = {target, source};
    attn_loop_elements(context, operands, 2, attn_row_of(target->dtype, ATTN_ROW_COPY), NULL);
}

void attn_loop_fill(const attn_context *context, const attn_tensor *target, double value)
{
    attn_loop_elements(context, &target, 1, attn_row_of(target->dtype, ATTN_ROW_FILL), &value);
}
