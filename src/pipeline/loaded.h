/* pipeline/loaded.h - the parts of a tensor of a file as memory, their checksums
 * checked: mapped where they can be, else decoded into an unnamed file. */
#ifndef TN_PIPELINE_LOADED_H
#define TN_PIPELINE_LOADED_H

#include "pipeline/spool.h"
#include "tensor/form.h"

typedef struct tn_loading {
    const tn_file   *in;
    const tn_tensor *tensor;
    const char      *beside;    /* for unnamed files: see tn_room_make() */
    uint64_t         limit;     /* bytes that one part may be decoded into; 0: the file's, see
                                 * tn_open_options */
    /* now and then: a chance to cancel; may be NULL */
    tn_status      (*tick)(void *context, tn_error *err);
    void            *context;
    bool             output_failed;     /* set: the error is tick()'s, or of the unnamed file */
} tn_loading;

/* Zero-initialise to begin. */
typedef struct tn_loaded {
    tn_tensor tensor;           /* whose parts all have their data; what has no bytes points somewhere */
    tn_part   parts[TN_MAX_PARTS];
    tn_room   rooms[TN_MAX_PARTS];
    bool      spooled;          /* something was decoded: it is better made again than kept */
} tn_loaded;

/* TN_ERR_LIMIT: what would have to be decoded is beyond the limit.  The result is to be freed after a failure
 * too. */
tn_status tn_load(tn_loading *loading, tn_loaded *loaded, tn_error *err);
void      tn_loaded_free(tn_loaded *loaded);

#endif
