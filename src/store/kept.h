/* store/kept.h - the limit for decoded data: a few bytes may decode to very many.
 *
 * Code that keeps decoded data (in a file, in shared memory, in a buffer) adds up all of it and checks the
 * limit before it begins.  Code that reads window by window need not. */
#ifndef TN_STORE_KEPT_H
#define TN_STORE_KEPT_H

#include "base/kept.h"
#include "store/file.h"

/* Zero-initialise, except the limit. */
typedef struct tn_kept {
    uint64_t    max_bytes;      /* the caller's limit; 0: see tn_kept_limit() */
    uint64_t    stored, decoded;        /* of parts that grow */
    size_t      tensors;
    const char *last, *largest; /* names */
    uint64_t    largest_bytes;
    uint64_t    all;            /* decoded bytes of all parts */
    uint64_t    files, reach;   /* upper bounds: the files that have parts, and where the last part ends */
    uint64_t    elsewhere;      /* stored bytes of parts that are not a range of a file */
} tn_kept;

/* Adds the decoded bytes of a tensor or of a part. */
void tn_kept_add_as(tn_kept *kept, const tn_tensor *tensor, uint64_t decoded);
void tn_kept_add_part(tn_kept *kept, const tn_tensor *tensor, const tn_part *part);

/* TN_ERR_LIMIT: the sum is beyond the limit.  Stored bytes that several tensors share count once. */
tn_status tn_kept_check(const tn_kept *kept, tn_error *err);

/* The same for one part, with the limit of its file. */
tn_status tn_kept_check_part(const tn_file *file, const tn_tensor *tensor, const tn_part *part,
                             tn_error *err);

/* The same if reading the part needs a decoded copy of it (in a spill): it is compressed and has strides. */
tn_status tn_kept_check_spilled(const tn_file *file, const tn_tensor *tensor, const tn_part *part,
                                tn_error *err);

#endif
