// Checks a gradient against differences of the function itself.
#include <math.h>
#include <string.h>

#include "core/context.h"
#include "core/error.h"
#include "core/layout.h"
#include "tape/tape.h"

// What one check works on. `points` are copies of the inputs, whose elements are moved one at a time.
struct check {
    attn_tape *tape;
    attn_scalar_function function;
    void *user;
    attn_tensor *points;
    attn_tensor *analytic;
    attn_var *vars;
    int64_t count;
};

static attn_status check_arguments(const attn_context *context, attn_scalar_function function,
                                   const attn_tensor *inputs, int64_t count, double step,
                                   const attn_gradcheck_report *report, attn_error *error);
static attn_status prepare(const attn_context *context, const attn_tensor *inputs,
                           struct check *check, attn_error *error);
static attn_status differentiate(struct check *check, attn_error *error);
static attn_status compare(struct check *check, double step, double tolerance, double floor,
                           attn_gradcheck_report *report, attn_error *error);
static void clean_up(const attn_context *context, struct check *check);

attn_status attn_gradcheck(const attn_context *context, attn_scalar_function function, void *user,
                           const attn_tensor *inputs, int64_t count, double step, double tolerance,
                           double floor, attn_gradcheck_report *report, attn_error *error)
{
    attn_status status = check_arguments(context, function, inputs, count, step, report, error);
    if (status != ATTN_OK) {
        return status;
    }
    struct check check = {.function = function, .user = user, .count = count};
    attn_gradcheck_report found = {.passed = true};
    status = prepare(context, inputs, &check, error);
    if (status == ATTN_OK) {
        status = differentiate(&check, error);
    }
    if (status == ATTN_OK) {
        status = compare(&check, step, tolerance, floor, &found, error);
    }
    clean_up(context, &check);
    if (status == ATTN_OK) {
        *report = found;
    }
    return status;
}

static attn_status check_arguments(const attn_context *context, attn_scalar_function function,
                                   const attn_tensor *inputs, int64_t count, double step,
                                   const attn_gradcheck_report *report, attn_error *error)
{
    if (!context || !function || !report || (count > 0 && !inputs)) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "gradcheck: %s is NULL",
                         !context    ? "context"
                         : !function ? "function"
                         : !report   ? "report"
                                     : "inputs");
    }
    if (count < 0) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "gradcheck: count (%lld) must not be negative", (long long)count);
    }
    if (!(step > 0 && step < 1)) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "gradcheck: step (%g) must be in (0, 1)",
                         step);
    }
    for (int64_t k = 0; k < count; k++) {
        const attn_status status = attn_tensor_check(&inputs[k], "gradcheck: an input", error);
        if (status != ATTN_OK) {
            return status;
        }
        if (inputs[k].dtype != ATTN_F64) {
            return attn_fail(error, ATTN_ERR_DTYPE, "gradcheck: input %lld is %s, not float64",
                             (long long)k, attn_dtype_name(inputs[k].dtype));
        }
    }
    return ATTN_OK;
}

static attn_status copy_all(const attn_context *context, const attn_tensor *inputs, int64_t count,
                            attn_tensor **copies, attn_error *error);

static attn_status prepare(const attn_context *context, const attn_tensor *inputs,
                           struct check *check, attn_error *error)
{
    attn_status status = attn_tape_create(context, &check->tape, error);
    if (status == ATTN_OK) {
        status = copy_all(context, inputs, check->count, &check->points, error);
    }
    if (status == ATTN_OK) {
        status = copy_all(context, inputs, check->count, &check->analytic, error);
    }
    if (status == ATTN_OK && check->count > 0) {
        check->vars = attn_allocate(context, (size_t)check->count * sizeof *check->vars);
        if (!check->vars) {
            return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY, "gradcheck: no memory for %lld vars",
                             (long long)check->count);
        }
    }
    return status;
}

static attn_status copy_all(const attn_context *context, const attn_tensor *inputs, int64_t count,
                            attn_tensor **copies, attn_error *error)
{
    if (count == 0) {
        return ATTN_OK;
    }
    *copies = attn_allocate(context, (size_t)count * sizeof **copies);
    if (!*copies) {
        return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY, "gradcheck: no memory for %lld tensors",
                         (long long)count);
    }
    memset(*copies, 0, (size_t)count * sizeof **copies);
    for (int64_t k = 0; k < count; k++) {
        const attn_status status =
            attn_tensor_contiguous(context, &inputs[k], &(*copies)[k], error);
        if (status != ATTN_OK) {
            return status;
        }
    }
    return ATTN_OK;
}

