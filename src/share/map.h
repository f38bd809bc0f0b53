/* share/map.h - mapping pages: aligned, huge, locked. */
#ifndef TN_SHARE_MAP_H
#define TN_SHARE_MAP_H

#include "base/error.h"

#include <stdbool.h>

/* Arguments of mmap(), and the alignment. */
typedef struct tn_map_request {
    uint64_t grain;             /* bytes per page */
    uint64_t extent;            /* of whole pages */
    uint64_t alignment;         /* of the address: a power of two */
    int      protection, flags;
    int      fd;                /* or -1 */
    uint64_t offset;            /* of a page */
} tn_map_request;

/* TN_ERR_NOMEM, TN_ERR_IO: the system's reason. */
tn_status tn_map(const tn_map_request *request, void **base, tn_error *err);
void      tn_unmap(void *base, uint64_t extent);

uint64_t tn_page_size(void);

/* Asks for transparent huge pages in a mapping; false: the kernel gives none.  `shared`: the mapping of a
 * memfd, which has its own switch. */
bool tn_map_huge(void *base, uint64_t extent, bool shared);

/* Locks a mapping into memory, until it is unmapped.  TN_ERR_LIMIT: more than
 * RLIMIT_MEMLOCK allows, with a text that says how to raise it. */
tn_status tn_pin(const void *base, uint64_t extent, tn_error *err);

#endif
