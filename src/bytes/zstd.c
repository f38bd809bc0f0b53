/* bytes/zstd.c - zstd (libzstd), whole and in pieces.  Frames carry their content size. */
#include "bytes/codec.h"
#include "bytes/zstd_frame.h"

#include <limits.h>
#include <stdlib.h>
#define ZSTD_STATIC_LINKING_ONLY        /* for ZSTD_estimateCCtxSize() */
#include <zstd.h>
#include <zstd_errors.h>

/* What one thread of libzstd compresses at a time; changing it changes the output.  At level 3 half of it
 * would save half of the 20 MB per thread and cost 5 % of size on repetitive data (none on weights). */
#define JOB_SIZE   (4 << 20)
#define LARGE_DECODER ((size_t)5 << 20)     /* is not kept from one part to the next: windows of 4 MiB are */

typedef struct coder {
    ZSTD_CCtx *compressor;
    ZSTD_DCtx *decompressor;
    uint8_t   *out;             /* buffer for emit(), out_size bytes */
    size_t     out_size;
    uint64_t   left;            /* encoding: bytes of the stream still to come */
    bool       at_end;          /* decoding: at the end of a frame */
    uint64_t   largest;         /* largest window allowed */
    bool       in_frame;        /* the header was read */
    uint8_t    header[TN_ZSTD_HEADER_MAX];      /* of a frame, if it came in pieces */
    size_t     nheader, given;  /* bytes of it, and how many of them libzstd has */
} coder;

static tn_status open_coder(void **state, tn_error *err)
{
    *state = calloc(1, sizeof(coder));
    return *state ? TN_OK : tn_fail_nomem(err);
}

static void close_coder(void *state)
{
    coder *z = state;
    ZSTD_freeCCtx(z->compressor);
    ZSTD_freeDCtx(z->decompressor);
    free(z->out);
    free(z);
}

static tn_status fail_zstd(tn_error *err, tn_status status, const char *what, size_t code)
{
    if (ZSTD_getErrorCode(code) == ZSTD_error_memory_allocation)
        return tn_fail_nomem(err);
    return tn_fail(err, status, "%s: %s", what, ZSTD_getErrorName(code));
}

/* Resets the compressor, so that earlier data does not affect the output. */
static tn_status set_up(coder *z, int level, int workers, tn_error *err)
{
    if (!z->compressor && !(z->compressor = ZSTD_createCCtx()))
        return tn_fail_nomem(err);
    ZSTD_CCtx *compressor = z->compressor;
    size_t code = ZSTD_CCtx_reset(compressor, ZSTD_reset_session_and_parameters);
    if (!ZSTD_isError(code))
        code = ZSTD_CCtx_setParameter(compressor, ZSTD_c_compressionLevel, level);
    if (!ZSTD_isError(code))
        code = ZSTD_CCtx_setParameter(compressor, ZSTD_c_contentSizeFlag, 1);
    if (!ZSTD_isError(code) && workers)
        code = ZSTD_CCtx_setParameter(compressor, ZSTD_c_nbWorkers, workers);
    if (!ZSTD_isError(code) && workers)
        code = ZSTD_CCtx_setParameter(compressor, ZSTD_c_jobSize, JOB_SIZE);
    return ZSTD_isError(code) ? fail_zstd(err, TN_ERR_ARGUMENT, "cannot compress", code) : TN_OK;
}

static tn_status encode(void *state, int level, tn_coding *c, tn_error *err)
{
    coder *z = state;
    TN_TRY(set_up(z, level, 0, err));
    size_t size = ZSTD_compress2(z->compressor, c->out, c->nout, c->in, c->nin);
    if (ZSTD_isError(size))
        return fail_zstd(err, TN_ERR_ARGUMENT, "cannot compress", size);
    tn_coding_advance(c, c->nin, size);
    return TN_OK;
}

static int workers_for(unsigned jobs)
{
    if (jobs < 1)
        return 1;
    return jobs > INT_MAX ? INT_MAX : (int)jobs;
}

