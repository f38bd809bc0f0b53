/* bytes/remote/source.c - sources that are elsewhere: http://, https://, s3://, hf://.
 *
 * The first request asks for the first 64 KiB.  Its reply tells the size and the version (ETag) of the
 * object; every other request is for that version only. */
#include "base/error.h"
#include "bytes/remote/blocks.h"
#include "bytes/remote/hub.h"
#include "bytes/remote/s3.h"
#include "bytes/remote/url.h"
#include "bytes/source_kind.h"

#include <stdlib.h>
#include <string.h>

typedef struct remote {
    tn_source        source;        /* first: a tn_source of this kind is a remote */
    tn_remote_blocks blocks;
    tn_target        target;
    char            *redirected;    /* where the first reply came from, if that is elsewhere; or NULL */
    tn_exchange     *opening;       /* the first request, or NULL */
    uint8_t         *head;          /* what it fetches, until that is a block */
    tn_reply         version;       /* of the first reply */
    unsigned         generation;
    unsigned         edition;       /* changes with `redirected` and with what the target knows */
    bool             was_mended, is_mending;
} remote;

static remote *remote_of(const tn_source *s) { return (remote *)(uintptr_t)s; }

static remote *remote_of_block(const tn_remote_block *b)
{
    return (remote *)(void *)((char *)b->of - offsetof(remote, blocks));
}

/* ---- requests ---- */

/* A request for [from, from + n), into `to`. */
static tn_exchange *new_request(remote *r, uint64_t from, uint64_t n, uint8_t *to, tn_error *err)
{
    const tn_scheme *scheme = r->target.scheme;
    tn_exchange *x = scheme->get(&r->target, err);
    if (x && r->redirected && !tn_exchange_move(x, r->redirected)) {
        tn_fail_nomem(err);
        tn_exchange_free(x);
        x = NULL;
    }
    if (!x)
        return NULL;
    if (tn_reply_is_strong(&r->version))
        tn_exchange_header(x, "If-Match: %s", r->version.etag);
    else if (r->version.modified[0])
        tn_exchange_header(x, "If-Unmodified-Since: %s", r->version.modified);
    x->is_ranged = true;
    x->follows = scheme->follows;
    x->from = from;
    x->to = to;
    x->room = (size_t)n;
    x->edition = r->edition;
    return x;
}

/* ---- later ranges ---- */

/* Whether the reply is of the object that was opened. */
static tn_status check_version(const remote *r, const tn_exchange *x, tn_error *err)
{
    const tn_reply *now = &x->reply, *then = &r->version;
    if (now->status == 412 || (now->etag[0] && then->etag[0] && strcmp(now->etag, then->etag) != 0)) {
        char was[60], is[60];
        tn_escape(was, sizeof was, then->etag, strlen(then->etag));
        tn_escape(is, sizeof is, now->etag, strlen(now->etag));
        bool known = now->etag[0] && strcmp(now->etag, then->etag) != 0;
        return tn_fail_at(err, TN_ERR_IO, x->from, "has changed while it was read (ETag %s became %s)", was,
                          known ? is : "another one");
    }
    bool by_date = !now->etag[0] && !then->etag[0] && now->modified[0] && then->modified[0];
    if (by_date && strcmp(now->modified, then->modified) != 0)
        return tn_fail_at(err, TN_ERR_IO, x->from, "has changed while it was read (%s became %s)",
                          then->modified, now->modified);
    if (!x->status && now->has_total && now->total != r->source.size)
        return tn_fail_at(err, TN_ERR_IO, x->from, "has changed while it was read: "
                          "it had %llu bytes and has %llu",
                          (unsigned long long)r->source.size, (unsigned long long)now->total);
    return TN_OK;
}

static void range_came(tn_exchange *x)
{
    tn_remote_block *b = x->owner;
    remote *r = remote_of_block(b);
    tn_status status = check_version(r, x, &x->err);
    if (!status && !x->status && x->got != x->room)
        status = tn_fail_at(&x->err, TN_ERR_IO, x->from, "expected %zu bytes of a range but found %zu",
                            x->room, x->got);
    if (!x->status)
        x->status = status;
    else if (status)
        x->status = x->err.status;
    if (!x->status && x->redirects && x->edition == r->edition) {
        free(r->redirected);
        r->redirected = strdup(x->url);     /* without memory each request is redirected */
    }
    tn_block_loaded(b, !x->status);
}

static bool fetch(tn_remote_block *b)
{
    size_t n = (size_t)(b->end - b->begin);
    b->bytes = tn_block_room(n);
    tn_exchange *x = b->bytes ? new_request(remote_of_block(b), b->begin, n, b->bytes, NULL) : NULL;
    b->loading = x;
    if (!x)
        return false;
    x->owner = b;
    x->finished = range_came;
    tn_exchange_send(x);
    return true;
}

static void forget(tn_remote_block *b)
{
    tn_exchange_free(b->loading);
    b->loading = NULL;
}

/* ---- opening ---- */

static void close_remote(tn_source *source);

static bool is_refused(const tn_exchange *x)
{
    int status = x->reply.status;
    return x->status && (status == 401 || status == 403 || status == 301 || status == 307 || status == 400);
}

