#include <math.h>

#include "attn/random.h"

static uint32_t low_word(uint64_t value)
{
    return (uint32_t)value;
}

static uint32_t high_word(uint64_t value)
{
    return (uint32_t)(value >> 32);
}

void attn_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        const uint64_t product0 = (uint64_t)c0 * UINT32_C(0xd2511f53);
        const uint64_t product1 = (uint64_t)c2 * UINT32_C(0xcd9e8d57);
        c0 = high_word(product1) ^ c1 ^ k0;
        c1 = low_word(product1);
        c2 = high_word(product0) ^ c3 ^ k1;
        c3 = low_word(product0);
        k0 += UINT32_C(0x9e3779b9); // the golden ratio
        k1 += UINT32_C(0xbb67ae85); // sqrt(3) - 1
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

void attn_philox_head_key(const attn_philox_address *address, uint32_t head_key[2])
{
    const uint64_t batch = (uint64_t)address->batch, head = (uint64_t)address->head;
    const uint32_t seed_key[2] = {low_word(address->seed), high_word(address->seed)};
    const uint32_t place[4] = {low_word(address->stream), high_word(address->stream),
                               low_word(address->call), high_word(address->call)};
    uint32_t w[4], v[4];
    attn_philox4x32(place, seed_key, w);
    const uint32_t row_of_heads[4] = {low_word(batch), high_word(batch), low_word(head) ^ w[2],
                                      high_word(head) ^ w[3]};
    attn_philox4x32(row_of_heads, w, v);
    head_key[0] = v[0];
    head_key[1] = v[1];
}

uint32_t attn_philox_word(const uint32_t head_key[2], int64_t row, int64_t key)
{
    const uint64_t group = (uint64_t)key / 4;
    const uint32_t counter[4] = {low_word(group), high_word(group), low_word((uint64_t)row),
                                 high_word((uint64_t)row)};
    uint32_t words[4];
    attn_philox4x32(counter, head_key, words);
    return words[(uint64_t)key % 4];
}

uint64_t attn_philox_threshold(double p)
{
    const uint64_t everything = UINT64_C(1) << 32;
    if (!(p > 0)) {
        return everything;
    }
    if (p >= 1) {
        return 0;
    }
    // By hand, since rint follows the caller's rounding mode.
    const double exact = (1 - p) * 0x1p32;
    const double below = floor(exact);
    const uint64_t whole = (uint64_t)below;
    const double rest = exact - below;
    return whole + (rest > 0.5 || (rest == 0.5 && whole % 2 == 1));
}
