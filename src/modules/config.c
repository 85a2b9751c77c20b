// What a caller may ask for: configs at creation, calls at each forward.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/error.h"
#include "core/text.h"
#include "modules/module.h"

static attn_status check_shared(const attn_attention_config *config, const char *kind,
                                attn_error *error);
static attn_status check_foreign(const attn_attention_config *config, const attn_module_class *kind,
                                 attn_error *error);
static attn_status check_causal(const attn_attention_config *config, const char *kind,
                                attn_error *error);
static attn_status check_heads(const attn_attention_config *config, const char *kind,
                               attn_error *error);
static attn_status check_multi_head(const attn_attention_config *config, const char *kind,
                                    attn_error *error);

// ---- configs ------------------------------------------------------------------------------------

void attn_attention_config_init(attn_attention_config *config)
{
    *config = (attn_attention_config){
        .struct_size = sizeof *config,
        .dtype = ATTN_F32,
        .num_heads = 1,
        .causal = true,
        .out_proj = true,
        .out_bias = true,
        .rotary_base = 10000,
        .qk_norm_epsilon = 1e-6,
    };
}

attn_status attn_attention_config_check(const attn_attention_config *config,
                                        const attn_module_class *kind, attn_error *error)
{
    attn_status status = check_shared(config, kind->kind, error);
    if (status == ATTN_OK) {
        status = check_foreign(config, kind, error);
    }
    if (status == ATTN_OK && (kind->fields & ATTN_FIELD_CAUSAL)) {
        status = check_causal(config, kind->kind, error);
    }
    if (status == ATTN_OK && (kind->fields & ATTN_FIELD_NUM_HEADS)) {
        status = check_heads(config, kind->kind, error);
    }
    if (status == ATTN_OK && (kind->fields & ATTN_FIELD_MULTI_HEAD)) {
        status = check_multi_head(config, kind->kind, error);
    }
    return status;
}

static attn_status check_shared(const attn_attention_config *config, const char *kind,
                                attn_error *error)
{
    if (!config) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "%s: config is NULL", kind);
    }
    if (config->struct_size != sizeof *config) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "%s: config.struct_size is %zu, not %zu; call attn_attention_config_init",
                         kind, config->struct_size, sizeof *config);
    }
    for (size_t i = 0; i < sizeof config->reserved / sizeof config->reserved[0]; i++) {
        if (config->reserved[i] != 0) {
            return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                             "%s: config.reserved[%zu] must be zero", kind, i);
        }
    }
    if (config->dtype != ATTN_F32 && config->dtype != ATTN_F64) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "%s: dtype must be float32 or float64, not %s", kind,
                         attn_dtype_name(config->dtype));
    }
    if (config->d_in <= 0) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "%s: d_in (%" PRId64 ") must be positive", kind, config->d_in);
    }
    if (config->d_out <= 0) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "%s: d_out (%" PRId64 ") must be positive", kind, config->d_out);
    }
    return ATTN_OK;
}

// Fields that the variant does not have must hold their defaults.
static attn_status check_foreign(const attn_attention_config *config, const attn_module_class *kind,
                                 attn_error *error)
{
    attn_attention_config initial;
    attn_attention_config_init(&initial);
    const struct {
        uint32_t field;
        const char *name;
        bool differs;
    } rules[] = {
        {ATTN_FIELD_QKV_BIAS, "qkv_bias", config->qkv_bias},
        {ATTN_FIELD_CAUSAL, "context_length", config->context_length != 0},
        {ATTN_FIELD_CAUSAL, "dropout", config->dropout != 0},
        {ATTN_FIELD_CAUSAL, "dropout_source", config->dropout_source != initial.dropout_source},
        {ATTN_FIELD_CAUSAL, "dropout_seed", config->dropout_seed != 0},
        {ATTN_FIELD_CAUSAL, "dropout_stream", config->dropout_stream != 0},
        {ATTN_FIELD_NUM_HEADS, "num_heads", config->num_heads != initial.num_heads},
        {ATTN_FIELD_MULTI_HEAD, "causal", config->causal != initial.causal},
        {ATTN_FIELD_MULTI_HEAD, "out_proj", config->out_proj != initial.out_proj},
        {ATTN_FIELD_MULTI_HEAD, "out_bias", config->out_bias != initial.out_bias},
        {ATTN_FIELD_MULTI_HEAD, "num_kv_heads", config->num_kv_heads != 0},
        {ATTN_FIELD_MULTI_HEAD, "head_dim", config->head_dim != 0},
        {ATTN_FIELD_MULTI_HEAD, "d_context", config->d_context != 0},
        {ATTN_FIELD_MULTI_HEAD, "rotary", config->rotary != ATTN_ROTARY_NONE},
        {ATTN_FIELD_MULTI_HEAD, "rotary_base", config->rotary_base != initial.rotary_base},
        {ATTN_FIELD_MULTI_HEAD, "qk_norm", config->qk_norm},
        {ATTN_FIELD_MULTI_HEAD, "qk_norm_epsilon",
         config->qk_norm_epsilon != initial.qk_norm_epsilon},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (rules[i].differs && !(kind->fields & rules[i].field)) {
            return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                             "%s: has no %s; leave it at its default", kind->kind, rules[i].name);
        }
    }
    return ATTN_OK;
}

