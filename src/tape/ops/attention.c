// Scaled dot-product attention as one op: forward and backward are the engine's, no T x T memory.
#include "tape/ops/attention.h"
#include "tape/ops/ops.h"
#include "tape/tape.h"

// What the backward needs besides the operands.
struct attention {
    attn_sdpa_desc desc; // with its tensors in the arena; bias and sinks as the forward saw them
    attn_tensor row_max, row_sum;
};

static void attention_backward(const attn_tape_back *back);
static bool run_forward(attn_tape *tape, const attn_var *inputs, const attn_sdpa_desc *desc,
                        struct attention *kept, attn_tensor *output, attn_tensor *lse);
static bool keep_desc(attn_tape *tape, const attn_sdpa_desc *desc, attn_sdpa_desc *kept);
static bool repeats_elements(attn_var var);
static bool tensor_of_heads(attn_tape *tape, const int64_t *shape, attn_dtype dtype,
                            attn_tensor *tensor);

static const attn_tape_op attention_op = {"scaled_dot_product_attention", attention_backward};

attn_var attn_scaled_dot_product_attention(attn_var query, attn_var key, attn_var value,
                                           attn_var bias, attn_var sinks,
                                           const attn_sdpa_desc *desc, attn_var *lse)
{
    attn_var inputs[ATTN_ATTENTION_INPUTS] = {query, key, value, bias, sinks};
    attn_var present[ATTN_ATTENTION_INPUTS] = {query, key, value};
    int32_t count = 3;
    for (int32_t k = ATTN_ATTENTION_BIAS; k < ATTN_ATTENTION_INPUTS; k++) {
        if (inputs[k].tape) {
            present[count++] = inputs[k];
        }
    }
    attn_tape *tape;
    bool good = attn_tape_enter(attention_op.name, present, count, &tape);
    if (good && !desc) {
        attn_tape_raise(tape, ATTN_ERR_INVALID_ARGUMENT, "%s: the descriptor is NULL",
                        attention_op.name);
        good = false;
    }
    if (good && bias.tape && repeats_elements(bias)) {
        // The engine's bias gradient is summed over what the bias repeats; this var wants its own.
        inputs[ATTN_ATTENTION_BIAS] = attn_contiguous(bias);
        good = attn_tape_healthy(tape);
    }
    struct attention kept = {0};
    attn_tensor outputs[2];
    attn_var vars[2];
    good = good && run_forward(tape, inputs, desc, &kept, &outputs[0], lse ? &outputs[1] : NULL) &&
           attn_tape_push_outputs(tape, &attention_op, inputs, ATTN_ATTENTION_INPUTS, outputs,
                                  lse ? 2 : 1, &kept, sizeof kept, vars);
    if (lse) {
        *lse = good ? vars[1] : attn_tape_failed(tape);
    }
    return good ? vars[0] : attn_tape_failed(tape);
}

static bool repeats_elements(attn_var var)
{
    const attn_tensor *const value = attn_tape_value(var);
    bool repeats = false;
    for (int32_t d = 0; d < value->ndim; d++) {
        repeats = repeats || (value->stride[d] == 0 && value->shape[d] > 1);
    }
    return repeats;
}

// An unfilled tensor (B, H, T, D) that lies in memory as (B, T, H, D), the order in which projections
// make heads and take them back: merging heads, and going back through splitting them, is a view.
static bool tensor_of_heads(attn_tape *tape, const int64_t *shape, attn_dtype dtype,
                            attn_tensor *tensor)
{
    const int64_t in_memory[4] = {shape[0], shape[2], shape[1], shape[3]};
    attn_tensor made;
    if (!attn_tape_tensor(tape, attention_op.name, dtype, 4, in_memory, &made)) {
        return false;
    }
    attn_error error;
    if (attn_tensor_transpose(&made, 1, 2, tensor, &error) != ATTN_OK) {
        attn_tape_pass_on(tape, &error);
        return false;
    }
    return true;
}

