// text_en.c: the English text, in two parts for length.
#include "text.h"

const char *const text_en[TEXT_COUNT] = {
#include "text_en_sections.inc"

#include "text_en_more.inc"
};
