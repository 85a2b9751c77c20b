// attn check: how far apart two files are.
#include <math.h>
#include <string.h>

#include "tensor_file.h"
#include "text.h"
#include "tool.h"

static const option_row check_rows[] = {
    {"absolute", 'a', "X", "Allowed absolute error; default 0."},
    {"relative", 'r', "X", "Allowed error relative to the expected value; default 0."},
    {"ulp", 'u', "N", "Allowed distance in units in the last place, instead of the other two."},
    {"quiet", 'q', NULL, "Print nothing; only the exit status tells."},
    {NULL, 0, NULL, NULL},
};
static const option_group check_group = {"Check", check_rows};

static int run(const arguments *a);

static const option_group *const groups[] = {&check_group, &format_group, &help_group, NULL};

const command check_command = {
    .name = "check",
    .summary = "compare two files: largest error, ULP distance, and where",
    .operands = "ACTUAL EXPECTED",
    .least = 2,
    .most = 2,
    .description =
        "Compares the tensors of two files: one with one (FILE:NAME chooses among several), or all "
        "of two files by name. An element differs when it is further from the expected one than "
        "absolute + relative * |expected|; NaN equals only NaN, an infinity only itself. Without "
        "tolerances the values must be equal.\n\n"
        "Exit status 0: no element differs; 1: some do, or tensors are missing or of another "
        "shape; 3: a file cannot be read.",
    .groups = groups,
    .example = "  attn check out.npy expected.npy --absolute 1e-6\n",
    .run = run,
};

// The tolerances and what was found so far.
typedef struct checking {
    const arguments *arguments;
    const attn_context *context;
    double absolute, relative;
    int64_t ulp; // -1: not asked for
    bool quiet, different;
} checking;

static int check_files(checking *c, const attn_context *context);
static void check_all(checking *c, const tensor_file *actual, const tensor_file *expected);
static void check_pair(checking *c, const char *name, const attn_tensor *actual,
                       const attn_tensor *expected);
static uint64_t ulp_distance(const checking *c, const attn_tensor *actual,
                             const attn_tensor *expected, const attn_comparison *found);
static void print_result(const char *name, const attn_tensor *expected, const attn_comparison *r,
                         bool different);

static int run(const arguments *a)
{
    checking c = {.arguments = a, .quiet = argument_given(a, "quiet")};
    if (!argument_real(a, "absolute", 0, HUGE_VAL, 0, &c.absolute) ||
        !argument_real(a, "relative", 0, HUGE_VAL, 0, &c.relative) ||
        !argument_integer(a, "ulp", 0, INT64_MAX, -1, &c.ulp)) {
        return EXIT_USAGE;
    }
    if (c.ulp >= 0 && (c.absolute > 0 || c.relative > 0)) {
        return usage_error(a, "--ulp goes without --absolute and --relative");
    }
    attn_context *context = plain_context(a);
    const int status = context == NULL ? EXIT_TROUBLE : check_files(&c, context);
    attn_context_destroy(context);
    return status;
}

static int check_files(checking *c, const attn_context *context)
{
    const arguments *a = c->arguments;
    c->context = context;
    tensor_file files[2] = {0};
    attn_tensor tensors[2];
    attn_error error;
    // A name of one tensor first; two files of several tensors are compared by name.
    attn_status status = ATTN_OK;
    bool single = true;
    for (int i = 0; i < 2 && status == ATTN_OK && single; i++) {
        status = tensor_file_open_one(context, a->operands[i], npy_flags(a), &files[i], &tensors[i],
                                      &error);
        if (status == ATTN_ERR_NOT_FOUND && strchr(a->operands[i], ':') == NULL) {
            single = false;
        }
    }
    if (!single) {
        status = ATTN_OK;
        for (int i = 0; i < 2 && status == ATTN_OK; i++) {
            tensor_file_close(&files[i]);
            status = tensor_file_open(context, a->operands[i], npy_flags(a), &files[i], &error);
        }
    }
    if (status == ATTN_OK && single) {
        check_pair(c, NULL, &tensors[0], &tensors[1]);
    } else if (status == ATTN_OK) {
        check_all(c, &files[0], &files[1]);
    }
    tensor_file_close(&files[0]);
    tensor_file_close(&files[1]);
    if (status != ATTN_OK) {
        return library_trouble(a, &error);
    }
    return c->different ? EXIT_DIFFERENT : EXIT_OK;
}

