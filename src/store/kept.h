/* store/kept.h - a few bytes that would be decoded into very many.
 *
 * Who keeps what is decoded (in a file, in shared memory, in a buffer) adds up
 * everything that grows, and asks before it begins.  Who looks at windows only
 * need not. */
#ifndef TN_STORE_KEPT_H
#define TN_STORE_KEPT_H

#include "base/kept.h"
#include "store/file.h"

/* Zero-initialise, but for the limit. */
typedef struct tn_kept {
    uint64_t    max_bytes;      /* the caller's limit; 0: see tn_kept_limit() */
    uint64_t    stored, decoded;        /* of what grows */
    size_t      tensors;
    const char *last, *largest; /* names */
    uint64_t    largest_bytes;
    uint64_t    all;            /* decoded bytes, of what does not grow too */
    uint64_t    files, reach;   /* files that parts lie in, at most, and where the furthest ends */
    uint64_t    elsewhere;      /* stored bytes of parts that lie in no file as they are */
} tn_kept;

/* Adds what a tensor, or a part of it, is decoded into. */
void tn_kept_add_as(tn_kept *kept, const tn_tensor *tensor, uint64_t decoded);
void tn_kept_add_part(tn_kept *kept, const tn_tensor *tensor, const tn_part *part);

/* TN_ERR_LIMIT: all together is beyond the limit.  Stored bytes that many tensors share count once. */
tn_status tn_kept_check(const tn_kept *kept, tn_error *err);

/* The same of one part alone, under the limit of its file. */
tn_status tn_kept_check_part(const tn_file *file, const tn_tensor *tensor, const tn_part *part,
                             tn_error *err);

/* The same where the part can be read from a whole copy only, in a spill: compressed elements that
 * lie apart. */
tn_status tn_kept_check_spilled(const tn_file *file, const tn_tensor *tensor, const tn_part *part,
                                tn_error *err);

#endif
