/* bytes/remote/scheme.h - how names of one kind become requests. */
#ifndef TN_BYTES_REMOTE_SCHEME_H
#define TN_BYTES_REMOTE_SCHEME_H

#include "bytes/remote/exchange.h"

/* What a name stands for. */
typedef struct tn_target {
    const struct tn_scheme *scheme;
    char *url;                  /* of the requests; NULL: the scheme makes one for each */
    void *own;                  /* the scheme's, or NULL */
} tn_target;

typedef struct tn_scheme {
    /* Finds what the name stands for; may make requests of its own, for credentials. */
    tn_status (*resolve)(const char *name, tn_target *target, tn_error *err);
    /* A request for the object, with headers that say who asks; NULL: a failure.  Sends nothing. */
    tn_exchange *(*get)(const tn_target *target, tn_error *err);
    /* Before a request: makes sure that credentials are valid; NULL: they do not expire. */
    tn_status (*renew)(tn_target *target, tn_error *err);
    /* After a request that was refused: whether another one may succeed, as the target is now; NULL: no. */
    bool    (*mend)(tn_target *target, const tn_exchange *refused);
    void    (*free)(tn_target *target);         /* of `own`; NULL: nothing */
    bool      follows;          /* redirects */
} tn_scheme;

#endif