static attn_status check_causal(const attn_attention_config *config, const char *kind,
                                attn_error *error)
{
    if (config->context_length < 0 || (config->causal && config->context_length == 0)) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "%s: context_length (%" PRId64 ") must be positive", kind,
                         config->context_length);
    }
    if (!(config->dropout >= 0 && config->dropout < 1)) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "%s: dropout (%g) must be in [0, 1)",
                         kind, config->dropout);
    }
    if (config->dropout_source != ATTN_DROPOUT_FROM_GENERATOR &&
        config->dropout_source != ATTN_DROPOUT_FROM_PHILOX) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "%s: unknown dropout_source (%d)", kind,
                         (int)config->dropout_source);
    }
    return ATTN_OK;
}

static attn_status check_heads(const attn_attention_config *config, const char *kind,
                               attn_error *error)
{
    if (config->num_heads <= 0) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "%s: num_heads (%" PRId64 ") must be positive", kind, config->num_heads);
    }
    return ATTN_OK;
}

static attn_status check_multi_head(const attn_attention_config *config, const char *kind,
                                    attn_error *error)
{
    const int64_t heads = config->num_heads;
    if (config->num_kv_heads < 0 || heads % attn_config_kv_heads(config) != 0) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "%s: num_heads (%" PRId64 ") must be divisible by num_kv_heads (%" PRId64
                         ")",
                         kind, heads, config->num_kv_heads);
    }
    if (config->head_dim < 0) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "%s: head_dim (%" PRId64 ") must not be negative", kind, config->head_dim);
    }
    if (config->head_dim == 0 && config->d_out % heads != 0) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "%s: d_out (%" PRId64 ") must be divisible by num_heads (%" PRId64 ")",
                         kind, config->d_out, heads);
    }
    const int64_t head_dim = attn_config_head_dim(config);
    if (head_dim > INT64_MAX / heads) {
        return attn_fail(error, ATTN_ERR_OVERFLOW, "%s: num_heads times head_dim overflows", kind);
    }
    if (!config->out_proj && heads * head_dim != config->d_out) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "%s: without out_proj, d_out (%" PRId64 ") must be num_heads (%" PRId64
                         ") times head_dim (%" PRId64 ")",
                         kind, config->d_out, heads, head_dim);
    }
    if (config->d_context < 0 || (config->causal && config->d_context != 0)) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "%s: d_context (%" PRId64 ") must be 0 where the module is causal and "
                         "not negative elsewhere",
                         kind, config->d_context);
    }
    if (config->rotary != ATTN_ROTARY_NONE && config->rotary != ATTN_ROTARY_HALF_SPLIT &&
        config->rotary != ATTN_ROTARY_INTERLEAVED) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "%s: unknown rotary style (%d)", kind,
                         (int)config->rotary);
    }
    if (config->rotary != ATTN_ROTARY_NONE && head_dim % 2 != 0) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "%s: rotary positions need an even head_dim, not %" PRId64, kind,
                         head_dim);
    }
    if (!(config->rotary_base > 0 && isfinite(config->rotary_base))) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "%s: rotary_base (%g) must be positive and finite", kind,
                         config->rotary_base);
    }
    if (!(config->qk_norm_epsilon >= 0 && isfinite(config->qk_norm_epsilon))) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "%s: qk_norm_epsilon (%g) must be finite and not negative", kind,
                         config->qk_norm_epsilon);
    }
    return ATTN_OK;
}

int64_t attn_config_head_dim(const attn_attention_config *config)
{
    return config->head_dim > 0 ? config->head_dim : config->d_out / config->num_heads;
}

int64_t attn_config_kv_heads(const attn_attention_config *config)
{
    return config->num_kv_heads > 0 ? config->num_kv_heads : config->num_heads;
}

int64_t attn_config_context_width(const attn_attention_config *config)
{
    return config->d_context > 0 ? config->d_context : config->d_in;
}

bool attn_module_is_causal(const attn_module *module)
{
    return (module->kind->fields & ATTN_FIELD_CAUSAL) && module->config.causal;
}

// ---- calls --------------------------------------------------------------------------------------

static bool check_input(const attn_module *module, const attn_module_call *call);
static bool check_second_input(const attn_module *module, const attn_module_call *call);
static bool check_length(const attn_module *module, const attn_module_call *call, int64_t length);

