/* pipeline/pieces.c - making numbered pieces beside other processes, and waiting for them. */
#include "pipeline/pieces.h"
#include "base/error.h"
#include "base/vector.h"
#include "bytes/identity.h"
#include "pipeline/work_text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- joining ---- */

void tn_pieces_init(tn_pieces *p)
{
    p->claims.alive = p->claims.pieces = p->claims.processes = -1;
}

tn_status tn_pieces_join(tn_pieces *p, int folder, tn_error *err)
{
    TN_TRY(tn_claims_open(&p->claims, folder, err));
    p->claims.path = p->path;
    return tn_claims_join(&p->claims, err);
}

typedef struct weight {
    uint64_t cost;
    size_t   piece;
} weight;

static int by_weight(const void *a, const void *b)
{
    const weight *x = a, *y = b;
    if (x->cost != y->cost)
        return x->cost < y->cost ? 1 : -1;
    return x->piece < y->piece ? -1 : 1;
}

/* Large pieces first; pieces of about the usual size stay in the order of the file. */
static tn_status order(tn_pieces *p, tn_error *err)
{
    weight *list = calloc(p->count + 1, sizeof *list);
    TN_NEED(list, err);
    for (size_t i = 0; i < p->count; i++)
        list[i] = (weight){ p->cost(p->maker, i) / 2 / p->usual, i };
    qsort(list, p->count, sizeof *list, by_weight);
    for (size_t i = 0; i < p->count; i++)
        p->order[i] = list[i].piece;
    free(list);
    return TN_OK;
}

static void mark(tn_pieces *p, size_t piece)
{
    if (p->made[piece])
        return;
    p->made[piece] = true;
    p->nmade++;
    p->bytes_made += p->cost(p->maker, piece);
}

static void unmark(tn_pieces *p, size_t piece)
{
    p->made[piece] = false;
    p->nmade--;
    p->bytes_made -= p->cost(p->maker, piece);
}

static bool is_made(const tn_pieces *p, size_t i, tn_text record)
{
    return tn_work_is_whole(record) && (!p->has_data || p->has_data(p->maker, i, record));
}

static tn_status read_record(tn_pieces *p, size_t i, tn_arena *arena, tn_text *text, bool *there,
                             tn_error *err)
{
    p->claims.most = p->most ? p->most(p->maker, i) : 0;
    tn_status status = tn_claim_get(&p->claims, p->base + i, ".done", arena, text, there, err);
    p->claims.most = 0;
    return status;
}

/* A record that is worth nothing.  Who has the lock of the piece makes it again, and may have left another by
 * now. */
static tn_status drop_record(tn_pieces *p, size_t i, tn_error *err)
{
    tn_arena arena = { 0 };
    tn_text text = { "", 0 };
    bool there;
    int lock;
    if (!tn_claim_lock(&p->claims, p->base + i, &lock))
        return TN_OK;
    tn_status status = read_record(p, i, &arena, &text, &there, err);
    if (!status && there && is_made(p, i, text)) {
        mark(p, i);
    } else if (!status && there) {
        tn_claim_remove(&p->claims, p->base + i, ".done");
        p->lost++;
    }
    tn_claim_release(lock);
    tn_arena_free(&arena);
    return status;
}

/* Records that others have left.  One that a crash of its machine cut short is none, nor is one whose data
 * the crash took. */
static tn_status look(tn_pieces *p, tn_error *err)
{
    tn_arena arena = { 0 };
    tn_status status = TN_OK;
    for (size_t i = 0; i < p->count && !status; i++) {
        tn_text text = { "", 0 };
        bool there;
        status = read_record(p, i, &arena, &text, &there, err);
        if (!status && there && is_made(p, i, text))
            mark(p, i);
        else if (!status && there)
            status = drop_record(p, i, err);
        p->failed_before[i] = !status && tn_claim_has(&p->claims, p->base + i, ".failed");
        tn_arena_free(&arena);
        arena = (tn_arena){ 0 };
    }
    tn_arena_free(&arena);
    return status;
}

tn_status tn_pieces_begin(tn_pieces *p, size_t base, size_t count, tn_arena *arena, tn_error *err)
{
    p->base = base;
    p->count = count;
    p->nmade = p->lost = 0;
    p->bytes_made = 0;
    p->made = tn_arena_zalloc(arena, count + 1, sizeof *p->made);
    p->failed_before = tn_arena_zalloc(arena, count + 1, sizeof *p->failed_before);
    p->order = tn_arena_zalloc(arena, count + 1, sizeof *p->order);
    TN_NEED(p->made && p->failed_before && p->order, err);
    TN_TRY(order(p, err));
    return look(p, err);
}