static tn_status stream_begin(void *state, int level, uint64_t total, unsigned jobs, tn_error *err)
{
    coder *z = state;
    if (!z->out) {
        z->out_size = ZSTD_CStreamOutSize();
        z->out = malloc(z->out_size);
        TN_NEED(z->out, err);
    }
    /* Without threads libzstd would split the data differently and give other bytes. */
    if (ZSTD_cParam_getBounds(ZSTD_c_nbWorkers).upperBound < 1)
        return tn_fail(err, TN_ERR_IO,
                       "cannot compress: expected a libzstd with threads, found one built without");
    TN_TRY(set_up(z, level, workers_for(jobs), err));
    size_t code = ZSTD_CCtx_setPledgedSrcSize(z->compressor, total);
    if (ZSTD_isError(code))
        return fail_zstd(err, TN_ERR_ARGUMENT, "cannot compress", code);
    z->left = total;
    return TN_OK;
}

/* Drives the compressor until it has taken all input or, at the end, given all output. */
static tn_status pump(coder *z, ZSTD_inBuffer *in, ZSTD_EndDirective mode, tn_emit_fn emit, void *context,
                      tn_error *err)
{
    size_t more;
    do {
        ZSTD_outBuffer out = { z->out, z->out_size, 0 };
        more = ZSTD_compressStream2(z->compressor, &out, in, mode);
        if (ZSTD_isError(more))
            return fail_zstd(err, TN_ERR_ARGUMENT, "cannot compress", more);
        TN_TRY(out.pos ? emit(context, z->out, out.pos, err) : TN_OK);
    } while (mode == ZSTD_e_end ? more > 0 : in->pos < in->size);
    return TN_OK;
}

static tn_status stream_write(void *state, const void *data, size_t n, tn_emit_fn emit, void *context,
                              tn_error *err)
{
    coder *z = state;
    if (n > z->left)
        return tn_fail(err, TN_ERR_ARGUMENT, "cannot compress: expected %llu more bytes, found %llu",
                       (unsigned long long)z->left, (unsigned long long)n);
    z->left -= n;
    ZSTD_inBuffer in = { data, n, 0 };
    return n ? pump(z, &in, ZSTD_e_continue, emit, context, err) : TN_OK;
}

/* Ends without data, so that the output does not depend on how the caller split the input. */
static tn_status stream_end(void *state, tn_emit_fn emit, void *context, tn_error *err)
{
    coder *z = state;
    if (z->left)
        return tn_fail(err, TN_ERR_ARGUMENT, "cannot compress: expected %llu more bytes, found the end",
                       (unsigned long long)z->left);
    ZSTD_inBuffer in = { NULL, 0, 0 };
    return pump(z, &in, ZSTD_e_end, emit, context, err);
}

/* ---- decoding ---- */

/* The limit of libzstd; `largest` is ours. */
static int largest_log(void)
{
    return ZSTD_dParam_getBounds(ZSTD_d_windowLogMax).upperBound;
}

static tn_status decode_begin(void *state, uint64_t largest, tn_error *err)
{
    coder *z = state;
    z->at_end = z->in_frame = false;
    z->nheader = z->given = 0;
    z->largest = largest;
    if (!z->decompressor)
        z->decompressor = ZSTD_createDCtx();
    TN_NEED(z->decompressor, err);
    size_t code = ZSTD_DCtx_reset(z->decompressor, ZSTD_reset_session_and_parameters);
    if (!ZSTD_isError(code))
        code = ZSTD_DCtx_setParameter(z->decompressor, ZSTD_d_windowLogMax, largest_log());
    return ZSTD_isError(code) ? fail_zstd(err, TN_ERR_IO, "cannot decompress", code) : TN_OK;
}

static void decode_end(void *state)
{
    coder *z = state;
    if (z->decompressor && ZSTD_sizeof_DCtx(z->decompressor) > LARGE_DECODER) {
        ZSTD_freeDCtx(z->decompressor);
        z->decompressor = NULL;
    }
}