bool attn_module_call_check(const attn_module *module, const attn_module_call *call)
{
    attn_tape *tape = call->input.tape;
    if (attn_tape_status(tape) != ATTN_OK) {
        return false;
    }
    if (call->struct_size != sizeof *call) {
        return attn_module_fail(module, call->input, ATTN_ERR_INVALID_ARGUMENT,
                                "call.struct_size is %zu, not %zu; call attn_module_call_init",
                                call->struct_size, sizeof *call);
    }
    for (size_t i = 0; i < sizeof call->reserved / sizeof call->reserved[0]; i++) {
        if (call->reserved[i] != 0) {
            return attn_module_fail(module, call->input, ATTN_ERR_INVALID_ARGUMENT,
                                    "call.reserved[%zu] must be zero", i);
        }
    }
    if (attn_tape_context(tape) != module->context) {
        return attn_module_fail(module, call->input, ATTN_ERR_STATE,
                                "the input's tape belongs to another context than the "
                                "module's parameters");
    }
    if (!(module->kind->fields & ATTN_FIELD_CONFIG)) {
        return true;
    }
    return check_input(module, call) && check_second_input(module, call);
}

static bool check_input(const attn_module *module, const attn_module_call *call)
{
    const attn_tensor input = attn_value(call->input);
    if (input.dtype == ATTN_DTYPE_NONE) { // stale: the tape has failed
        return false;
    }
    if (input.dtype != module->config.dtype) {
        return attn_module_fail(module, call->input, ATTN_ERR_DTYPE,
                                "the input is %s, the module %s", attn_dtype_name(input.dtype),
                                attn_dtype_name(module->config.dtype));
    }
    if (input.ndim != 2 && input.ndim != 3) {
        return attn_module_fail(module, call->input, ATTN_ERR_SHAPE,
                                "input %s must be (T, d_in) or (B, T, d_in)",
                                attn_shape_text(&input).text);
    }
    if (input.shape[input.ndim - 1] != module->config.d_in) {
        return attn_module_fail(module, call->input, ATTN_ERR_SHAPE,
                                "input %s must end in d_in (%" PRId64 ")",
                                attn_shape_text(&input).text, module->config.d_in);
    }
    return check_length(module, call, input.shape[input.ndim - 2]);
}

static bool check_length(const attn_module *module, const attn_module_call *call, int64_t length)
{
    const int64_t limit = module->config.context_length;
    if (call->position < 0) {
        return attn_module_fail(module, call->input, ATTN_ERR_INVALID_ARGUMENT,
                                "position (%" PRId64 ") must not be negative", call->position);
    }
    if (limit > 0 && length > limit) {
        return attn_module_fail(module, call->input, ATTN_ERR_INVALID_ARGUMENT,
                                "T (%" PRId64 ") exceeds context_length (%" PRId64 ")", length,
                                limit);
    }
    if (call->position > INT64_MAX - length) {
        return attn_module_fail(module, call->input, ATTN_ERR_OVERFLOW,
                                "position (%" PRId64 ") plus T (%" PRId64 ") is too large",
                                call->position, length);
    }
    if (limit > 0 && call->position > limit - length) {
        return attn_module_fail(module, call->input, ATTN_ERR_INVALID_ARGUMENT,
                                "position (%" PRId64 ") plus T (%" PRId64
                                ") exceeds context_length (%" PRId64 ")",
                                call->position, length, limit);
    }
    return true;
}

static bool check_second_input(const attn_module *module, const attn_module_call *call)
{
    const attn_attention_config *config = &module->config;
    const int64_t width = attn_config_context_width(config);
    if (!call->context.tape) {
        if (width != config->d_in) {
            return attn_module_fail(module, call->input, ATTN_ERR_INVALID_ARGUMENT,
                                    "d_context (%" PRId64 ") differs from d_in (%" PRId64
                                    "), so the call needs a context",
                                    width, config->d_in);
        }
        return true;
    }
    if (!(module->kind->fields & ATTN_FIELD_MULTI_HEAD)) {
        return attn_module_fail(module, call->input, ATTN_ERR_INVALID_ARGUMENT,
                                "takes no second input (context)");
    }
    if (config->causal || config->rotary != ATTN_ROTARY_NONE) {
        return attn_module_fail(
            module, call->input, ATTN_ERR_INVALID_ARGUMENT,
            "a second input (context) does not go with %s, which needs one sequence",
            config->causal ? "a causal mask" : "rotary positions");
    }
    if (call->context.tape != call->input.tape) {
        return attn_module_fail(module, call->input, ATTN_ERR_STATE,
                                "the context is on another tape than the input");
    }
    const attn_tensor input = attn_value(call->input);
    const attn_tensor context = attn_value(call->context);
    if (context.dtype == ATTN_DTYPE_NONE) {
        return false;
    }
    if (context.dtype != config->dtype) {
        return attn_module_fail(module, call->input, ATTN_ERR_DTYPE,
                                "the context is %s, the module %s", attn_dtype_name(context.dtype),
                                attn_dtype_name(config->dtype));
    }
    if (context.ndim != input.ndim || context.shape[context.ndim - 1] != width ||
        (context.ndim == 3 && context.shape[0] != input.shape[0])) {
        return attn_module_fail(module, call->input, ATTN_ERR_SHAPE,
                                "context %s must have the rank and batch of input %s and end in "
                                "d_context (%" PRId64 ")",
                                attn_shape_text(&context).text, attn_shape_text(&input).text,
                                width);
    }
    return true;
}
