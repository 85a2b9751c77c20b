// modules/trace.h: recording the intermediates of a forward.
#ifndef ATTN_MODULES_TRACE_H
#define ATTN_MODULES_TRACE_H

#include "modules/module.h"

// Appends a copy of the var's value named <prefix><name>. Does nothing for trace NULL or a failed
// tape; without memory the tape fails.
void attn_trace_record(attn_trace *trace, const char *prefix, const char *name, attn_var var);

// Records the scores, the masked scores, the weights, the dropped weights and the context of the
// attention that `desc` describes, computed step by step as the definition says, beside the engine:
// query (..., Tq, D), key and value (..., Tk, D), where a fourth dim is the head, of which key and
// value may have fewer.
void attn_trace_attention(attn_trace *trace, const char *prefix, const attn_sdpa_desc *desc,
                          attn_var query, attn_var key, attn_var value);

#endif
