/* base/pages.c - large blocks of memory. */
#include "base/pages.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)

/* Asks for huge pages where whole ones are in the block; only a hint. */
static void advise(void *block, size_t size)
{
#ifdef MADV_HUGEPAGE
    size_t before = -(uintptr_t)block & (HUGE_PAGE - 1);
    if (block && size > before && size - before >= HUGE_PAGE)
        madvise((uint8_t *)block + before, (size - before) & ~(HUGE_PAGE - 1), MADV_HUGEPAGE);
#else
    (void)block, (void)size;
#endif
}

void *tn_pages_alloc(size_t size)
{
    if (size < HUGE_PAGE || size > (size_t)-1 - HUGE_PAGE)
        return malloc(size ? size : 1);
    size_t whole = (size + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
    void *block = aligned_alloc(HUGE_PAGE, whole);
    advise(block, whole);
    return block;
}

void *tn_pages_grow(void *block, size_t size)
{
    if (!block)
        return tn_pages_alloc(size);
    void *moved = realloc(block, size);
    advise(moved, size);
    return moved;
}
