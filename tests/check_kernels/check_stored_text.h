// check_kernels/check_stored_text.h: operands in 16 bits, and what a kernel asks for meanwhile; for one
// element type, included by check_text.h.

// Rounds the values to float16 or bfloat16 and gives them in that format; in a third of the cases, and
// of float64 always, it leaves them alone.
static attn_storage store_narrow(struct check *check, real *values, int64_t count,
                                 struct guarded *narrow)
{
    *narrow = guarded_take(count * (int64_t)sizeof(uint16_t));
#if ATTN_REAL_BITS == 32
    const attn_storage storage = (attn_storage)check_between(check, 0, 2);
    for (int64_t i = 0; i < count && storage != ATTN_STORED_REAL; i++) {
        const bool f16 = storage == ATTN_STORED_F16;
        const uint16_t bits = f16 ? attn_f32_to_f16(values[i]) : attn_f32_to_bf16(values[i]);
        ((uint16_t *)narrow->data)[i] = bits;
        values[i] = f16 ? attn_f16_to_f32(bits) : attn_bf16_to_f32(bits);
    }
    return storage;
#else
    (void)check, (void)values;
    return ATTN_STORED_REAL;
#endif
}

// Rows of memory that need not exist: asking for them is no access.
static struct attn_ahead any_ahead(struct check *check)
{
    struct attn_ahead ahead = {.rate = check_between(check, 0, 30000)};
    for (int p = 0; p < ATTN_AHEAD_PARTS; p++) {
        const int64_t size = check_between(check, 1, 500);
        ahead.parts[p] = (struct attn_ahead_rows){(const char *)check, 0, size,
                                                  check_between(check, size, 600),
                                                  check_between(check, 0, 3)};
    }
    return ahead;
}

// Any bits, also those of signalling NaN.
static void check_transpose_narrow(struct check *check, const kernels_t *kernels)
{
    if (!kernels->transpose_narrow) {
        return;
    }
    const int64_t rows = check_between(check, 0, 70), columns = check_between(check, 0, 70);
    const int64_t source_row = columns + check_between(check, 0, 3);
    const int64_t target_row = rows + check_between(check, 0, 3);
    const int64_t size = (int64_t)sizeof(uint16_t);
    struct guarded source = guarded_take(rows * source_row * size);
    struct guarded target = guarded_take(columns * target_row * size);
    uint16_t *const from = source.data, *const to = target.data;
    for (int64_t i = 0; i < rows * source_row; i++) {
        from[i] = (uint16_t)check_random(check);
    }
    const uint16_t gap = columns > 0 && target_row > rows ? to[target_row - 1] : 0;
    struct attn_ahead ahead = any_ahead(check);
    const struct attn_transpose_narrow turn = {
        .source = from,
        .source_row = source_row,
        .target = to,
        .target_row = target_row,
        .ahead = check_random(check) % 2 ? &ahead : NULL,
    };
    kernels->transpose_narrow(&turn, rows, columns);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < columns; c++) {
            if (to[c * target_row + r] != from[r * source_row + c]) {
                check_failed(check, "transpose_narrow", "%lld x %lld is wrong at %lld, %lld",
                             (long long)rows, (long long)columns, (long long)r, (long long)c);
            }
        }
    }
    if (columns > 0 && target_row > rows && to[target_row - 1] != gap) {
        check_failed(check, "transpose_narrow", "wrote between the rows");
    }
    guarded_give(check, "transpose_narrow", &source);
    guarded_give(check, "transpose_narrow", &target);
}
