// Going back: attn_backward, attn_backward_from, attn_gradients, and the walk behind them.
#include <string.h>

#include "core/error.h"
#include "core/text.h"
#include "tape/loop.h"
#include "tape/ops/ops.h"
#include "tape/rows.h"
#include "tape/tape.h"

static attn_status check_output(const char *call, attn_var output, attn_error *error);
static attn_status check_scalar(const char *call, attn_var scalar, attn_error *error);
static attn_status check_wanted(const char *call, attn_var output, attn_error *error);
static attn_status backward(attn_var output, const attn_tensor *upstream, attn_error *error);
static attn_status give_up(attn_tape *tape, attn_tape_mark before, const char *call,
                           attn_error *error);

// ---- backward -----------------------------------------------------------------------------------

attn_status attn_backward(attn_var scalar, attn_error *error)
{
    attn_status status = check_output("backward", scalar, error);
    if (status == ATTN_OK) {
        status = check_scalar("backward", scalar, error);
    }
    if (status == ATTN_OK) {
        status = check_wanted("backward", scalar, error);
    }
    return status == ATTN_OK ? backward(scalar, NULL, error) : status;
}

attn_status attn_backward_from(attn_var output, const attn_tensor *upstream, attn_error *error)
{
    attn_status status = check_output("backward", output, error);
    if (status == ATTN_OK) {
        status = check_wanted("backward", output, error);
    }
    if (status != ATTN_OK) {
        return status;
    }
    status = attn_tensor_check(upstream, "backward: upstream", error);
    if (status != ATTN_OK) {
        return status;
    }
    const attn_tensor *const value = attn_tape_value(output);
    if (!attn_tensor_same_shape(value, upstream)) {
        return attn_fail(error, ATTN_ERR_SHAPE,
                         "backward: the var has shape %s but the upstream gradient %s",
                         attn_shape_text(value).text, attn_shape_text(upstream).text);
    }
    if (value->dtype != upstream->dtype) {
        return attn_fail(error, ATTN_ERR_DTYPE,
                         "backward: the var is %s but the upstream gradient %s",
                         attn_dtype_name(value->dtype), attn_dtype_name(upstream->dtype));
    }
    return backward(output, upstream, error);
}

// A leaf that the output depends on, and where its gradient goes.
struct destination {
    uint32_t node;
    attn_tensor grad;
};

struct plan {
    bool *wanted; // per node up to the output
    struct destination *leaves;
    int64_t leaf_count;
};

static bool make_plan(attn_tape *tape, uint32_t output, struct plan *plan);
static attn_var *walk_back(attn_tape *tape, uint32_t first, uint32_t last, const bool *wanted,
                           const attn_var *outputs, const attn_var *upstream, int32_t output_count);
static void deliver(attn_tape *tape, const struct plan *plan, const attn_var *grads);

// First the memory of all gradients, then all gradients, and only then, where nothing can fail any
// more, the leaves' own.
static attn_status backward(attn_var output, const attn_tensor *upstream, attn_error *error)
{
    attn_tape *const tape = output.tape;
    const attn_tape_mark before = attn_tape_get_mark(tape);
    const bool recording = tape->recording;
    tape->recording = false;

    struct plan plan = {0};
    attn_tape_mark planned = before;
    attn_var *grads = NULL;
    if (make_plan(tape, output.index, &plan)) {
        planned = attn_tape_get_mark(tape);
        const attn_var seed = upstream ? attn_tape_push(tape, NULL, NULL, 0, upstream, NULL, 0)
                                       : attn_tape_full_like(output, 1);
        grads = walk_back(tape, 0, output.index, plan.wanted, &output, &seed, 1);
    }
    tape->recording = recording;
    if (!grads) {
        return give_up(tape, before, "backward", error);
    }
    deliver(tape, &plan, grads);
    const attn_status status = attn_tape_release(tape, planned, error);
    tape->backwards++;
    return status;
}

