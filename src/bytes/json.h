/* bytes/json.h - one strict JSON pull parser and one writer, used everywhere.
 *
 * RFC 8259, UTF-8, no tree, no allocation but for strings with escapes.  The caller asks for what it expects;
 * anything else fails the reader.  A failed reader stays failed and yields empty values, so a whole record is
 * read and `status` tested once:
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
    char        why[160];       /* "expected a string but found a number" */
} tn_json;

/* Begins to read; checks that all of the text is UTF-8. */
void tn_json_init(tn_json *j, const char *text, size_t n, tn_arena *arena);

/* The type of the next value, which is not taken; TN_JSON_END at the end or after a failure. */
tn_json_type tn_json_peek(tn_json *j);

static inline bool     tn_json_object(tn_json *j);              /* takes '{' */
/* takes the next key and ':', or '}' and gives false */
static inline bool     tn_json_key(tn_json *j, tn_text *key);
static inline bool     tn_json_array(tn_json *j);               /* takes '[' */
static inline bool     tn_json_item(tn_json *j);                /* true: an item follows; false: took ']' */
/* of the input, or of the arena if it had escapes */
static inline tn_text  tn_json_string(tn_json *j);
/* an integer that fits; no '-', '.' or exponent */
static inline uint64_t tn_json_u64(tn_json *j);
int64_t  tn_json_i64(tn_json *j);                   /* the same with '-', but no -0 */
/* any number; locale-independent, correctly rounded; too large fails */
double   tn_json_f64(tn_json *j);
tn_text  tn_json_number(tn_json *j);                /* any number, as its text */
bool     tn_json_bool(tn_json *j);
void     tn_json_null(tn_json *j);
void     tn_json_skip(tn_json *j);                  /* any value, fully checked */
tn_text  tn_json_raw(tn_json *j);                   /* any value, fully checked, as its text */
/* a copy of a text without NUL in the arena; NULL once the reader has failed */
const char *tn_json_keep(tn_json *j, tn_text text);
bool     tn_json_done(tn_json *j);                  /* only white space is left; else fails */

/* Fails the reader at the current position, for example because of a duplicate key.  Returns false. */
__attribute__((format(printf, 3, 4)))
bool tn_json_reject(tn_json *j, tn_status status, const char *format, ...);

/* Fails because the next value is not what was expected. */
void tn_json_unexpected(tn_json *j, const char *expected);

/* The keys of all objects that are open, innermost last: for callers that refuse duplicates of any key.
 * Zero-initialise to begin, and free `items`. */
typedef struct tn_json_keys {
    struct tn_json_key {
        tn_text text;
        size_t  at;             /* where its value is */
    } *items;
    size_t count, cap;
} tn_json_keys;

/* Adds a key that was just taken; false: no memory. */
bool tn_json_push_key(tn_json *j, tn_json_keys *keys, tn_text key);

/* Removes the keys from number `first` on, at the end of their object.  Fails the reader if two are equal. */
void tn_json_pop_keys(tn_json *j, tn_json_keys *keys, size_t first);

/* Passes a failure on; offset is that of the text in its file. */
tn_status tn_json_fail(const tn_json *j, uint64_t offset, tn_error *err);

/* Writing: pieces into a tn_buf; the caller puts the punctuation. */
/* quotes and escapes; UTF-8 stays as it is */
void tn_json_put_string(tn_buf *b, const char *text, size_t n);
void tn_json_put_escaped(tn_buf *b, const char *text, size_t n);        /* the same without the quotes */
static inline void tn_json_put_z(tn_buf *b, const char *text) { tn_json_put_string(b, text, strlen(text)); }
void tn_json_put_comma(tn_buf *b);                  /* before an item, unless it is the first */
void tn_json_put_key(tn_buf *b, const char *key);   /* of the next member: a comma if needed, key, colon */
void tn_json_put_shape(tn_buf *b, uint32_t rank, const int64_t *shape);
void tn_json_put_f64(tn_buf *b, double value);      /* shortest digits that read back the same; finite only */

/* The fast paths, for headers of 100,000 tensors: no white space, no escapes, small numbers.  Everything
 * else, including every failure, is in json.c.  After a failure the text ends at `pos`, so no fast path
 * applies. */
bool     tn_json_open_slow(tn_json *j, char bracket);
bool     tn_json_next_slow(tn_json *j, char bracket);
bool     tn_json_colon_slow(tn_json *j);
tn_text  tn_json_string_slow(tn_json *j);
uint64_t tn_json_u64_slow(tn_json *j);

/* The first '"', '\' or control character from p on, or `end`. */
__attribute__((pure)) size_t tn_json_plain_end(const char *text, size_t p, size_t end);

static inline bool tn_json_is_next(const tn_json *j, char c)
{
    return j->pos < j->end && j->text[j->pos] == c;
}

static inline bool tn_json_open(tn_json *j, char bracket)
{
    if (!tn_json_is_next(j, bracket) || j->depth == TN_JSON_MAX_DEPTH)
        return tn_json_open_slow(j, bracket);
    j->pos++;
    j->depth++;
    j->first = true;
    return true;
}

/* Steps to the next thing in a container; false: took the bracket that closes it. */
static inline bool tn_json_next(tn_json *j, char bracket)
{
    if (tn_json_is_next(j, bracket)) {
        j->pos++;
        j->depth--;
        j->first = false;
        return false;
    }
    if (j->first || !tn_json_is_next(j, ','))
        return tn_json_next_slow(j, bracket);
    j->pos++;
    return true;
}

static inline bool tn_json_object(tn_json *j) { return tn_json_open(j, '{'); }
static inline bool tn_json_array(tn_json *j)  { return tn_json_open(j, '['); }
static inline bool tn_json_item(tn_json *j)   { return tn_json_next(j, ']'); }

static inline tn_text tn_json_string(tn_json *j)
{
    if (tn_json_is_next(j, '"')) {
        size_t begin = j->pos + 1, close = tn_json_plain_end(j->text, begin, j->end);
        if (close < j->end && j->text[close] == '"') {
            j->pos = close + 1;
            return (tn_text){ j->text + begin, close - begin };
        }
    }
    return tn_json_string_slow(j);
}

static inline bool tn_json_key(tn_json *j, tn_text *key)
{
    if (!tn_json_next(j, '}'))
        return false;
    *key = tn_json_string(j);
    if (!tn_json_is_next(j, ':'))
        return tn_json_colon_slow(j);
    j->pos++;
    return true;
}

static inline uint64_t tn_json_u64(tn_json *j)
{
    uint64_t value = 0;
    size_t p = j->pos;
    for (unsigned digit; p < j->end && (digit = (unsigned)(j->text[p] - '0')) <= 9; p++)
        value = value * 10 + digit;
    /* 1 to 19 digits cannot have wrapped */
    if (p - j->pos - 1 >= 19 || (j->text[j->pos] == '0' && p - j->pos > 1) ||
        p == j->end || (j->text[p] != ',' && j->text[p] != ']'))
        return tn_json_u64_slow(j);
    j->pos = p;
    return value;
}

#endif
