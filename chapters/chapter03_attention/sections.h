// sections.h: the chapter's sections in their order, and the other things the program can show.
#ifndef CHAPTER03_SECTIONS_H
#define CHAPTER03_SECTIONS_H

#include "demo.h"

void section_3_3_1(demo *d); // simple self-attention: one query
void section_3_3_2(demo *d); // simple self-attention: all queries
void section_3_4_1(demo *d); // query, key, value
void section_3_4_2(demo *d); // SelfAttentionV1 and V2; exercise 3.1
void section_3_5_1(demo *d); // the causal mask
void section_3_5_2(demo *d); // dropout
void section_3_5_3(demo *d); // CausalAttention
void section_3_6_1(demo *d); // MultiHeadAttentionWrapper; exercise 3.2
void section_3_6_2(demo *d); // MultiHeadAttention; exercise 3.3

// Exercises 1..4, pitfalls 1..3.
void exercise(demo *d, int number);
void pitfall(demo *d, int number);

void saturation(demo *d);
void history(demo *d);
void selftest(demo *d, bool show_answers);
void glossary(demo *d);

// Every intermediate of a module: "v1", "v2", "causal", "wrapper" or "mha". False: no such name.
bool trace(demo *d, const char *name);

#endif
