// The public entry: descriptor and arguments become a problem, the problem goes to the engine.
#include "attn/sdpa.h"

#include "core/context.h"
#include "core/error.h"
#include "core/float_env.h"
#include "sdpa/engine.h"
#include "sdpa/problem.h"

typedef attn_status (*workspace_function)(const attn_context *, const struct attn_sdpa_problem *,
                                          size_t *, attn_error *);
typedef attn_status (*engine_function)(const attn_context *, const struct attn_sdpa_problem *,
                                       void *, size_t, attn_error *);

static attn_status problem_of_forward(const attn_context *context, const attn_sdpa_desc *desc,
                                      const attn_sdpa_forward_args *args,
                                      enum attn_sdpa_output_rule rule,
                                      struct attn_sdpa_problem *problem, attn_error *error);
static attn_status problem_of_backward(const attn_context *context, const attn_sdpa_desc *desc,
                                       const attn_sdpa_backward_args *args,
                                       enum attn_sdpa_output_rule rule,
                                       struct attn_sdpa_problem *problem, attn_error *error);
static attn_status run(const attn_context *context, const struct attn_sdpa_problem *problem,
                       workspace_function ask, engine_function compute, void *workspace,
                       size_t size, attn_error *error);

// ---- defaults -----------------------------------------------------------------------------------

void attn_sdpa_desc_init(attn_sdpa_desc *desc)
{
    *desc = (attn_sdpa_desc){
        .struct_size = sizeof(*desc),
        .scale_mode = ATTN_SCALE_INVERSE_SQRT,
        .diagonal = ATTN_DIAGONAL_TOP_LEFT,
        .window_left = -1,
        .window_right = -1,
        .dropout = ATTN_DROPOUT_NONE,
    };
}

void attn_sdpa_forward_args_init(attn_sdpa_forward_args *args)
{
    *args = (attn_sdpa_forward_args){.struct_size = sizeof(*args)};
}

void attn_sdpa_backward_args_init(attn_sdpa_backward_args *args)
{
    *args = (attn_sdpa_backward_args){.struct_size = sizeof(*args)};
}

uint32_t attn_numerics_version(void)
{
    return ATTN_NUMERICS_VERSION;
}

// ---- forward ------------------------------------------------------------------------------------

attn_status attn_sdpa_forward(const attn_context *context, const attn_sdpa_desc *desc,
                              const attn_sdpa_forward_args *args, attn_error *error)
{
    struct attn_sdpa_problem problem;
    const attn_status status =
        problem_of_forward(context, desc, args, ATTN_SDPA_OWN_DTYPES, &problem, error);
    if (status != ATTN_OK) {
        return status;
    }
    return run(context, &problem, attn_engine_forward_workspace, attn_engine_forward,
               args->workspace, args->workspace_size, error);
}

attn_status attn_sdpa_forward_workspace(const attn_context *context, const attn_sdpa_desc *desc,
                                        const attn_sdpa_forward_args *args, size_t *bytes,
                                        attn_error *error)
{
    struct attn_sdpa_problem problem;
    const attn_status status =
        problem_of_forward(context, desc, args, ATTN_SDPA_OWN_DTYPES, &problem, error);
    if (status != ATTN_OK) {
        return status;
    }
    if (bytes == NULL) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "sdpa: bytes is NULL");
    }
    return attn_engine_forward_workspace(context, &problem, bytes, error);
}

attn_status attn_sdpa_reference_forward(const attn_context *context, const attn_sdpa_desc *desc,
                                        const attn_sdpa_forward_args *args, attn_error *error)
{
    struct attn_sdpa_problem problem;
    const attn_status status =
        problem_of_forward(context, desc, args, ATTN_SDPA_DTYPES_OR_FLOAT64, &problem, error);
    if (status != ATTN_OK) {
        return status;
    }
    return attn_reference_forward(context, &problem, error);
}

// ---- backward -----------------------------------------------------------------------------------

attn_status attn_sdpa_backward(const attn_context *context, const attn_sdpa_desc *desc,
                               const attn_sdpa_backward_args *args, attn_error *error)
{
    struct attn_sdpa_problem problem;
    const attn_status status =
        problem_of_backward(context, desc, args, ATTN_SDPA_OWN_DTYPES, &problem, error);
    if (status != ATTN_OK) {
        return status;
    }
    return run(context, &problem, attn_engine_backward_workspace, attn_engine_backward,
               args->workspace, args->workspace_size, error);
}

