// attn oracle: the definition in float64, forward and backward.
#include <string.h>

#include "problem.h"

static const option_row oracle_rows[] = {
    {"grad-output", 'g', "FILE", "Upstream gradient of the output: asks for the gradients."},
    {"grad-lse", 0, "FILE", "Upstream gradient of lse."},
    {"output", 'o', "FILE", "Where everything goes: .safetensors, or a folder for .npy files."},
    {"weights", 'w', NULL, "Also the attention weights."},
    {NULL, 0, NULL, NULL},
};
static const option_group oracle_group = {"Oracle", oracle_rows};

static int run(const arguments *a);

static const option_group *const groups[] = {
    &input_group,   &attention_group, &dropout_group, &oracle_group,
    &compute_group, &format_group,    &help_group,    NULL,
};

const command oracle_command = {
    .name = "oracle",
    .summary = "float64 outputs and gradients: the reference for other kernels",
    .operands = "",
    .description =
        "Computes the definition of attention in float64, one row at a time, whatever the inputs' "
        "dtype: output, row_max, row_sum and lse, and with --grad-output the gradients grad_query, "
        "grad_key, grad_value (grad_bias, grad_sinks where there is a bias or there are sinks). "
        "All results are float64.",
    .groups = groups,
    .example =
        "  attn oracle -q q.npy -k k.npy -v v.npy --causal -g grad.npy -o oracle.safetensors\n"
        "  attn check mine.npy oracle.safetensors:output --absolute 1e-5\n",
    .run = run,
};

enum {
    OUTPUT = 0,
    ROW_MAX,
    ROW_SUM,
    LSE,
    WEIGHTS,
    GRAD_QUERY,
    GRAD_KEY,
    GRAD_VALUE,
    GRAD_BIAS,
    GRAD_SINKS,
    RESULTS
};

static const char *const names[RESULTS] = {
    "output",     "row_max",  "row_sum",    "lse",       "weights",
    "grad_query", "grad_key", "grad_value", "grad_bias", "grad_sinks",
};

typedef struct oracle {
    problem p;
    attn_named_tensor results[RESULTS];
    const attn_tensor *at[RESULTS]; // NULL: not wanted
    int64_t count;
} oracle;

static bool want(oracle *o, int index, int32_t ndim, const int64_t *shape);
static bool compute_forward(oracle *o);
static bool compute_backward(oracle *o, const attn_tensor *grad_output,
                             const attn_tensor *grad_lse);
static int run_problem(oracle *o, const arguments *a, const attn_context *context);

static int run(const arguments *a)
{
    if (!argument_given(a, "output")) {
        return usage_error(a, "--output is needed");
    }
    if (argument_given(a, "grad-lse") && !argument_given(a, "grad-output")) {
        return usage_error(a, "--grad-lse goes with --grad-output");
    }
    progress bar;
    progress_begin(&bar, "attn oracle", 0);
    int status;
    attn_context *context = context_for(a, &bar, &status);
    if (context == NULL) {
        return status;
    }
    oracle o = {0};
    status = run_problem(&o, a, context);
    progress_end(&bar);
    for (int64_t i = 0; i < o.count; i++) {
        attn_tensor_destroy(context, &o.results[i].tensor);
    }
    problem_close(&o.p);
    attn_context_destroy(context);
    return status;
}

static int run_problem(oracle *o, const arguments *a, const attn_context *context)
{
    if (!problem_open(&o->p, a, context)) {
        return o->p.status;
    }
    const attn_tensor *grad_output = problem_tensor(&o->p, "grad-output", 4);
    const attn_tensor *grad_lse = problem_tensor(&o->p, "grad-lse", 3);
    if (o->p.status != EXIT_OK) {
        return o->p.status;
    }
    if (!compute_forward(o) ||
        (grad_output != NULL && !compute_backward(o, grad_output, grad_lse))) {
        return EXIT_TROUBLE;
    }
    // In the files' own rank; the gradients of bias and sinks stay as they are.
    attn_named_tensor shown[RESULTS];
    for (int64_t i = 0; i < o->count; i++) {
        shown[i] = o->results[i];
        if (strcmp(shown[i].name, names[GRAD_BIAS]) != 0 &&
            strcmp(shown[i].name, names[GRAD_SINKS]) != 0) {
            shown[i].tensor = problem_output_view(&o->p, &o->results[i].tensor);
        }
    }
    static const attn_text_pair metadata[] = {{"made_by", "attn oracle"}};
    attn_error error;
    return tensor_file_save(context, argument_text(a, "output"), shown, o->count, metadata, 1,
                            npy_flags(a), &error) == ATTN_OK
               ? EXIT_OK
               : library_trouble(a, &error);
}

