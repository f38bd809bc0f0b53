/* base/error.h - filling a tn_error. */
#ifndef TN_BASE_ERROR_H
#define TN_BASE_ERROR_H

#include <tenon/error.h>

/* Fills `err` (may be NULL) and returns `status`, so that a failing function
 * ends in one line:  return tn_fail(err, TN_ERR_CORRUPT, at, "...", ...);
 * Strings from files go through tn_quote() first. */
__attribute__((format(printf, 4, 5)))
tn_status tn_fail(tn_error *err, tn_status status, uint64_t offset, const char *format, ...);

/* TN_ERR_IO (TN_ERR_NOMEM for ENOMEM) with `what` and the system's reason:
 * "cannot write: No space left on device". */
tn_status tn_fail_errno(tn_error *err, int error_number, const char *what);

tn_status tn_fail_nomem(tn_error *err);

/* Puts the file in front of an error's text, and the byte: "F: byte 8: text".
 * Returns err's status. */
tn_status tn_error_in_file(tn_error *err, const char *path);

/* An untrusted string as a message shows it: escaped, in double quotes, long
 * ones cut.  For use within one printf call: tn_quote(s, n).text */
typedef struct tn_quoted { char text[100]; } tn_quoted;
tn_quoted tn_quote(const char *text, size_t n);
tn_quoted tn_quote_z(const char *text);

#endif
