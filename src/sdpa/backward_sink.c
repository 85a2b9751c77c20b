// The gradient of the sinks. A sink takes part in the softmax and in lse and has no value, so a row
// gives its own weight times what lse and the other weights want of it:
//   exp(sink - max) / sum * (grad_lse - sum over the columns of grad_output * output)
#include "sdpa/backward.h"

#include <math.h>

#include "core/context.h"
#include "core/element.h"
#include "kernels/kernels.h"

static double row_term(const struct attn_kernels *kernels, const struct attn_sdpa_problem *problem,
                       const void *deltas, int64_t batch, int64_t head, int64_t row);
static double delta(const struct attn_sdpa_problem *problem, const void *deltas, int64_t batch,
                    int64_t head, int64_t row);
static double load(const struct attn_sdpa_view *view, int64_t batch, int64_t head, int64_t row,
                   int64_t column);

void attn_backward_sink(const attn_context *context, const struct attn_sdpa_problem *problem,
                        const void *deltas, int64_t head)
{
    const struct attn_kernels *const kernels = attn_kernels_select(context->tier);
    double sum = 0;
    for (int64_t b = 0; b < problem->batch; b++) {
        for (int64_t row = 0; row < problem->queries; row++) {
            sum += row_term(kernels, problem, deltas, b, head, row);
        }
    }
    const struct attn_sdpa_view *const view = &problem->grad_sinks;
    char *const target = (char *)view->data +
                         head * view->stride[0] * (int64_t)attn_dtype_size(view->dtype);
    attn_element_store(view->dtype, target, isnan(sum) ? (double)NAN : sum);
}

static double row_term(const struct attn_kernels *kernels, const struct attn_sdpa_problem *problem,
                       const void *deltas, int64_t batch, int64_t head, int64_t row)
{
    const double max = load(&problem->row_max, batch, head, row, 0);
    const double sum = load(&problem->row_sum, batch, head, row, 0);
    const double sink = attn_sdpa_sink(problem, head);
    if (isinf(sink)) {
        return isnan(sum) ? sum : 0; // no sink at all, and its row may have no sum either
    }
    double weight = sink - max;
    kernels->f64->exp(&weight, &weight, 1);
    const double wanted = problem->grad_lse.data ? load(&problem->grad_lse, batch, head, row, 0)
                                                 : 0;
    return weight / sum * (wanted - delta(problem, deltas, batch, head, row));
}

static double delta(const struct attn_sdpa_problem *problem, const void *deltas, int64_t batch,
                    int64_t head, int64_t row)
{
    if (deltas) {
        const int64_t at = (batch * problem->query_heads + head) * problem->queries + row;
        return problem->stats == ATTN_F32 ? (double)((const float *)deltas)[at]
                                          : ((const double *)deltas)[at];
    }
    double sum = 0;
    for (int64_t c = 0; c < problem->value_dim; c++) {
        const double output = load(&problem->output, batch, head, row, c);
        if (output != 0) { // a row that sees no key has output 0, whatever comes from above
            sum += output * load(&problem->grad_output, batch, head, row, c);
        }
    }
    return sum;
}

static double load(const struct attn_sdpa_view *view, int64_t batch, int64_t head, int64_t row,
                   int64_t column)
{
    const int64_t at = batch * view->stride[0] + head * view->stride[1] + row * view->stride[2] +
                       column * view->stride[3];
    return attn_element_load(view->dtype,
                             (const char *)view->data + at * (int64_t)attn_dtype_size(view->dtype));
}
