/* bytes/codec.c - zstd (libzstd), whole and in pieces. */
#include "bytes/codec.h"
#include "bytes/zstd_frame.h"

#include <limits.h>
#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

/* What one of libzstd's threads compresses at a time; changing it changes the
 * output.  At level 3 half of it would save half of the 20 MB a thread takes
 * and cost 5 % of size on data that repeats itself (none on weights). */
#define JOB_SIZE   (4 << 20)
#define LARGE_DECODER ((size_t)5 << 20)     /* is not kept from one part to the next: windows of 4 MiB are */

struct tn_zstd {
    ZSTD_CCtx *compressor;
    ZSTD_DCtx *decompressor;
    uint8_t   *out;             /* a stream's output on its way to emit: out_size bytes */
    size_t     out_size;
    uint64_t   left;            /* of a stream's announced size */
    bool       at_end;          /* decoding: the last byte taken was a frame's last */
    uint64_t   largest;         /* window that a frame may have */
    bool       in_frame;        /* its header was seen */
    uint8_t    header[TN_ZSTD_HEADER_MAX];      /* of a frame: bytes that the decoder has not got yet */
    size_t     nheader, given;  /* so many, of which so many went to it */
};

bool tn_zstd_level_ok(int level)
{
    return level >= tn_zstd_level_min() && level <= tn_zstd_level_max();
}

int tn_zstd_level_min(void)
{
    return ZSTD_minCLevel();
}

int tn_zstd_level_max(void)
{
    return ZSTD_maxCLevel();
}

tn_status tn_zstd_new(tn_zstd **z, tn_error *err)
{
    tn_zstd *new = calloc(1, sizeof *new);
    if (!new)
        return tn_fail_nomem(err);
    new->compressor = ZSTD_createCCtx();
    if (!new->compressor) {
        tn_zstd_free(new);
        return tn_fail_nomem(err);
    }
    *z = new;
    return TN_OK;
}

void tn_zstd_free(tn_zstd *z)
{
    if (!z)
        return;
    ZSTD_freeCCtx(z->compressor);
    ZSTD_freeDCtx(z->decompressor);
    free(z->out);
    free(z);
}

size_t tn_zstd_bound(size_t n)
{
    return ZSTD_compressBound(n);
}

static tn_status fail_zstd(tn_error *err, tn_status status, const char *what, size_t code)
{
    if (ZSTD_getErrorCode(code) == ZSTD_error_memory_allocation)
        return tn_fail_nomem(err);
    return tn_fail(err, status, TN_NO_OFFSET, "%s: %s", what, ZSTD_getErrorName(code));
}

/* A compressor in one known state: whatever it did before leaves no trace in the output. */
static size_t set_up(ZSTD_CCtx *compressor, int level, int workers)
{
    size_t code = ZSTD_CCtx_reset(compressor, ZSTD_reset_session_and_parameters);
    if (!ZSTD_isError(code))
        code = ZSTD_CCtx_setParameter(compressor, ZSTD_c_compressionLevel, level);
    if (!ZSTD_isError(code))
        code = ZSTD_CCtx_setParameter(compressor, ZSTD_c_contentSizeFlag, 1);
    if (!ZSTD_isError(code) && workers)
        code = ZSTD_CCtx_setParameter(compressor, ZSTD_c_nbWorkers, workers);
    if (!ZSTD_isError(code) && workers)
        code = ZSTD_CCtx_setParameter(compressor, ZSTD_c_jobSize, JOB_SIZE);
    return code;
}

tn_status tn_zstd_compress(tn_zstd *z, int level, const void *src, size_t n, void *dst, size_t cap,
                           size_t *size, tn_error *err)
{
    size_t code = set_up(z->compressor, level, 0);
    if (!ZSTD_isError(code))
        code = ZSTD_compress2(z->compressor, dst, cap, src, n);
    if (ZSTD_isError(code))
        return fail_zstd(err, TN_ERR_ARGUMENT, "cannot compress", code);
    *size = code;
    return TN_OK;
}

tn_status tn_zstd_stream_begin(tn_zstd *z, int level, uint64_t total, unsigned jobs, tn_error *err)
{
    if (!z->out) {
        z->out_size = ZSTD_CStreamOutSize();
        z->out = malloc(z->out_size);
        if (!z->out)
            return tn_fail_nomem(err);
    }
    /* Without threads libzstd would cut the data differently, and the same
     * input would give other bytes: no quiet way round that. */
    if (ZSTD_cParam_getBounds(ZSTD_c_nbWorkers).upperBound < 1)
        return tn_fail(err, TN_ERR_IO, TN_NO_OFFSET,
                       "cannot compress: expected a libzstd with threads, found one built without");
    size_t code = set_up(z->compressor, level, jobs < 1 ? 1 : jobs > INT_MAX ? INT_MAX : (int)jobs);
    if (!ZSTD_isError(code))
        code = ZSTD_CCtx_setPledgedSrcSize(z->compressor, total);
    if (ZSTD_isError(code))
        return fail_zstd(err, TN_ERR_ARGUMENT, "cannot compress", code);
    z->left = total;
    return TN_OK;
}

/* Drives the compressor until it has taken all input or, at the end, given all output. */
static tn_status pump(tn_zstd *z, ZSTD_inBuffer *in, ZSTD_EndDirective mode, tn_emit_fn emit, void *context,
                      tn_error *err)
{
    size_t more;
    do {
        ZSTD_outBuffer out = { z->out, z->out_size, 0 };
        more = ZSTD_compressStream2(z->compressor, &out, in, mode);
        if (ZSTD_isError(more))
            return fail_zstd(err, TN_ERR_ARGUMENT, "cannot compress", more);
        tn_status status = out.pos ? emit(context, z->out, out.pos, err) : TN_OK;
        if (status)
            return status;
    } while (mode == ZSTD_e_end ? more > 0 : in->pos < in->size);
    return TN_OK;
}

