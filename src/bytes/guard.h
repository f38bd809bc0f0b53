/* bytes/guard.h - mapped files that others may truncate or that cannot be read: missing pages become zeros
 * and are noted, instead of a SIGBUS that ends the process.
 *
 * The first guard installs a handler for SIGBUS for the life of the process.  Signals that do not concern a
 * guarded mapping go to the previous handler.  A program that installs its own handler later must do the
 * same.  A thread that blocks SIGBUS is not guarded: the kernel ends the process. */
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
    uint64_t grain;             /* page size */
    int      fd;                /* the file */
    uint64_t offset;            /* of the mapping in the file */
    bool     writable;
} tn_guarded;

/* What happened to a mapping. */
typedef enum tn_harm {
    TN_HARM_NONE,
    TN_HARM_CUT,                /* bytes beyond the end of the file were read */
    TN_HARM_UNREADABLE          /* a page could not be read */
} tn_harm;

/* Thread-safe.  The mapping and the descriptor are borrowed until the guard is dropped. */
tn_status tn_guard_add(const tn_guarded *what, tn_guard **guard, tn_error *err);
void      tn_guard_drop(tn_guard *guard);       /* NULL is allowed */

/* Changes the descriptor of the file.  With -1 all missing pages count as unreadable, and the caller must
 * find out whether the file was truncated. */
void tn_guard_look_at(tn_guard *guard, int fd);

/* The first harm; *at is the offset of its page in the file. */
tn_harm tn_guard_harm(const tn_guard *guard, uint64_t *at);

/* Reads pages of a guarded mapping that the kernel could not read (EFAULT), so that the harm is noted.  Does
 * not touch other memory. */
void tn_guard_touch(const void *data, size_t n);

/* The page size of a mapping of this file; some file systems have huge pages. */
uint64_t tn_guard_grain(int fd);

/* sigaction(), so that tests can make it fail. */
extern TN_RELRO int (*tn_guard_sigaction)(int number, const struct sigaction *action, struct sigaction *old);

#endif
