/* bytes/sink_inside.h - the inside of tn_sink, for sink.c and sink_set.c. */
#ifndef TN_BYTES_SINK_INSIDE_H
#define TN_BYTES_SINK_INSIDE_H

#include "bytes/attributes.h"
#include "bytes/identity.h"
#include "bytes/sink_set.h"
#include "bytes/temporary.h"
#include "bytes/turns.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#define TN_TEMP_TRIES  100      /* for a temporary name nobody has */

/* What a member of a set has beyond any other sink. */
typedef struct tn_sink_place {
    tn_sink_set *set;           /* NULL: no member */
    tn_turn      turn;          /* whose descriptor is the sink's */
    size_t       number;        /* its name among the parked */
    bool         made;          /* it exists... */
    bool         parked;        /* ...and is called by its number, in the set's own folder */
    bool         named;         /* ...or by the name it was made for */
    atomic_bool  dirty;         /* written to since it was last synced */
    int          problem;       /* errno of a sync that failed when it was put to sleep */
    uint64_t     size;          /* that it is expected to have */
    const void  *head;          /* its first bytes, or NULL */
    size_t       head_size;
    struct stat  own;           /* of the file, when it was created */
} tn_sink_place;

struct tn_sink {
    tn_buf         *out;        /* memory: where publish leaves the bytes; NULL for a file */
    tn_buf          bytes;      /* memory: the bytes until then */
    pthread_mutex_t lock;       /* memory: around `bytes` */
    int             fd;
    int             folder;     /* where the file will be */
    char           *name;       /* how it will be called there; NULL: of a member the set knows */
    char            temp[TN_TEMPORARY_NAME];    /* how it is called now: "" is not at all */
    bool            replace;
    bool            nameless;   /* a descriptor that was given: publish names nothing */
    bool            exists;     /* there was a file of that name when the sink was opened: */
    struct stat     old;
    tn_lost         lost;       /* what the new file does not have of it */
    tn_listener     listener;   /* who wants to know */
    bool            expects;    /* a file of that name was read: */
    bool            locked;     /* it is, by the caller */
    tn_identity     read;
    tn_sink_place   place;
};

/* --- sink.c --- */

tn_sink *tn_sink_new(void);

/* Frees what a sink is made of, and nothing else. */
void tn_sink_free(tn_sink *sink);

/* Whether `name` is the open file fd. */
bool tn_is_named(int folder, const char *name, int fd);

/* Removes the temporary files of processes that are gone. */
void tn_sink_remove_litter(int folder);

/* Calls `visit` for every name in the folder, if it can be listed. */
void tn_sink_each_name(int folder, void (*visit)(int folder, const char *name));

/* Creates the file of a sink, without a name or with a temporary one.  If it `exists` already, only its owner
 * has access to the new file. */
tn_status tn_sink_create(tn_sink *sink, tn_error *err);

tn_status tn_sink_fail_exists(tn_error *err);

/* Tells the listener what is lost of the old "file" or "files". */
void tn_sink_tell(const tn_listener *listener, const tn_lost *lost, const char *what);

tn_status tn_sink_write_open(tn_sink *sink, uint64_t offset, const void *data, size_t n, tn_error *err);
tn_status tn_sink_reserve_open(tn_sink *sink, uint64_t size, tn_error *err);

/* Moves a name to a free one.  -1 with errno. */
int tn_rename_if_free(int from_folder, const char *from, int folder, const char *name);

/* Gives the unnamed file a name that is free.  -1 with errno. */
int tn_sink_link(tn_sink *sink, int folder, const char *name);

int tn_sync_fd(int fd);

/* The two halves of publishing a file: what can fail without a trace, and its name. */
tn_status tn_sink_settle_file(tn_sink *sink, uint64_t size, tn_error *err);
tn_status tn_sink_take_place(tn_sink *sink, tn_error *err);
tn_status tn_sink_sync_folder(tn_sink *sink, tn_error *err);

/* --- sink_set.c --- */

/* Removes the folder of parked files of a set whose process is gone. */
void tn_sink_remove_parking(int folder, const char *name);

/* Room for a member that has to wait for its turn is reserved when that comes; false: it is awake, or can
 * be. */
bool tn_sink_set_postpones(tn_sink *sink, uint64_t size);

/* Leaves nothing of a member. */
void tn_sink_drop_member(tn_sink *sink);

#endif
