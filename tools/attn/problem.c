#include "problem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const option_row input_rows[] = {
    {"query", 'q', "FILE",
     "Query, (T, D), (H, T, D) or (B, H, T, D); .npy, .npz:NAME, "
     ".safetensors:NAME, or - for standard input."},
    {"key", 'k', "FILE", "Key, of the query's rank; its heads may divide the query's."},
    {"value", 'v', "FILE", "Value."},
    {NULL, 0, NULL, NULL},
};
const option_group input_group = {"Input", input_rows};

static const option_row attention_rows[] = {
    {"scale", 0, "X", "Factor on the scores; default 1/sqrt(D)."},
    {"causal", 'c', NULL, "Row i sees keys up to i + offset."},
    {"diagonal", 0, "top-left|bottom-right",
     "Offset of causality, window and ALiBi: 0 (the default), or key length - query length."},
    {"diagonal-offset", 0, "N", "An explicit offset."},
    {"window", 0, "LEFT,RIGHT", "Keys visible beside i + offset; -1 is no limit."},
    {"query-lengths", 0, "LIST", "Rows per batch entry: numbers or a file."},
    {"key-lengths", 0, "LIST", "Keys per batch entry: numbers or a file."},
    {"query-starts", 0, "LIST", "Packed sequences: where each starts, and the end."},
    {"key-starts", 0, "LIST", "The same for the keys."},
    {"keep", 0, "FILE", "Boolean mask; true = may attend."},
    {"bias", 0, "FILE", "Added to the scores; -inf masks."},
    {"alibi", 0, "FILE", "One slope per query head, or 'auto' for the paper's slopes."},
    {"softcap", 0, "X", "Scores become X tanh(score / X)."},
    {"sinks", 0, "FILE", "One logit per query head that joins the softmax's sum."},
    {NULL, 0, NULL, NULL},
};
const option_group attention_group = {"Attention", attention_rows};

static const option_row dropout_rows[] = {
    {"dropout", 0, "P", "Probability in [0, 1) of dropping a weight."},
    {"dropout-seed", 0, "N", "Seed of the drops by position (Philox)."},
    {"dropout-stream", 0, "N", "Which layer."},
    {"dropout-call", 0, "N", "Which forward pass."},
    {"dropout-batch", 0, "N", "Absolute number of batch entry 0."},
    {"dropout-head", 0, "N", "Absolute number of head 0."},
    {"dropout-row", 0, "N", "Absolute number of query row 0."},
    {"dropout-keep", 0, "FILE", "A given mask instead, one bit per weight."},
    {NULL, 0, NULL, NULL},
};
const option_group dropout_group = {"Dropout", dropout_rows};

static bool read_inputs(problem *p);
static bool read_masks(problem *p);
static bool read_alibi(problem *p);
static bool read_dropout(problem *p);
static attn_tensor *open_tensor(problem *p, const char *option);
static void pad_rank(attn_tensor *tensor, int32_t rank);

bool problem_open(problem *p, const arguments *a, const attn_context *context)
{
    *p = (problem){.arguments = a, .context = context, .status = EXIT_OK};
    attn_sdpa_desc *desc = &p->desc;
    attn_sdpa_desc_init(desc);
    desc->scale_mode = argument_given(a, "scale") ? ATTN_SCALE_GIVEN : ATTN_SCALE_INVERSE_SQRT;
    desc->causal = argument_given(a, "causal");
    desc->diagonal = argument_choice(a, "diagonal", 0) == 1 ? ATTN_DIAGONAL_BOTTOM_RIGHT
                                                            : ATTN_DIAGONAL_TOP_LEFT;
    if (argument_given(a, "diagonal-offset")) {
        desc->diagonal = ATTN_DIAGONAL_OFFSET;
    }
    int64_t window[2] = {-1, -1};
    int window_count;
    const bool read =
        argument_real(a, "scale", -HUGE_VAL, HUGE_VAL, 0, &desc->scale) &&
        argument_real(a, "softcap", 0, HUGE_VAL, 0, &desc->softcap) &&
        argument_integer(a, "diagonal-offset", INT64_MIN, INT64_MAX, 0, &desc->diagonal_offset) &&
        argument_integers(a, "window", window, 2, &window_count);
    if (read && window_count == 1) {
        usage_error(a, "--window takes two numbers, left and right, such as 128,0");
    }
    if (!read || window_count == 1) {
        p->status = EXIT_USAGE;
        return false;
    }
    desc->window_left = window[0];
    desc->window_right = window[1];
    if (read_inputs(p) && read_masks(p) && read_alibi(p) && read_dropout(p)) {
        return true;
    }
    const int status = p->status;
    problem_close(p);
    p->status = status;
    return false;
}