static const attn_tensor *find(const tensor_file *file, const char *name)
{
    for (int64_t i = 0; i < file->count; i++) {
        if (strcmp(file->entries[i].name, name) == 0) {
            return &file->entries[i].tensor;
        }
    }
    return NULL;
}

static void check_all(checking *c, const tensor_file *actual, const tensor_file *expected)
{
    progress bar;
    progress_begin(&bar, "attn check", expected->count);
    for (int64_t i = 0; i < expected->count; i++) {
        const char *name = expected->entries[i].name;
        const attn_tensor *found = find(actual, name);
        if (found != NULL) {
            check_pair(c, name, found, &expected->entries[i].tensor);
        } else {
            c->different = true;
            if (!c->quiet) {
                printf("%s: missing in %s\n", name, c->arguments->operands[0]);
            }
        }
        progress_advance(&bar, 1);
    }
    for (int64_t i = 0; i < actual->count; i++) {
        if (find(expected, actual->entries[i].name) == NULL) {
            c->different = true;
            if (!c->quiet) {
                printf("%s: only in %s\n", actual->entries[i].name, c->arguments->operands[0]);
            }
        }
    }
    progress_end(&bar);
}

static void check_pair(checking *c, const char *name, const attn_tensor *actual,
                       const attn_tensor *expected)
{
    attn_comparison result;
    attn_error error;
    // With --ulp the distance decides; what cannot be compared (NaN, infinities) still differs.
    const double absolute = c->ulp >= 0 ? HUGE_VAL : c->absolute;
    if (attn_tensor_compare(actual, expected, absolute, c->relative, &result, &error) != ATTN_OK) {
        c->different = true;
        if (!c->quiet) {
            printf("%s%s%s\n", name == NULL ? "" : name, name == NULL ? "" : ": ", error.text);
        }
        return;
    }
    result.max_ulp = ulp_distance(c, actual, expected, &result);
    const bool different = result.differing > 0 ||
                           (c->ulp >= 0 && result.max_ulp > (uint64_t)c->ulp);
    c->different = c->different || different;
    if (!c->quiet) {
        print_result(name, expected, &result, different);
    }
}

// In units of the coarser dtype: a float32 result beside float64 is as good as its nearest float32.
static uint64_t ulp_distance(const checking *c, const attn_tensor *actual,
                             const attn_tensor *expected, const attn_comparison *found)
{
    if (attn_dtype_size(actual->dtype) >= attn_dtype_size(expected->dtype)) {
        return found->max_ulp;
    }
    attn_tensor rounded;
    attn_comparison result;
    uint64_t distance = found->max_ulp;
    if (attn_tensor_create(c->context, actual->dtype, expected->ndim, expected->shape, &rounded,
                           NULL) != ATTN_OK) {
        return distance;
    }
    if (attn_tensor_copy(expected, &rounded, NULL) == ATTN_OK &&
        attn_tensor_compare(actual, &rounded, 0, 0, &result, NULL) == ATTN_OK) {
        distance = result.max_ulp;
    }
    attn_tensor_destroy(c->context, &rounded);
    return distance;
}

static void print_result(const char *name, const attn_tensor *expected, const attn_comparison *r,
                         bool different)
{
    char shape[160], count[32];
    attn_tensor_format_shape(expected, shape, sizeof(shape));
    format_count(r->count, count);
    if (name != NULL) {
        printf("%s: ", name);
    }
    if (r->equal_bits) {
        printf("equal bits, %s values %s\n", count, shape);
        return;
    }
    printf("%s, %s values %s\n", different ? "DIFFERENT" : "within the tolerance", count, shape);
    printf("  largest absolute error  %.6g\n", r->max_absolute);
    printf("  largest relative error  %.6g\n", r->max_relative);
    if (r->max_ulp == UINT64_MAX) {
        printf("  largest ULP distance    not comparable\n");
    } else {
        printf("  largest ULP distance    %llu\n", (unsigned long long)r->max_ulp);
    }
    if (r->count == 0) {
        return;
    }
    if (r->differing > 0) {
        printf("  elements that differ    %lld\n", (long long)r->differing);
    }
    printf("  worst at                [");
    for (int32_t d = 0; d < expected->ndim; d++) {
        printf("%s%lld", d == 0 ? "" : ",", (long long)r->worst[d]);
    }
    printf("]: %.9g, expected %.9g\n", r->worst_actual, r->worst_expected);
}
