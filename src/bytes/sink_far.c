/* bytes/sink_far.c - objects as sinks: written by one process, or by several. */
#include "bytes/remote/upload.h"
#include "bytes/place.h"
#include "bytes/sink_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

tn_status tn_sink_open_far(const char *url, bool replace, tn_sink **sink, tn_error *err)
{
    tn_sink *s = tn_sink_new();
    TN_NEED(s, err);
    s->nameless = true;
    tn_status status = tn_upload_open(url, replace, true, &s->upload, err);
    if (!status)
        status = tn_temporary_open(&s->fd, err);
    if (status)
        tn_sink_abandon(s);
    else
        *sink = s;
    return status;
}

tn_status tn_sink_new_object(tn_sink **sink, tn_error *err)
{
    *sink = tn_sink_new();
    TN_NEED(*sink, err);
    (*sink)->nameless = true;
    return TN_OK;
}

tn_status tn_sink_name_object(tn_sink *s, const char *url, tn_error *err)
{
    TN_TRY(tn_upload_open(url, false, false, &s->upload, err));
    return tn_temporary_open(&s->fd, err);
}

bool tn_sink_is_far(const tn_sink *s) { return s->upload != NULL; }

/* ---- the shared file ---- */

static tn_status open_shared(int folder, const char *name, int flags, int *fd, tn_error *err)
{
    struct stat st;
    *fd = openat(folder, name, flags);
    if (*fd < 0)
        return tn_fail_errno(err, errno, "cannot open a file of the work folder");
    if (fstat(*fd, &st) == 0 && S_ISREG(st.st_mode))
        return TN_OK;
    close(*fd);
    return tn_fail(err, TN_ERR_CORRUPT, "a file of the work folder is no regular file");
}

tn_status tn_sink_share_far(tn_sink *s, int folder, const char *name, tn_error *err)
{
    int fd;
    TN_TRY(open_shared(folder, name, TN_SHARED_FLAGS, &fd, err));
    s->shared = fcntl(folder, F_DUPFD_CLOEXEC, 0);
    if (s->shared < 0) {
        tn_status status = tn_fail_errno(err, errno, "cannot open the work folder");
        close(fd);
        return status;
    }
    close(s->fd);
    s->fd = fd;
    snprintf(s->shared_name, sizeof s->shared_name, "%s", name);
    return TN_OK;
}

/* NFS shows what other machines have written to whoever opens the file after that. */
tn_status tn_sink_share_again(tn_sink *s, tn_error *err)
{
    int fd;
    TN_TRY(open_shared(s->shared, s->shared_name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, &fd, err));
    close(s->fd);
    s->fd = fd;
    return TN_OK;
}

/* ---- parts ---- */

tn_status tn_sink_cut(tn_sink *s, const tn_sink_part *parts, size_t n, uint64_t rest, tn_error *err)
{
    s->parts = malloc(n * sizeof *s->parts);
    TN_NEED(s->parts, err);
    memcpy(s->parts, parts, n * sizeof *parts);
    s->nparts = n;
    return tn_upload_cut(s->upload, parts, n, rest, err);
}

tn_status tn_sink_begin_upload(tn_sink *s, char id[TN_SINK_UPLOAD], tn_error *err)
{
    return tn_upload_begin(s->upload, id, err);
}

void tn_sink_join_upload(tn_sink *s, const char *id) { tn_upload_join(s->upload, id); }
bool tn_sink_has_upload(const tn_sink *s)            { return tn_upload_has_id(s->upload); }

size_t tn_sink_count_parts(const tn_sink *s, uint32_t piece)
{
    size_t n = 0;
    for (size_t i = 0; i < s->nparts; i++)
        n += s->parts[i].piece == piece;
    return n;
}

/* The temporary file is opened by the first thread that writes to it. */
static tn_status open_own(tn_sink *s, tn_error *err)
{
    pthread_mutex_lock(&s->lock);
    tn_status status = s->own < 0 ? tn_temporary_open(&s->own, err) : TN_OK;
    pthread_mutex_unlock(&s->lock);
    return status;
}

