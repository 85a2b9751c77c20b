// modules/module.h: what all modules share, for the modules themselves.
#ifndef ATTN_MODULES_MODULE_H
#define ATTN_MODULES_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attn/module.h"

// Config fields that only some modules have, as bits of attn_module_class.fields.
enum {
    ATTN_FIELD_QKV_BIAS = 1 << 0,
    ATTN_FIELD_CAUSAL = 1 << 1,     // context_length, dropout, dropout_*: the module masks
    ATTN_FIELD_NUM_HEADS = 1 << 2,  // num_heads
    ATTN_FIELD_MULTI_HEAD = 1 << 3, // everything from `causal` on
    ATTN_FIELD_CONFIG = 1 << 4      // made from a config at all (all but Linear)
};

// What a variant is.
typedef struct attn_module_class {
    const char *kind; // stands in front of every error text
    size_t size;      // of the variant's struct, whose first member is attn_module
    uint32_t fields;
    attn_var (*forward)(attn_module *module, const attn_module_call *call);
    void (*release)(attn_module *module); // what the variant allocated itself; may be NULL
} attn_module_class;

// How a parameter starts.
typedef enum attn_initial {
    ATTN_INITIAL_UNIFORM = 0, // [0, 1), torch.rand
    ATTN_INITIAL_KAIMING,     // +-1/sqrt(fan_in), torch's Linear
    ATTN_INITIAL_ONE          // norms
} attn_initial;

typedef struct attn_parameter_entry {
    attn_parameter parameter;
    attn_initial initial;
    int64_t fan_in;
    bool projects;                     // the weight of a linear layer
    struct attn_packed_weight *packed; // NULL: not yet, or no memory
    uint64_t packed_version;           // of the value that `packed` holds
} attn_parameter_entry;

struct attn_module {
    const attn_context *context;
    const attn_module_class *kind;
    attn_attention_config config;
    bool training;
    uint64_t dropout_calls;

    attn_parameter_entry **parameters; // entries never move: callers hold their addresses
    int64_t parameter_count, parameter_capacity;
    char **buffer_names; // every buffer is a causal mask
    int64_t buffer_count, buffer_capacity;
};

// ---- creation (module.c) ------------------------------------------------------------------------

// Allocates the variant's struct, zeroed but for the shared part, with room for so many names.
// `config` NULL leaves the config zero.
attn_status attn_module_allocate(const attn_context *context, const attn_module_class *kind,
                                 const attn_attention_config *config, int64_t parameter_count,
                                 int64_t buffer_count, attn_module **module, attn_error *error);

// The end of every create function: on success draws the initial parameters and hands the module
// over; on failure destroys it.
attn_status attn_module_finish(attn_module *module, attn_status status, attn_generator *generator,
                               attn_module **result, attn_error *error);

// Fails the input's tape with "<kind>: <text>". Returns false, so that a check reads
// `return attn_module_fail(...)`.
bool attn_module_fail(const attn_module *module, attn_var input, attn_status status,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));

// ---- what a caller may ask for (config.c) -------------------------------------------------------

// Checks a config for a variant. Texts name the kind and the field.
attn_status attn_attention_config_check(const attn_attention_config *config,
                                        const attn_module_class *kind, attn_error *error);

// The config's fields with their defaults filled in.
int64_t attn_config_head_dim(const attn_attention_config *config);
int64_t attn_config_kv_heads(const attn_attention_config *config);
int64_t attn_config_context_width(const attn_attention_config *config);
bool attn_module_is_causal(const attn_module *module);

// The rules for a call: a healthy tape of the module's context, and for attention an input
// (T, d_in) or (B, T, d_in) of the module's dtype with T within context_length. False after failing
// the tape.
bool attn_module_call_check(const attn_module *module, const attn_module_call *call);

// ---- parameters (parameter.c) -------------------------------------------------------------------

// Adds a parameter named <prefix><name><suffix>, zero for now.
attn_status attn_register_parameter(attn_module *module, const char *prefix, const char *name,
                                    const char *suffix, int32_t ndim, const int64_t *shape,
                                    attn_initial initial, int64_t fan_in,
                                    attn_parameter **parameter, attn_error *error);

// Adds a buffer named <prefix><name>.
attn_status attn_register_buffer(attn_module *module, const char *prefix, const char *name,
                                 attn_error *error);

// Draws all parameters in the order of their registration.
attn_status attn_initialize_parameters(attn_module *module, attn_generator *generator,
                                       attn_error *error);

void attn_release_parameters(attn_module *module);

// Packs the weights of linear layers that are not packed as they are now. Called where a module that
// does not train is changed by its owner, so that a forward only reads, and several threads may run
// it. Without memory a weight stays unpacked: slower, with the same bits.
void attn_pack_parameters(attn_module *module);
// The parameter's packed form, or NULL where there is none of the value it has now.
const struct attn_packed_weight *attn_packed_parameter(const attn_parameter *parameter);

// The parameter as a leaf of a tape: its gradient is added to parameter->grad.
attn_var attn_parameter_var(attn_tape *tape, const attn_parameter *parameter);

#endif
