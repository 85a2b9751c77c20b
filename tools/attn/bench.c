// attn bench: how fast one shape is on this machine.
#define _GNU_SOURCE
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "text.h"
#include "tool.h"

static const option_row bench_rows[] = {
    {"shape", 's', "B,H,T,D", "Batch, heads, rows and head size; default 1,12,1024,64."},
    {"key-heads", 0, "N", "Key and value heads; default as many as heads."},
    {"keys", 0, "N", "Number of keys; default as many as rows."},
    {"causal", 'c', NULL, "With the causal mask, at the bottom right."},
    {"backward", 'b', NULL, "Also the backward pass."},
    {"dtype", 0, "float32|float64|float16|bfloat16", "Dtype of query, key and value."},
    {"repeat", 'n', "N", "Timed calls; the fastest and the median are shown. Default 10."},
    {NULL, 0, NULL, NULL},
};
static const option_group bench_group = {"Bench", bench_rows};

static int run(const arguments *a);

static const option_group *const groups[] = {&bench_group, &compute_group, &help_group, NULL};

const command bench_command = {
    .name = "bench",
    .summary = "time attention of one shape on this machine",
    .operands = "",
    .description =
        "Times the forward pass, and with --backward the backward pass, on random numbers, and "
        "prints milliseconds and GFLOP/s. A forward pass counts 4 B H Tq Tk D operations, half of "
        "that when causal, a backward pass 2.5 times as many.",
    .groups = groups,
    .example = "  attn bench --shape 1,12,1024,64 --causal --threads 1\n",
    .run = run,
};

// The tensors of the timed calls.
enum {
    QUERY = 0,
    KEY,
    VALUE,
    OUTPUT,
    ROW_MAX,
    ROW_SUM,
    GRAD_OUTPUT,
    GRAD_QUERY,
    GRAD_KEY,
    GRAD_VALUE,
    TENSORS
};

typedef struct bench {
    const arguments *arguments;
    attn_context *context;
    int64_t batch, heads, key_heads, rows, keys, head_size;
    int64_t repeat;
    attn_dtype dtype;
    attn_sdpa_desc desc;
    attn_tensor tensors[TENSORS];
    void *workspace;
    size_t workspace_size;
    double *times;
} bench;

static int read_shape(bench *b);
static int create_tensors(bench *b);
static int time_pass(bench *b, bool backward, progress *bar);
static attn_status forward(bench *b, attn_error *error);
static attn_status backward(bench *b, attn_error *error);
static void print_times(const bench *b, const char *name, double operations);

static int run(const arguments *a)
{
    bench b = {.arguments = a};
    int status = read_shape(&b);
    if (status != EXIT_OK) {
        return status;
    }
    b.context = context_for(a, NULL, &status);
    if (b.context == NULL) {
        return status;
    }
    status = create_tensors(&b);
    if (status == EXIT_OK) {
        printf("(%lld, %lld, %lld, %lld), %lld keys, %lld key heads, %s%s, %s, %d thread%s\n",
               (long long)b.batch, (long long)b.heads, (long long)b.rows, (long long)b.head_size,
               (long long)b.keys, (long long)b.key_heads, attn_dtype_name(b.dtype),
               b.desc.causal ? ", causal" : "", attn_tier_name(attn_context_tier(b.context)),
               (int)attn_context_workers(b.context),
               attn_context_workers(b.context) == 1 ? "" : "s");
        const bool both = argument_given(a, "backward");
        progress bar;
        progress_begin(&bar, "attn bench", (both ? 2 : 1) * (b.repeat + 1));
        status = time_pass(&b, false, &bar);
        if (status == EXIT_OK && both) {
            status = time_pass(&b, true, &bar);
        }
        progress_end(&bar);
    }
    for (int i = 0; i < TENSORS; i++) {
        attn_tensor_destroy(b.context, &b.tensors[i]);
    }
    free(b.workspace);
    free(b.times);
    attn_context_destroy(b.context);
    return status;
}

static int read_shape(bench *b)
{
    static const attn_dtype dtypes[] = {ATTN_F32, ATTN_F64, ATTN_F16, ATTN_BF16};
    const arguments *a = b->arguments;
    int64_t shape[4] = {1, 12, 1024, 64};
    int count;
    if (!argument_integers(a, "shape", shape, 4, &count)) {
        return EXIT_USAGE;
    }
    for (int i = 0; i < 4; i++) {
        if (shape[i] <= 0 || (count != 0 && count != 4)) {
            return usage_error(a, "--shape takes four positive numbers, such as 1,12,1024,64");
        }
    }
    b->batch = shape[0];
    b->heads = shape[1];
    b->rows = shape[2];
    b->head_size = shape[3];
    if (!argument_integer(a, "key-heads", 1, INT64_MAX, b->heads, &b->key_heads) ||
        !argument_integer(a, "keys", 1, INT64_MAX, b->rows, &b->keys) ||
        !argument_integer(a, "repeat", 1, 100000, 10, &b->repeat)) {
        return EXIT_USAGE;
    }
    b->dtype = dtypes[argument_choice(a, "dtype", 0)];
    attn_sdpa_desc_init(&b->desc);
    b->desc.causal = argument_given(a, "causal");
    b->desc.diagonal = ATTN_DIAGONAL_BOTTOM_RIGHT;
    return EXIT_OK;
}

