// The descriptor's part of a problem: what attention means in this call, with the three operands.
#include <float.h>
#include <math.h>

#include "core/checked.h"
#include "core/error.h"
#include "core/text.h"
#include "sdpa/intake.h"

// One past the last integer that float64, and so a distance from the diagonal, holds exactly.
#define EXACT_LIMIT (INT64_C(1) << 53)

// A stride of 0 makes larger head dimensions legal tensors; times what else is in a worker's memory, these
// do not overflow.
#define MOST_DIM (INT64_C(1) << 32)

static attn_status take_operands(struct attn_sdpa_intake *intake, const attn_tensor *query,
                                 const attn_tensor *key, const attn_tensor *value,
                                 struct attn_sdpa_problem *problem);
static attn_status check_counts(attn_error *error, const attn_tensor *query, const attn_tensor *key,
                                struct attn_sdpa_problem *problem);
static attn_status take_scale(attn_error *error, const attn_sdpa_desc *desc,
                              struct attn_sdpa_problem *problem);
static attn_status take_diagonal(attn_error *error, const attn_sdpa_desc *desc,
                                 struct attn_sdpa_problem *problem);
static attn_status take_lengths(struct attn_sdpa_intake *intake, const attn_sdpa_desc *desc,
                                struct attn_sdpa_problem *problem);
static attn_status take_starts(struct attn_sdpa_intake *intake, const attn_sdpa_desc *desc,
                               struct attn_sdpa_problem *problem);
static attn_status take_score_terms(struct attn_sdpa_intake *intake, const attn_sdpa_desc *desc,
                                    struct attn_sdpa_problem *problem);
static attn_status take_dropout(struct attn_sdpa_intake *intake, const attn_sdpa_desc *desc,
                                struct attn_sdpa_problem *problem);

attn_status attn_sdpa_take_descriptor(struct attn_sdpa_intake *intake, const attn_sdpa_desc *desc,
                                      const attn_tensor *query, const attn_tensor *key,
                                      const attn_tensor *value, struct attn_sdpa_problem *problem)
{
    attn_error *error = intake->error;
    attn_status status;
    if ((status = take_operands(intake, query, key, value, problem)) != ATTN_OK ||
        (status = take_scale(error, desc, problem)) != ATTN_OK ||
        (status = take_diagonal(error, desc, problem)) != ATTN_OK ||
        (status = take_lengths(intake, desc, problem)) != ATTN_OK ||
        (status = take_starts(intake, desc, problem)) != ATTN_OK ||
        (status = take_score_terms(intake, desc, problem)) != ATTN_OK) {
        return status;
    }
    return take_dropout(intake, desc, problem);
}

// query (B, Hq, Tq, D), key (B, Hkv, Tk, D), value (B, Hkv, Tk, Dv)
static attn_status take_operands(struct attn_sdpa_intake *intake, const attn_tensor *query,
                                 const attn_tensor *key, const attn_tensor *value,
                                 struct attn_sdpa_problem *problem)
{
    attn_status status;
    const struct attn_sdpa_expectation query_fits = {
        .name = "query",
        .ndim = 4,
        .symbols = (const char *const[]){"B", "Hq", "Tq", "D"},
        .shape = (const int64_t[]){ATTN_SDPA_ANY, ATTN_SDPA_ANY, ATTN_SDPA_ANY, ATTN_SDPA_ANY},
        .dtypes = ATTN_SDPA_FLOATS,
    };
    status = attn_sdpa_take(intake, query, ATTN_SDPA_INPUT, &query_fits, &problem->query);
    if (status != ATTN_OK) {
        return status;
    }
    const int dtypes = query->dtype == ATTN_F64 ? 1 << ATTN_F64 : ATTN_SDPA_NARROW;
    const struct attn_sdpa_expectation key_fits = {
        .name = "key",
        .ndim = 4,
        .symbols = (const char *const[]){"B", "Hkv", "Tk", "D"},
        .shape = (const int64_t[]){query->shape[0], ATTN_SDPA_ANY, ATTN_SDPA_ANY, query->shape[3]},
        .dtypes = dtypes,
        .like = query,
        .like_name = "query",
    };
    status = attn_sdpa_take(intake, key, ATTN_SDPA_INPUT, &key_fits, &problem->key);
    if (status != ATTN_OK) {
        return status;
    }
    const struct attn_sdpa_expectation value_fits = {
        .name = "value",
        .ndim = 4,
        .symbols = (const char *const[]){"B", "Hkv", "Tk", "Dv"},
        .shape = (const int64_t[]){key->shape[0], key->shape[1], key->shape[2], ATTN_SDPA_ANY},
        .dtypes = dtypes,
        .like = key,
        .like_name = "key",
    };
    status = attn_sdpa_take(intake, value, ATTN_SDPA_INPUT, &value_fits, &problem->value);
    if (status != ATTN_OK) {
        return status;
    }
    problem->batch = query->shape[0];
    problem->query_heads = query->shape[1];
    problem->queries = query->shape[2];
    problem->head_dim = query->shape[3];
    problem->key_heads = key->shape[1];
    problem->keys = key->shape[2];
    problem->value_dim = value->shape[3];
    problem->stats = query->dtype == ATTN_F64 ? ATTN_F64 : ATTN_F32;
    return check_counts(intake->error, query, key, problem);
}

