#define _DEFAULT_SOURCE // madvise, posix_memalign
#include "core/allocator.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(__linux__)
#include <sys/mman.h>
#endif

// The size of a huge page on x86-64, and on aarch64 with pages of 4 KiB.
static const size_t huge_page = (size_t)2 << 20;

// Large blocks ask for huge pages: a pass over a matrix otherwise waits for the translation of every
// fourth kilobyte's address, which in a virtual machine takes two walks. It is advice; where the system
// does not follow it, the memory is as good.
static void advise_huge_pages(void *memory, size_t size)
{
#if defined(MADV_HUGEPAGE)
    madvise(memory, size & ~(huge_page - 1), MADV_HUGEPAGE);
#else
    (void)memory, (void)size;
#endif
}

static void *allocate(void *state, size_t size, size_t alignment)
{
    (void)state;
    const bool large = size >= huge_page;
    const size_t step = large && alignment < huge_page ? huge_page : alignment;
    void *memory = NULL;
    // No object is larger than PTRDIFF_MAX: pointers into it could not be subtracted.
    if (size > PTRDIFF_MAX || posix_memalign(&memory, step, size) != 0) {
        return NULL;
    }
    if (large) {
        advise_huge_pages(memory, size);
    }
    return memory;
}

static void release(void *state, void *memory, size_t size, size_t alignment)
{
    (void)state, (void)size, (void)alignment;
    free(memory);
}

attn_allocator attn_default_allocator(void)
{
    return (attn_allocator){.allocate = allocate, .release = release};
}