static int create_tensors(bench *b)
{
    const attn_dtype stats = b->dtype == ATTN_F64 ? ATTN_F64 : ATTN_F32;
    const int64_t query[] = {b->batch, b->heads, b->rows, b->head_size};
    const int64_t key[] = {b->batch, b->key_heads, b->keys, b->head_size};
    const struct {
        const int64_t *shape;
        attn_dtype dtype;
        int32_t ndim;
    } wanted[TENSORS] = {
        {query, b->dtype, 4}, {key, b->dtype, 4}, {key, b->dtype, 4}, {query, b->dtype, 4},
        {query, stats, 3},    {query, stats, 3},  {query, stats, 4},  {query, stats, 4},
        {key, stats, 4},      {key, stats, 4},
    };
    attn_error error;
    attn_generator *generator = NULL;
    if (attn_generator_create(b->context, 1, &generator, &error) != ATTN_OK) {
        return library_trouble(b->arguments, &error);
    }
    attn_status status = ATTN_OK;
    const int count = argument_given(b->arguments, "backward") ? TENSORS : GRAD_OUTPUT;
    for (int i = 0; status == ATTN_OK && i < count; i++) {
        attn_tensor *tensor = &b->tensors[i];
        status = attn_tensor_create(b->context, wanted[i].dtype, wanted[i].ndim, wanted[i].shape,
                                    tensor, &error);
        attn_tensor drawn = {0};
        if (status == ATTN_OK && (i <= VALUE || i == GRAD_OUTPUT)) {
            status = attn_tensor_create(b->context, ATTN_F32, tensor->ndim, tensor->shape, &drawn,
                                        &error);
        }
        if (status == ATTN_OK && drawn.data != NULL) {
            status = attn_uniform(generator, -1, 1, &drawn, &error);
        }
        if (status == ATTN_OK && drawn.data != NULL) {
            status = attn_tensor_copy(&drawn, tensor, &error);
        }
        attn_tensor_destroy(b->context, &drawn);
    }
    attn_generator_destroy(generator);
    b->times = calloc((size_t)b->repeat, sizeof(double));
    if (status == ATTN_OK && b->times == NULL) {
        return trouble(b->arguments, "out of memory");
    }
    return status == ATTN_OK ? EXIT_OK : library_trouble(b->arguments, &error);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// One call to warm up, then the timed ones.
static int time_pass(bench *b, bool is_backward, progress *bar)
{
    attn_error error;
    for (int64_t i = -1; i < b->repeat; i++) {
        const double start = seconds();
        const attn_status status = is_backward ? backward(b, &error) : forward(b, &error);
        if (i >= 0) {
            b->times[i] = seconds() - start;
        }
        if (status != ATTN_OK) {
            return library_trouble(b->arguments, &error);
        }
        progress_advance(bar, 1);
    }
    progress_end(bar);
    const double operations = 4.0 * (double)b->batch * (double)b->heads * (double)b->rows *
                              (double)b->keys * (double)b->head_size * (b->desc.causal ? 0.5 : 1) *
                              (is_backward ? 2.5 : 1);
    print_times(b, is_backward ? "backward" : "forward", operations);
    return EXIT_OK;
}

static attn_status forward(bench *b, attn_error *error)
{
    attn_sdpa_forward_args args;
    attn_sdpa_forward_args_init(&args);
    args.query = &b->tensors[QUERY];
    args.key = &b->tensors[KEY];
    args.value = &b->tensors[VALUE];
    args.output = &b->tensors[OUTPUT];
    args.row_max = &b->tensors[ROW_MAX];
    args.row_sum = &b->tensors[ROW_SUM];
    return attn_sdpa_forward(b->context, &b->desc, &args, error);
}

static attn_status backward(bench *b, attn_error *error)
{
    attn_sdpa_backward_args args;
    attn_sdpa_backward_args_init(&args);
    args.query = &b->tensors[QUERY];
    args.key = &b->tensors[KEY];
    args.value = &b->tensors[VALUE];
    args.output = &b->tensors[OUTPUT];
    args.row_max = &b->tensors[ROW_MAX];
    args.row_sum = &b->tensors[ROW_SUM];
    args.grad_output = &b->tensors[GRAD_OUTPUT];
    args.grad_query = &b->tensors[GRAD_QUERY];
    args.grad_key = &b->tensors[GRAD_KEY];
    args.grad_value = &b->tensors[GRAD_VALUE];
    return attn_sdpa_backward(b->context, &b->desc, &args, error);
}

static int by_time(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

static void print_times(const bench *b, const char *name, double operations)
{
    assert(b->times != NULL);
    qsort(b->times, (size_t)b->repeat, sizeof(double), by_time);
    const double fastest = b->times[0];
    const double median = b->times[b->repeat / 2];
    printf("%-9s fastest %10.3f ms  %8.1f GFLOP/s   median %10.3f ms  %8.1f GFLOP/s\n", name,
           1e3 * fastest, 1e-9 * operations / fastest, 1e3 * median, 1e-9 * operations / median);
}
