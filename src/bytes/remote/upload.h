/* bytes/remote/upload.h - an object of S3 that appears whole or not at all.
 *
 * What is written goes to an unnamed file on this machine.  Parts of it that are likely complete are sent
 * while others are still written; a part that is written to after that is sent again.  Publishing sends the
 * rest and completes the upload, which the store does atomically.  A process that is killed leaves an upload
 * that nobody sees but that takes space: see tenon/remote.h. */
#ifndef TN_BYTES_REMOTE_UPLOAD_H
#define TN_BYTES_REMOTE_UPLOAD_H

#include "base/error.h"

#include <stdbool.h>

typedef struct tn_upload tn_upload;

/* TN_ERR_EXISTS: there is an object of this name and `replace` is false.  TN_ERR_UNSUPPORTED: URLs of this
 * kind cannot be written. */
tn_status tn_upload_open(const char *url, bool replace, tn_upload **upload, tn_error *err);

/* Bytes of the file were written.  Never waits. */
void tn_upload_wrote(tn_upload *upload, int fd, uint64_t offset, uint64_t n);

/* Makes the file, which has `size` bytes, the object.  A failure leaves what was there. */
tn_status tn_upload_finish(tn_upload *upload, int fd, uint64_t size, tn_error *err);

/* Frees the upload, and ends it if it is not finished.  NULL is allowed. */
void tn_upload_close(tn_upload *upload);

/* Where part i, from 0, begins: of 16 MiB each, the second thousand of 32 MiB, the third of 64 MiB ... */
uint64_t tn_upload_part_begin(unsigned i);

#endif
