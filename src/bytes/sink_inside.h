/* bytes/sink_inside.h - the inside of tn_sink, for sink.c and sink_set.c. */
#ifndef TN_BYTES_SINK_INSIDE_H
#define TN_BYTES_SINK_INSIDE_H

#include "bytes/attributes.h"
#include "bytes/identity.h"
#include "bytes/leftover.h"
#include "bytes/sink_set.h"
#include "bytes/temporary.h"
#include "bytes/fd_cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#define TN_TEMP_TRIES  100      /* for a temporary name that is free */

/* The state of a sink that is a member of a set. */
typedef struct tn_sink_state {
    tn_sink_set *set;           /* NULL: the sink is not a member */
    tn_cached_fd cached;        /* the sink's descriptor */
    size_t       number;        /* the name of the file while it is parked */
    bool         created;
    bool         parked;        /* it has its number as a name, in the folder of parked files */
    bool         named;         /* it has its final name */
    atomic_bool  dirty;         /* written to since the last sync */
    int          problem;       /* errno of a sync that failed when the file was closed */
    uint64_t     size;          /* expected */
    const void  *head;          /* first bytes of the file, or NULL */
    size_t       head_size;
    struct stat  own;           /* of the file, when it was created */
} tn_sink_state;

struct tn_sink {
    tn_buf         *out;        /* memory: publish puts the bytes here; NULL for a file */
    tn_buf          bytes;      /* memory: the bytes until then */
    pthread_mutex_t lock;       /* memory: protects `bytes` */
    int             fd;
    atomic_uint     writing;    /* threads */
    uint64_t        reserved;   /* bytes of the file that need not be reserved again */
    int             folder;     /* of the file */
    char           *name;       /* final name in the folder; NULL for a member */
    char            temp[TN_TEMPORARY_NAME];    /* current name, or "" */
    tn_leftover     leftover;   /* of that */
    int             shared;     /* folder of a file that other processes write to as well, or -1 */
    char            shared_name[24];    /* of that file */
    uint64_t        planned;    /* its size as far as it is known before */
    bool            replace;
    bool            nameless;   /* a descriptor from the caller: publish gives it no name */
    bool            exists;     /* a file had the name when the sink was opened: `old` */
    struct stat     old;
    tn_lost         lost;       /* attributes of the old file that the new one does not have */
    tn_listener     listener;   /* for `lost` */
    bool            expects;    /* publish replaces only the file `read` */
    bool            locked;     /* the caller has locked that file */
    tn_identity     read;
    struct tn_upload *upload;   /* of an object elsewhere, of which this is the local copy; or NULL */
    tn_sink_part   *parts;      /* of one that several processes make: see tn_sink_cut(); or NULL */
    size_t          nparts;
    int             own;        /* temporary file of its parts that this process sends, or -1 */
    tn_sink_state   member;
};

/* How files that several processes write are opened: for writing only, at a size that they have from the
 * beginning.  Two pieces may share a page.  A client of NFS that knows all of a page, because it has read it
 * or the file ends before it, writes all of it, and would undo what another has written there. */
#define TN_SHARED_FLAGS (O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)

/* --- sink.c --- */

tn_sink *tn_sink_new(void);

/* Frees the memory of a sink, and nothing else. */
void tn_sink_free(tn_sink *sink);

/* Whether `name` is the open file fd. */
bool tn_is_named(int folder, const char *name, int fd);

/* Removes temporary files of processes that have ended. */
void tn_sink_remove_litter(int folder);

/* Calls `visit` for every name in the folder, if it can be listed. */
void tn_sink_each_name(int folder, void (*visit)(int folder, const char *name));

/* Creates the file of a sink, without a name or with a temporary one.  If it `exists` already, only its owner
 * has access to the new file. */
tn_status tn_sink_create(tn_sink *sink, tn_error *err);

tn_status tn_sink_fail_exists(tn_error *err);

/* Tells the listener which attributes of the old "file" or "files" are lost. */
void tn_sink_tell(const tn_listener *listener, const tn_lost *lost, const char *what);

tn_status tn_sink_write_open(tn_sink *sink, uint64_t offset, const void *data, size_t n, tn_error *err);
tn_status tn_sink_reserve_open(tn_sink *sink, uint64_t size, tn_error *err);

/* Renames a file if the new name is free.  -1 with errno. */
int tn_rename_if_free(int from_folder, const char *from, int folder, const char *name);

/* Gives the unnamed file a name, which must be free.  -1 with errno. */
int tn_sink_link(tn_sink *sink, int folder, const char *name);

int tn_sync_fd(int fd);

/* The steps of publishing a file.  The first can fail without a trace; the second gives the file its name. */
tn_status tn_sink_settle_file(tn_sink *sink, uint64_t size, tn_error *err);
tn_status tn_sink_take_place(tn_sink *sink, tn_error *err);

/* Whether a shared file has its name. */
bool tn_sink_is_published(const tn_sink *sink);
tn_status tn_sink_sync_folder(tn_sink *sink, tn_error *err);

/* --- sink_far.c --- */

/* Opens an object as a sink, and writes to one that several processes make. */
tn_status tn_sink_open_far(const char *url, bool replace, tn_sink **sink, tn_error *err);
tn_status tn_sink_write_parts(tn_sink *sink, uint64_t offset, const void *data, size_t n, tn_error *err);

/* Lets the bytes of an object go to a file that others write to as well; opens that file anew. */
tn_status tn_sink_share_far(tn_sink *sink, int folder, const char *name, tn_error *err);
tn_status tn_sink_share_again(tn_sink *sink, tn_error *err);

/* Writes to a descriptor of the sink. */
tn_status tn_sink_write_to(int fd, uint64_t offset, const void *data, size_t n, tn_error *err);

/* --- sink_set.c --- */

/* Removes the folder of parked files of a process that has ended. */
void tn_sink_remove_parking(int folder, const char *name);

/* The same of this process. */
void tn_sink_empty_parking(int folder, const char *name);

/* Whether other processes write to the file of a member as well; such a file can be opened for reading. */
bool tn_sink_is_shared_member(const tn_sink *sink);
int  tn_sink_open_member(const tn_sink *sink);

/* true: the member is not created yet and another file would have to be closed for it, so the space is
 * reserved later. */
bool tn_sink_set_postpones(tn_sink *sink, uint64_t size);

/* Frees a member and removes its file, unless that has its final name. */
void tn_sink_drop_member(tn_sink *sink);

#endif
