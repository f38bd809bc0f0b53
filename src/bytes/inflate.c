/* bytes/inflate.c - raw deflate data (zlib), decoded in pieces. */
#include "bytes/inflate.h"

#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

enum { RAW_WINDOW_BITS = -15 };         /* neither zlib's header nor gzip's */

struct tn_inflate {
    z_stream stream;
    bool     ended;
};

tn_status tn_inflate_new(tn_inflate **out, tn_error *err)
{
    tn_inflate *z = calloc(1, sizeof *z);
    if (!z || inflateInit2(&z->stream, RAW_WINDOW_BITS) != Z_OK) {
        free(z);
        return tn_fail_nomem(err);
    }
    *out = z;
    return TN_OK;
}

void tn_inflate_free(tn_inflate *z)
{
    if (z)
        inflateEnd(&z->stream);
    free(z);
}

void tn_inflate_begin(tn_inflate *z)
{
    inflateReset(&z->stream);
    z->ended = false;
}

static unsigned at_most_int(size_t n)
{
    return n < INT_MAX ? (unsigned)n : INT_MAX;
}

tn_status tn_inflate_decode(tn_inflate *z, const void *src, size_t n, size_t *used, void *dst, size_t cap,
                            size_t *made, tn_error *err)
{
    *used = *made = 0;
    if (z->ended)
        return n ? tn_fail(err, TN_ERR_CORRUPT, TN_NO_OFFSET,
                           "expected the end of the deflate data but found more")
                 : TN_OK;
    z_stream *s = &z->stream;
    unsigned in = at_most_int(n), out = at_most_int(cap);
    s->next_in = (Bytef *)(uintptr_t)src;       /* read only, whatever its type says */
    s->avail_in = in;
    s->next_out = dst;
    s->avail_out = out;
    int result = inflate(s, Z_NO_FLUSH);
    *used = in - s->avail_in;
    *made = out - s->avail_out;
    z->ended = result == Z_STREAM_END;
    if (result == Z_MEM_ERROR)
        return tn_fail_nomem(err);
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
        return tn_fail(err, TN_ERR_CORRUPT, TN_NO_OFFSET, "deflate data is damaged: %s",
                       s->msg ? s->msg : "it makes no sense");
    return TN_OK;
}

bool tn_inflate_at_end(const tn_inflate *z)
{
    return z->ended;
}
