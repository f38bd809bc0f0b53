/* bytes/guard.h - mapped files that somebody else may cut, or empty when memory is
 * short, or that cannot be read: what is not there is zeros and a mark instead of the
 * SIGBUS that ends a process.
 *
 * A guard installs a handler for SIGBUS, unless it is there already, for the
 * life of the process.  What does not concern a guarded mapping goes to the
 * handler that was there before.  A program that installs one of its own while
 * there are guards has to do the same.  A thread that blocks SIGBUS is not
 * guarded: the kernel ends the process. */
#ifndef TN_BYTES_GUARD_H
#define TN_BYTES_GUARD_H

#include "base/error.h"
#include "base/sealed.h"

#include <signal.h>
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

/* What happened to a mapping. */
typedef enum tn_harm {
    TN_HARM_NONE,
    TN_HARM_CUT,                /* it was read beyond the end that the file had then */
    TN_HARM_UNREADABLE          /* a page of it could not be had */
} tn_harm;

/* Thread-safe.  The mapping and the descriptor stay until the guard is dropped. */
tn_status tn_guard_add(const tn_guarded *what, tn_guard **guard, tn_error *err);
void      tn_guard_drop(tn_guard *guard);       /* NULL is allowed */

/* From now on the file is looked at by this descriptor.  -1: by none; then what is missing counts as
 * unreadable, and whoever is told of it finds out whether the file was cut. */
void tn_guard_look_at(tn_guard *guard, int fd);

/* The first thing that was missing when it was read; *at is its page, counted from the beginning of the
 * file. */
tn_harm tn_guard_harm(const tn_guard *guard, uint64_t *at);

/* Reads the pages of what the kernel could not read (EFAULT), so that harm to a
 * guarded mapping is noted.  Other memory is left alone. */
void tn_guard_touch(const void *data, size_t n);

/* The pages' size of a mapping of this file: huge ones in some file systems. */
uint64_t tn_guard_grain(int fd);

/* sigaction(), so that tests can make it fail. */
extern TN_RELRO int (*tn_guard_sigaction)(int number, const struct sigaction *action, struct sigaction *old);

#endif
