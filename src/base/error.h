/* base/error.h - filling a tn_error. */
#ifndef TN_BASE_ERROR_H
#define TN_BASE_ERROR_H

#include <tenon/error.h>

/* Fills `err` (may be NULL) and returns `status`:  return tn_fail(err, TN_ERR_CORRUPT, "...", ...);
 * Strings from files go through tn_quote() first.  The error has no place and no reason yet: callers that
 * know them add them with the functions below. */
__attribute__((format(printf, 3, 4)))
tn_status tn_fail(tn_error *err, tn_status status, const char *format, ...);

/* tn_fail() at a byte of the file. */
__attribute__((format(printf, 4, 5)))
tn_status tn_fail_at(tn_error *err, tn_status status, uint64_t offset, const char *format, ...);

/* tn_fail() with a reason, as tn_with_reason() notes it. */
__attribute__((format(printf, 5, 6)))
tn_status tn_refuse(tn_error *err, tn_status status, tn_reason reason, const char *value, const char *format,
                    ...);

/* TN_ERR_IO (TN_ERR_NOMEM for ENOMEM) with the system's reason: "cannot write: No space left on device". */
tn_status tn_fail_errno(tn_error *err, int error_number, const char *what);

tn_status tn_fail_nomem(tn_error *err);

/* Leaves the function with the status of a call that failed.  Only where nothing is to be freed first. */
#define TN_TRY(call)                       \
    do {                                   \
        const tn_status tn_tried = (call); \
        if (tn_tried)                      \
            return tn_tried;               \
    } while (0)

/* The same with TN_ERR_NOMEM, unless there is memory: a pointer that is not NULL. */
#define TN_NEED(memory, err) TN_TRY((memory) ? TN_OK : tn_fail_nomem(err))

/* An argument of a public function that must not be NULL. */
#define TN_GIVEN(argument, what, err) \
    TN_TRY((argument) ? TN_OK : tn_fail(err, TN_ERR_ARGUMENT, "expected %s but found NULL", what))

/* These add a place to an error and return `status`:
 *
 *     return tn_in_tensor(check_parts(t, err), t->name, err);
 *
 * They do nothing if `status` is TN_OK, `err` is NULL or the error has that place already.  The tensor is
 * added before the file: an error with a file gets no tensor.  TN_ERR_CANCELLED gets no place.  A path that
 * is empty or NULL is not added. */
tn_status tn_in_file(tn_status status, const char *path, tn_error *err);
tn_status tn_at_byte(tn_status status, uint64_t offset, tn_error *err);
tn_status tn_in_tensor(tn_status status, const char *name, tn_error *err);

/* Appends to the text. */
tn_status tn_and_say(tn_status status, const char *text, tn_error *err);

/* Adds the reason, unless there is one; `value` may be NULL. */
tn_status tn_with_reason(tn_status status, tn_reason reason, const char *value, tn_error *err);

/* An untrusted string for a message: escaped, in double quotes, shortened.  For use within one printf call:
 * tn_quote(s, n).text */
typedef struct tn_quoted { char text[100]; } tn_quoted;
tn_quoted tn_quote(const char *text, size_t n);
tn_quoted tn_quote_z(const char *text);

#endif
