/* bytes/deflate.c - raw deflate data, as in zip archives (zlib). */
#include "bytes/codec.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    RAW_WINDOW_BITS = -15,      /* neither zlib's header nor gzip's */
    MEMORY_LEVEL = 8, LEVEL_MAX = 9, LEVEL_USUAL = 6,
    OUT_BYTES = 64 << 10,
};

typedef struct coder {
    z_stream inflater, deflater;        /* each is made when it is first needed */
    bool     inflates, deflates;
    int      level;             /* of the deflater */
    bool     ended;
    uint64_t left;              /* bytes of the stream that are still to come */
    uint8_t  out[OUT_BYTES];
} coder;

static tn_status open_coder(void **state, tn_error *err)
{
    *state = calloc(1, sizeof(coder));
    return *state ? TN_OK : tn_fail_nomem(err);
}

static void end_deflater(coder *z)
{
    if (z->deflates)
        deflateEnd(&z->deflater);
    z->deflates = false;
}

static void close_coder(void *state)
{
    coder *z = state;
    if (z->inflates)
        inflateEnd(&z->inflater);
    end_deflater(z);
    free(z);
}

/* ---- decoding ---- */

static tn_status begin(void *state, uint64_t window, tn_error *err)
{
    coder *z = state;
    (void)window;               /* 32 KiB, always */
    z->ended = false;
    if (z->inflates)
        inflateReset(&z->inflater);
    else
        z->inflates = inflateInit2(&z->inflater, RAW_WINDOW_BITS) == Z_OK;
    return z->inflates ? TN_OK : tn_fail_nomem(err);
}

static unsigned at_most_int(size_t n)
{
    return n < INT_MAX ? (unsigned)n : INT_MAX;
}

static tn_status decode(void *state, tn_coding *c, tn_error *err)
{
    coder *z = state;
    if (z->ended && c->nin)
        return tn_fail(err, TN_ERR_CORRUPT, "expected the end of the deflate data but found more");
    if (z->ended)
        return TN_OK;
    z_stream *s = &z->inflater;
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
    return ((const coder *)state)->ended;
}

/* ---- encoding ---- */

static int level_min(void) { return 0; }
static int level_max(void) { return LEVEL_MAX; }

static size_t bound(size_t n) { return compressBound(n); }

/* What zlib's documentation says. */
static size_t encode_memory(int level)
{
    (void)level;
    return ((size_t)1 << (15 + 2)) + ((size_t)1 << (MEMORY_LEVEL + 9)) + sizeof(coder);
}

static tn_status begin_encoding(coder *z, int level, tn_error *err)
{
    level = level ? level : LEVEL_USUAL;
    if (z->deflates && z->level == level && deflateReset(&z->deflater) == Z_OK)
        return TN_OK;
    end_deflater(z);
    z->deflater = (z_stream){ 0 };
    z->deflates = deflateInit2(&z->deflater, level, Z_DEFLATED, RAW_WINDOW_BITS, MEMORY_LEVEL,
                               Z_DEFAULT_STRATEGY) == Z_OK;
    z->level = level;
    return z->deflates ? TN_OK : tn_fail_nomem(err);
}

/* Drives the compressor until it has taken all input and given all output. */
static tn_status pump(coder *z, const uint8_t *data, size_t n, bool last, tn_emit_fn emit, void *context,
                      tn_error *err)
{
    z_stream *s = &z->deflater;
    do {
        unsigned some = at_most_int(n);
        s->next_in = (Bytef *)(uintptr_t)data;  /* read only, whatever its type says */
        s->avail_in = some;
        do {
            s->next_out = z->out;
            s->avail_out = OUT_BYTES;
            deflate(s, last && some == n ? Z_FINISH : Z_NO_FLUSH);     /* cannot fail with room for output */
            if (s->avail_out < OUT_BYTES)
                TN_TRY(emit(context, z->out, OUT_BYTES - s->avail_out, err));
        } while (!s->avail_out);
        data = n ? data + some : data;
        n -= some;
    } while (n);
    return TN_OK;
}

static tn_status stream_begin(void *state, int level, uint64_t total, unsigned jobs, tn_error *err)
{
    coder *z = state;
    (void)jobs;                 /* one stream is made by one thread */
    z->left = total;
    return begin_encoding(z, level, err);
}

static tn_status stream_write(void *state, const void *data, size_t n, tn_emit_fn emit, void *context,
                              tn_error *err)
{
    coder *z = state;
    if (n > z->left)
        return tn_fail(err, TN_ERR_ARGUMENT, "cannot compress: expected %llu more bytes, found %llu",
                       (unsigned long long)z->left, (unsigned long long)n);
    z->left -= n;
    return n ? pump(z, data, n, false, emit, context, err) : TN_OK;
}

static tn_status stream_end(void *state, tn_emit_fn emit, void *context, tn_error *err)
{
    coder *z = state;
    if (z->left)
        return tn_fail(err, TN_ERR_ARGUMENT, "cannot compress: expected %llu more bytes, found the end",
                       (unsigned long long)z->left);
    return pump(z, NULL, 0, true, emit, context, err);
}

static tn_status take(void *context, const void *data, size_t n, tn_error *err)
{
    tn_coding *c = context;
    if (n > c->nout)
        return tn_fail(err, TN_ERR_ARGUMENT, "cannot compress: expected more room for the output");
    memcpy(c->out, data, n);
    tn_coding_advance(c, 0, n);
    return TN_OK;
}

static tn_status encode(void *state, int level, tn_coding *c, tn_error *err)
{
    TN_TRY(begin_encoding(state, level, err));
    TN_TRY(pump(state, c->in, c->nin, true, take, c, err));
    tn_coding_advance(c, c->nin, 0);
    return TN_OK;
}

const tn_codec tn_codec_deflate = {
    .id = TN_ENCODING_DEFLATE, .name = "deflate", .sums_decoded = true, .ratio_max = 1032,
    .open = open_coder, .close = close_coder,
    .decode_begin = begin, .decode = decode, .decode_at_end = at_end,
    .level_min = level_min, .level_max = level_max, .bound = bound, .encode_memory = encode_memory,
    .encode = encode, .stream_begin = stream_begin, .stream_write = stream_write, .stream_end = stream_end,
};