static tn_status send_first(remote *r, tn_error *err)
{
    if (!r->head)
        r->head = malloc((size_t)TN_BLOCK_FIRST);
    TN_NEED(r->head, err);
    tn_exchange *x = new_request(r, 0, TN_BLOCK_FIRST, r->head, err);
    if (!x)
        return err ? err->status : TN_ERR_NOMEM;
    x->is_first = true;
    r->opening = x;
    tn_remote_lock();
    tn_exchange_send(x);
    tn_remote_unlock();
    return TN_OK;
}

static tn_status start_with(const tn_scheme *scheme, const char *name, tn_source **source, tn_error *err)
{
    tn_error own;
    err = err ? err : &own;
    remote *r = calloc(1, sizeof *r);
    TN_NEED(r, err);
    tn_status status = tn_transfers_use(err);
    if (status) {
        free(r);
        return status;
    }
    r->source.kind = &tn_source_http;
    r->blocks.start = fetch;
    r->blocks.forget = forget;
    r->target.scheme = scheme;
    r->generation = tn_transfers_generation();
    status = scheme->resolve(name, &r->target, err);
    if (!status)
        status = send_first(r, err);
    if (status)
        close_remote(&r->source);
    else
        *source = &r->source;
    return status;
}

static void wait_for(const tn_exchange *x)
{
    tn_remote_lock();
    while (!x->done)
        tn_remote_wait();
    tn_remote_unlock();
}

/* The size of the object, as the first reply tells it. */
static tn_status find_size(remote *r, const tn_exchange *x, tn_error *err)
{
    if (x->is_whole)
        r->source.size = x->got;
    else if (x->reply.has_total)
        r->source.size = x->reply.total;
    else
        return tn_fail(err, TN_ERR_IO, "cannot open: the server does not tell the size of the file");
    if (x->got > r->source.size)
        return tn_fail(err, TN_ERR_IO, "cannot open: the server sent %zu bytes of a file of %llu", x->got,
                       (unsigned long long)r->source.size);
    return TN_OK;
}

static tn_status take_first(remote *r, tn_error *err)
{
    tn_exchange *x = r->opening;
    bool is_empty = x->reply.status == 416 && x->reply.has_total && x->reply.total == 0;
    if (x->status && !is_empty)
        return tn_fail(err, x->status, "cannot open: %s", x->err.text);
    r->version = x->reply;
    if (!is_empty)
        TN_TRY(find_size(r, x, err));
    r->blocks.size = r->source.size;
    if (x->redirects && !(r->redirected = strdup(x->url)))
        return tn_fail_nomem(err);
    tn_remote_lock();
    bool good = !x->got || tn_blocks_put(&r->blocks, r->head, x->got);
    tn_remote_unlock();
    TN_NEED(good, err);
    r->head = x->got ? NULL : r->head;
    return TN_OK;
}

/* Waits for the first reply.  *missing: there is no such object, which is not a failure then. */
static tn_status settle_remote(tn_source *source, bool *missing, tn_error *err)
{
    remote *r = remote_of(source);
    const tn_scheme *scheme = r->target.scheme;
    tn_status status = TN_OK;
    wait_for(r->opening);
    for (int tries = 0; tries < 3 && !status && is_refused(r->opening) && scheme->mend; tries++) {
        if (!scheme->mend(&r->target, r->opening))
            break;
        tn_exchange_free(r->opening);
        r->opening = NULL;
        status = send_first(r, err);
        if (!status)
            wait_for(r->opening);
    }
    bool is_missing = !status && r->opening->status && r->opening->reply.status == 404;
    if (missing)
        *missing = is_missing;
    if (!status && !(missing && is_missing))
        status = take_first(r, err);
    tn_exchange_free(r->opening);
    r->opening = NULL;
    return status;
}

/* ---- reading ---- */

/* A range was refused: the place that the first reply came from may have expired, or the credentials.  Ranges
 * that were on their way are refused with it: what was mended since they were sent is not mended again.  The
 * lock is held, also afterwards, but not in between. */
static bool mend(remote *r, const tn_exchange *x)
{
    while (r->is_mending)
        tn_remote_wait();
    if (x->edition != r->edition)
        return true;
    if (r->was_mended)
        return false;
    bool changed = r->redirected != NULL;
    if (changed) {
        free(r->redirected);
        r->redirected = NULL;
    } else if (r->target.scheme->mend) {
        r->is_mending = true;
        tn_remote_unlock();
        changed = r->target.scheme->mend(&r->target, x);
        tn_remote_lock();
        r->is_mending = false;
        tn_remote_tell();
    }
    r->edition += changed;
    r->was_mended = changed;
    return changed;
}

