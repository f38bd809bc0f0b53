/* base/sealed.h - tables of function pointers that a stray write cannot change. */
#ifndef TN_BASE_SEALED_H
#define TN_BASE_SEALED_H

#include <stddef.h>
#include <sys/mman.h>

/* For a table that the loader fills: its pages are read-only before the first function of the library runs
 * (RELRO). It is not const, because unit tests put functions of their own into it: they are linked without
 * RELRO. */
#define TN_RELRO __attribute__((section(".data.rel.ro.tn_calls")))

#if defined(__x86_64__)
#define TN_LARGEST_PAGE 4096
#else
#define TN_LARGEST_PAGE 65536
#endif

/* For the type of a table that is filled at run time: it gets its own pages, which tn_seal() makes
 * read-only. */
#define TN_OWN_PAGES __attribute__((aligned(TN_LARGEST_PAGE)))

/* If the kernel refuses, the table stays writable and usable. */
static inline void tn_seal(void *table, size_t size)
{
    (void)mprotect(table, size, PROT_READ);
}

#endif
