// Every op as a function of random inputs, for tests of first and second derivatives.
#ifndef ATTN_TESTS_TAPE_GRADIENT_CASES_H
#define ATTN_TESTS_TAPE_GRADIENT_CASES_H

#include "tape_fixture.h"

struct gradient_case {
    const char *name;
    attn_var (*op)(const attn_var *inputs);
    int64_t count;
    attn_tensor inputs[3]; // shapes only
};

extern const struct gradient_case gradient_cases[];
extern const int gradient_case_count;

// Runs `check` on random float64 inputs of every case.
void for_each_gradient_case(struct fixture *f, attn_scalar_function function);

#endif
