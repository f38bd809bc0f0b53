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

tn_status tn_upload_open(const char *url, bool replace, tn_upload **upload, tn_error *err)
{
    (void)url;
    (void)replace;
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
