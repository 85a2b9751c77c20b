// attn run: plain attention, or one layer of a model.
#include <stdlib.h>
#include <string.h>

#include "layer_options.h"
#include "problem.h"
#include "run_module.h"

static const option_row output_rows[] = {
    {"output", 'o', "FILE", "Where the output goes: .npy, .safetensors, or - for standard output."},
    {"weights", 'w', "FILE", "The attention weights."},
    {"lse", 0, "FILE", "Log of every row's sum of exponentials."},
    {"key-sums", 0, "FILE", "For every key the sum of its weights over rows."},
    {"weight-heads", 0, "LIST", "Only these heads' weights."},
    {"weight-rows", 0, "LIST", "Only these rows' weights."},
    {"weights-dropped", 0, NULL, "Weights after dropout instead of after softmax."},
    {"trace", 0, "DIR", "A folder that gets every intermediate as NAME.npy."},
    {NULL, 0, NULL, NULL},
};
static const option_group output_group = {"Output", output_rows};

static const option_row model_rows[] = {
    {"model", 'm', "FILE", "A model's parameters: .safetensors, or its .index.json."},
    {"input", 'i', "FILE", "The layer's input, (T, d_in) or (B, T, d_in)."},
    {"position", 0, "N", "Absolute position of the input's first row."},
    {NULL, 0, NULL, NULL},
};
static const option_group model_group = {"Model", model_rows};

static int run(const arguments *a);

static const option_group *const groups[] = {
    &input_group,  &attention_group, &dropout_group, &model_group, &layer_group, &module_group,
    &output_group, &compute_group,   &format_group,  &help_group,  NULL,
};

const command run_command = {
    .name = "run",
    .summary = "compute attention on tensors from files, or a layer of a model",
    .operands = "",
    .description =
        "Computes scaled dot-product attention of --query, --key and --value, or, with --model and "
        "--input, one attention layer of a model. At least one output must be named.\n\n"
        "Without dropout every output has the same bits on every machine and thread count.",
    .groups = groups,
    .example = "  attn run -q q.npy -k k.npy -v v.npy --causal -o out.npy --weights weights.npy\n"
               "  attn run --model gpt2/model.safetensors --layer 0 --input x.npy -o out.npy\n",
    .run = run,
};

static int run_plain(const arguments *a, const attn_context *context);
static bool wants_anything(const arguments *a);
static const char *foreign_to_plain(const arguments *a);
static const char *foreign_to_module(const arguments *a);

static int run(const arguments *a)
{
    if (!wants_anything(a)) {
        return usage_error(a, "no output is named: give --output, --weights, --lse, --key-sums or "
                              "--trace");
    }
    const bool plain = argument_given(a, "query") || argument_given(a, "key") ||
                       argument_given(a, "value");
    if (plain == argument_given(a, "model")) {
        return usage_error(a, "give either --query, --key and --value, or --model and --input");
    }
    const char *foreign = plain ? foreign_to_plain(a) : foreign_to_module(a);
    if (foreign != NULL) {
        return usage_error(a, "--%s has no meaning with %s", foreign,
                           plain ? "--query, --key and --value" : "--model");
    }
    int status;
    attn_context *context = context_for(a, NULL, &status);
    if (context == NULL) {
        return status;
    }
    status = plain ? run_plain(a, context) : run_module(a, context);
    attn_context_destroy(context);
    return status;
}

static const char *foreign_to_plain(const arguments *a)
{
    const char *name = given_in_group(a, &model_group, NULL);
    name = name != NULL ? name : given_in_group(a, &layer_group, NULL);
    return name != NULL ? name : given_in_group(a, &module_group, NULL);
}

static const char *foreign_to_module(const arguments *a)
{
    static const char *const only_plain[] = {"lse", "key-sums", "weight-heads", "weight-rows",
                                             "weights-dropped"};
    const char *name = given_in_group(a, &attention_group, "key-lengths");
    name = name != NULL ? name : given_in_group(a, &dropout_group, NULL);
    for (size_t i = 0; name == NULL && i < sizeof(only_plain) / sizeof(*only_plain); i++) {
        name = argument_given(a, only_plain[i]) ? only_plain[i] : NULL;
    }
    return name;
}

static bool wants_anything(const arguments *a)
{
    return argument_given(a, "output") || argument_given(a, "weights") ||
           argument_given(a, "lse") || argument_given(a, "key-sums") || argument_given(a, "trace");
}

// ---- plain attention ----------------------------------------------------------------------------

// The outputs of a run, in the order of `names`.
enum { OUTPUT = 0, WEIGHTS, LSE, KEY_SUMS, ROW_MAX, ROW_SUM, DROPPED, OUTPUTS };

typedef struct results {
    attn_tensor tensors[OUTPUTS];
    bool wanted[OUTPUTS];
} results;

static const char *const names[OUTPUTS] = {
    "output", "weights", "lse", "key-sums", "row_max", "row_sum", "weights.dropped",
};

static bool create_results(const problem *p, const attn_tensor *heads, const attn_tensor *rows,
                           results *r);
static bool compute(const problem *p, const attn_tensor *heads, const attn_tensor *rows,
                    const results *r);
static int save_results(const problem *p, results *r);

