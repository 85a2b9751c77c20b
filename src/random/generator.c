// MT19937 (Matsumoto and Nishimura, "Mersenne Twister", 1998) as torch's CPU generator uses it.
#include "random/generator.h"

#include <inttypes.h>

#include "core/context.h"
#include "core/error.h"

enum {
    WORDS = 624,
    MIDDLE = 397,
};

attn_status attn_generator_create(const attn_context *context, uint64_t seed,
                                  attn_generator **generator, attn_error *error)
{
    if (!context || !generator) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "generator: %s is NULL",
                         context ? "generator" : "context");
    }
    attn_generator *created = attn_allocate(context, sizeof *created);
    if (!created) {
        return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY, "generator: out of memory");
    }
    created->context = context;
    attn_generator_manual_seed(created, seed);
    *generator = created;
    return ATTN_OK;
}

void attn_generator_destroy(attn_generator *generator)
{
    if (generator) {
        attn_release(generator->context, generator, sizeof *generator);
    }
}

void attn_generator_manual_seed(attn_generator *generator, uint64_t seed)
{
    attn_generator_state *state = &generator->state;
    *state = (attn_generator_state){.seed = seed, .position = WORDS};
    state->words[0] = (uint32_t)seed;
    for (uint32_t i = 1; i < WORDS; i++) {
        const uint32_t before = state->words[i - 1];
        state->words[i] = UINT32_C(1812433253) * (before ^ before >> 30) + i;
    }
}

// ---- save and restore ---------------------------------------------------------------------------

void attn_generator_save(const attn_generator *generator, attn_generator_state *state)
{
    *state = generator->state;
}

attn_status attn_generator_restore(attn_generator *generator, const attn_generator_state *state,
                                   attn_error *error)
{
    if (!generator || !state) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "generator_restore: %s is NULL",
                         generator ? "state" : "generator");
    }
    if (state->position > WORDS) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "generator_restore: position (%" PRIu32 ") must be in [0, %d]",
                         state->position, WORDS);
    }
    if (state->has_normal > 1) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "generator_restore: has_normal (%" PRIu32 ") must be 0 or 1",
                         state->has_normal);
    }
    generator->state = *state;
    return ATTN_OK;
}

// ---- words --------------------------------------------------------------------------------------

static uint32_t twist(uint32_t high, uint32_t low)
{
    const uint32_t mixed = (high & UINT32_C(0x80000000)) | (low & UINT32_C(0x7fffffff));
    return mixed >> 1 ^ (low & 1 ? UINT32_C(0x9908b0df) : 0);
}

static void next_words(uint32_t words[WORDS])
{
    for (int i = 0; i < WORDS - MIDDLE; i++) {
        words[i] = words[i + MIDDLE] ^ twist(words[i], words[i + 1]);
    }
    for (int i = WORDS - MIDDLE; i < WORDS - 1; i++) {
        words[i] = words[i + MIDDLE - WORDS] ^ twist(words[i], words[i + 1]);
    }
    words[WORDS - 1] = words[MIDDLE - 1] ^ twist(words[WORDS - 1], words[0]);
}

uint32_t attn_generator_u32(attn_generator *generator)
{
    attn_generator_state *state = &generator->state;
    if (state->position == WORDS) {
        next_words(state->words);
        state->position = 0;
    }
    uint32_t word = state->words[state->position++];
    word ^= word >> 11;
    word ^= word << 7 & UINT32_C(0x9d2c5680);
    word ^= word << 15 & UINT32_C(0xefc60000);
    word ^= word >> 18;
    return word;
}

uint64_t attn_generator_u64(attn_generator *generator)
{
    const uint64_t high = attn_generator_u32(generator);
    return high << 32 | attn_generator_u32(generator);
}

float attn_generator_uniform_f32(attn_generator *generator)
{
    return (float)(attn_generator_u32(generator) & 0xffffff) * 0x1p-24f;
}

double attn_generator_uniform_f64(attn_generator *generator)
{
    return (double)(attn_generator_u64(generator) & ((UINT64_C(1) << 53) - 1)) * 0x1p-53;
}
