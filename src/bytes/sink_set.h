/* bytes/sink_set.h - several files that appear together.
 *
 * A set has members and one file that names them: an index or a descriptor.  When all files are synced, the
 * members get names that were free.  Then the file that names them is replaced atomically.  Readers see the
 * old file with the old members, or the new one with the new members.
 *
 * A member is a sink, but is published by the set.  Its file is created with its first byte.  Only some
 * members are open at a time (bytes/fd_cache.h).  The others are parked: they have names in a folder
 * ".tenon-XXXXXX.tmp" that is locked as long as the process lives.  A later sink removes such a folder if it
 * is not locked. */
#ifndef TN_BYTES_SINK_SET_H
#define TN_BYTES_SINK_SET_H

#include "bytes/sink.h"

typedef struct tn_sink_set tn_sink_set;

/* A set whose members will be in the folder of `path`.  They get owner, group, mode, access list and extended
 * attributes of the file `like` (a path, or NULL), as far as the system allows (bytes/attributes.h). */
tn_status tn_sink_set_open(const char *path, const char *like, tn_sink_set **set, tn_error *err);

/* Is told once for all members which attributes were lost. */
void tn_sink_set_listen(tn_sink_set *set, tn_listener listener);

/* The limit of open members, for tests; 0: the default. */
void tn_sink_set_limit(tn_sink_set *set, size_t limit);

/* Adds a member, which belongs to the set. */
tn_status tn_sink_set_add(tn_sink_set *set, tn_sink **sink, tn_error *err);

/* Puts the bytes of all members, which are still empty, into files of `folder` that are there already,
 * named by their numbers; see tn_sink_share().  To be called when all members are added. */
tn_status tn_sink_set_share(tn_sink_set *set, int folder, tn_error *err);

/* Creates these files; see tn_sink_make_shared(). */
tn_status tn_sink_set_make_shared(tn_sink_set *set, int folder, tn_error *err);

/* The first bytes of a member that is still empty; borrowed until the set is closed. */
void tn_sink_set_head(tn_sink *member, const void *head, size_t n);

/* Whether anything has this name in the folder, but for the shared file of this member. */
bool tn_sink_set_taken(const tn_sink_set *set, const tn_sink *member, const char *name);

/* The final name and size of a member. */
typedef struct tn_sink_member {
    tn_sink    *sink;
    const char *name;           /* in the folder of the set */
    uint64_t    size;
} tn_sink_member;

/* Syncs all files, gives the members their names, and then `last` its own.  Frees the sinks but not the set.
 * A failure leaves everything as it was, with one exception: if the folder cannot be synced at the end, all
 * new files have their names, and the error says so.  A name that is taken is TN_ERR_EXISTS, or
 * TN_ERR_CHANGED if `last` may replace its file. */
tn_status tn_sink_set_publish(tn_sink_set *set, const tn_sink_member *members, size_t n, tn_sink *last,
                              uint64_t last_size, tn_error *err);

/* The same for objects, which are in no set.  A failure removes those again that this process alone has
 * made. */
tn_status tn_sink_publish_objects(const tn_sink_member *members, size_t n, tn_sink *last, uint64_t last_size,
                                  tn_error *err);

/* A file in the folder that the new files make obsolete, as it was when it was seen. */
typedef struct tn_obsolete {
    const char *name;
    tn_identity seen;
} tn_obsolete;

/* TN_ERR_CHANGED: the file was replaced or has changed.  A missing file is not an error. */
tn_status tn_sink_set_check_old(const tn_sink_set *set, const tn_obsolete *old, tn_error *err);

/* Is told of a file that was not removed, and why; 0: it has changed.  false: remove no others. */
typedef bool (*tn_not_removed)(void *context, const char *name, int error_number);

/* Removes files in this order, and syncs the folder after the first.  A missing file is not an error. */
void tn_sink_set_remove(tn_sink_set *set, const tn_obsolete *files, size_t n, tn_not_removed failed,
                        void *context);

/* Frees the set and its members, which leave no trace.  NULL is allowed. */
void tn_sink_set_close(tn_sink_set *set);

#endif
