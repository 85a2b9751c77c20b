// The text tables: complete, and alike in what they print.
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "support/unit.h"
#include "text.h"

static void no_entry_is_missing_or_empty(void **state)
{
    (void)state;
    for (int id = 0; id < TEXT_COUNT; ++id) {
        if (!text_en[id] || !*text_en[id] || !text_zh[id] || !*text_zh[id]) {
            fail_msg("entry %d (after '%s') is missing in a language", id,
                     id > 0 && text_en[id - 1] ? text_en[id - 1] : "");
        }
    }
}

// The next conversion at or after *text, "%5d"; its length, 0 at the end. "%%" prints one character
// and takes no argument.
static size_t next_conversion(const char **text)
{
    while ((*text = strchr(*text, '%')) != NULL && (*text)[1] == '%') {
        *text += 2;
    }
    return *text ? strcspn(*text + 1, "diouxXeEfFgGaAcspn") + 2 : 0;
}

static void conversions_are_the_same(void **state)
{
    (void)state;
    for (int id = 0; id < TEXT_COUNT; ++id) {
        const char *en = text_en[id];
        const char *zh = text_zh[id];
        for (;;) {
            const size_t en_length = next_conversion(&en);
            const size_t zh_length = next_conversion(&zh);
            if (en_length != zh_length || (en_length > 0 && memcmp(en, zh, en_length) != 0)) {
                fail_msg("entry %d prints differently: '%s' and '%s'", id, text_en[id],
                         text_zh[id]);
            }
            if (en_length == 0) {
                break;
            }
            en += en_length;
            zh += zh_length;
        }
    }
}

static void english_is_ascii(void **state)
{
    (void)state;
    for (int id = 0; id < TEXT_COUNT; ++id) {
        for (const char *c = text_en[id]; *c; ++c) {
            if (!(*c == '\n' || (*c >= ' ' && *c <= '~'))) {
                fail_msg("entry %d: '%s'", id, text_en[id]);
            }
        }
    }
}

// Every entry with a sentence in English has Chinese characters in Chinese: nothing was left over.
static void chinese_is_chinese(void **state)
{
    (void)state;
    for (int id = 0; id < TEXT_COUNT; ++id) {
        int spaces = 0;
        bool chinese = false;
        for (const char *c = text_en[id]; *c; ++c) {
            spaces += *c == ' ' && isalpha((unsigned char)c[1]);
        }
        for (const char *c = text_zh[id]; *c; ++c) {
            chinese = chinese || (unsigned char)*c >= 0xE3;
        }
        if (spaces > 4 && !chinese) {
            fail_msg("entry %d: '%s'", id, text_zh[id]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_entry_is_missing_or_empty),
        cmocka_unit_test(conversions_are_the_same),
        cmocka_unit_test(english_is_ascii),
        cmocka_unit_test(chinese_is_chinese),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
