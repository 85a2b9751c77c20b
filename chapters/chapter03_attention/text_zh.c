// text_zh.c: the Chinese text, in two parts for length.
#include "text.h"

const char *const text_zh[TEXT_COUNT] = {
#include "text_zh_sections.inc"

#include "text_zh_more.inc"
};
