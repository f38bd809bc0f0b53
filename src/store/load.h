/* store/load.h - loading the parts of a tensor into memory, mapped or decoded, with checked checksums. */
#ifndef TN_STORE_LOAD_H
#define TN_STORE_LOAD_H

#include "bytes/spill.h"
#include "store/stream.h"
#include "tensor/form.h"

typedef struct tn_loading {
    const tn_file   *in;
    const tn_tensor *tensor;
    const char      *beside;    /* for spills: see tn_spill_make() */
    const tn_part   *without;   /* this part stays where it is; or NULL */
    uint64_t         limit;     /* decoded bytes of one part; 0: the file's limit, see tn_open_options */
    /* called now and then: may cancel; may be NULL */
    tn_status      (*tick)(void *context, tn_error *err);
    void            *context;
} tn_loading;

/* Compares the stored bytes of a part with their checksum, if there is one. */
tn_status tn_load_check(tn_loading *loading, const tn_part *part, tn_error *err);

/* Decodes a part into the spill, dense, in host order, and checks its checksum. */
tn_status tn_load_part(tn_loading *loading, const tn_part *part, tn_spill *spill, tn_error *err);

/* Zero-initialise to begin. */
typedef struct tn_loaded {
    tn_tensor tensor;           /* all parts have data; empty ones have a valid pointer */
    tn_part   parts[TN_MAX_PARTS];
    tn_spill  spills[TN_MAX_PARTS];
    bool      decoded;          /* some part was decoded into a spill */
} tn_loaded;

/* Loads all parts. TN_ERR_LIMIT: a part decodes to more than the limit. Free the result in any case. */
tn_status tn_load(tn_loading *loading, tn_loaded *loaded, tn_error *err);
void      tn_loaded_free(tn_loaded *loaded);

#endif
