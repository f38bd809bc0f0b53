/* bytes/remote/s3.h - objects of S3 and of stores that speak its protocol. */
#ifndef TN_BYTES_REMOTE_S3_H
#define TN_BYTES_REMOTE_S3_H

#include "bytes/remote/scheme.h"

typedef struct tn_s3_object {
    char *bucket, *key;         /* as they are, not encoded; the key may be "" */
    char *version;              /* or NULL */
    char  region[64];
} tn_s3_object;

/* "s3://BUCKET/KEY[?versionId=ID]"; finds credentials and the region. */
tn_status tn_s3_open(const char *name, tn_s3_object *object, tn_error *err);
void      tn_s3_close(tn_s3_object *object);

/* A signed request on the object; `query` is sorted and encoded, or "".  The body is borrowed until it is
 * done. */
typedef struct tn_s3_request {
    const char *method, *query;
    const void *body;
    size_t      body_size;
    const char *crc32c;         /* of the body, base64, or NULL */
    bool        is_final;       /* as that of an exchange */
} tn_s3_request;
tn_exchange *tn_s3_exchange(const tn_s3_object *object, const tn_s3_request *request, tn_error *err);

/* After a request that was refused: whether another one may succeed, in another region or with new
 * credentials. */
bool tn_s3_mend(tn_s3_object *object, const tn_exchange *refused);

extern const tn_scheme tn_scheme_s3;

#endif
