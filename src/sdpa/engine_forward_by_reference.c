// The engine's forward seam served by the float64 definition.
#include "sdpa/engine.h"

attn_status attn_engine_forward_workspace(const attn_context *context,
                                          const struct attn_sdpa_problem *problem, size_t *bytes,
                                          attn_error *error)
{
    (void)context, (void)problem, (void)error;
    *bytes = 0;
    return ATTN_OK;
}

attn_status attn_engine_forward(const attn_context *context,
                                const struct attn_sdpa_problem *problem, void *workspace,
                                size_t size, attn_error *error)
{
    (void)workspace, (void)size;
    return attn_reference_forward(context, problem, error);
}
