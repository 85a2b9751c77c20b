// tape/ops/attention.h: scaled dot-product attention once more, out of ops.
#ifndef ATTN_TAPE_OPS_ATTENTION_H
#define ATTN_TAPE_OPS_ATTENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/sdpa.h"
#include "sdpa/problem.h"
#include "tape/tape.h"

// The operands of the op, in the order of its inputs; bias and sinks may be ATTN_NO_VAR.
enum {
    ATTN_ATTENTION_QUERY,
    ATTN_ATTENTION_KEY,
    ATTN_ATTENTION_VALUE,
    ATTN_ATTENTION_BIAS,
    ATTN_ATTENTION_SINKS,
    ATTN_ATTENTION_INPUTS
};

// The definition in attn/sdpa.h step by step with ops, T x T tensors included: output and lse of the
// five operands under `desc`, whose bias and sinks are ignored. False after failing the tape.
bool attn_tape_compose_attention(attn_tape *tape, const attn_var *inputs,
                                 const attn_sdpa_desc *desc, attn_var *output, attn_var *lse);

// What depends on positions only, written out. In the arena, except where noted.
typedef struct attn_attention_masks {
    attn_tensor masked;      // bool (B, Hq or 1, Tq, Tk): the pair is masked
    attn_tensor blind_rows;  // bool (B, Hq or 1, Tq, 1): the row sees nothing
    attn_tensor unseen_keys; // bool (B, Hkv or 1, Tk, 1): no row sees the key
    attn_tensor alibi;       // (B, Hq, Tq, Tk), added to the scores; dtype NONE: none
    attn_tensor keep_bits;   // uint8 (B, Hq, Tq, ceil(Tk / 8)), maybe desc's own; NONE: no dropout
} attn_attention_masks;

bool attn_tape_attention_masks(attn_tape *tape, const struct attn_sdpa_problem *problem,
                               attn_attention_masks *masks);

#endif
