/* pipeline/pattern.h - choosing tensors by their names, and giving them others.
 *
 * A pattern is a glob, as a shell matches file names, or "re:" and an extended
 * regular expression of POSIX, which may match anywhere in a name.  It has no
 * back-references and few repetitions, so that no name takes long to match. */
#ifndef TN_PIPELINE_PATTERN_H
#define TN_PIPELINE_PATTERN_H

#include "base/arena.h"
#include "base/text.h"

#include <tenon/file.h>

#include <regex.h>

enum {
    TN_MAX_RE       = 255,      /* bytes of a regular expression */
    TN_MAX_RE_NAME  = 1024,     /* of a name that it is held against */
    TN_MAX_REPEATED = 1000      /* of all counts in braces, multiplied */
};

typedef struct tn_pattern {
    char   *text;               /* owned */
    bool    is_regex;
    regex_t regex;
} tn_pattern;

/* TN_ERR_ARGUMENT: it is no expression, or too long a one.  To be freed after a success. */
tn_status tn_pattern_read(tn_text text, tn_pattern *pattern, tn_error *err);
void      tn_pattern_free(tn_pattern *pattern);
bool      tn_pattern_matches(const tn_pattern *pattern, const char *name);

/* TN_ERR_LIMIT: the name is too long for a regular expression. */
tn_status tn_pattern_check_name(const tn_pattern *pattern, const char *name, tn_error *err);

/* Names of a file, or of anything else, for "did you mean". */
typedef struct tn_name_list {
    const tn_file     *file;    /* or NULL */
    const char *const *names;
    size_t             count;
} tn_name_list;

/* TN_ERR_ARGUMENT: none of the names matches a pattern; `also` (may be "") is another cause. */
tn_status tn_fail_unmatched(const tn_name_list *names, tn_text pattern, const char *also, tn_error *err);

/* ---- choosing ---- */

/* Chosen is what matches one of the patterns, but none that begins with "!".  If all begin so, the rest is
 * chosen. */
typedef struct tn_chooser {
    tn_pattern  *patterns;
    bool        *excludes, *used;
    size_t       count;
    bool         by_default;    /* what matches nothing */
} tn_chooser;

/* To be ended, also after a failure. */
tn_status tn_chooser_begin(tn_chooser *c, const char *const *patterns, size_t n, tn_error *err);
tn_status tn_chooser_ask(tn_chooser *c, const char *name, bool *chosen, tn_error *err);

/* TN_ERR_ARGUMENT: a pattern has matched nothing. */
tn_status tn_chooser_check(const tn_chooser *c, const tn_name_list *names, tn_error *err);
void      tn_chooser_end(tn_chooser *c);

/* ---- renaming ---- */

/* "OLD=NEW": OLD is a name, or has one '*' that stands for the same text as that of NEW; or an expression,
 * whose match is replaced by NEW, where \1 to \9 stand for its groups and \0 for the match. */
typedef struct tn_rename {
    tn_pattern  old;
    const char *new;
} tn_rename;

typedef struct tn_renames {
    tn_rename *items;
    bool      *used;
    size_t     count;
} tn_renames;

/* To be ended, also after a failure; the texts must live as long. */
tn_status tn_renames_begin(tn_renames *r, const char *const *texts, size_t n, tn_error *err);
void      tn_renames_end(tn_renames *r);

/* TN_ERR_ARGUMENT with TN_REASON_RENAME: one was never used. */
tn_status tn_renames_check(const tn_renames *r, const tn_name_list *names, tn_error *err);

/* The first that matches counts; *new may be the old name, else it is in the arena. */
tn_status tn_renames_apply(tn_renames *r, const char *old, tn_arena *arena, const char **new, tn_error *err);

#endif
