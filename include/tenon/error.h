/* tenon/error.h - how every Tenon function says what went wrong.
 *
 * A function returns a tn_status and, if the caller passes a tn_error, fills
 * it on failure.  Nothing here allocates; everything is thread-safe. */
#ifndef TENON_ERROR_H
#define TENON_ERROR_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TN_API __attribute__((visibility("default")))
#else
#define TN_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tn_status {
    TN_OK              = 0,
    TN_ERR_NOMEM       = 1,
    TN_ERR_IO          = 2,     /* the system refused; the text has its reason */
    TN_ERR_CANCELLED   = 3,     /* a progress callback asked to stop */
    TN_ERR_TRUNCATED   = 10,    /* the input ends inside an item */
    TN_ERR_CORRUPT     = 11,    /* the input contradicts itself or its format */
    TN_ERR_UNSUPPORTED = 12,    /* valid, but not in this build */
    TN_ERR_LIMIT       = 13,    /* beyond a documented limit, or does not fit size_t */
    TN_ERR_CHECKSUM    = 14,    /* the data does not match its checksum */
    TN_ERR_LOSS        = 15,    /* would lose something that no option allows to lose */
    TN_ERR_ARGUMENT    = 20,    /* the caller broke a documented promise */
    TN_ERR_EXISTS      = 21,    /* the output exists and replacing was not allowed */
    TN_ERR_CHANGED     = 22     /* the file has changed since it was read: it was not replaced */
} tn_status;                    /* values are ABI: append, never renumber */

#define TN_NO_OFFSET UINT64_MAX

/* What the caller can do about a failure.  Most are named after the field of an
 * options struct that allows what was refused; programs show their users the
 * option, keyword or button that sets it.  TN_REASON_NONE: nothing, or what the
 * text says. */
typedef enum tn_reason {
    TN_REASON_NONE          = 0,
    TN_REASON_MAX_BYTES     = 1,    /* raise max_bytes: decoded data takes more */
    TN_REASON_REPLACE       = 2     /* set replace: the output exists */
} tn_reason;                    /* values are ABI: append, never renumber */

/* Filled on failure only.  Every function that takes one accepts NULL.
 *
 * All texts are one line without control characters: bytes from files arrive
 * escaped, as tn_escape() does it.  Text that does not fit is cut. */
typedef struct tn_error {
    tn_status status;
    tn_reason reason;
    uint64_t  offset;           /* byte of `file` concerned, or TN_NO_OFFSET */
    char      file[256];        /* path of the file concerned; "": none, or not known by a path */
    char      tensor[128];      /* name of the tensor concerned; "": none */
    char      value[64];        /* what to set the field of `reason` to; "": the caller chooses */
    char      text[480];        /* names neither file nor tensor nor reason */
} tn_error;

/* The whole message: FILE: byte N: tensor "T": TEXT, without what is not known.
 *
 * At most `cap` bytes with the closing NUL are written, never half a character.
 * Returns the length of the whole message: below TN_ERROR_LINE. */
#define TN_ERROR_LINE 1024
TN_API size_t tn_error_format(const tn_error *err, char *dst, size_t cap);

/* A short English phrase for a status ("out of memory").  Never NULL. */
TN_API const char *tn_status_text(tn_status status);

/* Writes `n` bytes of untrusted text so that a terminal can show it: control
 * characters, DEL, backslash, double quote, invalid UTF-8 and invisible or
 * direction-changing code points become \n, \t, \", \\, \xNN or \u{N}.
 *
 * At most `cap` bytes with the closing NUL are written, never half an escape
 * or half a character; text that does not fit ends in "...".  Returns the
 * length the whole escaped text would have had. */
TN_API size_t tn_escape(char *dst, size_t cap, const char *text, size_t n);

#ifdef __cplusplus
}
#endif
#endif