// Which nodes the output depends on, and memory for the gradients of the leaves among them.
static bool make_plan(attn_tape *tape, uint32_t output, struct plan *plan)
{
    plan->wanted = attn_tape_allocate(tape, "reserve", (int64_t)output + 1, sizeof *plan->wanted);
    if (!plan->wanted) {
        return false;
    }
    memset(plan->wanted, 0, (size_t)output + 1);
    plan->wanted[output] = true;
    for (uint32_t i = output + 1; i-- > 0;) {
        const attn_tape_node *const node = tape->nodes[i];
        for (int32_t k = 0; plan->wanted[i] && k < node->input_count; k++) {
            const uint32_t input = node->inputs[k];
            if (input != ATTN_TAPE_NO_NODE && tape->nodes[input]->needs_grad) {
                plan->wanted[input] = true;
            }
        }
        plan->leaf_count += plan->wanted[i] && node->leaf;
    }
    plan->leaves = attn_tape_allocate(tape, "reserve", plan->leaf_count, sizeof *plan->leaves);
    struct destination *leaf = plan->leaves;
    for (uint32_t i = 0; i <= output && attn_tape_healthy(tape); i++) {
        const attn_tape_node *const node = tape->nodes[i];
        if (!plan->wanted[i] || !node->leaf) {
            continue;
        }
        leaf->node = i;
        if (node->leaf->borrowed.dtype != ATTN_DTYPE_NONE) {
            leaf->grad = node->leaf->borrowed;
        } else {
            attn_tape_tensor(tape, "reserve", node->value.dtype, node->value.ndim,
                             node->value.shape, &leaf->grad);
        }
        leaf++;
    }
    return attn_tape_healthy(tape);
}

static void deliver(attn_tape *tape, const struct plan *plan, const attn_var *grads)
{
    for (int64_t n = 0; n < plan->leaf_count; n++) {
        const struct destination *const to = &plan->leaves[n];
        attn_tape_leaf *const leaf = tape->nodes[to->node]->leaf;
        const attn_var grad = grads[to->node];
        const bool borrowed = leaf->borrowed.dtype != ATTN_DTYPE_NONE;
        if (borrowed && grad.tape) {
            const attn_tensor *const sum[] = {&to->grad, &to->grad, attn_tape_value(grad)};
            attn_loop_elements(tape->context, sum, 3, attn_row_of(to->grad.dtype, ATTN_ROW_ADD),
                               NULL);
        } else if (!borrowed && grad.tape) {
            attn_loop_copy(tape->context, attn_tape_value(grad), &to->grad);
        } else if (!borrowed) {
            attn_loop_fill(tape->context, &to->grad, 0);
        }
        leaf->grad = to->grad;
        leaf->grad.flags |= ATTN_TENSOR_READ_ONLY;
        leaf->backward = tape->backwards + 1; // the number of this backward once it is done
    }
}

// ---- gradients as vars --------------------------------------------------------------------------

static attn_status check_inputs(attn_var scalar, const attn_var *inputs, int64_t count,
                                attn_error *error);
static bool find_gradients(attn_tape *tape, attn_var scalar, const attn_var *inputs, int32_t count,
                           bool differentiable, attn_var *found);

attn_status attn_gradients(attn_var scalar, const attn_var *inputs, int64_t count,
                           bool differentiable, attn_var *gradients, attn_error *error)
{
    if (count < 0 || count > INT32_MAX || (count > 0 && (!inputs || !gradients))) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "gradients: %s",
                         count < 0 || count > INT32_MAX ? "the count is out of range"
                                                        : "inputs and gradients must not be NULL");
    }
    const attn_status status = check_inputs(scalar, inputs, count, error);
    if (status != ATTN_OK) {
        return status;
    }
    attn_tape *const tape = scalar.tape;
    const attn_tape_mark before = attn_tape_get_mark(tape);
    const bool recording = tape->recording;
    tape->recording = differentiable;
    attn_var *const found = attn_tape_allocate(tape, "reserve", count, sizeof *found);
    const bool done = found &&
                      find_gradients(tape, scalar, inputs, (int32_t)count, differentiable, found);
    tape->recording = recording;
    if (!done) {
        return give_up(tape, before, "gradients", error);
    }
    if (count > 0) {
        memcpy(gradients, found, (size_t)count * sizeof *gradients);
    }
    return ATTN_OK;
}

// Without `differentiable`, only the gradients' values stay on the tape.
static bool find_gradients(attn_tape *tape, attn_var scalar, const attn_var *inputs, int32_t count,
                           bool differentiable, attn_var *found)
{
    attn_tensor *const kept = attn_tape_allocate(tape, "reserve", count, sizeof *kept);
    for (int32_t k = 0; k < count && !differentiable && attn_tape_healthy(tape); k++) {
        const attn_tensor *const value = attn_tape_value(inputs[k]);
        attn_tape_tensor(tape, "reserve", value->dtype, value->ndim, value->shape, &kept[k]);
    }
    if (!attn_tape_healthy(tape)) {
        return false;
    }
    const attn_tape_mark planned = attn_tape_get_mark(tape);
    const attn_var one = attn_tape_full_like(scalar, 1);
    if (!attn_tape_pull_back(tape, 0, &scalar, &one, 1, inputs, count, found)) {
        return false;
    }
    for (int32_t k = 0; k < count; k++) {
        if (!found[k].tape) {
            found[k] = attn_tape_full_like(inputs[k], 0);
        }
        if (!differentiable && attn_tape_healthy(tape)) {
            attn_loop_copy(tape->context, attn_tape_value(found[k]), &kept[k]);
        }
    }
    if (!differentiable && attn_tape_healthy(tape)) {
        (void)attn_tape_release(tape, planned, NULL);
        for (int32_t k = 0; k < count; k++) {
            found[k] = attn_tape_push(tape, NULL, NULL, 0, &kept[k], NULL, 0);
        }
    }
    return attn_tape_healthy(tape);
}

