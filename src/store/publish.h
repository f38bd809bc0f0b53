/* store/publish.h - how the files of a writer appear: one, or several as one.
 *
 * Formats that write several files open all but one by tn_writer_add_member()
 * and the one that names them, last, by tn_writer_add_file().  In finish() they
 * give the members their names: plain ones where nothing is replaced, else
 * with an id that is made of the content, so that no new file can be taken for
 * an old one. */
#ifndef TN_STORE_PUBLISH_H
#define TN_STORE_PUBLISH_H

#include "store/writer.h"

enum { TN_SET_ID = 8 };         /* hexadecimal digits of an id */

/* One of several files, in the folder of the writer's path. */
tn_status tn_writer_add_member(tn_writer *w, uint32_t *file, tn_error *err);

/* The name, in that folder, of member i; `id` is NULL where nothing is replaced.  In the arena; NULL: no
 * memory. */
typedef const char *(*tn_member_name)(tn_writer *w, size_t i, const char *id);

/* Names all members; with an id such that none of the names is taken.  The id is made of the writer's
 * entries, whose digests must be known, and metadata: the same content has the same one, or the next if
 * that is taken. */
tn_status tn_writer_name_members(tn_writer *w, tn_member_name name, bool with_id, tn_error *err);

/* The length of an id, for names before there is one. */
#define TN_SET_NO_ID "00000000"

/* TN_ERR_IO: no file in the folder of the writer's path can have a name so long. */
tn_status tn_writer_check_name(const tn_writer *w, const char *name, tn_error *err);

/* A file beside the output that is to be removed when the new files are in place, if there is one of this
 * name.  The first one goes for good before the others. */
tn_status tn_writer_add_obsolete(tn_writer *w, const char *name, tn_error *err);

/* Whether the folder of `path` has a file of this name, whatever it is. */
bool tn_exists_beside(const char *path, const char *name);

/* Whether the text begins with what an id can be. */
bool tn_is_set_id(const char *text);

/* Whether the files of `path` with this id are those of another output, whose name ends in what looks like
 * one: "model-20240101" beside "model".  There is a file STEM-ID with `suffix` then; the path's last name
 * begins with STEM. */
bool tn_is_others_id(const char *path, size_t stem, const char *id, const char *suffix);

/* --- what else lies there --- */

/* A file, or a set and the file that names it, and who wants to know. */
typedef struct tn_beside {
    const char  *path;          /* of the one that names the others */
    const void  *owner;
    size_t       count;         /* of the files that belong together, this one included */
    const char *(*used)(const void *owner, size_t i);   /* their paths */
    tn_beside_fn tell;
    void        *context;
} tn_beside;

/* Tells of each name in the folder that `is_member` takes for one of the set, and which does not belong to
 * it. */
typedef bool (*tn_is_member)(const char *path, const char *name);
void tn_note_strays(const tn_beside *b, tn_is_member is_member);

__attribute__((format(printf, 3, 4)))
void tn_note(const tn_beside *b, bool doubtful, const char *format, ...);

#endif
