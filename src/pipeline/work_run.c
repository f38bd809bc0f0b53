/* pipeline/work_run.c - making pieces beside other processes, and waiting for them. */
#include "base/error.h"
#include "base/vector.h"
#include "pipeline/piece_record.h"
#include "pipeline/work.h"
#include "store/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- one piece ---- */

/* Why a piece could not be made, for the others: the status, and the message. */
static void leave_failure(tn_work *w, size_t i, const tn_error *why)
{
    char line[TN_ERROR_LINE];
    tn_buf text = { 0 };
    if (why->status == TN_ERR_CANCELLED)
        return;
    tn_error_format(why, line, sizeof line);
    tn_buf_printf(&text, "%d %s\n", (int)why->status, line);
    if (!text.bad)
        (void)tn_claim_put(&w->claims, i, ".failed", (tn_text){ (const char *)text.data, text.size }, NULL);
    tn_buf_free(&text);
}

/* Data first, then the record: who reads the record finds the data, also after a crash of this machine. */
static tn_status record(tn_work *w, size_t i, tn_error *err)
{
    const tn_plan *p = w->plan;
    tn_buf text = { 0 };
    const tn_out_entry *first = &p->writer->entries[p->writer->first_entry[p->run.pieces[i].first]];
    tn_status status = tn_writer_sync(p->writer, first->file, err);
    if (!status)
        status = tn_piece_record_write(p, i, w->id, &text, err);
    if (!status)
        status = tn_claim_put(&w->claims, i, ".done", (tn_text){ (const char *)text.data, text.size }, err);
    tn_buf_free(&text);
    return status;
}

static tn_status sync_part(int part, tn_error *err)
{
    return part < 0 || fdatasync(part) == 0 ? TN_OK : tn_fail_errno(err, errno, "cannot write");
}

static tn_status make_piece(tn_work *w, size_t i, tn_error *err)
{
    char name[TN_CLAIM_PART];
    int part = -1;
    tn_status status = TN_OK;
    w->plan->walk.done = w->bytes_made;
    tn_claim_remove(&w->claims, i, ".failed");
    w->failed_before[i] = false;
    if (tn_run_waits(&w->plan->run, i))
        status = tn_claim_open_part(&w->claims, i, name, &part, err);
    if (!status)
        status = tn_plan_run_apart(w->plan, i, part, err);
    if (!status)
        status = sync_part(part, err);
    if (!status && part >= 0)
        status = tn_claim_name_part(&w->claims, i, name, err);
    if (!status)
        status = record(w, i, err);
    tn_run_forget(&w->plan->run, i);
    if (status && part >= 0)
        unlinkat(w->claims.pieces, name, 0);
    if (part >= 0)
        close(part);
    return status;
}

static tn_status run_piece(tn_work *w, size_t i, tn_work_outcome *outcome, tn_error *err)
{
    tn_claim claim;
    int lock;
    *outcome = TN_WORK_WAS_MADE;
    if (w->made[i])
        return TN_OK;
    TN_TRY(tn_claim_piece(&w->claims, i, &claim, &lock, err));
    *outcome = claim == TN_CLAIM_HELD ? TN_WORK_HELD : TN_WORK_WAS_MADE;
    if (claim == TN_CLAIM_DONE)
        tn_work_mark(w, i);
    if (claim != TN_CLAIM_MINE)
        return TN_OK;
    tn_error why = { .offset = TN_NO_OFFSET };
    tn_status status = make_piece(w, i, &why);
    if (status)
        leave_failure(w, i, &why);
    tn_claim_release(lock);
    if (status && err)
        *err = why;
    if (status)
        return status;
    tn_work_mark(w, i);
    *outcome = TN_WORK_MADE;
    return TN_OK;
}

static tn_status in_folder(const tn_work *w, tn_status status, tn_error *err)
{
    return tn_in_file(status, w->path, err);
}

tn_status tn_work_run(tn_work *w, size_t i, tn_work_outcome *outcome, tn_error *err)
{
    tn_work_outcome own;
    outcome = outcome ? outcome : &own;
    *outcome = TN_WORK_WAS_MADE;
    TN_GIVEN(w, "a work", err);
    if (!w->plan)
        return TN_OK;
    if (i >= w->count)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a piece below %zu but found %zu", w->count, i);
    tn_status status = run_piece(w, i, outcome, err);
    return status ? tn_work_settle(w, in_folder(w, status, err), err) : TN_OK;
}

/* ---- all pieces ---- */

static void tell(const tn_work *w, const char *text)
{
    if (w->o.note)
        w->o.note(w->o.context, w->path, text);
}

static void tell_locks(tn_work *w)
{
    char text[300];
    const char *problem = w->claims.problem;
    if (!problem || w->told == problem)
        return;
    w->told = problem;
    if (w->o.ranks > 1)
        snprintf(text, sizeof text, "%s: pieces are dealt by rank, this is rank %" PRIu32 " of %" PRIu32,
                 problem,
                 w->o.rank, w->o.ranks);
    else
        snprintf(text, sizeof text,
                 "%s, and it is not known which of how many processes this is: pieces may be "
                 "made more than once, which costs time and nothing else", problem);
    tell(w, text);
}

