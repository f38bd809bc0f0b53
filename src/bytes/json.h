/* bytes/json.h - one strict JSON pull parser and one writer, used everywhere.
 *
 * RFC 8259, UTF-8, no tree, no allocation but for strings with escapes.  The
 * caller asks for what it expects; anything else fails the reader.  A failed
 * reader stays failed and yields empty values, so a whole record is read and
 * `status` tested once:
 *
 *     tn_json_object(&j);
 *     tn_text key;
 *     while (tn_json_key(&j, &key)) {
 *         if (tn_text_is(key, "size")) size = tn_json_u64(&j);
 *         else                         tn_json_skip(&j);
 *     }
 *     if (j.status) return tn_json_fail(&j, base_offset, err);
 *
 * Duplicate keys are the caller's to refuse (it knows what a duplicate is). */
#ifndef TN_BYTES_JSON_H
#define TN_BYTES_JSON_H

#include "base/arena.h"
#include "base/error.h"
#include "base/text.h"
#include "base/vector.h"

#define TN_JSON_MAX_DEPTH 64

typedef enum tn_json_type {
    TN_JSON_END, TN_JSON_OBJECT, TN_JSON_ARRAY, TN_JSON_STRING, TN_JSON_NUMBER,
    TN_JSON_TRUE, TN_JSON_FALSE, TN_JSON_NULL
} tn_json_type;

typedef struct tn_json {
    const char *text;
    size_t      pos, end;
    tn_arena   *arena;          /* where strings with escapes are decoded */
    unsigned    depth;
    bool        first;          /* no comma is due before the next item */
    tn_status   status;         /* TN_OK, or why reading stopped */
    size_t      at;             /* byte of the failure */
    char        why[96];        /* "expected a string but found 12" */
} tn_json;

/* Begins to read; checks that all of the text is UTF-8. */
void tn_json_init(tn_json *j, const char *text, size_t n, tn_arena *arena);

/* What comes next, without taking it; TN_JSON_END at the end or after a failure. */
tn_json_type tn_json_peek(tn_json *j);

bool     tn_json_object(tn_json *j);                /* takes '{' */
bool     tn_json_key(tn_json *j, tn_text *key);     /* takes the next key and ':', or '}' and gives false */
bool     tn_json_array(tn_json *j);                 /* takes '[' */
bool     tn_json_item(tn_json *j);                  /* true: an item follows; false: took ']' */
tn_text  tn_json_string(tn_json *j);                /* slice of the input, or of the arena when it had escapes */
uint64_t tn_json_u64(tn_json *j);                   /* a plain non-negative integer that fits; no '.', no exponent, no -0 */
int64_t  tn_json_i64(tn_json *j);
double   tn_json_f64(tn_json *j);                   /* any number; locale-independent, correctly rounded; too large fails */
tn_text  tn_json_number(tn_json *j);                /* any number, as its text */
bool     tn_json_bool(tn_json *j);
void     tn_json_null(tn_json *j);
void     tn_json_skip(tn_json *j);                  /* any value, fully checked */
tn_text  tn_json_raw(tn_json *j);                   /* any value, fully checked, as its text */
bool     tn_json_done(tn_json *j);                  /* only white space is left; else fails */

/* Fails the reader from outside (a duplicate key, say), at the current place. */
__attribute__((format(printf, 3, 4)))
void tn_json_reject(tn_json *j, tn_status status, const char *format, ...);

/* Passes a failure on; offset is that of the text in its file. */
tn_status tn_json_fail(const tn_json *j, uint64_t offset, tn_error *err);

/* Writing: pieces into a tn_buf; the caller puts the punctuation. */
void tn_json_put_string(tn_buf *b, const char *text, size_t n);    /* quotes and escapes; UTF-8 stays as it is */
void tn_json_put_f64(tn_buf *b, double value);      /* shortest digits that read back the same; finite only */

#endif
