/* firmware/c_names.h - names of tensors in C: identifiers, comments, literals. */
#ifndef TN_FIRMWARE_C_NAMES_H
#define TN_FIRMWARE_C_NAMES_H

#include "base/arena.h"
#include "base/error.h"
#include "base/vector.h"

#include <tenon/export.h>

#define TN_C_WORDS_MAX  96      /* bytes of a tensor's name in its identifier */

/* The letters and digits of a name, with one underscore for anything between them and none at the ends, so
 * that behind an underscore they are no reserved identifier of C or C++.  At most `cap` bytes with the
 * NUL. */
void tn_c_words(const char *name, char *to, size_t cap);

/* A unique identifier for each of n unique names.  A name that consists of words is kept.  If several names
 * have the same words, the first gets them, and the others get _2, _3 ... behind them. */
tn_status tn_c_identifiers(const char *const *names, size_t n, tn_arena *arena, const char **ids,
                           tn_error *err);

/* Whether a text can be the prefix of identifiers: words that begin with a letter. */
bool tn_c_is_prefix(const char *text);

/* A prefix from a file's path, or "model". */
void tn_c_prefix(const char *path, char to[TN_EXPORT_MAX_NAME + 1]);

/* A name in quotes for a comment, which it cannot end; a long name is cut. */
void tn_c_put_comment(tn_buf *b, const char *name);

/* A name as a string literal.  A long one is split, with `more` and a newline between the pieces. */
void tn_c_put_literal(tn_buf *b, const char *name, const char *more);

#endif
