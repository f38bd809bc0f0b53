/* share/server.h - answering those who attach: the inside of tn_offer. */
#ifndef TN_SHARE_SERVER_H
#define TN_SHARE_SERVER_H

#include "base/vector.h"
#include "share/socket.h"

#include <tenon/share.h>

/* What is offered: a packet that is the same for all, and what goes with it. */
typedef struct tn_offered {
    char      *name;
    tn_buf     packet;
    int        fd;              /* or -1 */
    bool       in_place;        /* for those alone that ask for it */
    tn_buffer *buffer;          /* that must stay while it is offered, or NULL */
} tn_offered;

typedef struct tn_client {
    int      fd;
    tn_peer  peer;
    int64_t  since;             /* it was taken in */
    int64_t  deadline;
    int64_t  not_before;        /* the system was short of something: 0, or when to try again */
    bool     greeted;           /* has said what it wants... */
    bool     in_place;          /* ...and that */
    bool     asked;             /* for a packet that it has not got */
    bool     debtor;            /* forgotten, but has not read what it was sent */
    size_t   next;              /* item */
    size_t   sent;
} tn_client;

struct tn_offer {
    tn_offer_options options;   /* with no zero for a default */
    uint32_t         uid;       /* of this process */
    uint32_t        *uids, *gids;       /* copies */
    char            *path;
    tn_place         place;
    int              stop;      /* eventfd: readable once tn_offer_stop() was called */
    tn_offered      *items;
    size_t           nitems, item_cap;
    tn_client       *clients;   /* options.max_clients of them */
    struct pollfd   *polls;     /* two more */
    size_t           nclients;
    int64_t          no_room_until;     /* something is short: when to take in clients again */
    size_t           evicted;   /* silent ones, since the log was told last... */
    int64_t          told;      /* ...at this time */
};

/* Tells the log, if there is one. */
__attribute__((format(printf, 2, 3)))
void tn_offer_say(const tn_offer *offer, const char *format, ...);

#endif
