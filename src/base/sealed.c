/* base/sealed.c - tables of function pointers that a stray write cannot change. */
#include "base/sealed.h"

#include <sys/mman.h>

void tn_seal(void *table, size_t size)
{
    (void)mprotect(table, size, PROT_READ);
}