tn_status tn_pieces_check_all(tn_pieces *p, tn_error *err)
{
    for (size_t i = 0; i < p->count; i++)
        if (!p->made[i] && tn_claim_has(&p->claims, p->base + i, ".done"))
            mark(p, i);
    if (p->nmade == p->count)
        return TN_OK;
    if (tn_claims_are_gone(&p->claims))
        return tn_claims_fail(err, ENOENT, "the work folder");
    return tn_fail(err, TN_ERR_ARGUMENT, "%zu of %zu pieces are missing", p->count - p->nmade, p->count);
}

/* ---- records ---- */

tn_status tn_pieces_put_record(const tn_pieces *p, size_t i, tn_text text, tn_error *err)
{
    return tn_claim_put(&p->claims, p->base + i, p->sync ? p->claims.unsynced : ".done", text, err);
}

tn_status tn_pieces_get_record(tn_pieces *p, size_t i, tn_arena *arena, tn_text *text, tn_error *err)
{
    bool there;
    TN_TRY(read_record(p, i, arena, text, &there, err));
    return there ? TN_OK : tn_fail(err, TN_ERR_CHANGED, "it is gone");
}

tn_status tn_pieces_lock(tn_pieces *p, const char *name, int *lock, tn_error *err)
{
    *lock = openat(p->claims.work, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (*lock < 0)
        return tn_claims_fail(err, errno, "the work folder");
    tn_status status = TN_OK;
    while (!status && !p->claims.problem && tn_identity_lock(*lock, 1) == TN_LOCK_BUSY)
        status = tn_walk_check(p->walk, err);
    if (!status && tn_claims_are_gone(&p->claims))
        status = tn_claims_fail(err, ENOENT, "the work folder");
    if (status)
        close(*lock);
    return status;
}

/* ---- one piece ---- */

/* Why a piece could not be made, for the others: the status, and the message. */
static void leave_failure(tn_pieces *p, size_t i, const tn_error *why)
{
    char line[TN_ERROR_LINE];
    tn_buf text = { 0 };
    if (why->status == TN_ERR_CANCELLED)
        return;
    tn_error_format(why, line, sizeof line);
    tn_buf_printf(&text, "%d %s\n", (int)why->status, line);
    if (!text.bad)
        (void)tn_claim_put(&p->claims, p->base + i, ".failed",
                           (tn_text){ (const char *)text.data, text.size }, NULL);
    tn_buf_free(&text);
}

static tn_status make_piece(tn_pieces *p, size_t i, tn_error *err)
{
    p->walk->done = p->bytes_before + p->bytes_made;
    tn_claim_remove(&p->claims, p->base + i, ".failed");
    p->failed_before[i] = false;
    return p->make(p->maker, i, err);
}

/* ---- writing to disk, while the next pieces are made ---- */

static void *run_sync(void *pieces)
{
    tn_pieces *p = pieces;
    tn_syncing *s = &p->syncing;
    s->status = p->sync(p->maker, &s->now, &s->why);
    atomic_store(&s->ended, true);
    return NULL;
}

static void begin_sync(tn_pieces *p)
{
    tn_syncing *s = &p->syncing;
    s->now = s->next;
    s->next.n = 0;
    s->threaded = false;
    if (!s->now.n)
        return;
    s->status = TN_OK;
    s->why = (tn_error){ .offset = TN_NO_OFFSET };
    atomic_store(&s->ended, false);
    bool alone = !p->shares_cores && p->walk->jobs == 1;        /* one thread was asked for */
    s->threaded = !alone && pthread_create(&s->thread, NULL, run_sync, p) == 0;
    if (!s->threaded)
        run_sync(p);
}

static void drop(tn_pieces *p, tn_unsynced *some)
{
    for (size_t i = 0; i < some->n; i++) {
        tn_claim_remove(&p->claims, p->base + some->pieces[i], p->claims.unsynced);
        unmark(p, some->pieces[i]);
        tn_claim_release(some->locks[i]);
    }
    some->n = 0;
}

/* After a failure a second sync would succeed, and the data be lost all the same: also that of pieces which
 * were written before it failed. */
static tn_status give_up(tn_pieces *p, tn_error *err)
{
    tn_syncing *s = &p->syncing;
    size_t first = s->now.pieces[0];
    drop(p, &s->now);
    drop(p, &s->next);
    leave_failure(p, first, &s->why);
    if (err)
        *err = s->why;
    return s->status;
}

/* Waits until what is being written is on disk: then its records count, and its locks are free. */
static tn_status end_sync(tn_pieces *p, tn_error *err)
{
    tn_syncing *s = &p->syncing;
    if (!s->now.n)
        return TN_OK;
    if (s->threaded)
        pthread_join(s->thread, NULL);
    for (size_t i = 0; i < s->now.n && !s->status; i++)
        s->status = tn_claim_settle(&p->claims, p->base + s->now.pieces[i], &s->why);
    if (s->status)
        return give_up(p, err);
    for (size_t i = 0; i < s->now.n; i++)
        tn_claim_release(s->now.locks[i]);
    s->now.n = 0;
    return TN_OK;
}

/* Takes the lock of a piece that is made. */
static tn_status add_unsynced(tn_pieces *p, size_t piece, int lock, tn_error *err)
{
    tn_syncing *s = &p->syncing;
    s->next.pieces[s->next.n] = piece;
    s->next.locks[s->next.n++] = lock;
    mark(p, piece);
    if (s->now.n && !atomic_load(&s->ended) && s->next.n < TN_SYNC_MOST)
        return TN_OK;
    tn_status status = end_sync(p, err);
    begin_sync(p);
    return status || s->threaded ? status : end_sync(p, err);
}

/* What was made is on disk, whatever came of the rest. */
static tn_status settle(tn_pieces *p, tn_status status, tn_error *err)
{
    tn_status synced = end_sync(p, status ? NULL : err);
    status = status ? status : synced;
    begin_sync(p);
    synced = end_sync(p, status ? NULL : err);
    return status ? status : synced;
}

/* Made by a process of this machine that was killed before the data was on disk. */
static bool is_unsynced(tn_pieces *p, size_t i)
{
    tn_arena arena = { 0 };
    tn_text text = { "", 0 };
    bool there = false;
    tn_status status = p->sync ? tn_claim_get(&p->claims, p->base + i, p->claims.unsynced, &arena, &text,
                                              &there, NULL) : TN_OK;
    bool made = !status && there && is_made(p, i, text);
    tn_arena_free(&arena);
    return made;
}

/* Tries to get a piece and to make it; its data may still be on its way to disk then. */
static tn_status run_piece(tn_pieces *p, size_t i, tn_work_outcome *outcome, tn_error *err)
{
    tn_claim claim;
    int lock;
    *outcome = TN_WORK_WAS_MADE;
    if (p->made[i])
        return TN_OK;
    TN_TRY(tn_claim_piece(&p->claims, p->base + i, &claim, &lock, err));
    *outcome = claim == TN_CLAIM_HELD ? TN_WORK_HELD : TN_WORK_WAS_MADE;
    if (claim == TN_CLAIM_DONE)
        mark(p, i);
    if (claim != TN_CLAIM_MINE)
        return TN_OK;
    tn_error why = { .offset = TN_NO_OFFSET };
    bool unsynced = is_unsynced(p, i);
    tn_status status = unsynced ? TN_OK : make_piece(p, i, &why);
    if (status) {
        leave_failure(p, i, &why);
        tn_claim_release(lock);
        if (err)
            *err = why;
        return status;
    }
    *outcome = unsynced ? TN_WORK_WAS_MADE : TN_WORK_MADE;
    if (p->sync)
        return add_unsynced(p, i, lock, err);
    mark(p, i);
    tn_claim_release(lock);
    return TN_OK;
}

tn_status tn_pieces_run(tn_pieces *p, size_t i, tn_work_outcome *outcome, tn_error *err)
{
    return settle(p, run_piece(p, i, outcome, err), err);
}

void tn_pieces_end(tn_pieces *p)
{
    (void)settle(p, TN_OK, NULL);
    tn_claims_close(&p->claims);
}

/* ---- all pieces ---- */

static void tell(const tn_pieces *p, const char *text)
{
    if (p->note)
        p->note(p->note_context, p->path, text);
}

static void tell_locks(tn_pieces *p)
{
    char text[300];
    const char *problem = p->claims.problem;
    if (!problem || p->told == problem)
        return;
    p->told = problem;
    if (p->ranks > 1)
        snprintf(text, sizeof text, "%s: pieces are dealt by rank, this is rank %" PRIu32 " of %" PRIu32,
                 problem, p->rank, p->ranks);
    else
        snprintf(text, sizeof text,
                 "%s, and it is not known which of how many processes this is: pieces may be "
                 "made more than once, which costs time and nothing else", problem);
    tell(p, text);
}

/* A piece that failed in another process since this one joined. */
static tn_status check_failed(tn_pieces *p, size_t i, tn_error *err)
{
    tn_arena arena = { 0 };
    tn_text text = { "", 0 };
    bool there;
    char line[400], *end;
    if (p->failed_before[i] || !tn_claim_has(&p->claims, p->base + i, ".failed"))
        return TN_OK;
    tn_status status = tn_claim_get(&p->claims, p->base + i, ".failed", &arena, &text, &there, err);
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
                         p->base + i, shown);
    }
    tn_arena_free(&arena);
    return status;
}

