#include "io/layout_names.h"

#include <string.h>

// ---- layouts ------------------------------------------------------------------------------------

static const char *const layout_names[ATTN_LAYOUT_COUNT] = {
    [ATTN_LAYOUT_ANY] = "any",     [ATTN_LAYOUT_ATTN] = "attn",   [ATTN_LAYOUT_GPT2] = "gpt2",
    [ATTN_LAYOUT_TORCH] = "torch", [ATTN_LAYOUT_LLAMA] = "llama",
};

const char *attn_layout_name(attn_layout layout)
{
    return (unsigned)layout < ATTN_LAYOUT_COUNT ? layout_names[layout] : "unknown";
}

bool attn_layout_from_name(const char *name, attn_layout *layout)
{
    for (int i = 0; name != NULL && i < ATTN_LAYOUT_COUNT; i++) {
        if (strcmp(layout_names[i], name) == 0) {
            *layout = (attn_layout)i;
            return true;
        }
    }
    return false;
}

// ---- roles --------------------------------------------------------------------------------------

static const char *const role_names[ATTN_ROLE_COUNT] = {
    [ATTN_ROLE_QUERY] = "W_query.weight",     [ATTN_ROLE_KEY] = "W_key.weight",
    [ATTN_ROLE_VALUE] = "W_value.weight",     [ATTN_ROLE_QUERY_BIAS] = "W_query.bias",
    [ATTN_ROLE_KEY_BIAS] = "W_key.bias",      [ATTN_ROLE_VALUE_BIAS] = "W_value.bias",
    [ATTN_ROLE_OUT] = "out_proj.weight",      [ATTN_ROLE_OUT_BIAS] = "out_proj.bias",
    [ATTN_ROLE_QUERY_NORM] = "q_norm.weight", [ATTN_ROLE_KEY_NORM] = "k_norm.weight",
};

const char *attn_role_name(attn_role role)
{
    return role_names[role];
}

attn_role attn_role_from_name(const char *name)
{
    int role = 0;
    while (role < ATTN_ROLE_COUNT && strcmp(role_names[role], name) != 0) {
        role++;
    }
    return (attn_role)role;
}

// ---- placements ---------------------------------------------------------------------------------

static const attn_placement attn_placements[ATTN_ROLE_COUNT] = {
    [ATTN_ROLE_QUERY] = {"W_query.weight", ATTN_WHOLE, false},
    [ATTN_ROLE_KEY] = {"W_key.weight", ATTN_WHOLE, false},
    [ATTN_ROLE_VALUE] = {"W_value.weight", ATTN_WHOLE, false},
    [ATTN_ROLE_QUERY_BIAS] = {"W_query.bias", ATTN_WHOLE, false},
    [ATTN_ROLE_KEY_BIAS] = {"W_key.bias", ATTN_WHOLE, false},
    [ATTN_ROLE_VALUE_BIAS] = {"W_value.bias", ATTN_WHOLE, false},
    [ATTN_ROLE_OUT] = {"out_proj.weight", ATTN_WHOLE, false},
    [ATTN_ROLE_OUT_BIAS] = {"out_proj.bias", ATTN_WHOLE, false},
    [ATTN_ROLE_QUERY_NORM] = {"q_norm.weight", ATTN_WHOLE, false},
    [ATTN_ROLE_KEY_NORM] = {"k_norm.weight", ATTN_WHOLE, false},
};

static const attn_placement gpt2_placements[ATTN_ROLE_COUNT] = {
    [ATTN_ROLE_QUERY] = {"c_attn.weight", 0, true},
    [ATTN_ROLE_KEY] = {"c_attn.weight", 1, true},
    [ATTN_ROLE_VALUE] = {"c_attn.weight", 2, true},
    [ATTN_ROLE_QUERY_BIAS] = {"c_attn.bias", 0, false},
    [ATTN_ROLE_KEY_BIAS] = {"c_attn.bias", 1, false},
    [ATTN_ROLE_VALUE_BIAS] = {"c_attn.bias", 2, false},
    [ATTN_ROLE_OUT] = {"c_proj.weight", ATTN_WHOLE, true},
    [ATTN_ROLE_OUT_BIAS] = {"c_proj.bias", ATTN_WHOLE, false},
};

