// Linear: y = x W^T + b.
#include <inttypes.h>

#include "core/error.h"
#include "modules/module.h"
#include "modules/projection.h"

struct linear {
    attn_module module;
    attn_projection projection;
};

static attn_var forward(attn_module *module, const attn_module_call *call);

static const attn_module_class linear_class = {
    .kind = "linear",
    .size = sizeof(struct linear),
    .fields = 0,
    .forward = forward,
};

attn_status attn_linear_create(const attn_context *context, int64_t in_features,
                               int64_t out_features, bool bias, attn_dtype dtype,
                               attn_generator *generator, attn_module **module, attn_error *error)
{
    if (in_features <= 0 || out_features <= 0) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "linear: in_features (%" PRId64 ") and out_features (%" PRId64
                         ") must be positive",
                         in_features, out_features);
    }
    if (dtype != ATTN_F32 && dtype != ATTN_F64) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "linear: dtype must be float32 or float64, not %s",
                         attn_dtype_name(dtype));
    }
    attn_module *base;
    attn_status status =
        attn_module_allocate(context, &linear_class, NULL, bias ? 2 : 1, 0, &base, error);
    if (status != ATTN_OK) {
        return status;
    }
    base->config.dtype = dtype;
    struct linear *linear = (struct linear *)base;
    status = attn_register_projection(base, "", "", in_features, out_features, bias,
                                      &linear->projection, error);
    return attn_module_finish(base, status, generator, module, error);
}

// x: (..., in) -> (..., out)
static attn_var forward(attn_module *module, const attn_module_call *call)
{
    const struct linear *linear = (const struct linear *)module;
    return attn_project(&linear->projection, call->input);
}