static tn_status fail_decode(tn_error *err, size_t code)
{
    if (ZSTD_getErrorCode(code) == ZSTD_error_frameParameter_windowTooLarge)
        return tn_fail(err, TN_ERR_LIMIT,
                       "zstd data needs a larger window than %llu MiB, the most that libzstd decodes",
                       1ull << (largest_log() - 20));
    return fail_zstd(err, TN_ERR_CORRUPT, "zstd data does not decode", code);
}

/* Reads the header of a frame to check its window.  A header that comes in pieces is collected. */
static tn_status look_at_header(coder *z, ZSTD_inBuffer *in, tn_error *err)
{
    const uint8_t *next = (const uint8_t *)in->src + in->pos;
    tn_zstd_frame frame;
    tn_zstd_look look = TN_ZSTD_NEEDS_MORE;
    if (!z->nheader)
        look = tn_zstd_frame_read(next, in->size - in->pos, &frame);
    z->at_end = false;
    for (; look == TN_ZSTD_NEEDS_MORE && in->pos < in->size; in->pos++) {
        z->header[z->nheader++] = *next++;
        look = tn_zstd_frame_read(z->header, z->nheader, &frame);
    }
    z->in_frame = look == TN_ZSTD_IS_FRAME;
    if (look == TN_ZSTD_NO_FRAME)
        return tn_fail(err, TN_ERR_CORRUPT,
                       "zstd data does not decode: expected a frame but found other bytes");
    if (z->in_frame && frame.window > z->largest)
        return tn_fail(err, TN_ERR_LIMIT,
                       "zstd data needs a window of %llu bytes, more than the %llu it was said to need",
                       (unsigned long long)frame.window, (unsigned long long)z->largest);
    return TN_OK;
}

/* Calls the decoder once, with the rest of a collected header first.  It stops at the end of a frame. */
static size_t decode_once(coder *z, ZSTD_inBuffer *in, ZSTD_outBuffer *out)
{
    ZSTD_inBuffer header = { z->header, z->nheader, z->given };
    bool with_header = z->given < z->nheader;
    size_t code = ZSTD_decompressStream(z->decompressor, out, with_header ? &header : in);
    z->given = header.pos;
    return code;
}

static tn_status decode(void *state, tn_coding *c, tn_error *err)
{
    coder *z = state;
    ZSTD_inBuffer in = { c->in, c->nin, 0 };
    ZSTD_outBuffer out = { c->out, c->nout, 0 };
    bool more = c->nin > 0 || z->in_frame;
    while (more) {
        size_t in_before = in.pos, out_before = out.pos, given_before = z->given;
        TN_TRY(z->in_frame ? TN_OK : look_at_header(z, &in, err));
        if (!z->in_frame)
            break;              /* an incomplete header: all input was taken */
        size_t code = decode_once(z, &in, &out);
        if (ZSTD_isError(code))
            return fail_decode(err, code);
        bool moved = in.pos > in_before || out.pos > out_before || z->given > given_before;
        z->at_end = code == 0;
        if (z->at_end) {
            z->in_frame = false;
            z->nheader = z->given = 0;
        }
        /* A full output is no reason to stop: a frame may end in bytes without output.  If all input is taken
         * and there is room left, libzstd holds nothing back. */
        more = moved && (in.pos < in.size || z->given < z->nheader || (out.pos == out.size && !z->at_end));
    }
    tn_coding_advance(c, in.pos, out.pos);
    return TN_OK;
}

static bool decode_at_end(const void *state)
{
    return ((const coder *)state)->at_end;
}

const tn_codec tn_codec_zstd = {
    .id = TN_ENCODING_ZSTD, .name = "zstd",
    .open = open_coder, .close = close_coder,
    .find_window = tn_zstd_largest_window,
    .decode_begin = decode_begin, .decode = decode, .decode_at_end = decode_at_end, .decode_end = decode_end,
    .level_min = ZSTD_minCLevel, .level_max = ZSTD_maxCLevel, .bound = ZSTD_compressBound,
    .encode = encode, .encode_memory = ZSTD_estimateCCtxSize,
    .stream_begin = stream_begin, .stream_write = stream_write, .stream_end = stream_end,
};
