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
    TN_REASON_REPLACE       = 2,    /* set replace: the output exists */
    TN_REASON_DROP_METADATA = 3,    /* set drop_metadata: the output has no place for it */
    TN_REASON_DROP_NAMES    = 4,    /* set drop_names: the output has no place for them */
    TN_REASON_FORM          = 5,    /* convert the tensor to form `value` */
    TN_REASON_CAST          = 6,    /* cast the tensor to type `value`, or to one that the text names */
    TN_REASON_ONLY          = 7,    /* choose other tensors by `only` */
    TN_REASON_RENAME        = 8,    /* give the tensor another name */
    TN_REASON_LAYOUT        = 9,    /* say which layout the tensor has */
    TN_REASON_NAN           = 10,   /* set the NaN mode to `value`: NaNs become 0 */
    TN_REASON_ENCODING      = 11,   /* set encoding to `value` */
    TN_REASON_CHECKSUM      = 12,   /* set checksum to `value`, or to one that can be computed */
    TN_REASON_FORMAT        = 13,   /* name the format of the output */
    TN_REASON_OPEN_FORMAT   = 14,   /* name the format of the input: `value` */
    TN_REASON_FORMAT_OPTION = 15,   /* leave out the option of a format in `value`: "safetensors.filler" */
    TN_REASON_SHARD_SIZE    = 16,   /* set shard_size */
    TN_REASON_HEADER        = 18,   /* set a smaller align, drop_metadata or drop_names: too long a header */
    TN_REASON_JOBS          = 19,   /* set jobs to `value` */
    TN_REASON_WINDOWS       = 20,   /* tn_set_window_memory() */
    TN_REASON_UIDS          = 21,   /* name the user in uids */
    TN_REASON_BIND          = 22,   /* give values to symbols: tn_descriptor_bind() */
    TN_REASON_MLI           = 23,   /* set mli to version `value` */
    TN_REASON_BINARY        = 24,   /* set binary */
    TN_REASON_CAST_BEFORE   = 25,   /* convert the file first, casting the tensor to `value` */
    TN_REASON_FORM_BEFORE   = 26,   /* convert the file first, the tensor to form `value` */
    TN_REASON_RENAME_BEFORE = 27,   /* convert the file first, giving the tensor another name */
    TN_REASON_CASTS         = 28,   /* change the rule of step cast that the text names */
    TN_REASON_RULES         = 32,   /* the rule of step `value` */
    TN_REASON_RAW_CODES     = 33,   /* set raw_codes: codes are taken as the numbers that they look like */
    TN_REASON_TYPE          = 34,   /* name a type that there is: tn_dtype_get(), tn_datatype_at() */
    TN_REASON_GLOB          = 35,   /* let the rule of step `value` choose other tensors */
    TN_REASON_GRAPH         = 36,   /* set the option graph of format onnx: a model */
    TN_REASON_EXTERNAL      = 37,   /* set the option external of format onnx */
    TN_REASON_IMPORTANCE    = 38    /* give casts importance data: key importance */
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

#define TN_ERROR_LINE 1024      /* bytes of the longest message, with its NUL */

/* Writes the whole message: FILE: byte N: tensor "T": TEXT, without what is not known.
 *
 * At most `cap` bytes with the closing NUL are written, never half a character.
 * Returns the length of the whole message: below TN_ERROR_LINE. */
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

/* What somebody may have meant by a word that is not known: the nearest of those that are. */
typedef struct tn_nearest {
    const char *word;           /* the unknown one; the caller sets it, and the rest to zero */
    const char *found;          /* the nearest so far; NULL: none is near */
    size_t      distance;       /* of it: letters that were changed, added, left out or swapped */
} tn_nearest;

/* Offers a known word, which must outlive the struct.  A third of the letters may differ, at most five; else
 * a word that contains the unknown one counts.  Case does not.  Of two as near the first stays. */
TN_API void tn_nearest_offer(tn_nearest *nearest, const char *word);

#ifdef __cplusplus
}
#endif
#endif
