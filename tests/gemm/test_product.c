// The product against its definition, bit for bit: every tier, layout, start value and cut.
#include "support/unit.h"

#include <fenv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/attn.h"
#include "gemm/gemm.h"

// A layout of a matrix inside its buffer.
enum layout { ROW_MAJOR, TRANSPOSED, SPREAD, LAYOUTS };

static uint32_t noise;

static double next_value(void)
{
    noise = noise * 1664525u + 1013904223u;
    return ((double)(noise >> 8) / 16777216.0 - 0.5) * 4.0;
}

static attn_tensor matrix(attn_dtype dtype, enum layout layout, int64_t batch, int64_t rows,
                          int64_t columns)
{
    const int64_t spread = layout == SPREAD ? 3 : 1;
    const int64_t count = batch * rows * columns * spread + 64;
    attn_tensor t = {.dtype = dtype, .ndim = 3, .shape = {batch, rows, columns}};
    t.stride[0] = rows * columns * spread;
    t.stride[1] = layout == TRANSPOSED ? 1 : columns * spread;
    t.stride[2] = layout == TRANSPOSED ? rows : spread;
    t.data = malloc((size_t)count * attn_dtype_size(dtype));
    assert_non_null(t.data);
    for (int64_t i = 0; i < count; i++) {
        if (dtype == ATTN_F32) {
            ((float *)t.data)[i] = (float)next_value();
        } else {
            ((double *)t.data)[i] = next_value();
        }
    }
    return t;
}

static size_t bytes_of(const attn_tensor *t, enum layout layout)
{
    const int64_t spread = layout == SPREAD ? 3 : 1;
    return (size_t)(t->shape[0] * t->shape[1] * t->shape[2] * spread + 64) *
           attn_dtype_size(t->dtype);
}

static void define(const struct attn_product *p)
{
    const attn_tensor *a = p->a;
    const attn_tensor *b = p->b;
    const attn_tensor *c = p->c;
    for (int64_t z = 0; z < c->shape[0]; z++) {
        for (int64_t r = 0; r < c->shape[1]; r++) {
            for (int64_t n = 0; n < c->shape[2]; n++) {
                const int64_t to = z * c->stride[0] + r * c->stride[1] + n * c->stride[2];
                if (c->dtype == ATTN_F32) {
                    float *out = (float *)c->data + to;
                    float sum = p->accumulate ? *out : p->bias ? ((float *)p->bias->data)[n] : 0;
                    for (int64_t k = 0; k < a->shape[2]; k++) {
                        const int64_t i = z * a->stride[0] + r * a->stride[1] + k * a->stride[2];
                        const int64_t j = z * b->stride[0] + k * b->stride[1] + n * b->stride[2];
                        sum = fmaf(((float *)a->data)[i], ((float *)b->data)[j], sum);
                    }
                    *out = sum;
                } else {
                    double *out = (double *)c->data + to;
                    double sum = p->accumulate ? *out : p->bias ? ((double *)p->bias->data)[n] : 0;
                    for (int64_t k = 0; k < a->shape[2]; k++) {
                        const int64_t i = z * a->stride[0] + r * a->stride[1] + k * a->stride[2];
                        const int64_t j = z * b->stride[0] + k * b->stride[1] + n * b->stride[2];
                        sum = fma(((double *)a->data)[i], ((double *)b->data)[j], sum);
                    }
                    *out = sum;
                }
            }
        }
    }
}

struct contexts {
    attn_context *context[2 * ATTN_TIER_COUNT];
    int count;
};

// Every tier of this machine, with one and with three threads.
static struct contexts make_contexts(void)
{
    struct contexts contexts = {0};
    for (int tier = ATTN_TIER_PORTABLE; tier < ATTN_TIER_COUNT; tier++) {
        for (int32_t threads = 1; threads <= 3 && attn_tier_available((attn_tier)tier);
             threads += 2) {
            attn_context_config config;
            attn_context_config_init(&config);
            config.tier = (attn_tier)tier;
            assert_int_equal(ATTN_OK, attn_executor_pthreads(threads, &config.executor, NULL));
            assert_int_equal(ATTN_OK,
                             attn_context_create(&config, &contexts.context[contexts.count], NULL));
            contexts.count++;
        }
    }
    assert_true(contexts.count >= 2);
    return contexts;
}

