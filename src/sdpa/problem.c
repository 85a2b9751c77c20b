#include "sdpa/problem.h"

#include "core/error.h"
#include "core/text.h"
#include "sdpa/intake.h"

static attn_status take_forward(struct attn_sdpa_intake *intake, const attn_sdpa_forward_args *args,
                                enum attn_sdpa_output_rule rule, struct attn_sdpa_problem *problem);
static attn_status take_backward(struct attn_sdpa_intake *intake, const attn_sdpa_desc *desc,
                                 const attn_sdpa_backward_args *args,
                                 enum attn_sdpa_output_rule rule,
                                 struct attn_sdpa_problem *problem);
static attn_status take_weights(struct attn_sdpa_intake *intake, const attn_sdpa_forward_args *args,
                                int stats, struct attn_sdpa_problem *problem);
static attn_status take_indices(struct attn_sdpa_intake *intake, const attn_tensor *indices,
                                const char *name, const char *symbol, const char *limit_name,
                                int64_t limit, struct attn_sdpa_view *view);
static attn_status take_saved(struct attn_sdpa_intake *intake, const attn_sdpa_backward_args *args,
                              enum attn_sdpa_output_rule rule, struct attn_sdpa_problem *problem);
static attn_status take_grad_bias(struct attn_sdpa_intake *intake, const attn_tensor *bias,
                                  const attn_tensor *grad_bias, enum attn_sdpa_output_rule rule,
                                  struct attn_sdpa_problem *problem);
static attn_status check_struct(attn_error *error, const char *name, bool present, size_t size,
                                size_t expected);
static attn_status check_reserved(attn_error *error, const char *name, const uint64_t *reserved);

attn_status attn_sdpa_problem_of_forward(const attn_sdpa_desc *desc,
                                         const attn_sdpa_forward_args *args,
                                         enum attn_sdpa_output_rule rule,
                                         struct attn_sdpa_problem *problem, attn_error *error)
{
    attn_status status;
    if ((status = check_struct(error, "attn_sdpa_desc", desc != NULL, desc ? desc->struct_size : 0,
                               sizeof(*desc))) != ATTN_OK ||
        (status = check_reserved(error, "attn_sdpa_desc", desc->reserved)) != ATTN_OK ||
        (status = check_struct(error, "attn_sdpa_forward_args", args != NULL,
                               args ? args->struct_size : 0, sizeof(*args))) != ATTN_OK ||
        (status = check_reserved(error, "attn_sdpa_forward_args", args->reserved)) != ATTN_OK) {
        return status;
    }
    struct attn_sdpa_intake intake; // its lists are filled up to their counts only
    intake.error = error;
    intake.input_count = intake.output_count = 0;
    if ((status = attn_sdpa_take_descriptor(&intake, desc, args->query, args->key, args->value,
                                            problem)) != ATTN_OK ||
        (status = take_forward(&intake, args, rule, problem)) != ATTN_OK) {
        return status;
    }
    return attn_sdpa_check_overlaps(&intake, args->workspace, args->workspace_size);
}

attn_status attn_sdpa_problem_of_backward(const attn_sdpa_desc *desc,
                                          const attn_sdpa_backward_args *args,
                                          enum attn_sdpa_output_rule rule,
                                          struct attn_sdpa_problem *problem, attn_error *error)
{
    attn_status status;
    if ((status = check_struct(error, "attn_sdpa_desc", desc != NULL, desc ? desc->struct_size : 0,
                               sizeof(*desc))) != ATTN_OK ||
        (status = check_reserved(error, "attn_sdpa_desc", desc->reserved)) != ATTN_OK ||
        (status = check_struct(error, "attn_sdpa_backward_args", args != NULL,
                               args ? args->struct_size : 0, sizeof(*args))) != ATTN_OK ||
        (status = check_reserved(error, "attn_sdpa_backward_args", args->reserved)) != ATTN_OK) {
        return status;
    }
    struct attn_sdpa_intake intake; // its lists are filled up to their counts only
    intake.error = error;
    intake.input_count = intake.output_count = 0;
    if ((status = attn_sdpa_take_descriptor(&intake, desc, args->query, args->key, args->value,
                                            problem)) != ATTN_OK ||
        (status = take_backward(&intake, desc, args, rule, problem)) != ATTN_OK) {
        return status;
    }
    return attn_sdpa_check_overlaps(&intake, args->workspace, args->workspace_size);
}

