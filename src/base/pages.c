/* base/pages.c - large blocks of memory. */
#include "base/pages.h"

#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)

void *tn_pages_alloc(size_t size)
{
    if (size < HUGE_PAGE || size > (size_t)-1 - HUGE_PAGE)
        return malloc(size ? size : 1);
    size_t whole = (size + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
    void *block = aligned_alloc(HUGE_PAGE, whole);
#ifdef MADV_HUGEPAGE
    if (block)
        madvise(block, whole, MADV_HUGEPAGE);   /* only a hint */
#endif
    return block;
}
