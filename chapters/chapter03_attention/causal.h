// causal.h: the pieces of section 3.5.1 that other sections use again.
#ifndef CHAPTER03_CAUSAL_H
#define CHAPTER03_CAUSAL_H

#include <stdbool.h>

#include <attn/attn.h>

#include "demo.h"

// The chapter's mask, triu(ones, 1): true above the diagonal. A view of `memory`.
attn_tensor causal_mask(bool memory[TOKENS][TOKENS]);

// torch.ones(6, 6).
attn_var ones(demo *d);

// Queries times keys of a SelfAttentionV2: (6, 6).
attn_var causal_scores(demo *d, attn_module *sa_v2, attn_var x);

// -inf above the diagonal, divided by sqrt(2), softmax. `mask` must live until the tape's reset.
attn_var causal_weights(attn_var attn_scores, const attn_tensor *mask);

// The chapter's sentence with another last token: (6, 3).
attn_var sentence_ending_in(demo *d, const float last[EMBEDDING]);

#endif