static tn_status check_all_failed(tn_pieces *p, tn_error *err)
{
    for (size_t i = 0; i < p->count; i++)
        if (!p->made[i])
            TN_TRY(check_failed(p, i, err));
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

static tn_status try_pieces(tn_pieces *p, pass *now, tn_error *err)
{
    size_t left = 0;
    for (size_t k = 0; k < p->count; k++) {
        size_t i = p->order[(now->first + k) % p->count];
        tn_work_outcome outcome;
        if (p->made[i] || (now->shares && p->claims.problem && left++ % p->ranks != p->rank))
            continue;
        TN_TRY(check_failed(p, i, err));
        TN_TRY(run_piece(p, i, &outcome, err));
        now->made += outcome == TN_WORK_MADE;
        if (outcome == TN_WORK_HELD)
            now->holder = i;
        now->held += outcome == TN_WORK_HELD;
        if (outcome != TN_WORK_MADE)
            continue;
        tn_claims_check(&p->claims);
        tell_locks(p);
    }
    return TN_OK;
}

static tn_status run_pass(tn_pieces *p, pass *now, tn_error *err)
{
    return settle(p, try_pieces(p, now, err), err);
}

/* How long this process has waited, and what it has told of it. */
typedef struct waiting {
    unsigned   milliseconds;
    uint64_t   told_pid;
    bool       told_stopped;
} waiting;

static void tell_holder(tn_pieces *p, size_t piece, waiting *x)
{
    enum { PATIENCE = 3000 };
    tn_process other;
    char text[200];
    if (x->milliseconds < PATIENCE / 6 || !tn_claim_holder(&p->claims, p->base + piece, &other))
        return;
    bool stopped = tn_process_look(&other) == TN_PROCESS_STOPPED;
    if ((x->milliseconds < PATIENCE && !stopped) || (other.pid == x->told_pid && stopped == x->told_stopped))
        return;
    x->told_pid = other.pid;
    x->told_stopped = stopped;
    snprintf(text, sizeof text, "waiting for process %" PRIu64 " on %s, which has piece %zu%s", other.pid,
             other.host, p->base + piece, stopped ? " and is stopped: continue or kill it" : "");
    tell(p, text);
}

static tn_status wait_a_little(tn_pieces *p, const pass *now, waiting *x, tn_error *err)
{
    unsigned ms = x->milliseconds / 8;
    ms = ms < 5 ? 5 : ms;
    ms = ms > 250 ? 250 : ms;
    const struct timespec pause = { .tv_sec = 0, .tv_nsec = (long)ms * 1000000 };
    nanosleep(&pause, NULL);
    x->milliseconds += ms;
    tell_holder(p, now->holder, x);
    p->walk->done = p->bytes_before + p->bytes_made;
    tn_claims_check(&p->claims);
    TN_TRY(check_all_failed(p, err));
    return tn_walk_check(p->walk, err);
}

/* Processes of one machine share its cores, as far as they are there by now. */
static void share_cores(tn_pieces *p)
{
    tn_walk *walk = p->walk;
    if (p->shares_cores && !walk->pool) {
        size_t here = tn_claims_living(&p->claims, true);
        unsigned cores = tn_jobs_for(0, UINT64_MAX);
        walk->jobs = here < cores && here ? cores / (unsigned)here : 1;
    }
}

tn_status tn_pieces_run_all(tn_pieces *p, bool wait, tn_error *err)
{
    size_t first = p->ranks ? (size_t)((uint64_t)p->count * p->rank / p->ranks) : 0;
    waiting x = { 0 };
    bool shares = p->ranks > 1;
    share_cores(p);
    tell_locks(p);
    while (p->nmade < p->count) {
        pass now = { .shares = shares, .first = first };
        TN_TRY(run_pass(p, &now, err));
        bool dealt = shares && p->claims.problem;
        shares = shares && !p->claims.problem;
        if (now.made)
            x = (waiting){ 0 };
        if (now.made || dealt || p->nmade == p->count)
            continue;
        if (!wait)
            break;
        TN_TRY(wait_a_little(p, &now, &x, err));
    }
    return TN_OK;
}
