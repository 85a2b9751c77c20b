#include <stdio.h>
#include <string.h>

#include "attn/version.h"
#include "core/error.h"
#include "status.h"

static void every_status_has_its_own_words(void **state)
{
    (void)state;
    for (int i = 0; i < ATTN_STATUS_COUNT; i++) {
        const char *name = attn_status_name((attn_status)i);
        assert_int_equal(strncmp(name, "ATTN_", 5), 0);
        assert_true(strlen(attn_status_message((attn_status)i)) > 0);
        for (int j = 0; j < i; j++) {
            assert_string_not_equal(name, attn_status_name((attn_status)j));
            assert_string_not_equal(attn_status_message((attn_status)i),
                                    attn_status_message((attn_status)j));
        }
    }
    assert_string_equal(attn_status_name(ATTN_ERR_SHAPE), "ATTN_ERR_SHAPE");
    assert_string_equal(attn_status_message(ATTN_ERR_SHAPE), "shape mismatch");
}

static void values_outside_the_enum_are_unknown(void **state)
{
    (void)state;
    assert_string_equal(attn_status_message(ATTN_STATUS_COUNT), "unknown status");
    assert_string_equal(attn_status_message((attn_status)-1), "unknown status");
    assert_string_equal(attn_status_name((attn_status)1000), "unknown status");
}

static void fail_writes_status_and_text(void **state)
{
    (void)state;
    attn_error error;
    ASSERT_FAILS(ATTN_ERR_DTYPE, "matmul: 3 of 4",
                 attn_fail(&error, ATTN_ERR_DTYPE, "matmul: %d of %d", 3, 4));
    assert_int_equal(attn_fail(NULL, ATTN_ERR_IO, "nobody listens"), ATTN_ERR_IO);
}

static void a_text_can_be_wrapped(void **state)
{
    (void)state;
    attn_error error;
    attn_fail(&error, ATTN_ERR_SHAPE, "inner");
    ASSERT_FAILS(ATTN_ERR_SHAPE, "outer: inner",
                 attn_fail(&error, ATTN_ERR_SHAPE, "outer: %s", error.text));
}

static void a_long_text_is_cut(void **state)
{
    (void)state;
    char text[2 * ATTN_ERROR_TEXT_SIZE];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    attn_error error;
    attn_fail(&error, ATTN_ERR_IO, "%s", text);
    assert_int_equal(strlen(error.text), ATTN_ERROR_TEXT_SIZE - 1);
}

static void the_version_is_that_of_the_header(void **state)
{
    (void)state;
    char text[64];
    snprintf(text, sizeof text, "%d.%d.%d", ATTN_VERSION_MAJOR, ATTN_VERSION_MINOR,
             ATTN_VERSION_PATCH);
    assert_string_equal(attn_version(), text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_its_own_words),
        cmocka_unit_test(values_outside_the_enum_are_unknown),
        cmocka_unit_test(fail_writes_status_and_text),
        cmocka_unit_test(a_text_can_be_wrapped),
        cmocka_unit_test(a_long_text_is_cut),
        cmocka_unit_test(the_version_is_that_of_the_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
