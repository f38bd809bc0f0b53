/* pipeline/together.c - one result that many processes make. */
#include "pipeline/together.h"
#include "base/error.h"
#include "base/options.h"
#include "pipeline/plan.h"
#include "pipeline/work_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RESULT_FORMAT "tenon result 1"

struct tn_together {
    tn_arena         arena;
    tn_work_options  o;
    const char      *path;      /* of the folder */
    int              folder;
    tn_pieces        pieces;
    tn_buf           asked;     /* the plan, as far as it is known before the pieces */
    uint64_t         most;      /* bytes of a record */
    uint32_t         id;        /* checksum of the plan's text */
    size_t           used;      /* pieces of earlier runs */
    bool             joined, complete;  /* complete: this process has all results */
    int              telling;   /* the lock of the process that tells, or -1 */
    bool             gave_up;   /* waiting for that lock: who has it is the last, or another will be */
    bool             is_of_task;        /* the error of the run is not the folder's */
    const tn_together_task *task;       /* of the run */
};

/* ---- what is asked for ---- */

tn_status tn_together_new(const char *folder, const tn_work_options *options, tn_together **together,
                          tn_error *err)
{
    TN_GIVEN(folder, "a folder", err);
    TN_GIVEN(together, "a place for it", err);
    tn_together *t = calloc(1, sizeof *t);
    TN_NEED(t, err);
    t->folder = t->telling = -1;
    tn_pieces_init(&t->pieces);
    tn_status status = tn_take_options(TN_SIZED(tn_work_options, context), &t->o, options, err);
    t->path = tn_arena_text(&t->arena, folder, strlen(folder));
    if (!status && !t->path)
        status = tn_fail_nomem(err);
    if (!status && t->o.ranks && t->o.rank >= t->o.ranks)
        status = tn_fail(err, TN_ERR_ARGUMENT, "expected a rank below %" PRIu32 " but found %" PRIu32,
                         t->o.ranks, t->o.rank);
    if (status)
        tn_together_end(t, false);
    else
        *together = t;
    return status;
}

static void put_asked(tn_buf *b, const tn_asked *a)
{
    tn_plan_put_format(b);
    tn_buf_puts(b, "\"verb\":");
    tn_json_put_z(b, a->verb);
    tn_buf_puts(b, ",\n");
    for (size_t i = 0; i < a->nlists; i++) {
        tn_buf_printf(b, "\"%s\":[", a->lists[i].key);
        for (size_t k = 0; k < a->lists[i].n; k++) {
            tn_buf_puts(b, k ? "," : "");
            tn_json_put_z(b, a->lists[i].texts[k]);
        }
        tn_buf_puts(b, "],\n");
    }
    tn_buf_puts(b, "\"numbers\":");
    tn_work_put_numbers(b, a->numbers, a->nnumbers);
    tn_buf_puts(b, ",\n");
    for (size_t i = 0; i < a->nfiles; i++) {
        const uint64_t opened[] = { a->files[i]->max_bytes, a->files[i]->raw_codes, a->files[i]->strict };
        tn_buf_puts(b, "\"opened\":");
        tn_work_put_numbers(b, opened, sizeof opened / sizeof *opened);
        tn_buf_puts(b, ",\n");
        tn_plan_put_inputs(b, a->files[i], true);
    }
}

/* A piece has some lines of each tensor and, of what is asked for in lists, of each item: types. */
static uint64_t most_of_record(const tn_asked *a)
{
    uint64_t tensors = 1, items = 1;
    for (size_t i = 0; i < a->nfiles; i++)
        tensors += a->files[i]->count;
    for (size_t i = 0; i < a->nlists; i++)
        items += a->lists[i].n;
    return TN_CLAIM_MOST + 4096 * tensors * items;
}

tn_status tn_together_ask(tn_together *t, const tn_asked *asked, tn_error *err)
{
    if (!t)
        return TN_OK;
    if (t->asked.size)
        return tn_fail(err, TN_ERR_ARGUMENT, "expected a new work: this one has been used");
    put_asked(&t->asked, asked);
    t->most = most_of_record(asked);
    return t->asked.bad ? tn_fail_nomem(err) : TN_OK;
}

uint64_t tn_together_piece(const tn_together *t)
{
    return t->o.piece_size ? t->o.piece_size : tn_piece_bytes;
}

static tn_status put_plan(const tn_together *t, tn_buf *b, tn_error *err)
{
    tn_buf_put(b, t->asked.data, t->asked.size);
    tn_buf_puts(b, "\"pieces\":[");
    for (size_t i = 0; i < t->task->count; i++)
        tn_buf_printf(b, "%s{\"written\":%" PRIu64 "}", i ? ",\n" : "\n", t->task->cost(t->task->context, i));
    tn_buf_puts(b, "],\n");
    tn_work_seal(b);
    return b->bad ? tn_fail_nomem(err) : TN_OK;
}

/* ---- joining ---- */

