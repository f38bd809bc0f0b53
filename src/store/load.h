/* store/load.h - the parts of a tensor of a file as memory, their checksums checked:
 * mapped where they can be, else decoded into a spill. */
#ifndef TN_STORE_LOAD_H
#define TN_STORE_LOAD_H

#include "bytes/spill.h"
#include "store/stream.h"
#include "tensor/form.h"

typedef struct tn_loading {
    const tn_file   *in;
    const tn_tensor *tensor;
    const char      *beside;    /* for spills: see tn_spill_make() */
    uint64_t         limit;     /* bytes that one part may be decoded into; 0: the file's, see
                                 * tn_open_options */
    /* now and then: a chance to cancel; may be NULL */
    tn_status      (*tick)(void *context, tn_error *err);
    void            *context;
} tn_loading;

/* Compares the stored bytes of a part with their checksum, if there is one. */
tn_status tn_load_check(tn_loading *loading, const tn_part *part, tn_error *err);

/* Decodes a part, checking its checksum: all of it is in the spill, dense, in host order. */
tn_status tn_load_part(tn_loading *loading, const tn_part *part, tn_spill *spill, tn_error *err);

/* Zero-initialise to begin. */
typedef struct tn_loaded {
    tn_tensor tensor;           /* whose parts all have their data; what has no bytes points somewhere */
    tn_part   parts[TN_MAX_PARTS];
    tn_spill  spills[TN_MAX_PARTS];
    bool      decoded;          /* some part was: it is better made again than kept */
} tn_loaded;

/* All parts.  TN_ERR_LIMIT: what would have to be decoded is beyond the limit.  The result is to be freed
 * after a failure too. */
tn_status tn_load(tn_loading *loading, tn_loaded *loaded, tn_error *err);
void      tn_loaded_free(tn_loaded *loaded);

#endif