// Do the heads divide into groups, and can the rows and keys of all heads be counted?
static attn_status check_counts(attn_error *error, const attn_tensor *query, const attn_tensor *key,
                                struct attn_sdpa_problem *problem)
{
    if (problem->key_heads == 0 ? problem->query_heads != 0
                                : problem->query_heads % problem->key_heads != 0) {
        return attn_fail(error, ATTN_ERR_SHAPE,
                         "sdpa: query has Hq = %lld heads, expected a multiple of the key's "
                         "Hkv = %lld",
                         (long long)problem->query_heads, (long long)problem->key_heads);
    }
    problem->group = problem->query_heads == 0 ? 1 : problem->query_heads / problem->key_heads;
    // Loops and tasks are counted by rows and keys of all heads.
    int64_t heads, rows, keys;
    if (problem->queries > EXACT_LIMIT || problem->keys > EXACT_LIMIT ||
        !attn_checked_mul(problem->batch,
                          problem->query_heads > problem->key_heads ? problem->query_heads
                                                                    : problem->key_heads,
                          &heads) ||
        !attn_checked_mul(heads, problem->queries, &rows) ||
        !attn_checked_mul(heads, problem->keys, &keys)) {
        return attn_fail(error, ATTN_ERR_OVERFLOW,
                         "sdpa: the rows of query %s or key %s are too many to count",
                         attn_shape_text(query).text, attn_shape_text(key).text);
    }
    if (problem->head_dim > MOST_DIM || problem->value_dim > MOST_DIM) {
        return attn_fail(
            error, ATTN_ERR_OVERFLOW, "sdpa: D = %lld and Dv = %lld, expected at most %lld",
            (long long)problem->head_dim, (long long)problem->value_dim, (long long)MOST_DIM);
    }
    return ATTN_OK;
}

// True when `value` is finite in the type that the scores have.
static bool finite_in(attn_dtype dtype, double value)
{
    return dtype == ATTN_F64 ? isfinite(value) : fabs(value) <= (double)FLT_MAX;
}

static attn_status take_scale(attn_error *error, const attn_sdpa_desc *desc,
                              struct attn_sdpa_problem *problem)
{
    static const double log2_e = 1.4426950408889634;
    const char *precision = attn_dtype_name(problem->stats);
    switch (desc->scale_mode) {
    case ATTN_SCALE_INVERSE_SQRT:
        problem->scale = problem->head_dim == 0 ? 1.0 : 1.0 / sqrt((double)problem->head_dim);
        break;
    case ATTN_SCALE_GIVEN:
        if (!finite_in(problem->stats, desc->scale)) {
            return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                             "sdpa: scale is %g, expected a value that is finite in %s",
                             desc->scale, precision);
        }
        if (!finite_in(problem->stats, desc->scale * log2_e)) { // weights are powers of 2
            return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                             "sdpa: scale is %g, expected a value whose product with log2(e) is "
                             "finite in %s",
                             desc->scale, precision);
        }
        problem->scale = desc->scale;
        break;
    default:
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "sdpa: scale_mode %d is unknown",
                         (int)desc->scale_mode);
    }
    problem->softcap = desc->softcap;
    const bool vanishes = problem->stats == ATTN_F32 && (float)desc->softcap == 0.0F;
    if (!(desc->softcap >= 0.0) || !finite_in(problem->stats, desc->softcap) ||
        (desc->softcap != 0.0 && vanishes)) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "sdpa: softcap is %g, expected 0 (none) or a positive value that is "
                         "finite in %s",
                         desc->softcap, precision);
    }
    return ATTN_OK;
}