void problem_close(problem *p)
{
    for (int i = 0; i < p->used; i++) {
        tensor_file_close(&p->files[i]);
    }
    p->used = 0;
}

// ---- tensors ------------------------------------------------------------------------------------

const attn_tensor *problem_tensor(problem *p, const char *option, int32_t rank)
{
    attn_tensor *tensor = open_tensor(p, option);
    if (tensor != NULL && tensor->ndim > rank) {
        char shape[160];
        attn_tensor_format_shape(tensor, shape, sizeof(shape));
        p->status =
            trouble(p->arguments, "--%s: %s has more than %d dimensions", option, shape, (int)rank);
        return NULL;
    }
    if (tensor != NULL) {
        pad_rank(tensor, rank);
    }
    return tensor;
}

// The tensor as it is in its file.
static attn_tensor *open_tensor(problem *p, const char *option)
{
    const char *spec = argument_text(p->arguments, option);
    if (spec == NULL || p->status != EXIT_OK) {
        return NULL;
    }
    attn_error error;
    attn_tensor *tensor = &p->tensors[p->used];
    if (tensor_file_open_one(p->context, spec, npy_flags(p->arguments), &p->files[p->used], tensor,
                             &error) != ATTN_OK) {
        p->status = trouble(p->arguments, "--%s: %s", option, error.text);
        return NULL;
    }
    p->used++;
    return tensor;
}

static void pad_rank(attn_tensor *tensor, int32_t rank)
{
    const int32_t more = rank - tensor->ndim;
    memmove(tensor->shape + more, tensor->shape, (size_t)tensor->ndim * sizeof(int64_t));
    memmove(tensor->stride + more, tensor->stride, (size_t)tensor->ndim * sizeof(int64_t));
    for (int32_t d = 0; d < more; d++) {
        tensor->shape[d] = 1;
        tensor->stride[d] = 0;
    }
    tensor->ndim = rank;
}

const attn_tensor *problem_integers(problem *p, const char *option)
{
    const char *text = argument_text(p->arguments, option);
    if (text == NULL || p->status != EXIT_OK) {
        return NULL;
    }
    if (strspn(text, "0123456789,-") != strlen(text) || strcmp(text, "-") == 0) {
        return problem_tensor(p, option, 1);
    }
    int count;
    int64_t *numbers = p->numbers[p->used];
    if (!argument_integers(p->arguments, option, numbers, MOST_NUMBERS, &count)) {
        p->status = EXIT_USAGE;
        return NULL;
    }
    const int64_t shape[] = {count};
    attn_tensor *tensor = &p->tensors[p->used];
    p->files[p->used++] = (tensor_file){0};
    *tensor = attn_tensor_wrap(numbers, ATTN_I64, 1, shape);
    return tensor;
}

static bool read_inputs(problem *p)
{
    static const char *const names[] = {"query", "key", "value"};
    attn_tensor *const into[] = {&p->query, &p->key, &p->value};
    for (int i = 0; i < 3; i++) {
        if (!argument_given(p->arguments, names[i])) {
            p->status = usage_error(p->arguments, "--query, --key and --value are needed");
            return false;
        }
        const attn_tensor *tensor = open_tensor(p, names[i]);
        if (tensor == NULL) {
            return false;
        }
        const int32_t rank = tensor->ndim;
        if (rank < 2 || rank > 4 || (i > 0 && rank != p->rank)) {
            char shape[160];
            attn_tensor_format_shape(tensor, shape, sizeof(shape));
            p->status = trouble(p->arguments,
                                i > 0 && rank != p->rank
                                    ? "--%s: %s; query, key and value must have one rank"
                                    : "--%s: %s; (T, D), (H, T, D) or (B, H, T, D) is needed",
                                names[i], shape);
            return false;
        }
        p->rank = rank;
        *into[i] = *tensor;
        pad_rank(into[i], 4);
    }
    return true;
}