static bool *nodes_between(attn_tape *tape, const attn_var *inputs, int32_t count, uint32_t first,
                           uint32_t last);

bool attn_tape_pull_back(attn_tape *tape, uint32_t first, const attn_var *outputs,
                         const attn_var *upstream, int32_t output_count, const attn_var *inputs,
                         int32_t input_count, attn_var *gradients)
{
    uint32_t last = 0;
    for (int32_t m = 0; m < output_count && attn_tape_healthy(tape); m++) {
        last = outputs[m].index > last ? outputs[m].index : last;
    }
    const bool *const wanted =
        attn_tape_healthy(tape) ? nodes_between(tape, inputs, input_count, first, last) : NULL;
    const attn_var *const grads =
        wanted ? walk_back(tape, first, last, wanted, outputs, upstream, output_count) : NULL;
    for (int32_t k = 0; k < input_count && grads; k++) {
        gradients[k] = inputs[k].tape && inputs[k].index <= last ? grads[inputs[k].index]
                                                                 : ATTN_NO_VAR;
    }
    return grads;
}

// Per node up to `last`: is it one of the inputs, or made from one at or after `first`?
static bool *nodes_between(attn_tape *tape, const attn_var *inputs, int32_t count, uint32_t first,
                           uint32_t last)
{
    bool *const between = attn_tape_allocate(tape, "reserve", (int64_t)last + 1, sizeof *between);
    if (!between) {
        return NULL;
    }
    memset(between, 0, (size_t)last + 1);
    for (int32_t k = 0; k < count; k++) {
        if (inputs[k].tape && inputs[k].index <= last) {
            between[inputs[k].index] = true;
        }
    }
    for (uint32_t i = first; i <= last; i++) {
        const attn_tape_node *const node = tape->nodes[i];
        for (int32_t k = 0; k < node->input_count && !between[i]; k++) {
            between[i] = node->inputs[k] != ATTN_TAPE_NO_NODE && between[node->inputs[k]];
        }
    }
    return between;
}

// ---- the walk -----------------------------------------------------------------------------------

static bool go_back_through(attn_tape *tape, uint32_t number, uint32_t last, const bool *wanted,
                            attn_var *grads);

// Goes from node `last` to node `first` and gives every wanted node the sum of what its uses send
// back. The result has one var per node up to `last`, ATTN_NO_VAR where nothing came.
static attn_var *walk_back(attn_tape *tape, uint32_t first, uint32_t last, const bool *wanted,
                           const attn_var *outputs, const attn_var *upstream, int32_t output_count)
{
    attn_var *const grads = attn_tape_allocate(tape, "reserve", (int64_t)last + 1, sizeof *grads);
    if (!grads || !attn_tape_healthy(tape)) {
        return NULL;
    }
    memset(grads, 0, ((size_t)last + 1) * sizeof *grads);
    for (int32_t m = 0; m < output_count; m++) {
        if (upstream[m].tape) {
            grads[outputs[m].index] = upstream[m];
        }
    }
    for (uint32_t i = last + 1; i-- > first;) {
        if (!go_back_through(tape, i, last, wanted, grads)) {
            return NULL;
        }
    }
    return grads;
}

static attn_var var_of(attn_tape *tape, uint32_t number)
{
    return number == ATTN_TAPE_NO_NODE ? ATTN_NO_VAR
                                       : (attn_var){tape, number, tape->nodes[number]->generation};
}

