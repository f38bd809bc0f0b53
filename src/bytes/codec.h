/* bytes/codec.h - zstd (libzstd), whole and in pieces.
 *
 * Output depends on the data, the level and the size only: never on the number
 * of threads.  Frames carry their content size. */
#ifndef TN_BYTES_CODEC_H
#define TN_BYTES_CODEC_H

#include "base/error.h"
#include <stdbool.h>

#define TN_ZSTD_DEFAULT_LEVEL 3
bool tn_zstd_level_ok(int level);
int  tn_zstd_level_min(void), tn_zstd_level_max(void);

/* Data up to this size is one piece: compressed by one thread, whole.  Larger
 * data is a stream that libzstd cuts for its own threads.  Both sides of the
 * border are fixed by the size alone, which keeps output the same every time. */
#define TN_ZSTD_WHOLE_MAX ((size_t)8 << 20)

typedef struct tn_zstd tn_zstd;             /* reusable state of one thread */
tn_status tn_zstd_new(tn_zstd **z, tn_error *err);
void      tn_zstd_free(tn_zstd *z);

size_t    tn_zstd_bound(size_t n);
/* Compresses n <= TN_ZSTD_WHOLE_MAX bytes; dst has room for tn_zstd_bound(n). */
tn_status tn_zstd_compress(tn_zstd *z, int level, const void *src, size_t n, void *dst, size_t cap,
                           size_t *size, tn_error *err);

/* Where a stream's output goes, in order. */
typedef tn_status (*tn_emit_fn)(void *context, const void *data, size_t n, tn_error *err);

/* A compressing stream of exactly `total` bytes on `jobs` threads. */
tn_status tn_zstd_stream_begin(tn_zstd *z, int level, uint64_t total, unsigned jobs, tn_error *err);
tn_status tn_zstd_stream_write(tn_zstd *z, const void *data, size_t n, tn_emit_fn emit, void *context,
                               tn_error *err);
tn_status tn_zstd_stream_end(tn_zstd *z, tn_emit_fn emit, void *context, tn_error *err);

/* A decompressing stream over frames that lie in pieces.  *used and *made say
 * how much was taken and given.  Bounded memory whatever a frame claims: one with
 * a larger window than `largest` is TN_ERR_LIMIT before there is memory for it. */
tn_status tn_zstd_decode_begin(tn_zstd *z, uint64_t largest, tn_error *err);
tn_status tn_zstd_decode(tn_zstd *z, const void *src, size_t n, size_t *used, void *dst, size_t cap,
                         size_t *made, tn_error *err);
/* True when the bytes decoded so far end at the end of a frame. */
bool      tn_zstd_decode_at_end(const tn_zstd *z);
/* Gives memory for a large window back; for a small one it is kept for the next stream. */
void      tn_zstd_decode_end(tn_zstd *z);

#endif
