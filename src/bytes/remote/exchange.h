/* bytes/remote/exchange.h - a request and its reply, with all its tries.
 *
 * One thread of the process does all transfers.  It runs while somebody uses it.  Everything that threads
 * share here and in bytes/remote/blocks.h is protected by one lock. */
#ifndef TN_BYTES_REMOTE_EXCHANGE_H
#define TN_BYTES_REMOTE_EXCHANGE_H

#include "base/error.h"
#include "base/vector.h"
#include "bytes/remote/reply.h"

typedef struct tn_exchange tn_exchange;

struct tn_exchange {
    /* The request.  What is pointed to belongs to the exchange, but for the body and `to`. */
    const char *method;         /* a literal */
    char       *url;            /* after redirects: where the reply came from */
    tn_buf      headers;        /* lines "Name: value", each with its NUL */
    char       *secret;         /* one more line, which no other host gets; or NULL */
    const void *body;
    size_t      body_size;
    bool        is_ranged;      /* asks for bytes [from, from + room), else for all */
    bool        is_first;       /* of an object whose size is not known: the range may be longer than that */
    bool        follows;        /* redirects */
    bool        is_direct;      /* goes through no proxy */
    bool        is_final;       /* makes an object appear: may take long, and libcurl must not repeat it */
    bool        once;           /* no second try */
    unsigned    patience;       /* seconds without progress until a try fails; 0: the usual */
    uint64_t    from;
    uint8_t    *to;             /* for the body of a reply that is good; NULL: nobody reads it */
    size_t      room;           /* in `to` */
    void      (*finished)(tn_exchange *x);      /* called once, under the lock, by the thread of transfers */
    void       *owner;          /* for `finished` */
    unsigned    edition;        /* for the owner: of what it knew when it made the request */

    /* The reply, once it is done. */
    bool      done;
    size_t    got;              /* bytes in `to` */
    bool      is_whole;         /* they are the whole object, not a range */
    tn_reply  reply;            /* of the last try */
    tn_status status;           /* TN_OK: a reply of 2xx that is complete */
    tn_error  err;

    /* Private. */
    tn_buf    problem;          /* the beginning of the body of a reply that is not good */
    void     *easy, *lines;     /* of libcurl */
    char      reason[256];      /* libcurl's */
    const char *refused;        /* why the transfer was stopped; NULL: it was not */
    tn_status refused_as;
    size_t    got_before;       /* `got` when the try began */
    size_t    header_bytes;     /* of this try */
    size_t    ignored;          /* bytes of this try's body that went nowhere */
    unsigned  failures, redirects;
    uint64_t  due, gave_up_at;  /* when to begin, and the last moment for it; milliseconds */
    bool      is_cancelled, is_running;
    tn_exchange *next;
};

/* ---- the thread of transfers ---- */

/* Starts it for the first user.  TN_ERR_UNSUPPORTED: no libcurl.  Of a process that has forked, users from
 * before cannot go on: tn_transfers_generation() has changed. */
tn_status tn_transfers_use(tn_error *err);
void      tn_transfers_leave(void);
unsigned  tn_transfers_generation(void);

void tn_remote_lock(void);
void tn_remote_unlock(void);
void tn_remote_wait(void);      /* until anything is finished; the lock is held */
void tn_remote_tell(void);      /* wakes those who wait */

/* Transfers at once, for blocks of data: TENON_REMOTE_PARALLEL, else 8. */
unsigned tn_remote_parallel(void);

/* ---- one exchange ---- */

/* A new one for this URL, which is copied; NULL: no memory. */
tn_exchange *tn_exchange_new(const char *method, const char *url);

/* Adds a header; without memory the exchange fails when it is sent. */
__attribute__((format(printf, 2, 3)))
void tn_exchange_header(tn_exchange *x, const char *format, ...);

/* Before it is sent: sends it to another URL.  The secret goes with it to the same host only.  false: no
 * memory. */
bool tn_exchange_move(tn_exchange *x, const char *url);

/* Sends it; under the lock.  It must not be freed before `done`. */
void tn_exchange_send(tn_exchange *x);

/* Sends it and waits; without the lock. */
tn_status tn_exchange_run(tn_exchange *x, tn_error *err);

/* Ends it soon, if it is not done; under the lock. */
void tn_exchange_cancel(tn_exchange *x);

void tn_exchange_free(tn_exchange *x);      /* NULL is allowed */

#endif
