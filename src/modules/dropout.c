#include "modules/dropout.h"

#include "core/element.h"
#include "tape/ops/ops.h"
#include "tape/tape.h"

static bool draw_keep_bits(const attn_module *module, const attn_module_call *call,
                           attn_weights_shape shape, attn_sdpa_desc *desc);

bool attn_module_drops_by_position(const attn_module *module)
{
    return module->training && module->config.dropout > 0 &&
           module->config.dropout_source == ATTN_DROPOUT_FROM_PHILOX;
}

bool attn_describe_dropout(const attn_module *module, const attn_module_call *call,
                           int64_t first_head, attn_weights_shape shape, attn_sdpa_desc *desc)
{
    const attn_attention_config *config = &module->config;
    if (!module->training || config->dropout == 0) {
        return true;
    }
    desc->dropout_p = config->dropout;
    if (config->dropout_source == ATTN_DROPOUT_FROM_GENERATOR) {
        return draw_keep_bits(module, call, shape, desc);
    }
    desc->dropout = ATTN_DROPOUT_PHILOX;
    desc->dropout_seed = config->dropout_seed;
    desc->dropout_stream = config->dropout_stream;
    desc->dropout_call = module->dropout_calls;
    desc->dropout_head = first_head;
    desc->dropout_row = call->position;
    return true;
}

static bool draw_keep_bits(const attn_module *module, const attn_module_call *call,
                           attn_weights_shape shape, attn_sdpa_desc *desc)
{
    const char *kind = module->kind->kind;
    attn_tape *tape = call->input.tape;
    if (!call->generator) {
        return attn_module_fail(module, call->input, ATTN_ERR_INVALID_ARGUMENT,
                                "dropout (%g) in training needs a generator in the call",
                                module->config.dropout);
    }
    if (!attn_tape_healthy(tape)) {
        return false;
    }
    const int64_t row_bytes = shape.keys / 8 + (shape.keys % 8 != 0);
    const int64_t sizes[] = {shape.batch, shape.heads, shape.queries, row_bytes};
    attn_tensor *keep = attn_tape_allocate(tape, kind, 1, sizeof *keep);
    if (!keep || !attn_tape_tensor(tape, kind, ATTN_U8, 4, sizes, keep)) {
        return false;
    }
    attn_error error;
    if (attn_tape_draw_bits(call->generator, desc->dropout_p, keep, shape.keys, &error) !=
        ATTN_OK) {
        return attn_module_fail(module, call->input, error.status, "%s", error.text);
    }
    desc->dropout = ATTN_DROPOUT_KEEP;
    desc->dropout_keep = keep;
    return true;
}

// ---- for the trace ------------------------------------------------------------------------------

static bool is_kept(const attn_sdpa_desc *desc, const uint32_t head_key[2], int64_t row,
                    int64_t query, int64_t key)
{
    if (desc->dropout == ATTN_DROPOUT_PHILOX) {
        return attn_philox_word(head_key, desc->dropout_row + query, key) <
               attn_philox_threshold(desc->dropout_p);
    }
    const int64_t row_bytes = desc->dropout_keep->shape[3];
    const uint8_t *bits = desc->dropout_keep->data;
    return bits[row * row_bytes + key / 8] >> key % 8 & 1;
}

void attn_dropout_factors(const attn_sdpa_desc *desc, attn_weights_shape shape,
                          const attn_tensor *factors)
{
    const double kept = 1 / (1 - desc->dropout_p);
    const size_t size = attn_dtype_size(factors->dtype);
    char *element = factors->data;
    int64_t row = 0;
    for (int64_t batch = 0; batch < shape.batch; batch++) {
        for (int64_t head = 0; head < shape.heads; head++) {
            uint32_t head_key[2];
            attn_philox_head_key(
                &(attn_philox_address){desc->dropout_seed, desc->dropout_stream, desc->dropout_call,
                                       desc->dropout_batch + batch, desc->dropout_head + head},
                head_key);
            for (int64_t query = 0; query < shape.queries; query++, row++) {
                for (int64_t key = 0; key < shape.keys; key++, element += size) {
                    attn_element_store(factors->dtype, element,
                                       is_kept(desc, head_key, row, query, key) ? kept : 0);
                }
            }
        }
    }
}
