#include "tape/arena.h"

#include "core/checked.h"
#include "core/context.h"

struct attn_tape_arena_chunk {
    attn_tape_arena_chunk *next;
    size_t size; // usable bytes, which start ATTN_ALIGNMENT after the chunk itself
    uint64_t number;
};

_Static_assert(sizeof(struct attn_tape_arena_chunk) <= ATTN_ALIGNMENT,
               "the header fits before the data");

enum { SMALLEST_CHUNK = 1 << 16, LARGEST_GROWTH = 1 << 26 };

void attn_tape_arena_init(attn_tape_arena *arena, const attn_context *context)
{
    *arena = (attn_tape_arena){.context = context};
}

void attn_tape_arena_release(attn_tape_arena *arena)
{
    for (attn_tape_arena_chunk *chunk = arena->first; chunk;) {
        attn_tape_arena_chunk *const next = chunk->next;
        attn_release(arena->context, chunk, chunk->size + ATTN_ALIGNMENT);
        chunk = next;
    }
    attn_tape_arena_init(arena, arena->context);
}

static attn_tape_arena_chunk *append_chunk(attn_tape_arena *arena, size_t size);

void *attn_tape_arena_allocate(attn_tape_arena *arena, size_t size)
{
    size_t rounded;
    if (!attn_checked_add_size(size ? size : 1, ATTN_ALIGNMENT - 1, &rounded)) {
        return NULL;
    }
    rounded &= ~(size_t)(ATTN_ALIGNMENT - 1);

    attn_tape_arena_chunk *chunk = arena->current ? arena->current : arena->first;
    size_t used = arena->current ? arena->used : 0;
    while (chunk && chunk->size - used < rounded) {
        chunk = chunk->next;
        used = 0;
    }
    if (!chunk) {
        chunk = append_chunk(arena, rounded);
        if (!chunk) {
            return NULL;
        }
    }
    arena->current = chunk;
    arena->used = used + rounded;
    return (char *)chunk + ATTN_ALIGNMENT + used;
}

// Doubles the arena, within limits: few chunks, and little of them unused.
static attn_tape_arena_chunk *append_chunk(attn_tape_arena *arena, size_t size)
{
    size_t growth = arena->last ? 2 * arena->last->size : SMALLEST_CHUNK;
    growth = growth > LARGEST_GROWTH ? LARGEST_GROWTH : growth;
    const size_t usable = size > growth ? size : growth;
    size_t bytes;
    if (!attn_checked_add_size(usable, ATTN_ALIGNMENT, &bytes)) {
        return NULL;
    }
    attn_tape_arena_chunk *const chunk = attn_allocate(arena->context, bytes);
    if (!chunk) {
        return NULL;
    }
    *chunk = (attn_tape_arena_chunk){.size = usable,
                                     .number = arena->last ? arena->last->number + 1 : 1};
    if (arena->last) {
        arena->last->next = chunk;
    } else {
        arena->first = chunk;
    }
    arena->last = chunk;
    return chunk;
}

attn_tape_arena_position attn_tape_arena_tell(const attn_tape_arena *arena)
{
    return (attn_tape_arena_position){arena->current, arena->used};
}

void attn_tape_arena_rewind(attn_tape_arena *arena, attn_tape_arena_position position)
{
    arena->current = position.chunk;
    arena->used = position.used;
}

bool attn_tape_arena_not_after(attn_tape_arena_position a, attn_tape_arena_position b)
{
    const uint64_t chunk_a = a.chunk ? a.chunk->number : 0;
    const uint64_t chunk_b = b.chunk ? b.chunk->number : 0;
    return chunk_a < chunk_b || (chunk_a == chunk_b && a.used <= b.used);
}
