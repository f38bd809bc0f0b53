/* bytes/remote/sigv4.h - AWS Signature Version 4: pure functions of what is signed.
 *
 * libcurl 7.88 has one of its own, which sorts and encodes queries wrongly. */
#ifndef TN_BYTES_REMOTE_SIGV4_H
#define TN_BYTES_REMOTE_SIGV4_H

#include "base/error.h"
#include "base/vector.h"

#include <time.h>

enum { TN_HEX_SHA256 = 65 };    /* with its NUL */
#define TN_UNSIGNED_PAYLOAD "UNSIGNED-PAYLOAD"

typedef struct tn_signed_header {
    const char *name, *value;   /* in lower case; as it is sent */
} tn_signed_header;

typedef struct tn_to_sign {
    const char *method;
    const char *path, *query;   /* encoded; the query sorted, each item with "=" */
    const tn_signed_header *headers;    /* sorted by name; host and all x-amz- */
    size_t      nheaders;
    const char *payload;        /* SHA-256 of the body in hexadecimal digits, or TN_UNSIGNED_PAYLOAD */
    const char *when;           /* "20130524T000000Z" */
    const char *region, *service;
    const char *id, *secret;
} tn_to_sign;

tn_status tn_sha256_hex(const void *data, size_t n, char hex[TN_HEX_SHA256], tn_error *err);

/* Appends the value of the header Authorization. */
tn_status tn_sigv4_put(const tn_to_sign *s, tn_buf *out, tn_error *err);

/* The moment as `when` has it. */
void tn_sigv4_when(time_t t, char when[17]);

#endif