static attn_status take_diagonal(attn_error *error, const attn_sdpa_desc *desc,
                                 struct attn_sdpa_problem *problem)
{
    if ((unsigned)desc->diagonal > (unsigned)ATTN_DIAGONAL_OFFSET) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "sdpa: diagonal %d is unknown",
                         (int)desc->diagonal);
    }
    if (desc->window_left < -1 || desc->window_right < -1) {
        const bool left = desc->window_left < -1;
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "sdpa: window_%s is %lld, expected a number of keys or -1 (no limit)",
                         left ? "left" : "right",
                         (long long)(left ? desc->window_left : desc->window_right));
    }
    if (desc->diagonal == ATTN_DIAGONAL_OFFSET &&
        (desc->diagonal_offset > EXACT_LIMIT || desc->diagonal_offset < -EXACT_LIMIT)) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "sdpa: diagonal_offset is %lld, expected -2^53 .. 2^53",
                         (long long)desc->diagonal_offset);
    }
    problem->diagonal = desc->diagonal;
    problem->diagonal_offset = desc->diagonal_offset;
    const int64_t left = desc->window_left, right = desc->causal ? 0 : desc->window_right;
    problem->reach_left = left == -1 || left > ATTN_SDPA_FAR ? ATTN_SDPA_FAR : left;
    problem->reach_right = right == -1 || right > ATTN_SDPA_FAR ? ATTN_SDPA_FAR : right;
    return ATTN_OK;
}

static attn_status take_length_list(struct attn_sdpa_intake *intake, const attn_tensor *lengths,
                                    const char *name, const char *limit_name, int64_t limit,
                                    int64_t count, struct attn_sdpa_view *view)
{
    const struct attn_sdpa_expectation fits = {.name = name,
                                               .ndim = 1,
                                               .symbols = (const char *const[]){"B"},
                                               .shape = (const int64_t[]){count},
                                               .dtypes = ATTN_SDPA_INTEGERS};
    const attn_status status =
        attn_sdpa_take_optional(intake, lengths, ATTN_SDPA_INPUT, &fits, view);
    if (status != ATTN_OK || view->data == NULL) {
        return status;
    }
    for (int64_t n = 0; n < count; n++) {
        const int64_t length = attn_sdpa_integer(view, n);
        if (length < 0 || length > limit) {
            return attn_fail(intake->error, ATTN_ERR_INVALID_ARGUMENT,
                             "sdpa: %s[%lld] is %lld, expected 0 .. %s = %lld", name, (long long)n,
                             (long long)length, limit_name, (long long)limit);
        }
    }
    return ATTN_OK;
}

static attn_status take_lengths(struct attn_sdpa_intake *intake, const attn_sdpa_desc *desc,
                                struct attn_sdpa_problem *problem)
{
    const attn_status status = take_length_list(intake, desc->query_lengths, "query_lengths", "Tq",
                                                problem->queries, problem->batch,
                                                &problem->query_lengths);
    if (status != ATTN_OK) {
        return status;
    }
    return take_length_list(intake, desc->key_lengths, "key_lengths", "Tk", problem->keys,
                            problem->batch, &problem->key_lengths);
}