// query (B, Hq, Tq, D), value (B, Hkv, Tk, Dv) -> output (B, Hq, Tq, Dv), lse (B, Hq, Tq) or NULL
static bool run_forward(attn_tape *tape, const attn_var *inputs, const attn_sdpa_desc *desc,
                        struct attention *kept, attn_tensor *output, attn_tensor *lse)
{
    const char *const op = attention_op.name;
    attn_sdpa_desc call = *desc;
    if (inputs[ATTN_ATTENTION_BIAS].tape) {
        call.bias = attn_tape_value(inputs[ATTN_ATTENTION_BIAS]);
    }
    if (inputs[ATTN_ATTENTION_SINKS].tape) {
        call.sinks = attn_tape_value(inputs[ATTN_ATTENTION_SINKS]);
    }
    attn_sdpa_forward_args args;
    attn_sdpa_forward_args_init(&args);
    args.query = attn_tape_value(inputs[ATTN_ATTENTION_QUERY]);
    args.key = attn_tape_value(inputs[ATTN_ATTENTION_KEY]);
    args.value = attn_tape_value(inputs[ATTN_ATTENTION_VALUE]);
    attn_error error;
    size_t bytes; // the first question checks all operands, so that the shapes below can be trusted
    if (attn_sdpa_forward_workspace(tape->context, &call, &args, &bytes, &error) != ATTN_OK) {
        attn_tape_pass_on(tape, &error);
        return false;
    }
    const attn_dtype dtype = args.query->dtype;
    const int64_t shape[4] = {args.query->shape[0], args.query->shape[1], args.query->shape[2],
                              args.value->shape[3]};
    const bool records = attn_tape_records(tape, inputs, ATTN_ATTENTION_INPUTS);
    if (!tensor_of_heads(tape, shape, dtype, output) ||
        (lse && !attn_tape_tensor(tape, op, dtype, 3, shape, lse)) ||
        (records && (!attn_tape_tensor(tape, op, dtype, 3, shape, &kept->row_max) ||
                     !attn_tape_tensor(tape, op, dtype, 3, shape, &kept->row_sum) ||
                     !keep_desc(tape, &call, &kept->desc)))) {
        return false;
    }
    args.output = output;
    args.lse = lse;
    args.row_max = records ? &kept->row_max : NULL;
    args.row_sum = records ? &kept->row_sum : NULL;
    const attn_tape_arena_position scratch = attn_tape_arena_tell(&tape->arena);
    if (attn_sdpa_forward_workspace(tape->context, &call, &args, &bytes, &error) != ATTN_OK) {
        attn_tape_pass_on(tape, &error);
        return false;
    }
    args.workspace = attn_tape_allocate(tape, op, 1, bytes);
    args.workspace_size = bytes;
    if (!args.workspace) {
        return false;
    }
    if (attn_sdpa_forward(tape->context, &call, &args, &error) != ATTN_OK) {
        attn_tape_pass_on(tape, &error);
        return false;
    }
    attn_tape_arena_rewind(&tape->arena, scratch);
    return true;
}

// Moves the tensors that a descriptor names into the arena: short lists with their elements, the
// T x T ones (keep, bias, dropout_keep) as views of the caller's memory.
static bool keep_desc(attn_tape *tape, const attn_sdpa_desc *desc, attn_sdpa_desc *kept)
{
    *kept = *desc;
    const struct {
        const attn_tensor **field;
        bool with_elements;
    } tensors[] = {
        {&kept->query_lengths, true}, {&kept->key_lengths, true},  {&kept->query_starts, true},
        {&kept->key_starts, true},    {&kept->alibi_slopes, true}, {&kept->sinks, true},
        {&kept->keep, false},         {&kept->bias, false},        {&kept->dropout_keep, false},
    };
    for (size_t n = 0; n < sizeof tensors / sizeof tensors[0]; n++) {
        const attn_tensor *const source = *tensors[n].field;
        if (!source) {
            continue;
        }
        attn_tensor *const copy = attn_tape_allocate(tape, attention_op.name, 1, sizeof *copy);
        if (!copy) {
            return false;
        }
        *copy = *source;
        *tensors[n].field = copy;
        if (!tensors[n].with_elements) {
            continue;
        }
        attn_error error;
        if (!attn_tape_tensor(tape, attention_op.name, source->dtype, source->ndim, source->shape,
                              copy)) {
            return false;
        }
        if (attn_tensor_copy(source, copy, &error) != ATTN_OK) {
            attn_tape_pass_on(tape, &error);
            return false;
        }
    }
    return true;
}

