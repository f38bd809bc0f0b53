/* bytes/sink_set.h - several files that appear as one.
 *
 * A set has members, and one file that names them: an index, a descriptor.
 * Members get names that nobody had, when all bytes of all files are durable;
 * then the file that names them takes its place, at one stroke.  Whoever reads
 * sees the old file with the old members, or the new one with the new.
 *
 * A member is a sink like any other, but for its end.  It is made when its
 * first byte is written.  Members take turns in having a descriptor: those that
 * are put to sleep get a name in a folder ".tenon-XXXXXX.tmp" that is locked
 * as long as the process lives; a later sink removes such a folder that nobody
 * holds. */
#ifndef TN_BYTES_SINK_SET_H
#define TN_BYTES_SINK_SET_H

#include "bytes/sink.h"

typedef struct tn_sink_set tn_sink_set;

/* A set whose members will lie in the folder of `path`.  `like` is the path of a file, or of a link to one,
 * whose owner, group, mode, access list and extended attributes they get, as far as the system allows
 * (bytes/attributes.h), or NULL. */
tn_status tn_sink_set_open(const char *path, const char *like, tn_sink_set **set, tn_error *err);

/* Who hears, once for all members, what could not be kept of it. */
void tn_sink_set_listen(tn_sink_set *set, tn_listener listener);

/* How many members have a descriptor at most, for tests; 0: as many as there should be. */
void tn_sink_set_limit(tn_sink_set *set, size_t limit);

/* One more member, which belongs to the set. */
tn_status tn_sink_set_add(tn_sink_set *set, tn_sink **sink, tn_error *err);

/* The first bytes of a member that has none as yet; borrowed until the end. */
void tn_sink_set_head(tn_sink *member, const void *head, size_t n);

/* Whether there is a file of this name in the folder, whatever it is. */
bool tn_sink_set_taken(const tn_sink_set *set, const char *name);

/* What a member is to become. */
typedef struct tn_sink_member {
    tn_sink    *sink;
    const char *name;           /* in the folder of the set */
    uint64_t    size;
} tn_sink_member;

/* Makes all files durable, gives the members their names, and then `last` its own; all sinks are freed,
 * the set is not. A failure leaves all as it was, but for one: when the folder cannot be synced at the
 * very end all new files are in their places, and the error's text says so.  A name that is taken is
 * TN_ERR_EXISTS, or TN_ERR_CHANGED if `last` may replace its file. */
tn_status tn_sink_set_publish(tn_sink_set *set, const tn_sink_member *members, size_t n, tn_sink *last,
                              uint64_t last_size,
                              tn_error *err);

/* A file in the folder of the set that the new ones make obsolete, as it was when that was found out. */
typedef struct tn_obsolete {
    const char *name;
    tn_identity seen;
} tn_obsolete;

/* TN_ERR_CHANGED: the name leads to another file by now, or that has changed.  A file that is gone is no
 * failure. */
tn_status tn_sink_set_check_old(const tn_sink_set *set, const tn_obsolete *old, tn_error *err);

/* Told of a file that is not removed, and why; 0: it has changed.  false: the others stay, too. */
typedef bool (*tn_not_removed)(void *context, const char *name, int error_number);

/* Removes files, in this order: the first one for good before the others.  What is not there is no
 * failure. */
void tn_sink_set_remove(tn_sink_set *set, const tn_obsolete *files, size_t n, tn_not_removed failed,
                        void *context);

/* Frees the set and its members, which leave no trace.  NULL is allowed. */
void tn_sink_set_close(tn_sink_set *set);

#endif
