/* bytes/remote/upload.h - an object of S3 that appears whole or not at all.
 *
 * What is written goes to an unnamed file on this machine.  Parts of it that are likely complete are sent
 * while others are still written; a part that is written to after that is sent again.  Publishing sends the
 * rest and completes the upload, which the store does atomically.  A process that is killed leaves an upload
 * that nobody sees but that takes space: see tenon/remote.h. */
#ifndef TN_BYTES_REMOTE_UPLOAD_H
#define TN_BYTES_REMOTE_UPLOAD_H

#include "base/error.h"
#include "base/vector.h"
#include "bytes/sink.h"

typedef struct tn_upload tn_upload;

/* TN_ERR_EXISTS: there is an object of this name and `replace` is false; without `looks` that is found out
 * when the upload begins.  TN_ERR_UNSUPPORTED: URLs of this kind cannot be written. */
tn_status tn_upload_open(const char *url, bool replace, bool looks, tn_upload **upload, tn_error *err);

/* Bytes of the file were written.  Never waits. */
void tn_upload_wrote(tn_upload *upload, int fd, uint64_t offset, uint64_t n);

/* Makes the file, which has `size` bytes, the object.  A failure leaves what was there. */
tn_status tn_upload_finish(tn_upload *upload, int fd, uint64_t size, tn_error *err);

/* ---- an object that several processes make ----
 *
 * Where its parts begin is the same for all of them.  Who makes a piece sends its parts, and leaves their
 * ETags to whoever publishes, who sends the rest. */

enum { TN_UPLOAD_ID = TN_SINK_UPLOAD, TN_UPLOAD_ETAG = 100 };   /* bytes with their NUL */

/* Sets where parts begin: see tn_sink_cut().  Nothing is sent while it is written then. */
tn_status tn_upload_cut(tn_upload *upload, const tn_sink_part *parts, size_t n, uint64_t rest, tn_error *err);

/* Who sends the part that has byte `offset`.  Returns where the part ends. */
typedef enum tn_upload_kind {
    TN_UPLOAD_KEPT,             /* whoever publishes */
    TN_UPLOAD_SENT,             /* who makes its piece */
    TN_UPLOAD_RECORDED          /* the same, and it was sent */
} tn_upload_kind;
uint64_t  tn_upload_run(const tn_upload *upload, uint64_t offset, tn_upload_kind *kind);

/* Begins the upload with the store; joins one that a process has begun, and ends its own if that is
 * another. */
tn_status tn_upload_begin(tn_upload *upload, char id[TN_UPLOAD_ID], tn_error *err);
void      tn_upload_join(tn_upload *upload, const char *id);
bool      tn_upload_has_id(const tn_upload *upload);

/* Sends the parts of a piece from a file; their ETags, each with its NUL, are appended. */
tn_status tn_upload_send(tn_upload *upload, int fd, uint32_t piece, tn_buf *etags, tn_error *err);

/* These are the ETags of the parts of a piece, which were sent.  false: they cannot be. */
bool      tn_upload_was_sent(tn_upload *upload, uint32_t piece, const char *const *etags, size_t n);

/* Removes the object that this upload has made, unless other processes made it as well. */
void      tn_upload_take_back(tn_upload *upload);

/* See tn_sink_expect_etag() and tn_sink_announce(). */
void      tn_upload_expect(tn_upload *upload, const char *etag);
void      tn_upload_announce(tn_upload *upload, tn_sink_coming_fn coming, void *context);

/* Frees the upload.  Ends it if it is not finished, and no other process makes it.  NULL is allowed. */
void tn_upload_close(tn_upload *upload);

/* Where part i, from 0, begins: of 16 MiB each, the second thousand of 32 MiB, the third of 64 MiB ... */
uint64_t tn_upload_part_begin(unsigned i);

#endif