attn_tensor problem_output_view(const problem *p, const attn_tensor *output)
{
    attn_tensor view = *output;
    const int32_t dropped = 4 - p->rank;
    view.ndim = output->ndim - dropped;
    for (int32_t d = 0; d < view.ndim; d++) {
        view.shape[d] = output->shape[d + dropped];
        view.stride[d] = output->stride[d + dropped];
    }
    return view;
}

// ---- the descriptor's tensors -------------------------------------------------------------------

static bool read_masks(problem *p)
{
    attn_sdpa_desc *desc = &p->desc;
    desc->query_lengths = problem_integers(p, "query-lengths");
    desc->key_lengths = problem_integers(p, "key-lengths");
    desc->query_starts = problem_integers(p, "query-starts");
    desc->key_starts = problem_integers(p, "key-starts");
    desc->keep = problem_tensor(p, "keep", 4);
    desc->bias = problem_tensor(p, "bias", 4);
    desc->sinks = problem_tensor(p, "sinks", 1);
    return p->status == EXIT_OK;
}

// The paper's slopes for n heads: 2^(-8/n), its square, ...; where n is no power of two, those of the
// power below and then every second one of the power above.
static void fill_alibi(float *slopes, int64_t heads)
{
    int64_t power = 1;
    while (2 * power <= heads) {
        power *= 2;
    }
    for (int64_t h = 0; h < heads; h++) {
        const double exponent = h < power
                                    ? -8.0 * (double)(h + 1) / (double)power
                                    : -8.0 * (double)(2 * (h - power) + 1) / (double)(2 * power);
        slopes[h] = (float)exp2(exponent);
    }
}

static bool read_alibi(problem *p)
{
    const char *text = argument_text(p->arguments, "alibi");
    if (text == NULL || strcmp(text, "auto") != 0) {
        p->desc.alibi_slopes = problem_tensor(p, "alibi", 1);
        return p->status == EXIT_OK;
    }
    // The slopes live with the file's own memory, which tensor_file_close frees.
    const int64_t heads = p->query.shape[1];
    float *slopes = malloc((size_t)(heads > 0 ? heads : 1) * sizeof(float));
    if (slopes == NULL) {
        p->status = trouble(p->arguments, "out of memory");
        return false;
    }
    fill_alibi(slopes, heads);
    p->files[p->used] = (tensor_file){.bytes = (unsigned char *)slopes};
    p->tensors[p->used] = attn_tensor_wrap(slopes, ATTN_F32, 1, &heads);
    p->desc.alibi_slopes = &p->tensors[p->used++];
    return true;
}

static bool read_dropout(problem *p)
{
    const arguments *a = p->arguments;
    attn_sdpa_desc *desc = &p->desc;
    int64_t seed, stream, call;
    if (!argument_real(a, "dropout", 0, 1, 0, &desc->dropout_p) ||
        !argument_integer(a, "dropout-seed", 0, INT64_MAX, 0, &seed) ||
        !argument_integer(a, "dropout-stream", 0, INT64_MAX, 0, &stream) ||
        !argument_integer(a, "dropout-call", 0, INT64_MAX, 0, &call) ||
        !argument_integer(a, "dropout-batch", 0, INT64_MAX, 0, &desc->dropout_batch) ||
        !argument_integer(a, "dropout-head", 0, INT64_MAX, 0, &desc->dropout_head) ||
        !argument_integer(a, "dropout-row", 0, INT64_MAX, 0, &desc->dropout_row)) {
        p->status = EXIT_USAGE;
        return false;
    }
    desc->dropout_seed = (uint64_t)seed;
    desc->dropout_stream = (uint64_t)stream;
    desc->dropout_call = (uint64_t)call;
    desc->dropout_keep = problem_tensor(p, "dropout-keep", 4);
    if (desc->dropout_keep != NULL) {
        desc->dropout = ATTN_DROPOUT_KEEP;
    } else if (desc->dropout_p > 0) {
        desc->dropout = ATTN_DROPOUT_PHILOX;
    }
    return p->status == EXIT_OK;
}
