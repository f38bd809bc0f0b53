/* pipeline/scan.h - going through many parts on all cores.
 *
 * Large raw parts are cut into spans that any thread may take; everything else
 * is taken whole, small parts many at a time.  What a caller sees in order does
 * not depend on the number of threads. */
#ifndef TN_PIPELINE_SCAN_H
#define TN_PIPELINE_SCAN_H

#include "base/pool.h"
#include "store/stream.h"

typedef struct tn_scan_part {
    const tn_tensor *tensor;
    const tn_part   *part;
    tn_checksum      stored_kind;   /* to compute over the bytes as stored */
    tn_checksum      decoded_kind;  /* to compute over the bytes as window() gets them */
    const tn_change *change;        /* on the way to window(), or NULL */
    unsigned         swap;          /* after that: unit of bytes to reverse; 0: none */
} tn_scan_part;

/* What became of a part. */
typedef struct tn_scanned {
    tn_status status;               /* of reading it; TN_ERR_UNSUPPORTED still has `stored` */
    tn_error  err;
    bool      window_failed;        /* it was window() that failed */
    tn_digest stored, decoded;
    uint64_t  made;                 /* bytes given to window() */
} tn_scanned;

typedef struct tn_scan {
    const tn_file      *file;
    const tn_scan_part *parts;
    size_t              count;
    /* Decoded (and changed) bytes of part k from byte `at` on.  Any thread; may be NULL. */
    tn_status (*window)(void *context, size_t k, uint64_t at, const uint8_t *bytes, size_t n, tn_error *err);
    /* Part k is through.  In order, one at a time; a failure stops the scan. */
    tn_status (*done)(void *context, size_t k, const tn_scanned *result, tn_error *err);
    void               *context;
    tn_progress_fn      progress;   /* may be NULL; bytes are decoded bytes */
    void               *progress_context;
    uint64_t            progress_base, progress_total;
} tn_scan;

tn_status tn_scan_run(const tn_scan *scan, tn_pool *pool, tn_error *err);

#endif