tn_status tn_zstd_stream_write(tn_zstd *z, const void *data, size_t n, tn_emit_fn emit, void *context,
                               tn_error *err)
{
    if (n > z->left)
        return tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET,
                       "cannot compress: expected %llu more bytes, found %llu", (unsigned long long)z->left,
                       (unsigned long long)n);
    z->left -= n;
    ZSTD_inBuffer in = { data, n, 0 };
    return n ? pump(z, &in, ZSTD_e_continue, emit, context, err) : TN_OK;
}

/* The end comes without data, so that the last cut does not depend on how the caller cut his. */
tn_status tn_zstd_stream_end(tn_zstd *z, tn_emit_fn emit, void *context, tn_error *err)
{
    if (z->left)
        return tn_fail(err, TN_ERR_ARGUMENT, TN_NO_OFFSET,
                       "cannot compress: expected %llu more bytes, found the end",
                       (unsigned long long)z->left);
    ZSTD_inBuffer in = { NULL, 0, 0 };
    return pump(z, &in, ZSTD_e_end, emit, context, err);
}

/* ---- decoding ---- */

/* What libzstd could do: how much it may is up to the caller. */
static int largest_log(void)
{
    return ZSTD_dParam_getBounds(ZSTD_d_windowLogMax).upperBound;
}

tn_status tn_zstd_decode_begin(tn_zstd *z, uint64_t largest, tn_error *err)
{
    z->at_end = z->in_frame = false;
    z->nheader = z->given = 0;
    z->largest = largest;
    if (!z->decompressor)
        z->decompressor = ZSTD_createDCtx();
    if (!z->decompressor)
        return tn_fail_nomem(err);
    size_t code = ZSTD_DCtx_reset(z->decompressor, ZSTD_reset_session_and_parameters);
    if (!ZSTD_isError(code))
        code = ZSTD_DCtx_setParameter(z->decompressor, ZSTD_d_windowLogMax, largest_log());
    return ZSTD_isError(code) ? fail_zstd(err, TN_ERR_IO, "cannot decompress", code) : TN_OK;
}

void tn_zstd_decode_end(tn_zstd *z)
{
    if (z->decompressor && ZSTD_sizeof_DCtx(z->decompressor) > LARGE_DECODER) {
        ZSTD_freeDCtx(z->decompressor);
        z->decompressor = NULL;
    }
}

static tn_status fail_decode(tn_error *err, size_t code)
{
    if (ZSTD_getErrorCode(code) == ZSTD_error_frameParameter_windowTooLarge)
        return tn_fail(err, TN_ERR_LIMIT, TN_NO_OFFSET,
                       "zstd data needs a larger window than %llu MiB, the most that libzstd decodes",
                       1ull << (largest_log() - 20));
    return fail_zstd(err, TN_ERR_CORRUPT, "zstd data does not decode", code);
}

/* Sees to it that a frame's window is known: its header is looked at where it lies, and kept where it comes
 * in pieces. */
static tn_status look_at_header(tn_zstd *z, ZSTD_inBuffer *in, tn_error *err)
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
        return tn_fail(err, TN_ERR_CORRUPT, TN_NO_OFFSET,
                       "zstd data does not decode: expected a frame but found other bytes");
    if (z->in_frame && frame.window > z->largest)
        return tn_fail(err, TN_ERR_LIMIT, TN_NO_OFFSET,
                       "zstd data needs a window of %llu bytes, more than the %llu it was said to need",
                       (unsigned long long)frame.window, (unsigned long long)z->largest);
    return TN_OK;
}

/* One call of the decoder, which stops at the end of a frame: first with what is left of its header. */
static size_t decode_once(tn_zstd *z, ZSTD_inBuffer *in, ZSTD_outBuffer *out)
{
    ZSTD_inBuffer header = { z->header, z->nheader, z->given };
    bool with_header = z->given < z->nheader;
    size_t code = ZSTD_decompressStream(z->decompressor, out, with_header ? &header : in);
    z->given = header.pos;
    return code;
}

tn_status tn_zstd_decode(tn_zstd *z, const void *src, size_t n, size_t *used, void *dst, size_t cap,
                         size_t *made, tn_error *err)
{
    ZSTD_inBuffer in = { src, n, 0 };
    ZSTD_outBuffer out = { dst, cap, 0 };
    bool more = n > 0 || z->in_frame;
    while (more) {
        size_t in_before = in.pos, out_before = out.pos, given_before = z->given;
        tn_status status = z->in_frame ? TN_OK : look_at_header(z, &in, err);
        if (status)
            return status;
        if (!z->in_frame)
            break;              /* half a header: all was taken */
        size_t code = decode_once(z, &in, &out);
        if (ZSTD_isError(code))
            return fail_decode(err, code);
        bool moved = in.pos > in_before || out.pos > out_before || z->given > given_before;
        z->at_end = code == 0;
        if (z->at_end) {
            z->in_frame = false;
            z->nheader = z->given = 0;
        }
        /* A full dst is no reason to stop: a frame may end in bytes that give
         * no output.  All taken and room left means that nothing is held back. */
        more = moved && (in.pos < in.size || z->given < z->nheader || (out.pos == out.size && !z->at_end));
    }
    *used = in.pos;
    *made = out.pos;
    return TN_OK;
}

bool tn_zstd_decode_at_end(const tn_zstd *z)
{
    return z->at_end;
}