static bool go_back_through(attn_tape *tape, uint32_t number, uint32_t last, const bool *wanted,
                            attn_var *grads)
{
    const attn_tape_node *const node = tape->nodes[number];
    bool any_upstream = false, any_wanted = false;
    for (int32_t m = 0; m < node->output_count && number + (uint32_t)m <= last; m++) {
        any_upstream = any_upstream || grads[number + (uint32_t)m].tape;
    }
    for (int32_t k = 0; k < node->input_count; k++) {
        any_wanted = any_wanted ||
                     (node->inputs[k] != ATTN_TAPE_NO_NODE && wanted[node->inputs[k]]);
    }
    if (node->output != 0 || !any_upstream || !any_wanted) {
        return attn_tape_healthy(tape);
    }
    const int32_t ins = node->input_count, outs = node->output_count;
    attn_var *const vars = attn_tape_allocate(tape, node->op->name, 2 * (ins + outs), sizeof *vars);
    bool *const flags = attn_tape_allocate(tape, node->op->name, ins, sizeof *flags);
    if (!vars || !flags) {
        return false;
    }
    attn_var *const inputs = vars, *const gradients = inputs + ins;
    attn_var *const outputs = gradients + ins, *const upstream = outputs + outs;
    for (int32_t k = 0; k < ins; k++) {
        inputs[k] = var_of(tape, node->inputs[k]);
        gradients[k] = ATTN_NO_VAR;
        flags[k] = inputs[k].tape && wanted[node->inputs[k]];
    }
    for (int32_t m = 0; m < outs; m++) {
        const uint32_t at = number + (uint32_t)m;
        outputs[m] = var_of(tape, at);
        upstream[m] = at <= last ? grads[at] : ATTN_NO_VAR;
    }
    node->op->backward(&(attn_tape_back){.tape = tape,
                                         .payload = node->payload,
                                         .input_count = ins,
                                         .inputs = inputs,
                                         .wanted = flags,
                                         .output_count = outs,
                                         .outputs = outputs,
                                         .upstream = upstream,
                                         .differentiable = tape->recording,
                                         .gradients = gradients});
    for (int32_t k = 0; k < ins && attn_tape_healthy(tape); k++) {
        if (flags[k] && gradients[k].tape) {
            attn_var *const sum = &grads[node->inputs[k]];
            *sum = sum->tape ? attn_add(*sum, gradients[k]) : gradients[k];
        }
    }
    return attn_tape_healthy(tape);
}

// ---- checks and failure -------------------------------------------------------------------------

static attn_status check_output(const char *call, attn_var output, attn_error *error)
{
    if (!output.tape) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "%s: the var is absent", call);
    }
    if (!attn_tape_healthy(output.tape)) {
        return attn_fail(error, ATTN_ERR_STATE, "%s: the tape failed before: %s", call,
                         output.tape->error.text);
    }
    if (!attn_tape_is_live(output)) {
        return attn_fail(error, ATTN_ERR_STATE,
                         "%s: the var is stale: it was made before a reset or a release", call);
    }
    const attn_tape_node *const node = output.tape->nodes[output.index];
    if (!node->recorded && !node->needs_grad) {
        return attn_fail(error, ATTN_ERR_STATE, "%s: the var was made while recording was off",
                         call);
    }
    return ATTN_OK;
}

static attn_status check_scalar(const char *call, attn_var scalar, attn_error *error)
{
    const attn_tensor *const value = attn_tape_value(scalar);
    return attn_tensor_count(value) == 1
               ? ATTN_OK
               : attn_fail(error, ATTN_ERR_SHAPE,
                           "%s: a var of shape %s is no scalar; use attn_backward_from", call,
                           attn_shape_text(value).text);
}

static attn_status check_wanted(const char *call, attn_var output, attn_error *error)
{
    return output.tape->nodes[output.index]->needs_grad
               ? ATTN_OK
               : attn_fail(error, ATTN_ERR_STATE,
                           "%s: the var does not depend on anything that wants a gradient", call);
}

static attn_status check_inputs(attn_var scalar, const attn_var *inputs, int64_t count,
                                attn_error *error)
{
    attn_status status = check_output("gradients", scalar, error);
    if (status == ATTN_OK) {
        status = check_scalar("gradients", scalar, error);
    }
    for (int64_t k = 0; k < count && status == ATTN_OK; k++) {
        const char *why = NULL;
        if (inputs[k].tape != scalar.tape) {
            why = inputs[k].tape ? "belongs to another tape" : "is absent";
        } else if (!attn_tape_is_live(inputs[k])) {
            why = "is stale: it was made before a reset or a release";
        } else if (!scalar.tape->nodes[inputs[k].index]->needs_grad) {
            why = "does not depend on anything that wants a gradient";
        }
        if (why) {
            status =
                attn_fail(error, ATTN_ERR_STATE, "gradients: input %lld %s", (long long)k, why);
        }
    }
    return status;
}

// Leaves the tape as it was before the call, and tells why the call failed.
static attn_status give_up(attn_tape *tape, attn_tape_mark before, const char *call,
                           attn_error *error)
{
    const attn_error cause = tape->error;
    tape->error = (attn_error){.status = ATTN_OK};
    (void)attn_tape_release(tape, before, NULL);
    return attn_fail(error, cause.status, "%s: %s", call, cause.text);
}
