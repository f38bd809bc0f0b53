/* tenon/remote.h - uploads to object stores that were begun and not finished.
 *
 * Files are opened and written by URL as by path (tn_open(), tn_convert()); docs/remote.md says which.  An
 * output becomes visible when all of it is sent.  A process that is killed before leaves an upload: nobody
 * sees it, but the store keeps its parts, and charges for them, until it is ended. */
#ifndef TENON_REMOTE_H
#define TENON_REMOTE_H

#include <tenon/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Told of each upload: the object that it was to become, its id, and when it was begun (seconds since 1970
 * in UTC, or 0 if the store does not say). */
typedef void (*tn_uploads_fn)(void *context, const char *url, const char *id, int64_t began);

/* Lists the unfinished uploads below "s3://BUCKET/PREFIX".  Those that other processes are sending right now
 * are among them.
 *
 * TN_ERR_ARGUMENT: `url` is no such URL.  TN_ERR_UNSUPPORTED: no libcurl.  TN_ERR_IO: the store's reason. */
TN_API tn_status tn_uploads_list(const char *url, tn_uploads_fn report, void *context, tn_error *err);

/* Ends the upload `id` of the object "s3://BUCKET/KEY": the store forgets its parts.  One that has ended is
 * no error.  The same statuses. */
TN_API tn_status tn_uploads_end(const char *url, const char *id, tn_error *err);

#ifdef __cplusplus
}
#endif
#endif
