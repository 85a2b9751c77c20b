#include <math.h>

#include "attn/random.h"
#include "unit.h"

// kat_vectors of the Random123 distribution, version 1.14, philox4x32 with 10 rounds.
static void known_answers(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], expected[4];
    } cases[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t out[4];
        attn_philox4x32(cases[i].counter, cases[i].key, out);
        assert_memory_equal(out, cases[i].expected, sizeof out);
    }
    uint32_t in_place[4] = {0, 0, 0, 0};
    attn_philox4x32(in_place, in_place, in_place);
    assert_memory_equal(in_place, cases[0].expected, sizeof in_place);
}

// The construction as attn/random.h states it, with every half of every field in use.
static void a_head_key_is_two_rounds_of_philox(void **state)
{
    (void)state;
    const attn_philox_address address = {
        .seed = UINT64_C(0x1111111122222222),
        .stream = UINT64_C(0x3333333344444444),
        .call = UINT64_C(0x5555555566666666),
        .batch = INT64_C(0x7777777788888888),
        .head = INT64_C(0x0999999900000005),
    };
    uint32_t w[4], v[4], head_key[2];
    attn_philox4x32((const uint32_t[]){0x44444444, 0x33333333, 0x66666666, 0x55555555},
                    (const uint32_t[]){0x22222222, 0x11111111}, w);
    attn_philox4x32(
        (const uint32_t[]){0x88888888, 0x77777777, 0x00000005 ^ w[2], 0x09999999 ^ w[3]},
        (const uint32_t[]){w[0], w[1]}, v);
    attn_philox_head_key(&address, head_key);
    assert_int_equal(head_key[0], v[0]);
    assert_int_equal(head_key[1], v[1]);
}

static void every_field_changes_the_head_key(void **state)
{
    (void)state;
    const attn_philox_address base = {1, 2, 3, 4, 5};
    uint32_t keys[11][2];
    attn_philox_address changed[11];
    for (int i = 0; i < 11; i++) {
        changed[i] = base;
    }
    const int64_t high = INT64_C(1) << 40;
    changed[1].seed += 1;
    changed[2].seed += (uint64_t)high;
    changed[3].stream += 1;
    changed[4].stream += (uint64_t)high;
    changed[5].call += 1;
    changed[6].call += (uint64_t)high;
    changed[7].batch += 1;
    changed[8].batch += high;
    changed[9].head += 1;
    changed[10].head += high;
    for (int i = 0; i < 11; i++) {
        attn_philox_head_key(&changed[i], keys[i]);
        for (int j = 0; j < i; j++) {
            assert_memory_not_equal(keys[i], keys[j], sizeof keys[i]);
        }
    }
}

static void a_word_is_addressed_by_row_and_key(void **state)
{
    (void)state;
    const uint32_t head_key[2] = {123, 456};
    const int64_t row = INT64_C(0x0000000700000009);
    for (int64_t key = 0; key < 12; key++) {
        uint32_t out[4];
        attn_philox4x32((const uint32_t[]){(uint32_t)(key / 4), 0, 9, 7}, head_key, out);
        assert_int_equal(attn_philox_word(head_key, row, key), out[key % 4]);
    }
    const int64_t far = (INT64_C(1) << 40) + 2;
    uint32_t out[4];
    attn_philox4x32((const uint32_t[]){0, 1 << 6, 9, 7}, head_key, out);
    assert_int_equal(attn_philox_word(head_key, row, far), out[2]);
}

static void thresholds(void **state)
{
    (void)state;
    const uint64_t all = UINT64_C(1) << 32;
    assert_true(attn_philox_threshold(0) == all);
    assert_true(attn_philox_threshold(1) == 0);
    assert_true(attn_philox_threshold(0.5) == all / 2);
    assert_true(attn_philox_threshold(0.25) == all / 4 * 3);
    assert_true(attn_philox_threshold(0.1) == UINT64_C(3865470566)); // 3865470566.4
    assert_true(attn_philox_threshold(0.3) == UINT64_C(3006477107)); // 3006477107.2
    // Ties go to even: one half and three halves below 2^32.
    assert_true(attn_philox_threshold(0x1p-33) == all);
    assert_true(attn_philox_threshold(0x3p-33) == all - 2);
    assert_true(attn_philox_threshold(0x3p-34) == all - 1);
    assert_true(attn_philox_threshold(1 - 0x1p-33) == 0);
    assert_true(attn_philox_threshold(1 - 0x3p-33) == 2);
    // Outside of [0, 1): everything or nothing, never more.
    assert_true(attn_philox_threshold(-1) == all);
    assert_true(attn_philox_threshold(2) == 0);
    assert_true(attn_philox_threshold((double)NAN) == all);
}

// Of 100000 words about 1 - p are kept: within five standard deviations.
static void the_share_of_kept_weights(void **state)
{
    (void)state;
    uint32_t head_key[2];
    attn_philox_head_key(&(attn_philox_address){.seed = 42}, head_key);
    static const double rates[] = {0.1, 0.5, 0.9};
    for (int r = 0; r < 3; r++) {
        const uint64_t threshold = attn_philox_threshold(rates[r]);
        int kept = 0;
        for (int64_t row = 0; row < 100; row++) {
            for (int64_t key = 0; key < 1000; key++) {
                kept += attn_philox_word(head_key, row, key) < threshold;
            }
        }
        const double expected = 1e5 * (1 - rates[r]);
        assert_true(fabs(kept - expected) < 5 * sqrt(expected * rates[r]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(a_head_key_is_two_rounds_of_philox),
        cmocka_unit_test(every_field_changes_the_head_key),
        cmocka_unit_test(a_word_is_addressed_by_row_and_key),
        cmocka_unit_test(thresholds),
        cmocka_unit_test(the_share_of_kept_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
