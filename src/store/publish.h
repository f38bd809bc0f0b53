/* store/publish.h - publishing the files of a writer: one file, or a set that appears as a whole.
 *
 * A format that writes several files opens all but one with tn_writer_add_member(), and then the one that
 * names them with tn_writer_add_file().  In finish() it names the members: with plain names if nothing is
 * replaced, else with an id computed from the content, so that no new file is taken for an old one. */
#ifndef TN_STORE_PUBLISH_H
#define TN_STORE_PUBLISH_H

#include "store/writer.h"

enum { TN_SET_ID = 8 };         /* hexadecimal digits of an id */

/* Stands for an id before it is known. */
#define TN_SET_NO_ID "00000000"

/* One of several files, in the folder of the writer's path. */
tn_status tn_writer_add_member(tn_writer *w, uint32_t *file, tn_error *err);

/* Gives members that are objects, which have their names once the format has planned, their URLs. */
tn_status tn_writer_name_objects(tn_writer *w, tn_error *err);

/* The name of member i, in the arena; `id` is NULL if nothing is replaced.  NULL: no memory. */
typedef const char *(*tn_member_name)(tn_writer *w, size_t i, const char *id);

/* Names all members.  An id is computed from the writer's entries, whose digests must be known, and the
 * metadata.  If one of the names is taken, the next id is tried. */
tn_status tn_writer_name_members(tn_writer *w, tn_member_name name, bool with_id, tn_error *err);

/* TN_ERR_IO: the name is too long for the folder of the writer's path. */
tn_status tn_writer_check_name(const tn_writer *w, const char *name, tn_error *err);

/* Removes a file of this name in the output's folder, if there is one, after the new files are in place.
 * The first one that is added is removed before the others. */
tn_status tn_writer_add_obsolete(tn_writer *w, const char *name, tn_error *err);

/* The text of a file that is to be replaced, in the arena; empty: it cannot be read, or is longer than `most`
 * bytes.  TN_ERR_NOMEM is the only failure. */
tn_status tn_load_text(const char *path, uint64_t most, tn_arena *arena, tn_text *text, tn_error *err);

/* Whether the folder of `path` has anything of this name. */
bool tn_exists_beside(const char *path, const char *name);

/* Whether the text begins like an id. */
bool tn_is_set_id(const char *text);

/* Whether files with this id belong to another output whose name ends like an id, "model-20240101" next to
 * "model": then the file STEM-ID with `suffix` exists. `stem` is the length of STEM in the last name of
 * `path`. */
bool tn_is_others_id(const char *path, size_t stem, const char *id, const char *suffix);

/* --- files that several processes write --- */

/* Makes the files of a planned writer in `folder`, empty.  The one that names the others, or the only one, is
 * called "head", the members of a set 0, 1, 2... */
tn_status tn_writer_make_shared(const tn_writer *w, int folder, tn_error *err);

/* Lets a planned writer write to these files, which others may write to as well; see tn_sink_share(). */
tn_status tn_writer_share(const tn_writer *w, int folder, tn_error *err);

/* Writes what was written to a file to disk. */
tn_status tn_writer_sync(const tn_writer *w, uint32_t file, tn_error *err);

/* --- other files in the folder --- */

/* A file, or a set and the file that names it, and who gets the reports. */
typedef struct tn_beside {
    const char  *path;          /* of the file that names the others */
    const void  *owner;
    size_t       count;         /* of the files of the set, this one included */
    const char *(*used)(const void *owner, size_t i);   /* their paths */
    tn_beside_fn report;
    void        *context;
} tn_beside;

/* Reports each name in the folder that `is_member` accepts but that is not in the set. */
typedef bool (*tn_is_member)(const char *path, const char *name);
void tn_note_strays(const tn_beside *b, tn_is_member is_member);

__attribute__((format(printf, 3, 4)))
void tn_note(const tn_beside *b, bool doubtful, const char *format, ...);

/* Joins a text (NULL: none) or metadata to a crc32c, for an id of what a file says. */
uint32_t tn_crc_text(uint32_t crc, const char *text);
uint32_t tn_crc_meta(uint32_t crc, const tn_meta *meta, size_t n);

#endif
