/* share/guard.h - mapped files that somebody else may cut, or empty when memory is
 * short: what is not there any more is zeros and a flag instead of the SIGBUS
 * that ends a process.
 *
 * A guard installs a handler for SIGBUS, unless it is there already, for the
 * life of the process.  What does not concern a guarded mapping goes to the
 * handler that was there before.  A program that installs one of its own while
 * there are guards has to do the same. */
#ifndef TN_SHARE_GUARD_H
#define TN_SHARE_GUARD_H

#include "base/error.h"

#include <stdbool.h>

typedef struct tn_guard tn_guard;

typedef struct tn_guarded {
    void    *base;              /* the mapping */
    uint64_t extent;
    uint64_t grain;             /* its pages' size */
    int      fd;                /* of the file... */
    uint64_t offset;            /* ...and where in it the mapping begins */
    bool     writable;
} tn_guarded;

/* Thread-safe.  The mapping and the descriptor stay until the guard is dropped. */
tn_status tn_guard_add(const tn_guarded *what, tn_guard **guard, tn_error *err);
void      tn_guard_drop(tn_guard *guard);       /* NULL is allowed */

/* Whether something was missing when it was read. */
bool tn_guard_broken(const tn_guard *guard);

#endif
