/* bytes/remote/absent.c - what URLs get from a build without libcurl. */
#include "base/error.h"
#include "bytes/remote/upload.h"
#include "bytes/source_kind.h"

#include <tenon/remote.h>

static tn_status refuse(tn_error *err)
{
    return tn_fail(err, TN_ERR_UNSUPPORTED, "URLs need libcurl, which this build was made without");
}

static tn_status start(const char *name, tn_source **source, tn_error *err)
{
    (void)name;
    (void)source;
    return refuse(err);
}

const tn_source_kind tn_source_http = { .scheme = "http://", .start = start };
const tn_source_kind tn_source_https = { .scheme = "https://", .start = start };
const tn_source_kind tn_source_s3 = { .scheme = "s3://", .start = start };
const tn_source_kind tn_source_hub = { .scheme = "hf://", .start = start };

tn_status tn_upload_open(const char *url, bool replace, bool looks, tn_upload **upload, tn_error *err)
{
    (void)url;
    (void)replace;
    (void)looks;
    (void)upload;
    return refuse(err);
}

void tn_upload_wrote(tn_upload *upload, int fd, uint64_t offset, uint64_t n)
{
    (void)upload;
    (void)fd;
    (void)offset;
    (void)n;
}

tn_status tn_upload_finish(tn_upload *upload, int fd, uint64_t size, tn_error *err)
{
    (void)upload;
    (void)fd;
    (void)size;
    return refuse(err);
}

void tn_upload_close(tn_upload *upload) { (void)upload; }

/* There are no uploads without tn_upload_open(). */
tn_status tn_upload_cut(tn_upload *upload, const tn_sink_part *parts, size_t n, uint64_t rest, tn_error *err)
{
    (void)upload;
    (void)parts;
    (void)n;
    (void)rest;
    return refuse(err);
}

uint64_t tn_upload_run(const tn_upload *upload, uint64_t offset, tn_upload_kind *kind)
{
    (void)upload;
    (void)offset;
    *kind = TN_UPLOAD_KEPT;
    return UINT64_MAX;
}

tn_status tn_upload_begin(tn_upload *upload, char id[TN_UPLOAD_ID], tn_error *err)
{
    (void)upload;
    (void)id;
    return refuse(err);
}

void tn_upload_join(tn_upload *upload, const char *id)
{
    (void)upload;
    (void)id;
}

bool tn_upload_has_id(const tn_upload *upload)
{
    (void)upload;
    return false;
}

tn_status tn_upload_send(tn_upload *upload, int fd, uint32_t piece, tn_buf *etags, tn_error *err)
{
    (void)upload;
    (void)fd;
    (void)piece;
    (void)etags;
    return refuse(err);
}

bool tn_upload_was_sent(tn_upload *upload, uint32_t piece, const char *const *etags, size_t n)
{
    (void)upload;
    (void)piece;
    (void)etags;
    (void)n;
    return false;
}

void tn_upload_take_back(tn_upload *upload) { (void)upload; }

void tn_upload_expect(tn_upload *upload, const char *etag)
{
    (void)upload;
    (void)etag;
}

void tn_upload_announce(tn_upload *upload, tn_sink_coming_fn coming, void *context)
{
    (void)upload;
    (void)coming;
    (void)context;
}

tn_status tn_uploads_list(const char *url, tn_uploads_fn report, void *context, tn_error *err)
{
    (void)report;
    (void)context;
    TN_GIVEN(url, "a URL", err);
    return refuse(err);
}

tn_status tn_uploads_end(const char *url, const char *id, tn_error *err)
{
    TN_GIVEN(url, "a URL", err);
    TN_GIVEN(id, "the id of an upload", err);
    return refuse(err);
}
