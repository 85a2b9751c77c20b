// tape/arena.h: memory that is given out in order and taken back all at once.
//
// Chunks never move and are released only with the arena. Every allocation takes the first place in
// list order that is large enough, so a sequence of allocations that is repeated after a rewind finds
// each of them at the same place and needs no new chunk.
#ifndef ATTN_TAPE_ARENA_H
#define ATTN_TAPE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attn/context.h"

typedef struct attn_tape_arena_chunk attn_tape_arena_chunk;

typedef struct attn_tape_arena {
    const attn_context *context;
    attn_tape_arena_chunk *first, *last;
    attn_tape_arena_chunk *current; // NULL: at the start
    size_t used;                    // bytes of the current chunk
} attn_tape_arena;

// Where the next allocation would start looking.
typedef struct attn_tape_arena_position {
    attn_tape_arena_chunk *chunk;
    size_t used;
} attn_tape_arena_position;

void attn_tape_arena_init(attn_tape_arena *arena, const attn_context *context);
void attn_tape_arena_release(attn_tape_arena *arena);

// Memory aligned to 64 bytes, never NULL for size 0; NULL when the allocator has none.
void *attn_tape_arena_allocate(attn_tape_arena *arena, size_t size);

attn_tape_arena_position attn_tape_arena_tell(const attn_tape_arena *arena);
// Takes back everything given out since `position` was told.
void attn_tape_arena_rewind(attn_tape_arena *arena, attn_tape_arena_position position);
// True when `a` is at or before `b`.
bool attn_tape_arena_not_after(attn_tape_arena_position a, attn_tape_arena_position b);

#endif