static void destroy_contexts(struct contexts *contexts)
{
    for (int i = 0; i < contexts->count; i++) {
        attn_context_destroy(contexts->context[i]);
    }
}

// start: 0 from zero, 1 from the bias, 2 from c.
static void check(const struct contexts *contexts, attn_dtype dtype, const int64_t size[4],
                  enum layout la, enum layout lb, enum layout lc, int start)
{
    attn_tensor a = matrix(dtype, la, size[0], size[1], size[3]);
    attn_tensor b = matrix(dtype, lb, size[0], size[3], size[2]);
    attn_tensor c = matrix(dtype, lc, size[0], size[1], size[2]);
    attn_tensor bias = matrix(dtype, ROW_MAJOR, 1, 1, size[2]);
    bias.ndim = 1;
    bias.shape[0] = size[2];
    bias.stride[0] = 1;
    const size_t bytes = bytes_of(&c, lc);
    void *const before = malloc(bytes);
    void *const expected = malloc(bytes);
    assert_non_null(before);
    assert_non_null(expected);
    memcpy(before, c.data, bytes);
    const struct attn_product product = {
        .a = &a, .b = &b, .c = &c, .bias = start == 1 ? &bias : NULL, .accumulate = start == 2};
    define(&product);
    memcpy(expected, c.data, bytes);
    for (int i = 0; i < contexts->count; i++) {
        memcpy(c.data, before, bytes);
        assert_int_equal(ATTN_OK, attn_product_run(contexts->context[i], &product, NULL, NULL));
        if (memcmp(c.data, expected, bytes) != 0) {
            fail_msg("%s [%lld,%lld,%lld,%lld] layouts %d %d %d start %d: context %d differs",
                     attn_dtype_name(dtype), (long long)size[0], (long long)size[1],
                     (long long)size[2], (long long)size[3], (int)la, (int)lb, (int)lc, start, i);
        }
    }
    free(a.data);
    free(b.data);
    free(c.data);
    free(bias.data);
    free(before);
    free(expected);
}

static void test_layouts(void **state)
{
    (void)state;
    // batch, rows, columns, depth
    static const int64_t sizes[][4] = {
        {1, 1, 1, 1},  {2, 6, 2, 3},    {1, 5, 97, 131}, {3, 17, 49, 64}, {1, 40, 130, 7},
        {2, 3, 20, 0}, {1, 16, 100, 9}, {1, 0, 5, 3},    {0, 4, 4, 4},    {1, 33, 1, 50},
    };
    struct contexts contexts = make_contexts();
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        for (int layouts = 0; layouts < LAYOUTS * LAYOUTS * LAYOUTS; layouts++) {
            for (int start = 0; start < 3; start++) {
                check(&contexts, s % 2 ? ATTN_F64 : ATTN_F32, sizes[s], (enum layout)(layouts % 3),
                      (enum layout)(layouts / 3 % 3), (enum layout)(layouts / 9), start);
            }
        }
    }
    destroy_contexts(&contexts);
}

// Large enough for several groups, blocks, pieces of depth and parts.
static void test_blocking(void **state)
{
    (void)state;
    static const int64_t sizes[][4] = {{1, 210, 800, 140}, {1, 220, 100, 300}, {1, 20, 600, 400}};
    struct contexts contexts = make_contexts();
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        check(&contexts, ATTN_F32, sizes[s], ROW_MAJOR, TRANSPOSED, ROW_MAJOR, 1);
        check(&contexts, ATTN_F32, sizes[s], TRANSPOSED, ROW_MAJOR, ROW_MAJOR, 2);
        check(&contexts, ATTN_F32, sizes[s], SPREAD, TRANSPOSED, SPREAD, 1);
        check(&contexts, ATTN_F64, sizes[s], ROW_MAJOR, ROW_MAJOR, TRANSPOSED, 0);
    }
    destroy_contexts(&contexts);
}

// All jobs on the last worker, whose scratch ends where the workspace does.
static void run_on_last(void *state, int64_t count, attn_job job, void *argument)
{
    const int32_t workers = *(const int32_t *)state;
    for (int64_t i = 0; i < count; i++) {
        job(argument, i, workers - 1);
    }
}