static attn_status take_start_list(struct attn_sdpa_intake *intake, const attn_tensor *starts,
                                   const char *name, const char *limit_name, int64_t limit,
                                   struct attn_sdpa_view *view)
{
    const struct attn_sdpa_expectation fits = {.name = name,
                                               .ndim = 1,
                                               .symbols = (const char *const[]){"N+1"},
                                               .shape = (const int64_t[]){ATTN_SDPA_ANY},
                                               .dtypes = ATTN_SDPA_INTEGERS};
    const attn_status status = attn_sdpa_take(intake, starts, ATTN_SDPA_INPUT, &fits, view);
    if (status != ATTN_OK) {
        return status;
    }
    const int64_t count = starts->shape[0];
    if (count == 0) {
        return attn_fail(intake->error, ATTN_ERR_SHAPE,
                         "sdpa: %s has shape [0], expected [N+1]: at least the 0 it starts with",
                         name);
    }
    for (int64_t n = 0, before = 0; n < count; n++) {
        const int64_t start = attn_sdpa_integer(view, n);
        if (n == 0 && start != 0) {
            return attn_fail(intake->error, ATTN_ERR_INVALID_ARGUMENT,
                             "sdpa: %s[0] is %lld, expected 0", name, (long long)start);
        }
        if (start < before) {
            return attn_fail(intake->error, ATTN_ERR_INVALID_ARGUMENT,
                             "sdpa: %s[%lld] is %lld, below %s[%lld] = %lld", name, (long long)n,
                             (long long)start, name, (long long)(n - 1), (long long)before);
        }
        if (start > limit) {
            return attn_fail(intake->error, ATTN_ERR_INVALID_ARGUMENT,
                             "sdpa: %s[%lld] is %lld, beyond %s = %lld", name, (long long)n,
                             (long long)start, limit_name, (long long)limit);
        }
        before = start;
    }
    return ATTN_OK;
}

static attn_status take_starts(struct attn_sdpa_intake *intake, const attn_sdpa_desc *desc,
                               struct attn_sdpa_problem *problem)
{
    attn_error *error = intake->error;
    problem->packed = desc->query_starts != NULL || desc->key_starts != NULL;
    problem->sequences = problem->batch;
    if (!problem->packed) {
        problem->query_starts = problem->key_starts = ATTN_SDPA_ABSENT;
        return ATTN_OK;
    }
    if (desc->query_starts == NULL || desc->key_starts == NULL) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "sdpa: %s is given without %s; packed sequences need both",
                         desc->query_starts ? "query_starts" : "key_starts",
                         desc->query_starts ? "key_starts" : "query_starts");
    }
    if (desc->query_lengths != NULL || desc->key_lengths != NULL) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "sdpa: query_starts and key_starts exclude %s",
                         desc->query_lengths ? "query_lengths" : "key_lengths");
    }
    if (problem->batch != 1) {
        return attn_fail(error, ATTN_ERR_SHAPE,
                         "sdpa: packed sequences need a batch of 1, but query has B = %lld",
                         (long long)problem->batch);
    }
    attn_status status = take_start_list(intake, desc->query_starts, "query_starts", "Tq",
                                         problem->queries, &problem->query_starts);
    if (status != ATTN_OK) {
        return status;
    }
    status = take_start_list(intake, desc->key_starts, "key_starts", "Tk", problem->keys,
                             &problem->key_starts);
    if (status != ATTN_OK) {
        return status;
    }
    if (desc->query_starts->shape[0] != desc->key_starts->shape[0]) {
        return attn_fail(
            error, ATTN_ERR_SHAPE, "sdpa: key_starts has shape %s, expected %s as query_starts",
            attn_shape_text(desc->key_starts).text, attn_shape_text(desc->query_starts).text);
    }
    problem->sequences = desc->query_starts->shape[0] - 1;
    return ATTN_OK;
}

