/* base/pool.h - a fixed set of threads that work on numbered items.
 *
 * Any thread *works* on items in any order.  Items are *emitted* one at a time in the order of their numbers,
 * so results do not depend on the number of threads.  At most tn_pool_results() items are between the start
 * of work and the end of emit; each holds one result, whose buffers the caller reuses.
 *
 * Both run in the default floating-point environment (round to nearest, keep subnormals, no traps).  The
 * caller's environment is restored after a run. */
#ifndef TN_BASE_POOL_H
#define TN_BASE_POOL_H

#include "base/error.h"

typedef struct tn_pool tn_pool;

/* Cores this process may use; at least 1. */
unsigned tn_core_count(void);

/* `jobs` (0: one per core), but at most `items` and at least 1. */
unsigned tn_jobs_for(unsigned jobs, uint64_t items);

/* jobs 0: one thread per core.  The calling thread works too: jobs 1 starts no
 * thread and a pool of n starts n - 1. */
tn_status tn_pool_new(unsigned jobs, tn_pool **pool, tn_error *err);
void      tn_pool_free(tn_pool *pool);
unsigned  tn_pool_jobs(const tn_pool *pool);
unsigned  tn_pool_results(const tn_pool *pool);       /* jobs 1: 1, else 2 * jobs */

/* The caller's buffers for an item: scratch of its worker (0 .. jobs-1, during work) and its result
 * (0 .. results-1, from work to emit). */
typedef struct tn_pool_use {
    unsigned scratch, result;
} tn_pool_use;

typedef struct tn_ordered {
    /* Any thread.  A failure stops the run after the items before it have been emitted. */
    tn_status (*work)(void *context, uint64_t item, tn_pool_use use, tn_error *err);
    /* One at a time, in order; may be NULL. */
    tn_status (*emit)(void *context, uint64_t item, unsigned result, tn_error *err);
    void *context;
} tn_ordered;

/* Works on items 0 .. n-1 and returns when all are done or one failed.  The error is that of the first failed
 * item in order, for any number of threads.  One run at a time. */
tn_status tn_pool_run(tn_pool *pool, uint64_t n, const tn_ordered *task, tn_error *err);

/* The same with a new pool of at most n threads. */
tn_status tn_pool_once(unsigned jobs, uint64_t n, const tn_ordered *task, tn_error *err);

#endif
