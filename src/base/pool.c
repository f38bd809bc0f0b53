/* base/pool.c - threads that work on numbered items and emit them in order.
 *
 * One lock protects everything but the work itself.  Item i has result i % results, so it may start only when
 * item i - results has been emitted.  The thread that finishes the next item in order emits it and all
 * finished items after it. */
#include "base/pool.h"
#include "base/fenv.h"

#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

enum { MAX_JOBS = 256 };

typedef struct result {
    bool      done;             /* worked, not yet emitted */
    tn_status status;
    tn_error  err;
} result;

struct tn_pool {
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    unsigned        jobs, nresults, nthreads;
    pthread_t      *threads;
    result         *results;
    unsigned        numbered;
    bool            quit;

    const tn_ordered *task;     /* NULL between runs */
    uint64_t        run;        /* counts runs, so that a waiting thread joins each once */
    uint64_t        n, next, emitted;
    unsigned        inside;     /* threads in the run */
    bool            emitting;
    tn_status       status;
    tn_error        err;
};

/* Emits finished items in order.  The lock is held on entry and on return. */
static void emit_due(tn_pool *p)
{
    if (p->emitting)
        return;                 /* the thread that emits will emit this item too */
    p->emitting = true;
    while (p->status == TN_OK && p->emitted < p->next && p->results[p->emitted % p->nresults].done) {
        unsigned s = (unsigned)(p->emitted % p->nresults);
        result *it = &p->results[s];
        tn_status status = it->status;
        if (status == TN_OK && p->task->emit) {
            pthread_mutex_unlock(&p->lock);
            status = p->task->emit(p->task->context, p->emitted, s, &it->err);
            pthread_mutex_lock(&p->lock);
        }
        it->done = false;
        if (status != TN_OK) {
            p->status = status;
            p->err = it->err;
        } else {
            p->emitted++;
        }
        pthread_cond_broadcast(&p->changed);
    }
    p->emitting = false;
}

/* Works on items until none is left or one failed.  The lock is held on entry and on return. */
static void take_part(tn_pool *p, unsigned worker)
{
    p->inside++;
    for (;;) {
        while (p->status == TN_OK && p->next < p->n && p->next - p->emitted >= p->nresults)
            pthread_cond_wait(&p->changed, &p->lock);
        if (p->status != TN_OK || p->next >= p->n)
            break;
        uint64_t item = p->next++;
        unsigned s = (unsigned)(item % p->nresults);
        result *it = &p->results[s];
        it->err = (tn_error){ .offset = TN_NO_OFFSET };
        pthread_mutex_unlock(&p->lock);
        tn_status status = p->task->work(p->task->context, item, (tn_pool_use){ worker, s }, &it->err);
        pthread_mutex_lock(&p->lock);
        it->status = status;
        it->done = true;
        emit_due(p);
    }
    p->inside--;
    pthread_cond_broadcast(&p->changed);
}

static void *thread_main(void *argument)
{
    tn_pool *p = argument;
    uint64_t joined = 0;
    fesetenv(FE_DFL_ENV);                   /* a new thread inherits that of its creator */
    pthread_mutex_lock(&p->lock);
    unsigned worker = ++p->numbered;        /* the caller of tn_pool_run() is 0 */
    while (!p->quit) {
        if (p->task && p->run != joined) {
            joined = p->run;
            take_part(p, worker);
        } else {
            pthread_cond_wait(&p->changed, &p->lock);
        }
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Nobody else takes part. */
static tn_status run_alone(tn_pool *p, uint64_t n, const tn_ordered *task, tn_error *err)
{
    tn_status status = TN_OK;
    result *it = &p->results[0];
    for (uint64_t i = 0; i < n && !status; i++) {
        it->err = (tn_error){ .offset = TN_NO_OFFSET };
        status = task->work(task->context, i, (tn_pool_use){ 0, 0 }, &it->err);
        if (!status && task->emit)
            status = task->emit(task->context, i, 0, &it->err);
    }
    if (status && err)
        *err = it->err;
    return status;
}

static tn_status run_together(tn_pool *p, uint64_t n, const tn_ordered *task, tn_error *err)
{
    pthread_mutex_lock(&p->lock);
    p->task = task;
    p->run++;
    p->n = n;
    p->next = p->emitted = 0;
    p->status = TN_OK;
    for (unsigned i = 0; i < p->nresults; i++)
        p->results[i].done = false;
    pthread_cond_broadcast(&p->changed);
    take_part(p, 0);
    while (p->inside || p->emitting)
        pthread_cond_wait(&p->changed, &p->lock);
    p->task = NULL;
    tn_status status = p->status;
    if (status != TN_OK && err)
        *err = p->err;
    pthread_mutex_unlock(&p->lock);
    return status;
}

tn_status tn_pool_run(tn_pool *p, uint64_t n, const tn_ordered *task, tn_error *err)
{
    tn_fenv callers;
    tn_fenv_enter(&callers);
    tn_status status = p->jobs > 1 ? run_together(p, n, task, err) : run_alone(p, n, task, err);
    tn_fenv_leave(&callers);
    return status;
}

unsigned tn_core_count(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    int n = CPU_COUNT(&set);
    if (n < 1)
        return 1;
    return n < MAX_JOBS ? (unsigned)n : MAX_JOBS;
}

unsigned tn_jobs_for(unsigned jobs, uint64_t items)
{
    if (jobs == 0)
        jobs = tn_core_count();
    if (jobs > items)
        return items ? (unsigned)items : 1;
    return jobs;
}

tn_status tn_pool_new(unsigned jobs, tn_pool **pool, tn_error *err)
{
    tn_pool *p = calloc(1, sizeof *p);
    TN_NEED(p, err);
    p->jobs = jobs < MAX_JOBS ? jobs : MAX_JOBS;
    if (jobs == 0)
        p->jobs = tn_core_count();
    p->nresults = p->jobs == 1 ? 1 : 2 * p->jobs;
    p->results = calloc(p->nresults, sizeof *p->results);
    p->threads = calloc(p->jobs, sizeof *p->threads);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    if (!p->results || !p->threads) {
        tn_pool_free(p);
        return tn_fail_nomem(err);
    }
    for (; p->nthreads < p->jobs - 1; p->nthreads++) {
        int error = pthread_create(&p->threads[p->nthreads], NULL, thread_main, p);
        if (error) {
            tn_pool_free(p);
            tn_status status = tn_fail_errno(err, error, "cannot start a thread");
            return tn_with_reason(status, TN_REASON_JOBS, "1", err);
        }
    }
    *pool = p;
    return TN_OK;
}

void tn_pool_free(tn_pool *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->quit = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->nthreads; i++)
        pthread_join(p->threads[i], NULL);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p->threads);
    free(p->results);
    free(p);
}

unsigned tn_pool_jobs(const tn_pool *p)  { return p->jobs; }
unsigned tn_pool_results(const tn_pool *p) { return p->nresults; }

tn_status tn_pool_once(unsigned jobs, uint64_t n, const tn_ordered *task, tn_error *err)
{
    tn_pool *pool;
    TN_TRY(tn_pool_new(tn_jobs_for(jobs, n), &pool, err));
    tn_status status = tn_pool_run(pool, n, task, err);
    tn_pool_free(pool);
    return status;
}
