/* pipeline/scan.h - reading many parts as they are stored and computing their checksums.
 *
 * Unlike a view, a scan also reads what this build cannot decode.  Large raw parts are cut into ranges that
 * any thread may take; everything else is taken whole, small parts many at a time. */
#ifndef TN_PIPELINE_SCAN_H
#define TN_PIPELINE_SCAN_H

#include "pipeline/walk.h"
#include "store/stream.h"

typedef struct tn_scan_part {
    const tn_tensor *tensor;
    const tn_part   *part;
    tn_checksum      kind;          /* to compute over the bytes as stored */
} tn_scan_part;

/* What became of a part. */
typedef struct tn_scan_result {
    tn_status status;               /* of reading it; TN_ERR_UNSUPPORTED still has `stored` */
    tn_error  err;
    tn_digest stored;
} tn_scan_result;

typedef struct tn_scan {
    const tn_file      *file;
    const tn_scan_part *parts;
    size_t              count;
    /* Part k is read.  In order, one at a time; a failure stops the scan. */
    tn_status (*done)(void *context, size_t k, const tn_scan_result *result, tn_error *err);
    void               *context;
} tn_scan;

/* The walk counts decoded bytes, which its total must have. */
tn_status tn_scan_run(const tn_scan *scan, tn_walk *walk, tn_error *err);

#endif
