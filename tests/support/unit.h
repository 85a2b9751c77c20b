// cmocka with the headers it needs before it, in the order it needs them.
#ifndef ATTN_TESTS_SUPPORT_UNIT_H
#define ATTN_TESTS_SUPPORT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
