#include "allocator.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

enum { CANARY = 0xa5, CANARY_BYTES = 64 };

// In front of every block, `alignment` bytes long or more.
struct front {
    size_t size, alignment;
};

static size_t front_bytes(size_t alignment)
{
    return alignment > sizeof(struct front) ? alignment : sizeof(struct front);
}

static void *allocate(void *opaque, size_t size, size_t alignment)
{
    test_allocator *state = opaque;
    assert_true(size > 0);
    if (atomic_fetch_add(&state->calls, 1) == atomic_load(&state->fail_at)) {
        return NULL;
    }
    const size_t front = front_bytes(alignment);
    const size_t whole = front + size + CANARY_BYTES;
    char *memory = aligned_alloc(alignment, (whole + alignment - 1) / alignment * alignment);
    assert_non_null(memory);
    *(struct front *)(void *)memory = (struct front){size, alignment};
    memset(memory + front, CANARY, size + CANARY_BYTES); // nobody may count on zeros
    atomic_fetch_add(&state->live, 1);
    return memory + front;
}

static void release(void *opaque, void *memory, size_t size, size_t alignment)
{
    test_allocator *state = opaque;
    char *start = (char *)memory - front_bytes(alignment);
    const struct front *front = (const struct front *)(void *)start;
    assert_int_equal(size, front->size);
    assert_int_equal(alignment, front->alignment);
    for (size_t i = 0; i < CANARY_BYTES; i++) {
        assert_int_equal((unsigned char)((char *)memory)[size + i], CANARY);
    }
    atomic_fetch_sub(&state->live, 1);
    free(start);
}

attn_allocator test_allocator_init(test_allocator *state)
{
    atomic_init(&state->calls, 0);
    atomic_init(&state->live, 0);
    atomic_init(&state->fail_at, -1);
    return (attn_allocator){.state = state, .allocate = allocate, .release = release};
}

attn_context *test_context_on(test_allocator *state)
{
    attn_context_config config;
    attn_context_config_init(&config);
    config.allocator = test_allocator_init(state);
    attn_context *context = NULL;
    assert_int_equal(attn_context_create(&config, &context, NULL), ATTN_OK);
    return context;
}

void test_context_end(attn_context *context, test_allocator *state)
{
    attn_context_destroy(context);
    assert_int_equal(atomic_load(&state->live), 0);
}
