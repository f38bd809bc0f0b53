/* bytes/deflate.c - decodes raw deflate data (zlib). */
#include "bytes/codec.h"

#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

enum { RAW_WINDOW_BITS = -15 };         /* neither zlib's header nor gzip's */

typedef struct inflater {
    z_stream stream;
    bool     ended;
} inflater;

static tn_status open_inflater(void **state, tn_error *err)
{
    inflater *z = calloc(1, sizeof *z);
    if (!z || inflateInit2(&z->stream, RAW_WINDOW_BITS) != Z_OK) {
        free(z);
        return tn_fail_nomem(err);
    }
    *state = z;
    return TN_OK;
}

static void close_inflater(void *state)
{
    inflater *z = state;
    inflateEnd(&z->stream);
    free(z);
}

static tn_status begin(void *state, uint64_t window, tn_error *err)
{
    inflater *z = state;
    (void)window;               /* 32 KiB, always */
    (void)err;
    inflateReset(&z->stream);
    z->ended = false;
    return TN_OK;
}

static unsigned at_most_int(size_t n)
{
    return n < INT_MAX ? (unsigned)n : INT_MAX;
}

static tn_status decode(void *state, tn_coding *c, tn_error *err)
{
    inflater *z = state;
    if (z->ended && c->nin)
        return tn_fail(err, TN_ERR_CORRUPT, "expected the end of the deflate data but found more");
    if (z->ended)
        return TN_OK;
    z_stream *s = &z->stream;
    unsigned in = at_most_int(c->nin), out = at_most_int(c->nout);
    s->next_in = (Bytef *)(uintptr_t)c->in;     /* read only, whatever its type says */
    s->avail_in = in;
    s->next_out = c->out;
    s->avail_out = out;
    int result = inflate(s, Z_NO_FLUSH);
    tn_coding_advance(c, in - s->avail_in, out - s->avail_out);
    z->ended = result == Z_STREAM_END;
    if (result == Z_MEM_ERROR)
        return tn_fail_nomem(err);
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
        return tn_fail(err, TN_ERR_CORRUPT, "deflate data is damaged: %s",
                       s->msg ? s->msg : "invalid data");
    return TN_OK;
}

static bool at_end(const void *state)
{
    return ((const inflater *)state)->ended;
}

const tn_codec tn_codec_deflate = {
    .id = TN_ENCODING_DEFLATE, .name = "deflate", .sums_decoded = true, .ratio_max = 1032,
    .open = open_inflater, .close = close_inflater,
    .decode_begin = begin, .decode = decode, .decode_at_end = at_end,
};
