// gemm/packed_weight.c: weights kept in the order in which the tile reads them.
#include "gemm/packed_weight.h"

#include "core/checked.h"
#include "core/context.h"
#include "core/error.h"
#include "gemm/block.h"
#include "gemm/gemm.h"

struct packing {
    const struct attn_kernels *kernels;
    struct attn_block block;
    attn_dtype dtype;
    int64_t groups, groups_per_job;
    void *panels;
};

static attn_status check_weight(const attn_tensor *weight, attn_error *error)
{
    const attn_status status = attn_tensor_check(weight, "packed_weight: weight", error);
    if (status != ATTN_OK) {
        return status;
    }
    if (weight->ndim != 2) {
        return attn_fail(error, ATTN_ERR_SHAPE,
                         "packed_weight: weight has %d dimensions, expected 2 (out, in)",
                         (int)weight->ndim);
    }
    if (weight->dtype != ATTN_F32 && weight->dtype != ATTN_F64) {
        return attn_fail(error, ATTN_ERR_DTYPE,
                         "packed_weight: weight is %s, expected float32 or float64",
                         attn_dtype_name(weight->dtype));
    }
    return ATTN_OK;
}

static void pack_groups(void *argument, int64_t index, int32_t worker)
{
    (void)worker;
    const struct packing *packing = argument;
    const int64_t first = index * packing->groups_per_job;
    const int64_t last = first + packing->groups_per_job < packing->groups
                             ? first + packing->groups_per_job
                             : packing->groups;
    if (packing->dtype == ATTN_F32) {
        attn_block_pack_f32(packing->kernels, &packing->block, first, last, packing->panels);
    } else {
        attn_block_pack_f64(packing->kernels, &packing->block, first, last, packing->panels);
    }
}

static void pack(const struct attn_packed_weight *packed, const attn_tensor *weight)
{
    const struct attn_kernels *kernels = attn_kernels_select(packed->context->tier);
    const int64_t lanes = packed->dtype == ATTN_F32 ? kernels->f32->tile_lanes
                                                    : kernels->f64->tile_lanes;
    struct packing packing = {
        .kernels = kernels,
        .block = {.columns = packed->out,
                  .depth = packed->in,
                  .b = weight->data,
                  .b_depth = weight->stride[1],
                  .b_column = weight->stride[0]},
        .dtype = packed->dtype,
        .groups = (packed->out + lanes - 1) / lanes,
        .groups_per_job = 4,
        .panels = packed->panels,
    };
    const int64_t jobs = (packing.groups + packing.groups_per_job - 1) / packing.groups_per_job;
    attn_parallel_for(packed->context, jobs, pack_groups, &packing);
}

attn_status attn_packed_weight_create(const attn_context *context, const attn_tensor *weight,
                                      struct attn_packed_weight **packed, attn_error *error)
{
    const attn_status status = check_weight(weight, error);
    if (status != ATTN_OK) {
        return status;
    }
    const int64_t out = weight->shape[0];
    const int64_t in = weight->shape[1];
    int64_t most; // of elements: a group of columns may be filled up by far less than 4096 lanes
    if (!attn_checked_add(out, 4096, &most) || !attn_checked_mul(most, in, &most) ||
        !attn_checked_mul(most, 8, &most)) {
        return attn_fail(error, ATTN_ERR_OVERFLOW,
                         "packed_weight: weight of shape [%lld,%lld] is too large", (long long)out,
                         (long long)in);
    }
    const struct attn_kernels *kernels = attn_kernels_select(context->tier);
    const size_t bytes = weight->dtype == ATTN_F32 ? attn_block_panel_bytes_f32(kernels, out, in)
                                                   : attn_block_panel_bytes_f64(kernels, out, in);
    struct attn_packed_weight *made = attn_allocate(context, sizeof *made);
    void *const panels = attn_allocate(context, bytes);
    if (!made || (bytes > 0 && !panels)) {
        attn_release(context, made, sizeof *made);
        attn_release(context, panels, bytes);
        return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY,
                         "packed_weight: no memory for %zu bytes (weight [%lld,%lld])", bytes,
                         (long long)out, (long long)in);
    }
    *made = (struct attn_packed_weight){.context = context,
                                        .dtype = weight->dtype,
                                        .in = in,
                                        .out = out,
                                        .panels = panels,
                                        .bytes = bytes};
    pack(made, weight);
    *packed = made;
    return ATTN_OK;
}

void attn_packed_weight_destroy(struct attn_packed_weight *packed)
{
    if (packed) {
        const attn_context *const context = packed->context;
        attn_release(context, packed->panels, packed->bytes);
        attn_release(context, packed, sizeof *packed);
    }
}

attn_status attn_packed_weight_refresh(struct attn_packed_weight *packed, const attn_tensor *weight,
                                       attn_error *error)
{
    const attn_status status = check_weight(weight, error);
    if (status != ATTN_OK) {
        return status;
    }
    if (weight->shape[0] != packed->out || weight->shape[1] != packed->in ||
        weight->dtype != packed->dtype) {
        return attn_fail(error, ATTN_ERR_SHAPE,
                         "packed_weight: weight is %s [%lld,%lld], it was %s [%lld,%lld]",
                         attn_dtype_name(weight->dtype), (long long)weight->shape[0],
                         (long long)weight->shape[1], attn_dtype_name(packed->dtype),
                         (long long)packed->out, (long long)packed->in);
    }
    pack(packed, weight);
    return ATTN_OK;
}
