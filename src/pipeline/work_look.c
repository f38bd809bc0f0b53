/* pipeline/work_look.c - how far a work folder is, and removing one. */
#include "base/error.h"
#include "base/options.h"
#include "base/vector.h"
#include "bytes/claims.h"
#include "bytes/json.h"
#include "pipeline/plan.h"
#include "pipeline/work_folder.h"
#include "pipeline/work_uploads.h"

#include <tenon/work.h>

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the pieces of a plan, without its input ---- */

typedef struct costs {
    uint64_t *list;             /* bytes written by each piece */
    size_t    count, cap;
} costs;

static void take_piece(tn_json *j, costs *c)
{
    tn_text key;
    uint64_t written = 0;
    tn_json_object(j);
    while (tn_json_key(j, &key)) {
        if (tn_text_is(key, "written"))
            written = tn_json_u64(j);
        else
            tn_json_skip(j);
    }
    if (!TN_GROW(c->list, c->count, c->cap))
        tn_json_reject(j, TN_ERR_NOMEM, "out of memory");
    else
        c->list[c->count++] = written;
}

static tn_status read_costs(tn_text text, costs *c, tn_error *err)
{
    tn_arena arena = { 0 };
    tn_json j;
    tn_text key;
    tn_json_init(&j, text.ptr, text.len, &arena);
    tn_json_object(&j);
    while (tn_json_key(&j, &key)) {
        if (!tn_text_is(key, "pieces")) {
            tn_json_skip(&j);
            continue;
        }
        c->count = 0;
        tn_json_array(&j);
        while (tn_json_item(&j))
            take_piece(&j, c);
    }
    tn_json_done(&j);
    tn_status status = j.status ? tn_json_fail(&j, 0, err) : TN_OK;
    tn_arena_free(&arena);
    return status;
}

/* ---- a folder ---- */

/* What is read of a folder that may be anything. */
typedef struct seen {
    int          folder;
    tn_arena     arena;
    tn_text      plan;
    tn_plan_head head;
} seen;

static void close_seen(seen *s)
{
    if (s->folder >= 0)
        close(s->folder);
    tn_arena_free(&s->arena);
}

/* A plan of another version of Tenon can be looked at as well. */
static tn_status open_seen(const char *path, seen *s, tn_error *err)
{
    bool there = false;
    *s = (seen){ .folder = -1 };
    tn_status status = tn_work_folder_open(path, &s->folder, err);
    if (!status && s->folder >= 0)
        status = tn_work_folder_plan(s->folder, &s->arena, &s->plan, &there, err);
    if (!status && !there)
        status = tn_fail(err, TN_ERR_CORRUPT, "expected a work folder, which has a plan.json");
    if (!status)
        status = tn_plan_read_head(s->plan.ptr, s->plan.len, &s->arena, &s->head, err);
    if (status == TN_ERR_CHANGED && (s->head.output || s->head.verb))
        status = TN_OK;
    if (status)
        close_seen(s);
    return tn_in_file(status, path, err);
}

static void tell_holder(const tn_claims *c, size_t piece, tn_work_holder_fn holder, void *context)
{
    tn_process p = { .pid = 0 };
    tn_work_holder h = { .size = sizeof h, .piece = piece };
    (void)tn_claim_holder(c, piece, &p);
    h.pid = p.pid;
    h.stopped = tn_process_look(&p) == TN_PROCESS_STOPPED;
    snprintf(h.host, sizeof h.host, "%s", p.host);
    if (holder)
        holder(context, &h);
}

static bool is_published(const seen *s)
{
    struct stat head, there;
    const char *path = s->head.head ? s->head.head : s->head.output;
    bool same;
    if (s->head.verb)
        return faccessat(s->folder, "published", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    if (tn_is_url(path))
        return tn_work_folder_was_left(s->folder, path, NULL);
    if (tn_work_folder_was_left(s->folder, path, &same))
        return same;
    return fstatat(s->folder, "files/head", &head, AT_SYMLINK_NOFOLLOW) == 0 && stat(path, &there) == 0 &&
           head.st_dev == there.st_dev && head.st_ino == there.st_ino;
}

static tn_status look(const seen *s, tn_work_state *state, tn_work_holder_fn holder, void *context,
                      tn_error *err)
{
    costs all = { 0 };
    tn_claims c = { .pieces = -1, .processes = -1, .alive = -1 };
    bool published = is_published(s);
    tn_status status = read_costs(s->plan, &all, err);
    if (!status)
        status = tn_claims_open(&c, s->folder, err);
    state->pieces = all.count;
    for (size_t i = 0; i < all.count && !status; i++) {
        bool made = published || tn_claim_has(&c, i, ".done"), held = !made && tn_claim_is_held(&c, i);
        state->made += made;
        state->held += held;
        state->bytes += all.list[i];
        state->bytes_made += made ? all.list[i] : 0;
        if (held)
            tell_holder(&c, i, holder, context);
    }
    if (!status)
        state->processes = tn_claims_living(&c, false);
    state->published = published;
    tn_claims_close(&c);
    free(all.list);
    return status;
}

tn_status tn_work_look(const char *folder, tn_work_state *state, tn_work_holder_fn holder, void *context,
                       tn_error *err)
{
    seen s;
    size_t size;
    TN_GIVEN(folder, "a folder", err);
    TN_GIVEN(state, "a place for the state", err);
    TN_TRY(tn_check_size(TN_SIZED(tn_work_state, published), state, &size, err));
    tn_work_state all = { .size = size };
    TN_TRY(open_seen(folder, &s, err));
    tn_status status = tn_in_file(look(&s, &all, holder, context, err), folder, err);
    close_seen(&s);
    if (!status)
        memcpy(state, &all, size < sizeof all ? size : sizeof all);
    return status;
}

/* ---- abandoning ---- */

static tn_status abandon(const seen *s, const char *path, tn_error *err)
{
    tn_claims c;
    tn_status status = tn_claims_open(&c, s->folder, err);
    size_t living = status ? 0 : tn_claims_living(&c, false);
    tn_claims_close(&c);
    if (status)
        return status;
    if (living)
        return tn_fail(err, TN_ERR_IO, "%zu %s working there: end %s first", living,
                       living == 1 ? "process is" : "processes are", living == 1 ? "it" : "them");
    bool undone = !s->head.verb && !is_published(s);
    if (undone && tn_is_url(s->head.output))
        TN_TRY(tn_work_end_uploads(s->folder, s->head.output, err));
    else if (undone)
        tn_work_folder_take_back(s->folder, s->head.output);
    return tn_work_folder_remove(s->folder, path, err);
}

tn_status tn_work_abandon(const char *folder, tn_error *err)
{
    seen s;
    TN_GIVEN(folder, "a folder", err);
    TN_TRY(open_seen(folder, &s, err));
    tn_status status = tn_in_file(abandon(&s, folder, err), folder, err);
    close_seen(&s);
    return status;
}