/* A piece that failed in another process since this one joined. */
static tn_status check_failed(tn_work *w, size_t i, tn_error *err)
{
    tn_arena arena = { 0 };
    tn_text text = { "", 0 };
    bool there;
    char line[400], *end;
    if (w->failed_before[i] || !tn_claim_has(&w->claims, i, ".failed"))
        return TN_OK;
    tn_status status = tn_claim_get(&w->claims, i, ".failed", &arena, &text, &there, err);
    if (!status && there) {
        size_t n = text.len && text.ptr[text.len - 1] == '\n' ? text.len - 1 : text.len;
        n = n < sizeof line ? n : sizeof line - 1;
        memcpy(line, text.ptr, n);
        line[n] = '\0';
        long why = strtol(line, &end, 10);
        bool known = why > TN_OK && why <= TN_ERR_CHANGED && tn_status_text((tn_status)why);
        char shown[sizeof line];
        tn_escape(shown, sizeof shown, end + (*end == ' '), strlen(end + (*end == ' ')));
        status = tn_fail(err, known ? (tn_status)why : TN_ERR_IO, "piece %zu failed in another process: %s",
                         i,
                         shown);
    }
    tn_arena_free(&arena);
    return status;
}

static tn_status check_all_failed(tn_work *w, tn_error *err)
{
    for (size_t i = 0; i < w->count; i++)
        if (!w->made[i])
            TN_TRY(check_failed(w, i, err));
    return TN_OK;
}

/* A round through the pieces that are not made.  Where locks do not work, the first takes the share of this
 * process, and the second what is left. */
typedef struct pass {
    bool   shares;
    size_t first;               /* where it begins */
    size_t made, held;
    size_t holder;              /* a piece that is held */
} pass;

static tn_status run_pass(tn_work *w, pass *p, tn_error *err)
{
    size_t left = 0;
    for (size_t k = 0; k < w->count; k++) {
        size_t i = w->order[(p->first + k) % w->count];
        tn_work_outcome outcome;
        if (w->made[i] || (p->shares && w->claims.problem && left++ % w->o.ranks != w->o.rank))
            continue;
        TN_TRY(check_failed(w, i, err));
        TN_TRY(run_piece(w, i, &outcome, err));
        p->made += outcome == TN_WORK_MADE;
        if (outcome == TN_WORK_HELD)
            p->holder = i;
        p->held += outcome == TN_WORK_HELD;
        if (outcome != TN_WORK_MADE)
            continue;
        tn_claims_check(&w->claims);
        tell_locks(w);
    }
    return TN_OK;
}

/* How long this process has waited, and what it has told of it. */
typedef struct waiting {
    unsigned   milliseconds;
    uint64_t   told_pid;
    bool       told_stopped;
} waiting;

static void tell_holder(tn_work *w, size_t piece, waiting *x)
{
    enum { PATIENCE = 3000 };
    tn_process p;
    char text[200];
    if (x->milliseconds < PATIENCE / 6 || !tn_claim_holder(&w->claims, piece, &p))
        return;
    bool stopped = tn_process_look(&p) == TN_PROCESS_STOPPED;
    if ((x->milliseconds < PATIENCE && !stopped) || (p.pid == x->told_pid && stopped == x->told_stopped))
        return;
    x->told_pid = p.pid;
    x->told_stopped = stopped;
    snprintf(text, sizeof text, "waiting for process %" PRIu64 " on %s, which has piece %zu%s", p.pid, p.host,
             piece,
             stopped ? " and is stopped: continue or kill it" : "");
    tell(w, text);
}

static tn_status wait_a_little(tn_work *w, const pass *p, waiting *x, tn_error *err)
{
    unsigned ms = x->milliseconds / 8;
    ms = ms < 5 ? 5 : ms;
    ms = ms > 250 ? 250 : ms;
    const struct timespec pause = { .tv_sec = 0, .tv_nsec = (long)ms * 1000000 };
    nanosleep(&pause, NULL);
    x->milliseconds += ms;
    tell_holder(w, p->holder, x);
    w->plan->walk.done = w->bytes_made;
    tn_claims_check(&w->claims);
    TN_TRY(check_all_failed(w, err));
    return tn_walk_check(&w->plan->walk, err);
}

/* Processes of one machine share its cores, as far as they are there by now. */
static void share_cores(tn_work *w)
{
    tn_walk *walk = &w->plan->walk;
    if (w->shares_cores && !walk->pool) {
        size_t here = tn_claims_living(&w->claims, true);
        unsigned cores = tn_jobs_for(0, UINT64_MAX);
        walk->jobs = here < cores && here ? cores / (unsigned)here : 1;
    }
}

static tn_status run_all(tn_work *w, bool wait, tn_error *err)
{
    size_t first = w->o.ranks ? (size_t)((uint64_t)w->count * w->o.rank / w->o.ranks) : 0;
    waiting x = { 0 };
    bool shares = w->o.ranks > 1;
    share_cores(w);
    tell_locks(w);
    while (w->nmade < w->count) {
        pass p = { .shares = shares, .first = first };
        TN_TRY(run_pass(w, &p, err));
        bool dealt = shares && w->claims.problem;
        shares = shares && !w->claims.problem;
        if (p.made)
            x = (waiting){ 0 };
        if (p.made || dealt || w->nmade == w->count)
            continue;
        if (!wait)
            break;
        TN_TRY(wait_a_little(w, &p, &x, err));
    }
    return TN_OK;
}

tn_status tn_work_run_all(tn_work *w, bool wait, tn_error *err)
{
    TN_GIVEN(w, "a work", err);
    if (!w->plan)
        return TN_OK;
    tn_status status = run_all(w, wait, err);
    return status ? tn_work_settle(w, in_folder(w, status, err), err) : TN_OK;
}