// Parts at an edge can be too small for an operand to be packed, so that their pieces are deeper than
// the others' and their panels larger: nothing may be written behind the workspace.
static void test_scratch_of_parts(void **state)
{
    (void)state;
    static const int64_t sizes[][4] = {{1, 521, 97, 900}, {1, 263, 200, 760}, {1, 260, 1151, 768}};
    int32_t workers = 3;
    attn_context_config config;
    attn_context_config_init(&config);
    config.executor =
        (attn_executor){.state = &workers, .workers = workers, .parallel_for = run_on_last};
    attn_context *context = NULL;
    assert_int_equal(ATTN_OK, attn_context_create(&config, &context, NULL));
    for (int n = 0; n < 10; n++) { // two layouts of the last, large one
        const int64_t *size = sizes[n / 4];
        attn_tensor a = matrix(ATTN_F32, n % 2 ? TRANSPOSED : ROW_MAJOR, 1, size[1], size[3]);
        attn_tensor b = matrix(ATTN_F32, n / 2 % 2 ? TRANSPOSED : ROW_MAJOR, 1, size[3], size[2]);
        attn_tensor c = matrix(ATTN_F32, ROW_MAJOR, 1, size[1], size[2]);
        const struct attn_product product = {.a = &a, .b = &b, .c = &c};
        const size_t bytes = attn_product_workspace(context, &product), canary = 1 << 20;
        unsigned char *const workspace = aligned_alloc(64, (bytes + canary + 63) / 64 * 64);
        assert_non_null(workspace);
        memset(workspace + bytes, 0x5a, canary);
        assert_int_equal(ATTN_OK, attn_product_run(context, &product, workspace, NULL));
        for (size_t i = 0; i < canary; i++) {
            assert_int_equal(0x5a, workspace[bytes + i]);
        }
        free(workspace);
        free(a.data);
        free(b.data);
        free(c.data);
    }
    attn_context_destroy(context);
}

// One job or several: none sees the caller's rounding mode.
static void test_rounding_mode(void **state)
{
    (void)state;
    struct contexts contexts = make_contexts();
    attn_tensor a = matrix(ATTN_F32, ROW_MAJOR, 1, 3, 50),
                b = matrix(ATTN_F32, ROW_MAJOR, 1, 50, 9);
    attn_tensor c = matrix(ATTN_F32, ROW_MAJOR, 1, 3, 9);
    const struct attn_product product = {.a = &a, .b = &b, .c = &c};
    float expected[27];
    define(&product);
    memcpy(expected, c.data, sizeof expected);
    for (int i = 0; i < contexts.count; i++) {
        memset(c.data, 0, sizeof expected);
        assert_int_equal(fesetround(FE_DOWNWARD), 0);
        const attn_status status = attn_product_run(contexts.context[i], &product, NULL, NULL);
        assert_int_equal(fesetround(FE_TONEAREST), 0);
        assert_int_equal(ATTN_OK, status);
        assert_memory_equal(c.data, expected, sizeof expected);
    }
    free(a.data);
    free(b.data);
    free(c.data);
    destroy_contexts(&contexts);
}

