/* bytes/inflate.h - raw deflate data (zlib), decoded in pieces. */
#ifndef TN_BYTES_INFLATE_H
#define TN_BYTES_INFLATE_H

#include "base/error.h"
#include <stdbool.h>

/* No deflate data decodes to more than this many times its size. */
#define TN_INFLATE_RATIO_MAX 1032u

typedef struct tn_inflate tn_inflate;       /* reusable state of one thread */
tn_status tn_inflate_new(tn_inflate **z, tn_error *err);
void      tn_inflate_free(tn_inflate *z);   /* NULL is allowed */

/* A stream that lies in pieces.  *used and *made say how much was taken and
 * given.  Bytes behind its end are TN_ERR_CORRUPT. */
void      tn_inflate_begin(tn_inflate *z);
tn_status tn_inflate_decode(tn_inflate *z, const void *src, size_t n, size_t *used, void *dst, size_t cap,
                            size_t *made, tn_error *err);
bool      tn_inflate_at_end(const tn_inflate *z);

#endif
