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

static void store_row(const plan_t *plan, const struct attn_sdpa_view *view, int64_t offset,
                      int64_t columns, const real *row)
{
#if ATTN_REAL_BITS == 32
    if (view->stride[3] == 1 && view->dtype == ATTN_F16) {
        plan->tables->convert->f32_to_f16(row, (uint16_t *)view->data + offset, columns);
        return;
    }
    if (view->stride[3] == 1 && view->dtype == ATTN_BF16) {
        plan->tables->convert->f32_to_bf16(row, (uint16_t *)view->data + offset, columns);
        return;
    }
#endif
    for (int64_t c = 0; c < columns; c++) {
        store_element(plan, view, offset + c * view->stride[3], &row[c]);
    }
}

// Rows of `columns` elements become those of `view` from `offset` on, times factor[r*factor_step] and
// rounded to the view's element type. They may be the output itself.
static void store_rows(const plan_t *plan, const scratch_t *scratch,
                       const struct attn_sdpa_view *view, int64_t offset, int64_t rows,
                       int64_t columns, const real *source, int64_t source_row, const real *factor,
                       int64_t factor_step)
{
    struct REAL_NAME(attn_scale)
        scale = {source, source_row, factor, factor_step, scratch->rows, columns};
    if (view->dtype == plan->dtype && view->stride[3] == 1) {
        scale.target = (real *)view->data + offset;
        scale.target_row = view->stride[2];
        plan->kernels->scale_rows(&scale, rows, columns);
        return;
    }
    for (int64_t r = 0; r < rows; r++, offset += view->stride[2]) {
        plan->kernels->scale_rows(&scale, 1, columns);
        store_row(plan, view, offset, columns, scratch->rows);
        scale.source += source_row;
        scale.factor += factor_step;
    }
}