attn_status attn_sdpa_backward_workspace(const attn_context *context, const attn_sdpa_desc *desc,
                                         const attn_sdpa_backward_args *args, size_t *bytes,
                                         attn_error *error)
{
    struct attn_sdpa_problem problem;
    const attn_status status =
        problem_of_backward(context, desc, args, ATTN_SDPA_OWN_DTYPES, &problem, error);
    if (status != ATTN_OK) {
        return status;
    }
    if (bytes == NULL) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "sdpa: bytes is NULL");
    }
    return attn_engine_backward_workspace(context, &problem, bytes, error);
}

attn_status attn_sdpa_reference_backward(const attn_context *context, const attn_sdpa_desc *desc,
                                         const attn_sdpa_backward_args *args, attn_error *error)
{
    struct attn_sdpa_problem problem;
    const attn_status status =
        problem_of_backward(context, desc, args, ATTN_SDPA_DTYPES_OR_FLOAT64, &problem, error);
    if (status != ATTN_OK) {
        return status;
    }
    return attn_reference_backward(context, &problem, error);
}

// ---- both ---------------------------------------------------------------------------------------

static attn_status check_context(const attn_context *context, attn_error *error)
{
    return context != NULL ? ATTN_OK
                           : attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "sdpa: context is NULL");
}

// What is derived from the descriptor, the default scale first of all, must not depend on the caller's
// rounding mode.
static attn_status problem_of_forward(const attn_context *context, const attn_sdpa_desc *desc,
                                      const attn_sdpa_forward_args *args,
                                      enum attn_sdpa_output_rule rule,
                                      struct attn_sdpa_problem *problem, attn_error *error)
{
    attn_status status = check_context(context, error);
    if (status == ATTN_OK) {
        const attn_float_env environment = attn_float_env_enter();
        status = attn_sdpa_problem_of_forward(desc, args, rule, problem, error);
        attn_float_env_leave(environment);
    }
    return status;
}

static attn_status problem_of_backward(const attn_context *context, const attn_sdpa_desc *desc,
                                       const attn_sdpa_backward_args *args,
                                       enum attn_sdpa_output_rule rule,
                                       struct attn_sdpa_problem *problem, attn_error *error)
{
    attn_status status = check_context(context, error);
    if (status == ATTN_OK) {
        const attn_float_env environment = attn_float_env_enter();
        status = attn_sdpa_problem_of_backward(desc, args, rule, problem, error);
        attn_float_env_leave(environment);
    }
    return status;
}

// Plans, and what is not worth a job, are the calling thread's: in the library's rounding mode as well.
static attn_status compute_in_mode(const attn_context *context,
                                   const struct attn_sdpa_problem *problem, engine_function compute,
                                   void *workspace, size_t size, attn_error *error)
{
    const attn_float_env environment = attn_float_env_enter();
    const attn_status status = compute(context, problem, workspace, size, error);
    attn_float_env_leave(environment);
    return status;
}

// Computes in the caller's workspace, or in one from the context's allocator.
static attn_status run(const attn_context *context, const struct attn_sdpa_problem *problem,
                       workspace_function ask, engine_function compute, void *workspace,
                       size_t size, attn_error *error)
{
    size_t bytes = 0;
    attn_status status = ask(context, problem, &bytes, error);
    if (status != ATTN_OK) {
        return status;
    }
    if (workspace != NULL) {
        if (size < bytes) {
            return attn_fail(error, ATTN_ERR_WORKSPACE,
                             "sdpa: workspace has %zu bytes, but %zu are needed", size, bytes);
        }
        if ((uintptr_t)workspace % ATTN_ALIGNMENT != 0) {
            return attn_fail(error, ATTN_ERR_WORKSPACE,
                             "sdpa: workspace %p is not aligned to %d bytes", workspace,
                             (int)ATTN_ALIGNMENT);
        }
        return compute_in_mode(context, problem, compute, workspace, size, error);
    }
    void *own = attn_allocate(context, bytes);
    if (own == NULL && bytes != 0) {
        return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY,
                         "sdpa: no memory for %zu bytes of workspace", bytes);
    }
    status = compute_in_mode(context, problem, compute, own, bytes, error);
    attn_release(context, own, bytes);
    return status;
}
