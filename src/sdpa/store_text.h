// sdpa/store_text.h: results in the element type and strides of an output, for one element type;
// after sdpa/strip.h and the type names of the including text.

static void store_element(const plan_t *plan, const struct attn_sdpa_view *view, int64_t offset,
                          const real *value)
{
    char *target = (char *)view->data + offset * (int64_t)attn_dtype_size(view->dtype);
    const float single = (float)*value;
    switch (view->dtype) {
    case ATTN_F32: memcpy(target, &single, sizeof single); break;
    case ATTN_F64: *(double *)(void *)target = (double)*value; break;
    case ATTN_F16: plan->tables->convert->f32_to_f16(&single, (uint16_t *)(void *)target, 1); break;
    default: plan->tables->convert->f32_to_bf16(&single, (uint16_t *)(void *)target, 1); break;
    }
}

// The row of `view` at `offset` becomes row * factor, rounded to the view's element type. `row` may
// be the output itself.
static void store_row(const plan_t *plan, const scratch_t *scratch,
                      const struct attn_sdpa_view *view, int64_t offset, int64_t columns,
                      const real *row, real factor)
{
    if (view->dtype == plan->dtype && view->stride[3] == 1) {
        plan->kernels->scale_row(row, factor, (real *)view->data + offset, columns);
        return;
    }
    real *scaled = scratch->rows;
    plan->kernels->scale_row(row, factor, scaled, columns);
#if ATTN_REAL_BITS == 32
    if (view->stride[3] == 1 && view->dtype == ATTN_F16) {
        plan->tables->convert->f32_to_f16(scaled, (uint16_t *)view->data + offset, columns);
        return;
    }
    if (view->stride[3] == 1 && view->dtype == ATTN_BF16) {
        plan->tables->convert->f32_to_bf16(scaled, (uint16_t *)view->data + offset, columns);
        return;
    }
#endif
    for (int64_t c = 0; c < columns; c++) {
        store_element(plan, view, offset + c * view->stride[3], &scaled[c]);
    }
}