// Adds one result; false after a message.
static bool want(oracle *o, int index, int32_t ndim, const int64_t *shape)
{
    attn_error error;
    attn_named_tensor *entry = &o->results[o->count];
    if (attn_tensor_create(o->p.context, ATTN_F64, ndim, shape, &entry->tensor, &error) !=
        ATTN_OK) {
        library_trouble(o->p.arguments, &error);
        return false;
    }
    entry->name = names[index];
    o->at[index] = &entry->tensor;
    o->count++;
    return true;
}

static bool compute_forward(oracle *o)
{
    const problem *p = &o->p;
    const int64_t *q = p->query.shape;
    const int64_t output[] = {q[0], q[1], q[2], p->value.shape[3]};
    const int64_t weights[] = {q[0], q[1], q[2], p->key.shape[2]};
    if (!want(o, OUTPUT, 4, output) || !want(o, ROW_MAX, 3, q) || !want(o, ROW_SUM, 3, q) ||
        !want(o, LSE, 3, q) ||
        (argument_given(p->arguments, "weights") && !want(o, WEIGHTS, 4, weights))) {
        return false;
    }
    attn_sdpa_forward_args args;
    attn_sdpa_forward_args_init(&args);
    args.query = &p->query;
    args.key = &p->key;
    args.value = &p->value;
    args.output = o->at[OUTPUT];
    args.row_max = o->at[ROW_MAX];
    args.row_sum = o->at[ROW_SUM];
    args.lse = o->at[LSE];
    args.weights = o->at[WEIGHTS];
    attn_error error;
    if (attn_sdpa_reference_forward(p->context, &p->desc, &args, &error) != ATTN_OK) {
        library_trouble(p->arguments, &error);
        return false;
    }
    return true;
}

static bool compute_backward(oracle *o, const attn_tensor *grad_output, const attn_tensor *grad_lse)
{
    const problem *p = &o->p;
    const attn_tensor *bias = p->desc.bias;
    int64_t bias_shape[4] = {0};
    for (int d = 0; bias != NULL && d < 4; d++) {
        bias_shape[d] = bias->stride[d] == 0 ? 1 : bias->shape[d];
    }
    if (!want(o, GRAD_QUERY, 4, p->query.shape) || !want(o, GRAD_KEY, 4, p->key.shape) ||
        !want(o, GRAD_VALUE, 4, p->value.shape) ||
        (bias != NULL && !want(o, GRAD_BIAS, 4, bias_shape)) ||
        (p->desc.sinks != NULL && !want(o, GRAD_SINKS, 1, &p->query.shape[1]))) {
        return false;
    }
    attn_sdpa_backward_args args;
    attn_sdpa_backward_args_init(&args);
    args.query = &p->query;
    args.key = &p->key;
    args.value = &p->value;
    args.grad_output = grad_output;
    args.grad_lse = grad_lse;
    args.grad_query = o->at[GRAD_QUERY];
    args.grad_key = o->at[GRAD_KEY];
    args.grad_value = o->at[GRAD_VALUE];
    args.grad_bias = o->at[GRAD_BIAS];
    args.grad_sinks = o->at[GRAD_SINKS];
    attn_error error;
    if (attn_sdpa_reference_backward(p->context, &p->desc, &args, &error) != ATTN_OK) {
        library_trouble(p->arguments, &error);
        return false;
    }
    return true;
}