static attn_status check_struct(attn_error *error, const char *name, bool present, size_t size,
                                size_t expected)
{
    if (!present) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "sdpa: %s is NULL", name);
    }
    if (size != expected) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "sdpa: %s.struct_size is %zu, expected %zu; fill it with %s_init", name,
                         size, expected, name);
    }
    return ATTN_OK;
}

static attn_status check_reserved(attn_error *error, const char *name, const uint64_t *reserved)
{
    for (int n = 0; n < 8; n++) {
        if (reserved[n] != 0) {
            return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                             "sdpa: %s.reserved[%d] is %llu, expected 0", name, n,
                             (unsigned long long)reserved[n]);
        }
    }
    return ATTN_OK;
}

// ---- the arguments ------------------------------------------------------------------------------

static const char *const row_symbols[] = {"B", "Hq", "Tq", "Dv"};
static const char *const pair_symbols[] = {"B", "Hq", "Tq", "Tk"};

// The element types that an output may have, where the header names `dtypes`.
static int output_dtypes(enum attn_sdpa_output_rule rule, int dtypes)
{
    return rule == ATTN_SDPA_DTYPES_OR_FLOAT64 ? dtypes | 1 << ATTN_F64 : dtypes;
}

// output (B, Hq, Tq, Dv), row_max, row_sum, lse (B, Hq, Tq), weights (B, Nh, Nr, Tk), key_sums
// (B, Hq, Tk)
static attn_status take_forward(struct attn_sdpa_intake *intake, const attn_sdpa_forward_args *args,
                                enum attn_sdpa_output_rule rule, struct attn_sdpa_problem *problem)
{
    attn_status status;
    const int stats = output_dtypes(rule, 1 << problem->stats);
    const int64_t rows[] = {problem->batch, problem->query_heads, problem->queries,
                            problem->value_dim};
    struct attn_sdpa_expectation fits = {
        .name = "output",
        .ndim = 4,
        .symbols = row_symbols,
        .shape = rows,
        .dtypes =
            output_dtypes(rule, problem->stats == ATTN_F64 ? 1 << ATTN_F64 : ATTN_SDPA_NARROW),
        .like = args->query,
        .like_name = "query",
    };
    status =
        attn_sdpa_take_optional(intake, args->output, ATTN_SDPA_OUTPUT, &fits, &problem->output);
    if (status != ATTN_OK) {
        return status;
    }
    const struct {
        const char *name;
        const attn_tensor *tensor;
        struct attn_sdpa_view *view;
    } statistics[] = {{"row_max", args->row_max, &problem->row_max},
                      {"row_sum", args->row_sum, &problem->row_sum},
                      {"lse", args->lse, &problem->lse}};
    fits.ndim = 3;
    fits.dtypes = stats;
    for (int n = 0; n < 3; n++) {
        fits.name = statistics[n].name;
        status = attn_sdpa_take_optional(intake, statistics[n].tensor, ATTN_SDPA_OUTPUT, &fits,
                                         statistics[n].view);
        if (status != ATTN_OK) {
            return status;
        }
    }
    fits.name = "key_sums";
    fits.symbols = (const char *const[]){"B", "Hq", "Tk"};
    fits.shape = (const int64_t[]){problem->batch, problem->query_heads, problem->keys};
    status = attn_sdpa_take_optional(intake, args->key_sums, ATTN_SDPA_OUTPUT, &fits,
                                     &problem->key_sums);
    if (status != ATTN_OK) {
        return status;
    }
    return take_weights(intake, args, stats, problem);
}

static attn_status take_weights(struct attn_sdpa_intake *intake, const attn_sdpa_forward_args *args,
                                int stats, struct attn_sdpa_problem *problem)
{
    problem->weights = problem->weight_heads = problem->weight_rows = ATTN_SDPA_ABSENT;
    problem->weight_head_count = problem->weight_row_count = 0;
    problem->weights_dropped = args->weights_dropped;
    if (args->weights == NULL) {
        if (args->weight_heads == NULL && args->weight_rows == NULL) {
            return ATTN_OK;
        }
        return attn_fail(intake->error, ATTN_ERR_INVALID_ARGUMENT,
                         "sdpa: %s is given, but weights is NULL",
                         args->weight_heads ? "weight_heads" : "weight_rows");
    }
    attn_status status = take_indices(intake, args->weight_heads, "weight_heads", "Nh", "Hq",
                                      problem->query_heads, &problem->weight_heads);
    if (status != ATTN_OK) {
        return status;
    }
    status = take_indices(intake, args->weight_rows, "weight_rows", "Nr", "Tq", problem->queries,
                          &problem->weight_rows);
    if (status != ATTN_OK) {
        return status;
    }
    problem->weight_head_count = args->weight_heads ? args->weight_heads->shape[0]
                                                    : problem->query_heads;
    problem->weight_row_count = args->weight_rows ? args->weight_rows->shape[0] : problem->queries;
    const struct attn_sdpa_expectation fits = {
        .name = "weights",
        .ndim = 4,
        .symbols = (const char *const[]){"B", "Nh", "Nr", "Tk"},
        .shape = (const int64_t[]){problem->batch, problem->weight_head_count,
                                   problem->weight_row_count, problem->keys},
        .dtypes = stats,
        .like = args->query,
        .like_name = "query",
    };
    return attn_sdpa_take(intake, args->weights, ATTN_SDPA_OUTPUT, &fits, &problem->weights);
}