static void clean_up(const attn_context *context, struct check *check)
{
    for (int64_t k = 0; k < check->count; k++) {
        attn_tensor_destroy(context, check->points ? &check->points[k] : NULL);
        attn_tensor_destroy(context, check->analytic ? &check->analytic[k] : NULL);
    }
    attn_release(context, check->points, (size_t)check->count * sizeof *check->points);
    attn_release(context, check->analytic, (size_t)check->count * sizeof *check->analytic);
    attn_release(context, check->vars, (size_t)check->count * sizeof *check->vars);
    attn_tape_destroy(check->tape);
}

// The function at the current points, recorded always: it may itself take gradients.
static attn_status evaluate(struct check *check, attn_var *result, attn_error *error)
{
    attn_tape_reset(check->tape);
    for (int64_t k = 0; k < check->count; k++) {
        check->vars[k] = attn_input(check->tape, &check->points[k], true);
    }
    *result = check->function(check->tape, check->vars, check->count, check->user);
    const attn_error *const failure = attn_tape_error(check->tape);
    if (failure->status != ATTN_OK) {
        return attn_fail(error, failure->status, "%s", failure->text);
    }
    if (result->tape != check->tape) {
        return attn_fail(error, ATTN_ERR_STATE, "gradcheck: the function's result is %s",
                         result->tape ? "on another tape" : "absent");
    }
    return ATTN_OK;
}

// Fills check->analytic.
static attn_status differentiate(struct check *check, attn_error *error)
{
    attn_var result;
    attn_status status = evaluate(check, &result, error);
    if (status == ATTN_OK) {
        status = attn_backward(result, error);
    }
    for (int64_t k = 0; k < check->count && status == ATTN_OK; k++) {
        const attn_tensor grad = attn_grad(check->vars[k]);
        status = grad.dtype == ATTN_DTYPE_NONE
                     ? attn_tensor_fill(&check->analytic[k], 0, error)
                     : attn_tensor_copy(&grad, &check->analytic[k], error);
    }
    return status;
}

// (f(x + h) - f(x - h)) / 2h for one element, whose error falls with h squared.
static attn_status central_difference(struct check *check, double *element, double h, double *slope,
                                      attn_error *error)
{
    const double x = *element;
    double side[2] = {0};
    // What the element really is after rounding, so that the distance is exact.
    const double above = x + h, below = x - h;
    const double at[2] = {above, below};
    attn_status status = ATTN_OK;
    for (int m = 0; m < 2 && status == ATTN_OK; m++) {
        attn_var result;
        *element = at[m];
        status = evaluate(check, &result, error);
        side[m] = status == ATTN_OK ? attn_item(result) : NAN;
    }
    *element = x;
    *slope = (side[0] - side[1]) / (above - below);
    return status;
}

// Richardson: from steps h and h/2, without the error's quadratic part.
static attn_status numeric_slope(struct check *check, double *element, double h, double *slope,
                                 attn_error *error)
{
    double coarse, fine;
    attn_status status = central_difference(check, element, h, &coarse, error);
    if (status == ATTN_OK) {
        status = central_difference(check, element, h / 2, &fine, error);
    }
    if (status == ATTN_OK) {
        *slope = (4 * fine - coarse) / 3;
    }
    return status;
}

static attn_status compare(struct check *check, double step, double tolerance, double floor,
                           attn_gradcheck_report *report, attn_error *error)
{
    for (int64_t k = 0; k < check->count; k++) {
        const attn_tensor *const point = &check->points[k];
        const int64_t elements = attn_tensor_count(point);
        for (int64_t n = 0; n < elements; n++) {
            double *const element = (double *)point->data + n;
            const double h = step * fmax(1, fabs(*element));
            const double analytic = ((const double *)check->analytic[k].data)[n];
            double numeric;
            const attn_status status = numeric_slope(check, element, h, &numeric, error);
            if (status != ATTN_OK) {
                return status;
            }
            const double size = fmax(floor, fmax(fabs(analytic), fabs(numeric)));
            const double off = size > 0 ? fabs(analytic - numeric) / size : 0;
            report->passed = report->passed && off <= tolerance;
            // NaN is worse than any number.
            const bool worse = off > report->error || (isnan(off) && !isnan(report->error));
            if (worse || report->checked == 0) {
                report->input = k;
                report->analytic = analytic;
                report->numeric = numeric;
                report->error = off;
                attn_index_at(point, n, report->index);
            }
            report->checked++;
        }
    }
    return ATTN_OK;
}
