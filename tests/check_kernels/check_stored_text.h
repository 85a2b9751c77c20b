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