tn_status tn_sink_write_parts(tn_sink *s, uint64_t offset, const void *data, size_t n, tn_error *err)
{
    const uint8_t *from = data;
    while (n) {
        tn_upload_kind kind;
        uint64_t end = tn_upload_run(s->upload, offset, &kind);
        size_t now = end - offset < n ? (size_t)(end - offset) : n;
        if (kind == TN_UPLOAD_RECORDED)
            return tn_fail(err, TN_ERR_UNSUPPORTED, "byte %llu was to be written again after it was sent",
                           (unsigned long long)offset);
        if (kind == TN_UPLOAD_SENT)
            TN_TRY(open_own(s, err));
        TN_TRY(tn_sink_write_to(kind == TN_UPLOAD_SENT ? s->own : s->fd, offset, from, now, err));
        from += now;
        offset += now;
        n -= now;
    }
    return TN_OK;
}

/* Bytes that were never written are padding, zeros: the file must have them. */
tn_status tn_sink_send(tn_sink *s, uint32_t piece, tn_buf *etags, tn_error *err)
{
    uint64_t end = 0;
    struct stat st;
    for (size_t i = 0; i + 1 < s->nparts; i++)
        if (s->parts[i].piece == piece)
            end = s->parts[i + 1].begin;
    if (!end)
        return TN_OK;
    TN_TRY(open_own(s, err));
    tn_status status = TN_OK;
    if (fstat(s->own, &st) != 0 || ((uint64_t)st.st_size < end && ftruncate(s->own, (off_t)end) != 0))
        status = tn_fail_write(err, errno);
    if (!status)
        status = tn_upload_send(s->upload, s->own, piece, etags, err);
    close(s->own);
    s->own = -1;
    return status;
}

bool tn_sink_was_sent(tn_sink *s, uint32_t piece, const char *const *etags, size_t n)
{
    return tn_upload_was_sent(s->upload, piece, etags, n);
}

uint64_t tn_sink_least(const tn_sink *s, uint64_t begin, uint64_t end)
{
    for (size_t i = s->nparts; i > 0 && end > begin; i--)
        if (s->parts[i - 1].begin < end) {
            if (s->parts[i - 1].piece == TN_NO_PIECE)
                return end;
            end = s->parts[i - 1].begin;
        }
    return end > begin || !s->nparts ? end : 0;
}

void tn_sink_expect_etag(tn_sink *s, const char *etag) { tn_upload_expect(s->upload, etag); }

void tn_sink_announce(tn_sink *s, tn_sink_coming_fn coming, void *context)
{
    tn_upload_announce(s->upload, coming, context);
}

/* ---- several objects ---- */

static tn_status publish_member(const tn_sink_member *m, tn_error *err)
{
    tn_sink *s = m->sink;
    tn_status status = TN_OK;
    if (s->parts)
        status = tn_sink_share_again(s, err);
    if (!status && s->member.head_size)
        status = tn_sink_write(s, 0, s->member.head, s->member.head_size, err);
    if (!status)
        status = tn_sink_settle_file(s, m->size, err);
    if (!status)
        status = tn_upload_finish(s->upload, s->fd, m->size, err);
    return tn_in_file(status, m->name, err);
}

tn_status tn_sink_publish_objects(const tn_sink_member *members, size_t n, tn_sink *last, uint64_t last_size,
                                  tn_error *err)
{
    tn_status status = TN_OK;
    size_t done = 0;
    for (; done < n && !status; done++)
        status = publish_member(&members[done], err);
    if (!status)
        status = tn_sink_publish(last, last_size, err);
    else
        tn_sink_abandon(last);
    for (size_t i = 0; i < n; i++) {
        if (status && i < done)
            tn_upload_take_back(members[i].sink->upload);
        tn_sink_abandon(members[i].sink);
    }
    return status;
}