static attn_status take_indices(struct attn_sdpa_intake *intake, const attn_tensor *indices,
                                const char *name, const char *symbol, const char *limit_name,
                                int64_t limit, struct attn_sdpa_view *view)
{
    const struct attn_sdpa_expectation fits = {
        .name = name,
        .ndim = 1,
        .symbols = &symbol,
        .shape = (const int64_t[]){ATTN_SDPA_ANY},
        .dtypes = ATTN_SDPA_INTEGERS,
    };
    const attn_status status =
        attn_sdpa_take_optional(intake, indices, ATTN_SDPA_INPUT, &fits, view);
    for (int64_t n = 0; status == ATTN_OK && indices != NULL && n < indices->shape[0]; n++) {
        const int64_t index = attn_sdpa_integer(view, n);
        if (index < 0 || index >= limit) {
            return attn_fail(intake->error, ATTN_ERR_INVALID_ARGUMENT,
                             "sdpa: %s[%lld] is %lld, expected an index below %s = %lld", name,
                             (long long)n, (long long)index, limit_name, (long long)limit);
        }
    }
    return status;
}

static attn_status take_backward(struct attn_sdpa_intake *intake, const attn_sdpa_desc *desc,
                                 const attn_sdpa_backward_args *args,
                                 enum attn_sdpa_output_rule rule, struct attn_sdpa_problem *problem)
{
    attn_status status = take_saved(intake, args, rule, problem);
    if (status != ATTN_OK) {
        return status;
    }
    const struct {
        const char *name;
        const attn_tensor *tensor, *of;
        const char *of_name;
        struct attn_sdpa_view *view;
    } gradients[] = {
        {"grad_query", args->grad_query, args->query, "query", &problem->grad_query},
        {"grad_key", args->grad_key, args->key, "key", &problem->grad_key},
        {"grad_value", args->grad_value, args->value, "value", &problem->grad_value},
        {"grad_sinks", args->grad_sinks, desc->sinks, "sinks", &problem->grad_sinks},
    };
    static const char *const symbols[][4] = {
        {"B", "Hq", "Tq", "D"}, {"B", "Hkv", "Tk", "D"}, {"B", "Hkv", "Tk", "Dv"}, {"Hq"}};
    for (int n = 0; n < 4; n++) {
        if (gradients[n].tensor != NULL && gradients[n].of == NULL) {
            return attn_fail(intake->error, ATTN_ERR_INVALID_ARGUMENT,
                             "sdpa: %s is given, but %s is NULL", gradients[n].name,
                             gradients[n].of_name);
        }
        if (gradients[n].tensor == NULL) {
            *gradients[n].view = ATTN_SDPA_ABSENT;
            continue;
        }
        const struct attn_sdpa_expectation fits = {
            .name = gradients[n].name,
            .ndim = gradients[n].of->ndim,
            .symbols = symbols[n],
            .shape = gradients[n].of->shape,
            .dtypes = output_dtypes(rule, 1 << gradients[n].of->dtype | 1 << problem->stats),
            .like = gradients[n].of,
            .like_name = gradients[n].of_name,
        };
        status =
            attn_sdpa_take(intake, gradients[n].tensor, ATTN_SDPA_OUTPUT, &fits, gradients[n].view);
        if (status != ATTN_OK) {
            return status;
        }
    }
    return take_grad_bias(intake, desc->bias, args->grad_bias, rule, problem);
}

