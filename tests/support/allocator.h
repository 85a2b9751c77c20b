// An allocator for tests: it counts, fails when told to, and checks what is given back.
#ifndef ATTN_TESTS_SUPPORT_ALLOCATOR_H
#define ATTN_TESTS_SUPPORT_ALLOCATOR_H

#include <stdatomic.h>
#include <stdint.h>

#include "attn/context.h"

typedef struct test_allocator {
    atomic_llong calls;   // of allocate, the failed ones too
    atomic_llong live;    // blocks not given back yet
    atomic_llong fail_at; // number of the call that fails, from 0; -1: none
} test_allocator;

// Fills *state and returns an allocator on it. A release with another size or alignment than the
// allocation had, or of changed bytes around the block, fails the test.
attn_allocator test_allocator_init(test_allocator *state);

// A serial context on the allocator, and its end, which checks that no block is left.
attn_context *test_context_on(test_allocator *state);
void test_context_end(attn_context *context, test_allocator *state);

#endif