static const attn_placement torch_placements[ATTN_ROLE_COUNT] = {
    [ATTN_ROLE_QUERY] = {"in_proj_weight", 0, false},
    [ATTN_ROLE_KEY] = {"in_proj_weight", 1, false},
    [ATTN_ROLE_VALUE] = {"in_proj_weight", 2, false},
    [ATTN_ROLE_QUERY_BIAS] = {"in_proj_bias", 0, false},
    [ATTN_ROLE_KEY_BIAS] = {"in_proj_bias", 1, false},
    [ATTN_ROLE_VALUE_BIAS] = {"in_proj_bias", 2, false},
    [ATTN_ROLE_OUT] = {"out_proj.weight", ATTN_WHOLE, false},
    [ATTN_ROLE_OUT_BIAS] = {"out_proj.bias", ATTN_WHOLE, false},
};

static const attn_placement torch_separate_placements[ATTN_ROLE_COUNT] = {
    [ATTN_ROLE_QUERY] = {"q_proj_weight", ATTN_WHOLE, false},
    [ATTN_ROLE_KEY] = {"k_proj_weight", ATTN_WHOLE, false},
    [ATTN_ROLE_VALUE] = {"v_proj_weight", ATTN_WHOLE, false},
    [ATTN_ROLE_QUERY_BIAS] = {"in_proj_bias", 0, false},
    [ATTN_ROLE_KEY_BIAS] = {"in_proj_bias", 1, false},
    [ATTN_ROLE_VALUE_BIAS] = {"in_proj_bias", 2, false},
    [ATTN_ROLE_OUT] = {"out_proj.weight", ATTN_WHOLE, false},
    [ATTN_ROLE_OUT_BIAS] = {"out_proj.bias", ATTN_WHOLE, false},
};

static const attn_placement llama_placements[ATTN_ROLE_COUNT] = {
    [ATTN_ROLE_QUERY] = {"q_proj.weight", ATTN_WHOLE, false},
    [ATTN_ROLE_KEY] = {"k_proj.weight", ATTN_WHOLE, false},
    [ATTN_ROLE_VALUE] = {"v_proj.weight", ATTN_WHOLE, false},
    [ATTN_ROLE_QUERY_BIAS] = {"q_proj.bias", ATTN_WHOLE, false},
    [ATTN_ROLE_KEY_BIAS] = {"k_proj.bias", ATTN_WHOLE, false},
    [ATTN_ROLE_VALUE_BIAS] = {"v_proj.bias", ATTN_WHOLE, false},
    [ATTN_ROLE_OUT] = {"o_proj.weight", ATTN_WHOLE, false},
    [ATTN_ROLE_OUT_BIAS] = {"o_proj.bias", ATTN_WHOLE, false},
    [ATTN_ROLE_QUERY_NORM] = {"q_norm.weight", ATTN_WHOLE, false},
    [ATTN_ROLE_KEY_NORM] = {"k_norm.weight", ATTN_WHOLE, false},
};

const attn_placement *attn_layout_placements(attn_layout layout, bool separate)
{
    switch (layout) {
    case ATTN_LAYOUT_GPT2: return gpt2_placements;
    case ATTN_LAYOUT_TORCH: return separate ? torch_separate_placements : torch_placements;
    case ATTN_LAYOUT_LLAMA: return llama_placements;
    default: return attn_placements;
    }
}

const char *attn_layout_anchor(attn_layout layout, bool separate)
{
    return attn_layout_placements(layout, separate)[ATTN_ROLE_QUERY].name;
}

bool attn_layout_is_buffer(attn_layout layout, const char *name)
{
    switch (layout) {
    case ATTN_LAYOUT_ATTN: return strcmp(name, "mask") == 0;
    case ATTN_LAYOUT_GPT2: return strcmp(name, "bias") == 0 || strcmp(name, "masked_bias") == 0;
    case ATTN_LAYOUT_LLAMA: return strcmp(name, "rotary_emb.inv_freq") == 0;
    default: return false;
    }
}
