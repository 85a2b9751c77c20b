// Checks of what a call returned.
//
//   attn_error error;
//   ASSERT_OK(attn_tensor_view(&x, 2, shape, &y, &error));
//   ASSERT_FAILS(ATTN_ERR_SHAPE, "view: ...", attn_tensor_view(&x, 2, shape, &y, &error));
//
// Both use a variable named `error`; the second compares the whole text.
#ifndef ATTN_TESTS_SUPPORT_STATUS_H
#define ATTN_TESTS_SUPPORT_STATUS_H

#include "attn/status.h"
#include "unit.h"

#define ASSERT_OK(call) test_assert_ok((call), &error, __FILE__, __LINE__)
#define ASSERT_FAILS(expected, expected_text, call) \
    test_assert_fails((call), &error, (expected), (expected_text), __FILE__, __LINE__)

static inline void test_assert_ok(attn_status status, const attn_error *error, const char *file,
                                  int line)
{
    if (status != ATTN_OK) {
        print_error("%s: %s\n", attn_status_name(status), error->text);
        _fail(file, line);
    }
}

static inline void test_assert_fails(attn_status status, const attn_error *error,
                                     attn_status expected, const char *text, const char *file,
                                     int line)
{
    if (status != expected) {
        print_error("%s instead of %s\n", attn_status_name(status), attn_status_name(expected));
        _fail(file, line);
    }
    _assert_int_equal(error->status, expected, file, line);
    _assert_string_equal(error->text, text, file, line);
}

#endif
