/* share/server.h - answers clients: the private part of tn_offer. */
#ifndef TN_SHARE_SERVER_H
#define TN_SHARE_SERVER_H

#include "base/vector.h"
#include "share/socket.h"

#include <tenon/share.h>

/* One offered item: its packet for all clients, and its descriptor. */
typedef struct tn_offered {
    char      *name;
    tn_buf     packet;
    int        fd;              /* or -1 */
    bool       in_place;        /* only for clients that ask for plain files */
    tn_buffer *buffer;          /* a reference, or NULL */
} tn_offered;

typedef struct tn_client {
    int      fd;
    tn_peer  peer;
    int64_t  since;             /* when it was accepted */
    int64_t  deadline;
    int64_t  not_before;        /* when to retry after a shortage, or 0 */
    bool     greeted;           /* has sent HELLO */
    bool     in_place;          /* asked for plain files in HELLO */
    bool     asked;             /* waits for a packet */
    bool     debtor;            /* finished, but has not read its last descriptor */
    size_t   next;              /* item */
    size_t   sent;
} tn_client;

struct tn_offer {
    tn_offer_options options;   /* defaults filled in */
    uint32_t         uid;       /* of this process */
    uint32_t        *uids, *gids;       /* copies */
    char            *path;
    tn_server_socket socket;
    int              stop;      /* eventfd: readable once tn_offer_stop() was called */
    tn_offered      *items;
    size_t           nitems, item_cap;
    tn_client       *clients;   /* options.max_clients of them */
    struct pollfd   *polls;     /* two more */
    size_t           nclients;
    int64_t          no_room_until;     /* when to accept clients again after a shortage */
    size_t           evicted;   /* silent connections closed since the last log line... */
    int64_t          told;      /* ...which was at this time */
};

/* Writes to the log, if there is one. */
__attribute__((format(printf, 2, 3)))
void tn_offer_say(const tn_offer *offer, const char *format, ...);

#endif