// A prepared weight gives the bits of an unprepared one, also with leading dims folded into rows.
static void test_packed(void **state)
{
    (void)state;
    struct contexts contexts = make_contexts();
    for (int round = 0; round < 2 * contexts.count; round++) {
        const attn_context *const context = contexts.context[round / 2];
        const attn_dtype dtype = round % 2 ? ATTN_F64 : ATTN_F32;
        attn_tensor x = matrix(dtype, ROW_MAJOR, 5, 7, 150);
        attn_tensor y = matrix(dtype, ROW_MAJOR, 5, 7, 130);
        attn_tensor z = matrix(dtype, ROW_MAJOR, 5, 7, 130);
        attn_tensor weight = matrix(dtype, ROW_MAJOR, 1, 130, 150);
        assert_int_equal(ATTN_OK, attn_tensor_select(&weight, 0, 0, &weight, NULL));
        attn_tensor transposed;
        assert_int_equal(ATTN_OK, attn_tensor_transpose(&weight, 0, 1, &transposed, NULL));
        attn_tensor shared;
        assert_int_equal(
            ATTN_OK, attn_tensor_expand(&transposed, 3, (int64_t[]){5, 150, 130}, &shared, NULL));
        struct attn_packed_weight *packed = NULL;
        assert_int_equal(ATTN_OK, attn_packed_weight_create(context, &weight, &packed, NULL));
        const struct attn_product plain = {.a = &x, .b = &shared, .c = &y};
        const struct attn_product prepared = {.a = &x, .b = &transposed, .c = &z, .packed = packed};
        assert_int_equal(ATTN_OK, attn_product_run(context, &plain, NULL, NULL));
        assert_int_equal(ATTN_OK, attn_product_run(context, &prepared, NULL, NULL));
        assert_memory_equal(y.data, z.data, 5 * 7 * 130 * attn_dtype_size(dtype));

        attn_tensor_fill(&weight, 1.0, NULL);
        assert_int_equal(ATTN_OK, attn_packed_weight_refresh(packed, &weight, NULL));
        assert_int_equal(ATTN_OK, attn_product_run(context, &plain, NULL, NULL));
        assert_int_equal(ATTN_OK, attn_product_run(context, &prepared, NULL, NULL));
        assert_memory_equal(y.data, z.data, 5 * 7 * 130 * attn_dtype_size(dtype));
        attn_packed_weight_destroy(packed);
        free(x.data);
        free(y.data);
        free(z.data);
        free(weight.data);
    }
    destroy_contexts(&contexts);
}

static void expect(attn_status expected_status, const char *expected_text,
                   const attn_context *context, const struct attn_product *product)
{
    attn_error error = {.status = ATTN_OK};
    assert_int_equal(expected_status, attn_product_run(context, product, NULL, &error));
    assert_string_equal(expected_text, error.text);
}

static void test_errors(void **state)
{
    (void)state;
    attn_context *context = NULL;
    assert_int_equal(ATTN_OK, attn_context_create(NULL, &context, NULL));
    float data[64] = {0};
    const attn_tensor a = attn_tensor_wrap(data, ATTN_F32, 2, (int64_t[]){2, 3});
    const attn_tensor b = attn_tensor_wrap(data + 8, ATTN_F32, 2, (int64_t[]){4, 2});
    const attn_tensor c = attn_tensor_wrap(data + 16, ATTN_F32, 2, (int64_t[]){2, 2});
    const attn_tensor fits = attn_tensor_wrap(data + 8, ATTN_F32, 2, (int64_t[]){3, 2});
    const attn_tensor bias = attn_tensor_wrap(data + 32, ATTN_F32, 1, (int64_t[]){3});
    const attn_tensor two = attn_tensor_wrap(data + 32, ATTN_F32, 1, (int64_t[]){2});
    const attn_tensor whole = attn_tensor_wrap(data, ATTN_I32, 2, (int64_t[]){2, 3});
    expect(ATTN_ERR_SHAPE, "matmul: [2,3] times [4,2] does not give [2,2]", context,
           &(struct attn_product){.a = &a, .b = &b, .c = &c});
    expect(ATTN_ERR_DTYPE, "matmul: dtypes differ: int32 times float32 into float32", context,
           &(struct attn_product){.a = &whole, .b = &fits, .c = &c});
    expect(ATTN_ERR_DTYPE, "matmul: c is int32, expected float32 or float64", context,
           &(struct attn_product){.a = &a, .b = &fits, .c = &whole});
    expect(ATTN_ERR_SHAPE, "matmul: bias is float32 [3], expected float32 [2]", context,
           &(struct attn_product){.a = &a, .b = &fits, .c = &c, .bias = &bias});
    expect(ATTN_ERR_INVALID_ARGUMENT, "matmul: a bias and accumulate exclude each other", context,
           &(struct attn_product){.a = &a, .b = &fits, .c = &c, .bias = &two, .accumulate = true});
    attn_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts),          cmocka_unit_test(test_blocking),
        cmocka_unit_test(test_scratch_of_parts), cmocka_unit_test(test_rounding_mode),
        cmocka_unit_test(test_packed),           cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
