// core/allocator.h: the memory of a context that brings no allocator of its own.
#ifndef ATTN_CORE_ALLOCATOR_H
#define ATTN_CORE_ALLOCATOR_H

#include "attn/context.h"

attn_allocator attn_default_allocator(void);

#endif
