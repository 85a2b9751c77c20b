// modules/attention.h: scaled dot-product attention as the modules use it.
#ifndef ATTN_MODULES_ATTENTION_H
#define ATTN_MODULES_ATTENTION_H

#include "modules/module.h"
#include "modules/projection.h"

// Attention of query heads first_head, first_head + 1, ... of a module, computed by the engine:
// query (B, Hq, Tq, D), key and value (B, Hkv, Tk, D) -> (B, Hq, Tq, D). *desc receives what it was.
attn_var attn_attend(const attn_module *module, const attn_module_call *call, int64_t first_head,
                     attn_var query, attn_var key, attn_var value, attn_sdpa_desc *desc);

// The same for one head without a head dimension, with its trace: (T, D) or (B, T, D) each. `prefix`
// stands before the names in the trace.
attn_var attn_attend_single_head(const attn_module *module, const attn_module_call *call,
                                 const char *prefix, int64_t head, attn_qkv_vars projected);

// What a single head projects from and to.
attn_qkv_widths attn_single_head_widths(const attn_attention_config *config);

#endif
