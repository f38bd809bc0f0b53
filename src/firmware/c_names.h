/* firmware/c_names.h - names of tensors as C has them: identifiers, comments, texts. */
#ifndef TN_FIRMWARE_C_NAMES_H
#define TN_FIRMWARE_C_NAMES_H

#include "base/arena.h"
#include "base/error.h"
#include "base/vector.h"

#include <tenon/export.h>

#define TN_C_WORDS_MAX  96      /* bytes that an identifier has of a tensor's name, without a number at its
                                 * end */

/* The letters and digits of a name, anything between them one underscore, none at the ends: what may stand
 * behind an underscore in an identifier that neither C nor C++ reserves.  At most `cap` bytes with the
 * closing NUL. */
void tn_c_words(const char *name, char *to, size_t cap);

/* A different one for each of n names, which are different.  A name that consists of words already keeps
 * them; of others with the same words the first in order has them, if they are free, and the next ones have
 * _2, _3 ... behind. */
tn_status tn_c_identifiers(const char *const *names, size_t n, tn_arena *arena, const char **ids,
                           tn_error *err);

/* Whether a text may stand in front of every identifier: it consists of words, the first begins with a
 * letter. */
bool tn_c_is_prefix(const char *text);

/* One made of a file's path; "model" where that has nothing. */
void tn_c_prefix(const char *path, char to[TN_EXPORT_MAX_NAME + 1]);

/* A name in quotes for a comment, which it cannot end; a long one is cut. */
void tn_c_put_comment(tn_buf *b, const char *name);

/* A name as a text literal: the same bytes.  Where it is long `more` stands between its pieces, with a line
 * end. */
void tn_c_put_literal(tn_buf *b, const char *name, const char *more);

#endif
