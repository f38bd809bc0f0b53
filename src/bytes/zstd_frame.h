/* bytes/zstd_frame.h - the window that zstd data needs (RFC 8878), found before anything is decoded. */
#ifndef TN_BYTES_ZSTD_FRAME_H
#define TN_BYTES_ZSTD_FRAME_H

#include "bytes/source.h"

#include <stdbool.h>

enum { TN_ZSTD_HEADER_MAX = 18 };       /* bytes of the longest frame header */

#define TN_ZSTD_CONTENT_UNKNOWN UINT64_MAX

typedef struct tn_zstd_frame {
    size_t   header;            /* bytes before the first block, or of a skippable frame before its content */
    bool     skippable;
    bool     checksum;          /* four more bytes behind the last block */
    uint64_t window;            /* bytes */
    uint64_t content;           /* decoded bytes or TN_ZSTD_CONTENT_UNKNOWN; skippable: stored ones */
} tn_zstd_frame;

typedef enum tn_zstd_look {
    TN_ZSTD_IS_FRAME,
    TN_ZSTD_NEEDS_MORE,         /* the header is incomplete */
    TN_ZSTD_NO_FRAME            /* or a format before 1.0, which is not supported */
} tn_zstd_look;

/* Reads the header that begins at `bytes`. */
tn_zstd_look tn_zstd_frame_read(const void *bytes, size_t n, tn_zstd_frame *frame);

/* The largest window of the frames in bytes [from, from + size) of a source, which decode to `content` bytes.
 * If the first frame has all of the content, the others are not read.  In damaged data only the frames before
 * the damage count. */
tn_status tn_zstd_largest_window(const tn_source *source, uint64_t from, uint64_t size, uint64_t content,
                                 uint64_t *window, tn_error *err);

#endif