/* The lock is held, also afterwards, but not in between. */
static tn_status read_some(remote *r, uint64_t offset, uint8_t *to, size_t *n, tn_error *err)
{
    tn_remote_block *b = tn_blocks_want(&r->blocks, offset, *n);
    TN_NEED(b, err);
    while (b->state == TN_BLOCK_LOADING)
        tn_remote_wait();
    if (b->state == TN_BLOCK_FAILED) {
        tn_exchange *x = b->loading;
        tn_status status = x ? x->status : TN_ERR_NOMEM;
        if (x && err)
            *err = x->err;
        else
            tn_fail_nomem(err);
        bool again = x && is_refused(x) && mend(r, x), is_shared = b->users > 1;
        tn_block_used(b, 0);
        tn_remote_tell();
        if (again && is_shared)
            tn_remote_wait();           /* it is asked for again when all have seen that it failed */
        *n = 0;
        return again ? TN_OK : status;
    }
    size_t have = (size_t)(b->end - offset);
    *n = *n < have ? *n : have;
    tn_remote_unlock();
    memcpy(to, b->bytes + (offset - b->begin), *n);
    tn_remote_lock();
    r->was_mended = false;
    tn_block_used(b, *n);
    return TN_OK;
}

static tn_status read_remote(const tn_source *source, uint64_t offset, void *buffer, size_t n, tn_error *err)
{
    remote *r = remote_of(source);
    uint8_t *to = buffer;
    tn_status status = TN_OK;
    if (r->generation != tn_transfers_generation())
        return tn_fail(err, TN_ERR_IO, "cannot read: it was opened before this process was forked");
    if (r->target.scheme->renew)
        TN_TRY(r->target.scheme->renew(&r->target, err));
    tn_remote_lock();
    while (n && !status) {
        size_t piece = n;
        status = read_some(r, offset, to, &piece, err);
        offset += piece;
        to += piece;
        n -= piece;
    }
    tn_remote_unlock();
    return status;
}

static void expect_remote(const tn_source *source, const tn_range *ranges, size_t n)
{
    remote *r = remote_of(source);
    if (r->generation != tn_transfers_generation())
        return;
    tn_remote_lock();
    tn_blocks_expect(&r->blocks, ranges, n);    /* without memory, the rest is fetched when it is read */
    tn_remote_unlock();
}

static const char *version_of(const tn_source *source)
{
    const tn_reply *r = &remote_of(source)->version;
    const char *date = r->modified[0] ? r->modified : NULL;
    return r->etag[0] ? r->etag : date;
}

/* ---- closing ---- */

/* Ends what is on its way.  The lock is held. */
static void stop_loading(remote *r)
{
    bool some = true;
    while (some) {
        some = false;
        for (size_t i = 0; i < r->blocks.count; i++) {
            if (r->blocks.list[i]->state == TN_BLOCK_PLANNED)
                r->blocks.list[i]->state = TN_BLOCK_FAILED;     /* so that it is not begun now */
            if (r->blocks.list[i]->state != TN_BLOCK_LOADING)
                continue;
            tn_exchange_cancel(r->blocks.list[i]->loading);
            some = true;
        }
        if (some)
            tn_remote_wait();
    }
}

static void close_remote(tn_source *source)
{
    remote *r = remote_of(source);
    bool is_alive = r->generation == tn_transfers_generation();
    tn_remote_lock();
    if (is_alive)
        stop_loading(r);
    if (is_alive && r->opening) {
        tn_exchange_cancel(r->opening);
        while (!r->opening->done)
            tn_remote_wait();
    }
    if (is_alive)
        tn_blocks_free(&r->blocks);
    tn_remote_unlock();
    if (!is_alive)
        return;                 /* of a parent: its thread may be using it, in a copy of the memory */
    tn_exchange_free(r->opening);
    if (r->target.scheme->free)
        r->target.scheme->free(&r->target);
    free(r->target.url);
    free(r->redirected);
    free(r->head);
    free(r);
    tn_transfers_leave();
}

/* ---- schemes ---- */

static tn_status resolve_http(const char *name, tn_target *target, tn_error *err)
{
    tn_url url;
    TN_TRY(tn_url_parse(name, &url, err));
    target->url = strndup(name, strcspn(name, "#"));
    TN_NEED(target->url, err);
    return TN_OK;
}

static tn_exchange *get_http(const tn_target *target, tn_error *err)
{
    tn_exchange *x = tn_exchange_new("GET", target->url);
    if (!x)
        tn_fail_nomem(err);
    return x;
}

static const tn_scheme http = { .resolve = resolve_http, .get = get_http, .follows = true };

static tn_status start_http(const char *name, tn_source **source, tn_error *err)
{
    return start_with(&http, name, source, err);
}

static tn_status start_s3(const char *name, tn_source **source, tn_error *err)
{
    return start_with(&tn_scheme_s3, name, source, err);
}

static tn_status start_hub(const char *name, tn_source **source, tn_error *err)
{
    return start_with(&tn_scheme_hub, name, source, err);
}

#define REMOTE(prefix, function)                                                                        \
    { .scheme = prefix, .start = function, .settle = settle_remote, .read = read_remote,                \
      .expect = expect_remote, .version = version_of, .close = close_remote }

const tn_source_kind tn_source_http = REMOTE("http://", start_http);
const tn_source_kind tn_source_https = REMOTE("https://", start_http);
const tn_source_kind tn_source_s3 = REMOTE("s3://", start_s3);
const tn_source_kind tn_source_hub = REMOTE("hf://", start_hub);