static bool is_told(const tn_together *t)
{
    return faccessat(t->folder, "published", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Another rank than those that have come. */
static bool is_expected(const tn_together *t)
{
    return t->o.ranks && !tn_work_folder_has_rank(t->folder, t->o.rank);
}

static void leave(tn_together *t)
{
    tn_pieces_end(&t->pieces);
    if (t->folder >= 0)
        close(t->folder);
    t->folder = -1;
    t->joined = false;
}

/* The result of this folder has been told: it belongs to an earlier call.  Its processes are about to leave,
 * and the last one removes it; if none lives, it is removed here. */
static tn_status clear(tn_together *t, tn_walk *walk, tn_error *err)
{
    enum { TRIES = 2000 };      /* of 5 ms */
    const struct timespec pause = { .tv_sec = 0, .tv_nsec = 5000000 };
    tn_claims c;
    tn_status status = TN_OK;
    for (int i = 0; i < TRIES && !status && !tn_work_folder_is_gone(t->folder, t->path); i++) {
        status = tn_claims_open(&c, t->folder, NULL);
        bool lives = !status && tn_claims_living(&c, false);
        tn_claims_close(&c);
        if (!lives)
            break;
        nanosleep(&pause, NULL);
        status = tn_walk_check(walk, err);
    }
    if (status == TN_ERR_CANCELLED)
        return status;
    return tn_work_folder_remove(t->folder, t->path, err);
}

static tn_status begin(tn_together *t, tn_walk *walk, const tn_buf *plan, tn_error *err)
{
    const tn_text text = { (const char *)plan->data, plan->size };
    t->id = tn_crc32c(0, plan->data, plan->size);
    TN_TRY(tn_work_folder_open(t->path, &t->folder, err));
    if (t->folder >= 0 && is_told(t) && !is_expected(t)) {
        TN_TRY(clear(t, walk, err));
        leave(t);
    }
    TN_TRY(tn_work_folder_join(t->path, &t->folder, &(tn_work_joining){ .plan = text }, err));
    TN_TRY(tn_pieces_join(&t->pieces, t->folder, err));
    if (is_told(t) && !is_expected(t)) {        /* the last one may not have seen this one, and remove it */
        leave(t);
        return TN_OK;
    }
    t->joined = true;
    if (t->o.ranks)
        tn_work_folder_add_rank(t->folder, t->o.rank);
    return TN_OK;
}

/* Others may leave, and remove the folder, while this process is about to join them. */
static tn_status join(tn_together *t, tn_walk *walk, tn_error *err)
{
    enum { TRIES = 50 };        /* for each, others have ended */
    tn_buf plan = { 0 };
    tn_error why;
    tn_status status = put_plan(t, &plan, err);
    tn_work_folder_clean(t->path);
    for (int i = 0; i < TRIES && !status && !t->joined; i++) {
        tn_status begun = begin(t, walk, &plan, &why);
        bool gone = t->folder < 0 || tn_work_folder_is_gone(t->folder, t->path);
        bool fleeting = begun == TN_ERR_CHANGED || begun == TN_ERR_IO || begun == TN_ERR_CORRUPT;
        if (begun && (!fleeting || !gone || i == TRIES - 1)) {
            status = begun;
            if (err)
                *err = why;
        }
        if (gone)
            leave(t);
    }
    if (!status && !t->joined)
        status = tn_claims_fail(err, ENOENT, "the work folder");
    tn_buf_free(&plan);
    return status;
}

/* ---- pieces ---- */

static uint64_t cost_of(const void *together, size_t i)
{
    const tn_together *t = together;
    return t->task->cost(t->task->context, i);
}

static uint64_t most_of(const void *together, size_t i)
{
    (void)i;
    return ((const tn_together *)together)->most;
}

static tn_status make_piece(void *together, size_t i, tn_error *err)
{
    tn_together *t = together;
    tn_buf b = { 0 };
    tn_buf_printf(&b, "{\"format\":\"" RESULT_FORMAT "\",\n\"plan\":%" PRIu32 ",\n", t->id);
    tn_buf_printf(&b, "\"piece\":%zu,\n\"results\":", t->used + i);
    tn_status status = t->task->make(t->task->context, i, &b, err);
    t->is_of_task = status != TN_OK;
    tn_buf_puts(&b, ",\n");
    tn_work_seal(&b);
    if (!status && b.bad)
        status = tn_fail_nomem(err);
    if (!status)
        status = tn_pieces_put_record(&t->pieces, i, (tn_text){ (const char *)b.data, b.size }, err);
    tn_buf_free(&b);
    return status;
}

static tn_status read_record(tn_together *t, size_t i, tn_json *j, tn_error *err)
{
    tn_text key;
    uint64_t id = UINT64_MAX, piece = UINT64_MAX;
    bool named = false, taken = false;
    tn_status status = TN_OK;
    tn_json_object(j);
    while (!status && tn_json_key(j, &key)) {
        if (tn_text_is(key, "format")) {
            named = tn_text_is(tn_json_string(j), RESULT_FORMAT);
        } else if (tn_text_is(key, "plan")) {
            id = tn_json_u64(j);
        } else if (tn_text_is(key, "piece")) {
            piece = tn_json_u64(j);
        } else if (tn_text_is(key, "results") && !taken && named && id == t->id && piece == t->used + i) {
            status = t->task->take(t->task->context, i, j, err);
            t->is_of_task = status != TN_OK;
            taken = true;
        } else {
            tn_json_skip(j);
        }
    }
    if (status)
        return status;
    tn_json_done(j);
    if (j->status)
        return tn_json_fail(j, 0, err);
    return taken ? TN_OK : tn_fail(err, TN_ERR_CORRUPT, "expected the results of piece %zu", t->used + i);
}

static tn_status take_piece(tn_together *t, size_t i, tn_error *err)
{
    char path[PATH_MAX];
    tn_arena arena = { 0 };
    tn_text text = { "", 0 };
    tn_json j;
    tn_status status = tn_pieces_get_record(&t->pieces, i, &arena, &text, err);
    if (!status && !tn_work_is_whole(text))
        status = tn_fail(err, TN_ERR_CORRUPT, "the record of piece %zu is damaged", t->used + i);
    if (!status) {
        tn_json_init(&j, text.ptr, text.len, &arena);
        status = read_record(t, i, &j, err);
    }
    tn_arena_free(&arena);
    if (t->is_of_task)
        return status;
    tn_claim_path(&t->pieces.claims, t->used + i, ".done", path);
    return tn_in_file(status, path, err);
}

static tn_status run(tn_together *t, tn_walk *walk, tn_error *err)
{
    tn_pieces *p = &t->pieces;
    *p = (tn_pieces){ .path = t->path, .rank = t->o.rank, .ranks = t->o.ranks, .note = t->o.note,
                      .note_context = t->o.context, .walk = walk, .shares_cores = walk->jobs == 0,
                      .bytes_before = walk->done, .usual = tn_together_piece(t), .cost = cost_of,
                      .make = make_piece, .most = most_of, .maker = t, .claims = p->claims,
                      .told = p->told };
    if (!t->joined)
        TN_TRY(join(t, walk, err));
    TN_TRY(tn_pieces_begin(p, t->used, t->task->count, &t->arena, err));
    TN_TRY(tn_pieces_run_all(p, true, err));
    for (size_t i = 0; i < t->task->count; i++)
        TN_TRY(take_piece(t, i, err));
    return TN_OK;
}

tn_status tn_together_run(tn_together *t, const tn_together_task *task, tn_walk *walk, tn_error *err)
{
    t->task = task;
    t->complete = t->is_of_task = false;
    tn_status status = run(t, walk, err);
    if (!t->is_of_task)
        tn_in_file(status, t->path, err);
    t->complete = status == TN_OK;
    t->used += task->count;
    walk->done = t->pieces.bytes_before + t->pieces.bytes_made;
    t->pieces.walk = NULL;
    return status;
}

/* ---- telling ---- */

static bool mark_told(const tn_together *t)
{
    int fd = openat(t->folder, "published", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    return fd >= 0 || errno != EEXIST;
}

/* Without locks who comes first tells, also if it is killed before it has told all. */
bool tn_together_tells(tn_together *t)
{
    if (!t || !t->joined || !t->complete)
        return true;
    if (t->telling >= 0)
        return true;
    if (t->pieces.claims.problem)
        return mark_told(t);
    if (tn_work_folder_lock(t->folder, "finish.lock", &t->telling, NULL) != TN_OK) {
        t->gave_up = true;      /* another tells for a long time, or has told and removed the folder */
        return false;
    }
    if (!is_told(t))
        return true;
    close(t->telling);
    t->telling = -1;
    return false;
}

/* The last one that leaves removes the folder, when all ranks have come.  Without locks the files of
 * processes say who is there. */
static void leave_last(tn_together *t)
{
    int lock = t->telling;
    if (lock < 0 && !t->gave_up && tn_work_folder_lock(t->folder, "finish.lock", &lock, NULL) != TN_OK)
        lock = -1;
    bool all = t->o.ranks <= tn_work_folder_ranks(t->folder);   /* first: a rank lives before it has come */
    bool last = t->pieces.claims.problem ? tn_claims_are_alone(&t->pieces.claims)
                                         : tn_claims_living(&t->pieces.claims, false) <= 1;
    if (last && all && is_told(t))
        (void)tn_work_folder_remove(t->folder, t->path, NULL);
    tn_pieces_end(&t->pieces);
    if (lock >= 0)
        close(lock);
    t->telling = -1;
}

void tn_together_end(tn_together *t, bool told)
{
    if (!t)
        return;
    if (t->joined && t->complete) {
        if (told && t->telling >= 0)
            (void)mark_told(t);
        leave_last(t);
    }
    if (t->telling >= 0)
        close(t->telling);
    leave(t);
    tn_buf_free(&t->asked);
    tn_arena_free(&t->arena);
    free(t);
}
