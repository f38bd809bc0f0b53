/* base/error.h - filling a tn_error. */
#ifndef TN_BASE_ERROR_H
#define TN_BASE_ERROR_H

#include <tenon/error.h>

/* Fills `err` (may be NULL) and returns `status`, so that a failing function
 * ends in one line:  return tn_fail(err, TN_ERR_CORRUPT, "...", ...);
 * Strings from files go through tn_quote() first.  The error has no place and no
 * reason yet: callers that know them add them with the functions below. */
__attribute__((format(printf, 3, 4)))
tn_status tn_fail(tn_error *err, tn_status status, const char *format, ...);

/* tn_fail() at a byte of the file. */
__attribute__((format(printf, 4, 5)))
tn_status tn_fail_at(tn_error *err, tn_status status, uint64_t offset, const char *format, ...);

/* tn_fail() with a reason, as tn_with_reason() notes it. */
__attribute__((format(printf, 5, 6)))
tn_status tn_refuse(tn_error *err, tn_status status, tn_reason reason, const char *value, const char *format,
                    ...);

/* TN_ERR_IO (TN_ERR_NOMEM for ENOMEM) with `what` and the system's reason:
 * "cannot write: No space left on device". */
tn_status tn_fail_errno(tn_error *err, int error_number, const char *what);

tn_status tn_fail_nomem(tn_error *err);

/* These note a place in an error on its way up and return `status`:
 *
 *     return tn_in_tensor(check_parts(t, err), t->name, err);
 *
 * With TN_OK, or `err` NULL, they do nothing.  What is noted already stays: the
 * innermost caller knows best.  A file is noted after the tensor in it: an error
 * that names its file gets no tensor any more.  What was cancelled failed
 * nowhere.  An empty path or NULL names no file. */
tn_status tn_in_file(tn_status status, const char *path, tn_error *err);
tn_status tn_at_byte(tn_status status, uint64_t offset, tn_error *err);
tn_status tn_in_tensor(tn_status status, const char *name, tn_error *err);

/* The same, but adds to the text, whatever it says already. */
tn_status tn_and_say(tn_status status, const char *text, tn_error *err);

/* The same for what can be done about it; `value` may be NULL. */
tn_status tn_with_reason(tn_status status, tn_reason reason, const char *value, tn_error *err);

/* An untrusted string as a message shows it: escaped, in double quotes, long
 * ones cut.  For use within one printf call: tn_quote(s, n).text */
typedef struct tn_quoted { char text[100]; } tn_quoted;
tn_quoted tn_quote(const char *text, size_t n);
tn_quoted tn_quote_z(const char *text);

#endif