// ---- backward -----------------------------------------------------------------------------------

static void backward_by_engine(const attn_tape_back *back);
static void backward_by_composition(const attn_tape_back *back);

static void attention_backward(const attn_tape_back *back)
{
    if (back->differentiable) {
        backward_by_composition(back);
    } else {
        backward_by_engine(back);
    }
}

// All gradients in one call; they cannot be differentiated again.
static void backward_by_engine(const attn_tape_back *back)
{
    const char *const op = attention_op.name;
    attn_tape *const tape = back->tape;
    const struct attention *const kept = back->payload;
    attn_sdpa_backward_args args;
    attn_sdpa_backward_args_init(&args);
    args.query = attn_tape_value(back->inputs[ATTN_ATTENTION_QUERY]);
    args.key = attn_tape_value(back->inputs[ATTN_ATTENTION_KEY]);
    args.value = attn_tape_value(back->inputs[ATTN_ATTENTION_VALUE]);
    args.output = attn_tape_value(back->outputs[0]);
    args.row_max = &kept->row_max;
    args.row_sum = &kept->row_sum;

    const attn_var grad_output = back->upstream[0].tape ? back->upstream[0]
                                                        : attn_tape_full_like(back->outputs[0], 0);
    if (!attn_tape_healthy(tape)) {
        return;
    }
    args.grad_output = attn_tape_value(grad_output);
    const bool lse_used = back->output_count > 1 && back->upstream[1].tape;
    args.grad_lse = lse_used ? attn_tape_value(back->upstream[1]) : NULL;

    attn_tensor grads[ATTN_ATTENTION_INPUTS];
    const attn_tensor **const wanted[ATTN_ATTENTION_INPUTS] = {
        &args.grad_query, &args.grad_key, &args.grad_value, &args.grad_bias, &args.grad_sinks};
    for (int32_t k = 0; k < ATTN_ATTENTION_INPUTS; k++) {
        if (back->wanted[k]) {
            const attn_tensor *const value = attn_tape_value(back->inputs[k]);
            const bool made = k < ATTN_ATTENTION_BIAS
                                  ? tensor_of_heads(tape, value->shape, value->dtype, &grads[k])
                                  : attn_tape_tensor(tape, op, value->dtype, value->ndim,
                                                     value->shape, &grads[k]);
            if (!made) {
                return;
            }
            *wanted[k] = &grads[k];
        }
    }
    const attn_tape_arena_position scratch = attn_tape_arena_tell(&tape->arena);
    attn_error error;
    size_t bytes;
    if (attn_sdpa_backward_workspace(tape->context, &kept->desc, &args, &bytes, &error) !=
        ATTN_OK) {
        attn_tape_pass_on(tape, &error);
        return;
    }
    args.workspace = attn_tape_allocate(tape, op, 1, bytes);
    args.workspace_size = bytes;
    if (!args.workspace) {
        return;
    }
    if (attn_sdpa_backward(tape->context, &kept->desc, &args, &error) != ATTN_OK) {
        attn_tape_pass_on(tape, &error);
        return;
    }
    attn_tape_arena_rewind(&tape->arena, scratch);
    for (int32_t k = 0; k < ATTN_ATTENTION_INPUTS; k++) {
        if (back->wanted[k]) {
            back->gradients[k] = attn_tape_push(tape, NULL, NULL, 0, &grads[k], NULL, 0);
        }
    }
}

// The attention again from ops, which are then gone back through: slower and T x T, but recorded.
static void backward_by_composition(const attn_tape_back *back)
{
    attn_tape *const tape = back->tape;
    const struct attention *const kept = back->payload;
    const uint32_t first = tape->count;
    attn_var outputs[2], inputs[ATTN_ATTENTION_INPUTS];
    if (!attn_tape_compose_attention(tape, back->inputs, &kept->desc, &outputs[0], &outputs[1])) {
        return;
    }
    for (int32_t k = 0; k < ATTN_ATTENTION_INPUTS; k++) {
        inputs[k] = back->wanted[k] ? back->inputs[k] : ATTN_NO_VAR;
    }
    attn_tape_pull_back(tape, first, outputs, back->upstream, back->output_count, inputs,
                        ATTN_ATTENTION_INPUTS, back->gradients);
}