static attn_status take_score_terms(struct attn_sdpa_intake *intake, const attn_sdpa_desc *desc,
                                    struct attn_sdpa_problem *problem)
{
    struct attn_sdpa_expectation fits = {
        .name = "keep",
        .ndim = 4,
        .symbols = (const char *const[]){"B", "Hq", "Tq", "Tk"},
        .shape = (const int64_t[]){problem->batch, problem->query_heads, problem->queries,
                                   problem->keys},
        .dtypes = ATTN_SDPA_BOOLEANS,
    };
    attn_status status = attn_sdpa_take_broadcast(intake, desc->keep, &fits, &problem->keep);
    if (status != ATTN_OK) {
        return status;
    }
    fits.name = "bias";
    fits.dtypes = ATTN_SDPA_REALS;
    status = attn_sdpa_take_broadcast(intake, desc->bias, &fits, &problem->bias);
    if (status != ATTN_OK) {
        return status;
    }
    struct attn_sdpa_expectation per_head = {
        .name = "alibi_slopes",
        .ndim = 1,
        .symbols = (const char *const[]){"Hq"},
        .shape = (const int64_t[]){problem->query_heads},
        .dtypes = ATTN_SDPA_REALS,
    };
    status = attn_sdpa_take_optional(intake, desc->alibi_slopes, ATTN_SDPA_INPUT, &per_head,
                                     &problem->alibi_slopes);
    if (status != ATTN_OK) {
        return status;
    }
    per_head.name = "sinks";
    return attn_sdpa_take_optional(intake, desc->sinks, ATTN_SDPA_INPUT, &per_head,
                                   &problem->sinks);
}

static attn_status take_philox(attn_error *error, const attn_sdpa_desc *desc,
                               struct attn_sdpa_problem *problem);

static attn_status take_dropout(struct attn_sdpa_intake *intake, const attn_sdpa_desc *desc,
                                struct attn_sdpa_problem *problem)
{
    attn_error *error = intake->error;
    problem->dropout = ATTN_DROPOUT_NONE;
    problem->dropout_scale = 1.0;
    problem->dropout_keep = ATTN_SDPA_ABSENT;
    if (!(desc->dropout_p >= 0.0 && desc->dropout_p < 1.0)) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "sdpa: dropout_p is %g, expected 0 <= dropout_p < 1", desc->dropout_p);
    }
    attn_status status = ATTN_OK;
    switch (desc->dropout) {
    case ATTN_DROPOUT_NONE: return ATTN_OK;
    case ATTN_DROPOUT_PHILOX: status = take_philox(error, desc, problem); break;
    case ATTN_DROPOUT_KEEP: {
        const struct attn_sdpa_expectation fits = {
            .name = "dropout_keep",
            .ndim = 4,
            .symbols = (const char *const[]){"B", "Hq", "Tq", "ceil(Tk/8)"},
            .shape = (const int64_t[]){problem->batch, problem->query_heads, problem->queries,
                                       problem->keys / 8 + (problem->keys % 8 != 0)},
            .dtypes = ATTN_SDPA_BITS,
        };
        if (desc->dropout_keep == NULL) {
            return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                             "sdpa: dropout is KEEP but dropout_keep is NULL");
        }
        status =
            attn_sdpa_take_broadcast(intake, desc->dropout_keep, &fits, &problem->dropout_keep);
        break;
    }
    default:
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "sdpa: dropout %d is unknown",
                         (int)desc->dropout);
    }
    if (status == ATTN_OK && desc->dropout_p > 0.0) {
        problem->dropout = desc->dropout;
        problem->dropout_scale = 1.0 / (1.0 - desc->dropout_p);
    }
    return status;
}

static attn_status take_philox(attn_error *error, const attn_sdpa_desc *desc,
                               struct attn_sdpa_problem *problem)
{
    const struct {
        const char *name;
        int64_t base, count;
    } numbered[] = {{"dropout_batch", desc->dropout_batch, problem->sequences},
                    {"dropout_head", desc->dropout_head, problem->query_heads},
                    {"dropout_row", desc->dropout_row, problem->queries}};
    for (size_t n = 0; n < sizeof(numbered) / sizeof(numbered[0]); n++) {
        if (numbered[n].base < 0 || numbered[n].base > INT64_MAX - numbered[n].count) {
            return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                             "sdpa: %s is %lld, expected 0 .. 2^63 - 1 - %lld", numbered[n].name,
                             (long long)numbered[n].base, (long long)numbered[n].count);
        }
    }
    problem->dropout_threshold = attn_philox_threshold(desc->dropout_p);
    problem->dropout_address = (attn_philox_address){.seed = desc->dropout_seed,
                                                     .stream = desc->dropout_stream,
                                                     .call = desc->dropout_call,
                                                     .batch = desc->dropout_batch,
                                                     .head = desc->dropout_head};
    problem->dropout_row = desc->dropout_row;
    return ATTN_OK;
}