static int run_plain(const arguments *a, const attn_context *context)
{
    problem p;
    if (!problem_open(&p, a, context)) {
        return p.status;
    }
    const bool trace = argument_given(a, "trace");
    results r = {
        .wanted = {argument_given(a, "output") || trace, argument_given(a, "weights") || trace,
                   argument_given(a, "lse") || trace, argument_given(a, "key-sums") || trace, trace,
                   trace, trace && p.desc.dropout != ATTN_DROPOUT_NONE}};
    const attn_tensor *heads = problem_integers(&p, "weight-heads");
    const attn_tensor *rows = problem_integers(&p, "weight-rows");
    int status = p.status;
    if (status == EXIT_OK) {
        status = create_results(&p, heads, rows, &r) && compute(&p, heads, rows, &r)
                     ? save_results(&p, &r)
                     : EXIT_TROUBLE;
    }
    for (int i = 0; i < OUTPUTS; i++) {
        attn_tensor_destroy(context, &r.tensors[i]);
    }
    problem_close(&p);
    return status;
}

static bool create_results(const problem *p, const attn_tensor *heads, const attn_tensor *rows,
                           results *r)
{
    const int64_t *q = p->query.shape;
    const attn_dtype stats = p->query.dtype == ATTN_F64 ? ATTN_F64 : ATTN_F32;
    const int64_t weight_heads = heads == NULL ? q[1] : attn_tensor_count(heads);
    const int64_t weight_rows = rows == NULL ? q[2] : attn_tensor_count(rows);
    const int64_t shapes[OUTPUTS][4] = {
        [OUTPUT] = {q[0], q[1], q[2], p->value.shape[3]},
        [WEIGHTS] = {q[0], weight_heads, weight_rows, p->key.shape[2]},
        [LSE] = {q[0], q[1], q[2]},
        [KEY_SUMS] = {q[0], q[1], p->key.shape[2]},
        [ROW_MAX] = {q[0], q[1], q[2]},
        [ROW_SUM] = {q[0], q[1], q[2]},
        [DROPPED] = {q[0], weight_heads, weight_rows, p->key.shape[2]},
    };
    for (int i = 0; i < OUTPUTS; i++) {
        attn_error error;
        const bool four = i == OUTPUT || i == WEIGHTS || i == DROPPED;
        const attn_dtype dtype = i == OUTPUT ? p->query.dtype : stats;
        if (r->wanted[i] && attn_tensor_create(p->context, dtype, four ? 4 : 3, shapes[i],
                                               &r->tensors[i], &error) != ATTN_OK) {
            library_trouble(p->arguments, &error);
            return false;
        }
    }
    return true;
}

static const attn_tensor *wanted(const results *r, int index)
{
    return r->wanted[index] ? &r->tensors[index] : NULL;
}

static bool compute(const problem *p, const attn_tensor *heads, const attn_tensor *rows,
                    const results *r)
{
    attn_sdpa_forward_args args;
    attn_sdpa_forward_args_init(&args);
    args.query = &p->query;
    args.key = &p->key;
    args.value = &p->value;
    args.output = wanted(r, OUTPUT);
    args.row_max = wanted(r, ROW_MAX);
    args.row_sum = wanted(r, ROW_SUM);
    args.lse = wanted(r, LSE);
    args.weights = wanted(r, WEIGHTS);
    args.weight_heads = heads;
    args.weight_rows = rows;
    args.weights_dropped = argument_given(p->arguments, "weights-dropped");
    args.key_sums = wanted(r, KEY_SUMS);
    attn_error error;
    attn_status status = attn_sdpa_forward(p->context, &p->desc, &args, &error);
    if (status == ATTN_OK && r->wanted[DROPPED]) {
        attn_sdpa_forward_args dropped = args;
        dropped.output = dropped.row_max = dropped.row_sum = dropped.lse = dropped.key_sums = NULL;
        dropped.weights = &r->tensors[DROPPED];
        dropped.weights_dropped = true;
        status = attn_sdpa_forward(p->context, &p->desc, &dropped, &error);
    }
    if (status != ATTN_OK) {
        library_trouble(p->arguments, &error);
    }
    return status == ATTN_OK;
}

static int save_results(const problem *p, results *r)
{
    const arguments *a = p->arguments;
    attn_error error;
    attn_named_tensor all[OUTPUTS];
    int64_t count = 0;
    for (int i = 0; i < OUTPUTS; i++) {
        if (!r->wanted[i]) {
            continue;
        }
        const attn_named_tensor named = {names[i], problem_output_view(p, &r->tensors[i])};
        all[count++] = named;
        const char *path = i <= KEY_SUMS ? argument_text(a, names[i]) : NULL;
        if (path != NULL && tensor_file_save(p->context, path, &named, 1, NULL, 0, npy_flags(a),
                                             &error) != ATTN_OK) {
            return library_trouble(a, &error);
        }
    }
    const char *folder = argument_text(a, "trace");
    char path[4096];
    if (folder != NULL) {
        snprintf(path, sizeof(path), "%s/", folder);
        if (tensor_file_save(p->context, path, all, count, NULL, 0, npy_flags(a), &error) !=
            ATTN_OK) {
            return library_trouble(a, &error);
        }
    }
    return EXIT_OK;
}
