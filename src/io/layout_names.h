// io/layout_names.h: which tensor of a layout holds which parameter of a module.
#ifndef ATTN_IO_LAYOUT_NAMES_H
#define ATTN_IO_LAYOUT_NAMES_H

#include <stdbool.h>

#include "attn/layout.h"

// The parameters of multi_head_attention.
typedef enum attn_role {
    ATTN_ROLE_QUERY = 0,
    ATTN_ROLE_KEY,
    ATTN_ROLE_VALUE,
    ATTN_ROLE_QUERY_BIAS,
    ATTN_ROLE_KEY_BIAS,
    ATTN_ROLE_VALUE_BIAS,
    ATTN_ROLE_OUT,
    ATTN_ROLE_OUT_BIAS,
    ATTN_ROLE_QUERY_NORM,
    ATTN_ROLE_KEY_NORM,
    ATTN_ROLE_COUNT
} attn_role;

// The module's own name, "W_query.weight"; and the role of a name, ATTN_ROLE_COUNT for none.
const char *attn_role_name(attn_role role);
attn_role attn_role_from_name(const char *name);

// Where a role lies in a file.
typedef struct attn_placement {
    const char *name; // without the prefix; NULL: the layout has no such parameter
    int part;         // 0, 1, 2: query, key, value in a fused tensor; ATTN_WHOLE: all of it
    bool transposed;  // (in, out)
} attn_placement;

enum { ATTN_WHOLE = -1 };

// `separate`: torch's q_proj_weight instead of in_proj_weight; other layouts have one form.
const attn_placement *attn_layout_placements(attn_layout layout, bool separate);

// The name, without prefix, by which a layer of the layout is known.
const char *attn_layout_anchor(attn_layout layout, bool separate);

// Is this name, without prefix, a constant that may be skipped?
bool attn_layout_is_buffer(attn_layout layout, const char *name);

#endif
