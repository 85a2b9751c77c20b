// tape/tape.h: how an op is made; for the ops of this layer and for fused ops of later layers.
//
// An op is a function that checks, computes and records, and an `attn_tape_op` that says how to go
// back. The shape of all of them:
//
//   static void double_backward(const attn_tape_back *back)
//   {
//       back->gradients[0] = attn_scale(back->upstream[0], 2);
//   }
//   static const attn_tape_op double_op = {"double", double_backward};
//
//   attn_var my_double(attn_var a)
//   {
//       attn_tape *tape;
//       if (!attn_tape_enter("double", &a, 1, &tape)) {
//           return attn_tape_failed(tape);
//       }
//       const attn_tensor *const x = attn_tape_value(a);
//       attn_tensor y;
//       if (!attn_tape_tensor(tape, "double", x->dtype, x->ndim, x->shape, &y)) {
//           return attn_tape_failed(tape);
//       }
//       ... write y ...
//       return attn_tape_push(tape, &double_op, &a, 1, &y, NULL, 0);
//   }
//
// A backward is written with ops, as above: run with recording off it gives gradients, run with
// recording on it gives gradients that can be differentiated again.
#ifndef ATTN_TAPE_TAPE_H
#define ATTN_TAPE_TAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attn/tape.h"
#include "tape/arena.h"

typedef struct attn_tape_op attn_tape_op;
typedef struct attn_tape_node attn_tape_node;
typedef struct attn_tape_leaf attn_tape_leaf;

// No node has this number: an absent input, or the var of a failed op.
#define ATTN_TAPE_NO_NODE UINT32_MAX

struct attn_tape_node {
    const attn_tape_op *op; // NULL: a leaf, or nothing here wants a gradient
    attn_tensor value;      // in the arena, or borrowed; read-only once pushed
    const void *payload;    // what op->backward needs besides the vars; in the arena
    const uint32_t *inputs; // input_count numbers of earlier nodes
    int32_t input_count;
    int32_t output_count; // the op's outputs are neighbours; this is number `output` of them
    int32_t output;
    uint32_t generation;
    attn_tape_leaf *leaf; // NULL unless this is a leaf that wants a gradient
    bool recorded;        // made while recording was on
    bool needs_grad;      // depends on a leaf that wants a gradient
};

struct attn_tape_leaf {
    attn_tensor grad;     // as the backward with this number left it
    uint64_t backward;    // 0: none
    attn_tensor borrowed; // dtype NONE: not borrowed
};

struct attn_tape {
    const attn_context *context;
    attn_tape_arena arena;
    attn_tape_node **nodes; // nodes lie in the arena and do not move
    uint32_t count, capacity;
    uint32_t generation; // of nodes made now; changes with every reset and release
    uint64_t resets;
    uint64_t backwards; // from 1; attn_grad shows the gradients that leaves have with this number
    bool recording;
    attn_error error;
};

// ---- inside an op -------------------------------------------------------------------------------

// The checks every op starts with: all inputs present, live, of one healthy tape and of one dtype.
// *tape is the inputs' tape, also on failure (NULL when no input has one).
bool attn_tape_enter(const char *op, const attn_var *inputs, int64_t count, attn_tape **tape);

// What an op returns after a failure; takes NULL.
attn_var attn_tape_failed(attn_tape *tape);

// Fails the tape with a formatted text, unless it failed before. The text starts with the op's name.
void attn_tape_raise(attn_tape *tape, attn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// The same with an error that a lower layer reported.
attn_var attn_tape_pass_on(attn_tape *tape, const attn_error *error);

bool attn_tape_healthy(const attn_tape *tape);

// Was the var (of a tape) made since the last reset, and not released since?
bool attn_tape_is_live(attn_var var);

// The value of a live var.
const attn_tensor *attn_tape_value(attn_var var);

// Arena memory that lives as long as a node pushed now. NULL after failing the tape.
void *attn_tape_allocate(attn_tape *tape, const char *op, int64_t count, size_t size);

// An unfilled row-major tensor in the arena; false after failing the tape.
bool attn_tape_tensor(attn_tape *tape, const char *op, attn_dtype dtype, int32_t ndim,
                      const int64_t *shape, attn_tensor *tensor);

// True when a result of these inputs will be recorded: whether to make what only its gradient needs.
bool attn_tape_records(const attn_tape *tape, const attn_var *inputs, int32_t count);

// Records a result. Inputs may be ATTN_NO_VAR where the op has optional ones. `value` lies in the
// arena or is borrowed. `payload` is copied where a gradient will need it; what it points to lies in
// the arena. op may be NULL for a constant.
attn_var attn_tape_push(attn_tape *tape, const attn_tape_op *op, const attn_var *inputs,
                        int32_t count, const attn_tensor *value, const void *payload,
                        size_t payload_size);
// The same for an op with several outputs, written to outputs[0 .. output_count-1].
bool attn_tape_push_outputs(attn_tape *tape, const attn_tape_op *op, const attn_var *inputs,
                            int32_t count, const attn_tensor *values, int32_t output_count,
                            const void *payload, size_t payload_size, attn_var *outputs);

// ---- going back ---------------------------------------------------------------------------------

// What a backward sees of the op that it goes back through.
typedef struct attn_tape_back {
    attn_tape *tape;
    const void *payload;
    int32_t input_count;
    const attn_var *inputs; // ATTN_NO_VAR: was absent
    const bool *wanted;     // which gradients to give
    int32_t output_count;
    const attn_var *outputs;
    const attn_var *upstream; // gradients of the outputs; ATTN_NO_VAR: none, that is, zeros
    bool differentiable;      // the gradients are being recorded
    attn_var *gradients;      // ATTN_NO_VAR at first, which means zeros
} attn_tape_back;

struct attn_tape_op {
    const char *name;
    // Gives gradients[k], of inputs[k]'s shape, for every wanted k. Called only when an output has
    // an upstream gradient and an input is wanted.
    void (*backward)(const attn_tape_back *back);
};

// gradients[k] = the vector-Jacobian product with respect to inputs[k], going back through the nodes
// numbered `first` and later only: earlier ones count as independent variables.
bool attn_tape_pull_back(attn_tape *tape, uint32_t first, const attn_var *outputs,
                         const attn_var *upstream, int32_t output_count, const attn_var *inputs,
                         int32_t input_count, attn_var *gradients);

#endif
