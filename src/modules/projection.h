// modules/projection.h: the linear layers inside the modules.
#ifndef ATTN_MODULES_PROJECTION_H
#define ATTN_MODULES_PROJECTION_H

#include "modules/module.h"

// A Linear: y = x weight^T + bias. The parameters belong to the module.
typedef struct attn_projection {
    attn_parameter *weight; // (out, in)
    attn_parameter *bias;   // (out), or NULL
} attn_projection;

// Registers <prefix><name>.weight and, with bias, <prefix><name>.bias, as torch's Linear starts them.
attn_status attn_register_projection(attn_module *module, const char *prefix, const char *name,
                                     int64_t in, int64_t out, bool bias,
                                     attn_projection *projection, attn_error *error);

attn_var attn_project(const attn_projection *projection, attn_var input);

// The three projections that every attention begins with.
typedef struct attn_qkv {
    attn_projection query, key, value;
} attn_qkv;

// What they give: (..., T, width) each.
typedef struct attn_qkv_vars {
    attn_var queries, keys, values;
} attn_qkv_vars;

// Queries from `input`; keys and values from `source`, which is `input` in self-attention.
attn_qkv_vars attn_project_qkv(const attn_qkv *qkv, attn_var input, attn_var source);

// Widths of what goes in (query side, key and value side) and of what comes out.
typedef struct attn_qkv_widths {
    int64_t in, in_context, out, out_context;
} attn_qkv_widths;

// <prefix>W_query, <prefix>W_key, <prefix>W_value, in this order.
attn_status attn_register_qkv(attn_module *module, const char *prefix, attn_qkv_widths widths,
                              attn_qkv *qkv, attn_error *error);

#endif