// What the forward left and what comes from above: output, row_max, row_sum, grad_output, grad_lse.
// The reference makes its own of the first three.
static attn_status take_saved(struct attn_sdpa_intake *intake, const attn_sdpa_backward_args *args,
                              enum attn_sdpa_output_rule rule, struct attn_sdpa_problem *problem)
{
    problem->lse = problem->weights = problem->key_sums = ATTN_SDPA_ABSENT;
    problem->weight_heads = problem->weight_rows = ATTN_SDPA_ABSENT;
    problem->weight_head_count = problem->weight_row_count = 0;
    problem->weights_dropped = false;
    const bool own_rows = rule == ATTN_SDPA_DTYPES_OR_FLOAT64;
    const int floats = problem->stats == ATTN_F64 ? 1 << ATTN_F64 : ATTN_SDPA_NARROW;
    const struct {
        const char *name;
        const attn_tensor *tensor;
        int32_t ndim;
        int dtypes;
        bool optional;
        struct attn_sdpa_view *view;
    } inputs[] = {
        {"output", args->output, 4, floats, own_rows, &problem->output},
        {"row_max", args->row_max, 3, 1 << problem->stats, own_rows, &problem->row_max},
        {"row_sum", args->row_sum, 3, 1 << problem->stats, own_rows, &problem->row_sum},
        {"grad_output", args->grad_output, 4, floats, false, &problem->grad_output},
        {"grad_lse", args->grad_lse, 3, 1 << problem->stats, true, &problem->grad_lse},
    };
    const int64_t rows[] = {problem->batch, problem->query_heads, problem->queries,
                            problem->value_dim};
    for (size_t n = 0; n < sizeof(inputs) / sizeof(inputs[0]); n++) {
        const struct attn_sdpa_expectation fits = {
            .name = inputs[n].name,
            .ndim = inputs[n].ndim,
            .symbols = row_symbols,
            .shape = rows,
            .dtypes = output_dtypes(rule, inputs[n].dtypes),
            .like = args->query,
            .like_name = "query",
        };
        const attn_status status =
            inputs[n].optional
                ? attn_sdpa_take_optional(intake, inputs[n].tensor, ATTN_SDPA_INPUT, &fits,
                                          inputs[n].view)
                : attn_sdpa_take(intake, inputs[n].tensor, ATTN_SDPA_INPUT, &fits, inputs[n].view);
        if (status != ATTN_OK) {
            return status;
        }
    }
    return ATTN_OK;
}

// grad_bias has the bias's own dims, with size 1 where the bias is broadcast.
static attn_status take_grad_bias(struct attn_sdpa_intake *intake, const attn_tensor *bias,
                                  const attn_tensor *grad_bias, enum attn_sdpa_output_rule rule,
                                  struct attn_sdpa_problem *problem)
{
    problem->grad_bias = ATTN_SDPA_ABSENT;
    if (grad_bias == NULL) {
        return ATTN_OK;
    }
    if (bias == NULL) {
        return attn_fail(intake->error, ATTN_ERR_INVALID_ARGUMENT,
                         "sdpa: grad_bias is given, but bias is NULL");
    }
    const char *symbols[4];
    const bool empty = attn_tensor_count(bias) == 0;
    int64_t shape[4];
    for (int32_t d = 0; d < bias->ndim; d++) {
        // Strides of an empty tensor tell nothing: there a size of 1 and the bias's own both do.
        const bool empty_keeps = empty && d < grad_bias->ndim &&
                                 grad_bias->shape[d] == bias->shape[d];
        shape[d] = bias->stride[d] == 0 && !empty_keeps ? 1 : bias->shape[d];
        symbols[d] = shape[d] == 1 ? "1" : pair_symbols[d + 4 - bias->ndim];
    }
    const struct attn_sdpa_expectation fits = {
        .name = "grad_bias",
        .ndim = bias->ndim,
        .symbols = symbols,
        .shape = shape,
        .dtypes = output_dtypes(rule, 1 << bias->dtype | 1 << problem->stats),
        .like = bias,
        .like_name = "bias",
    };
    struct attn_sdpa_view own;
    const attn_status status = attn_sdpa_take(intake, grad_bias, ATTN_SDPA_OUTPUT, &fits, &own);
    if (status != ATTN_OK) {
        return status;
    }
    problem->grad_bias.data = own.data;
    problem->grad_bias.dtype = own.dtype;
    for (int32_t d = 0; d < 4; d++) {
        const int32_t own_dim = d - (4 - bias->ndim);
        problem->grad_bias_shape[d] = own_dim < 0 ? 1 : shape[own_dim];
        problem->grad_bias.stride[d] = problem->grad_bias_shape[d] == 1 ? 0 : own.stride[own_dim];
    }
    return ATTN_OK;
}
