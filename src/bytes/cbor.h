/* bytes/cbor.h - one CBOR (RFC 8949) pull parser and one writer.
 *
 * Works like bytes/json.h: the caller asks for what it expects, a failed reader stays failed.  Accepts
 * definite and indefinite lengths, any width of integer, and skips tags in front of an item.  Nothing is
 * allocated but for strings that come in chunks. */
#ifndef TN_BYTES_CBOR_H
#define TN_BYTES_CBOR_H

#include "base/arena.h"
#include "base/error.h"
#include "base/text.h"
#include "base/vector.h"

#define TN_CBOR_MAX_DEPTH 72     /* 64 arrays of GGUF, inside the records of other formats, too */
#define TN_CBOR_MAX_TAGS  16    /* in front of one item */

typedef enum tn_cbor_type {
    TN_CBOR_END, TN_CBOR_UINT, TN_CBOR_NEGATIVE, TN_CBOR_BYTES, TN_CBOR_TEXT, TN_CBOR_ARRAY, TN_CBOR_MAP,
    TN_CBOR_FLOAT, TN_CBOR_FALSE, TN_CBOR_TRUE, TN_CBOR_NULL,
    TN_CBOR_OTHER               /* undefined and other simple values */
} tn_cbor_type;

typedef struct tn_cbor {
    const uint8_t *data;
    size_t         pos, end;
    tn_arena      *arena;       /* where chunked strings are joined and texts are kept */
    unsigned       depth;
    uint64_t       left[TN_CBOR_MAX_DEPTH];     /* items left at each depth; UINT64_MAX: until the break */
    tn_status      status;
    size_t         at;
    char           why[160];    /* "expected text but found an integer" */
} tn_cbor;

void tn_cbor_init(tn_cbor *c, const void *data, size_t n, tn_arena *arena);

/* The type of the next item, which is not taken; tags are skipped. */
tn_cbor_type tn_cbor_peek(tn_cbor *c);

/* true: an item of an array, or a key of any type, follows; false: the end was taken */
static inline bool     tn_cbor_item(tn_cbor *c);
static inline bool     tn_cbor_key(tn_cbor *c, tn_text *key);   /* next key, a text; false: the map is over */
static inline uint64_t tn_cbor_u64(tn_cbor *c);
static inline tn_text  tn_cbor_text(tn_cbor *c);                /* checked UTF-8 */
bool     tn_cbor_array(tn_cbor *c);                 /* takes the head of an array */
bool     tn_cbor_map(tn_cbor *c);                   /* takes the head of a map */
int64_t  tn_cbor_i64(tn_cbor *c);
double   tn_cbor_f64(tn_cbor *c);                   /* a float of any width */
unsigned tn_cbor_float(tn_cbor *c, uint64_t *bits); /* its width, 2, 4 or 8 bytes, and its bits; 0: failed */
bool     tn_cbor_tag(tn_cbor *c, uint64_t *tag);    /* takes a tag in front of the next item; false: none */
tn_text  tn_cbor_bytes(tn_cbor *c);
bool     tn_cbor_bool(tn_cbor *c);
void     tn_cbor_null(tn_cbor *c);
/* any item, fully checked (text is UTF-8, depth, counts) */
void     tn_cbor_skip(tn_cbor *c);
tn_text  tn_cbor_raw(tn_cbor *c);                   /* any item with its tags, fully checked, as its bytes */
bool     tn_cbor_done(tn_cbor *c);                  /* nothing is left; else fails */

/* A text that was taken, without NUL, in the arena; NULL once the reader has failed. */
const char *tn_cbor_keep(tn_cbor *c, tn_text text);

__attribute__((format(printf, 3, 4)))
bool      tn_cbor_reject(tn_cbor *c, tn_status status, const char *format, ...);
tn_status tn_cbor_fail(const tn_cbor *c, uint64_t offset, tn_error *err);

/* Writing: shortest heads. */
void tn_cbor_put_u64(tn_buf *b, uint64_t value);
void tn_cbor_put_i64(tn_buf *b, int64_t value);
/* the shortest of half, single, double that keeps the value */
void tn_cbor_put_f64(tn_buf *b, double value);
void tn_cbor_put_float(tn_buf *b, unsigned width, uint64_t bits);       /* of 2, 4 or 8 bytes, as it is */
void tn_cbor_put_tag(tn_buf *b, uint64_t tag);      /* of the item that follows */
void tn_cbor_put_text(tn_buf *b, const char *text, size_t n);
static inline void tn_cbor_put_z(tn_buf *b, const char *text) { tn_cbor_put_text(b, text, strlen(text)); }
void tn_cbor_put_bytes(tn_buf *b, const void *data, size_t n);
void tn_cbor_put_bytes_head(tn_buf *b, uint64_t n); /* head only: n bytes follow */
void tn_cbor_put_text_head(tn_buf *b, uint64_t n);
void tn_cbor_put_bool(tn_buf *b, bool value);
void tn_cbor_put_null(tn_buf *b);
void tn_cbor_put_array(tn_buf *b, uint64_t count);  /* head only */
void tn_cbor_put_map(tn_buf *b, uint64_t count);
void tn_cbor_open_map(tn_buf *b);                   /* indefinite: items follow, then tn_cbor_close() */
void tn_cbor_close(tn_buf *b);

/* The fast paths, for an index of 100,000 tensors: small numbers, short ASCII text.  Everything else,
 * including every failure, is in cbor.c.  After a failure the data ends at `pos`, so no fast path applies. */
bool     tn_cbor_next_slow(tn_cbor *c);
uint64_t tn_cbor_u64_slow(tn_cbor *c);
tn_text  tn_cbor_text_slow(tn_cbor *c, const char *expected);

/* Whether no byte has its high bit set.  Overlapping loads replace a loop over the last bytes. */
static inline bool tn_cbor_is_ascii(const uint8_t *p, size_t n)
{
    uint64_t a = 0, b = 0;
    if (n >= 8) {
        for (size_t i = 0; n - i > 8; i += 8) {
            memcpy(&b, p + i, 8);
            a |= b;
        }
        memcpy(&b, p + n - 8, 8);
    } else if (n >= 4) {
        memcpy(&a, p, 4);
        memcpy(&b, p + n - 4, 4);
    } else if (n) {
        a = p[0] | p[n / 2];
        b = p[n - 1];
    }
    return !((a | b) & UINT64_C(0x8080808080808080));
}

static inline bool tn_cbor_item(tn_cbor *c)
{
    if (c->status || c->left[c->depth - 1] == 0 || c->left[c->depth - 1] == UINT64_MAX)
        return tn_cbor_next_slow(c);
    c->left[c->depth - 1]--;
    return true;
}

/* Takes what is left of a map if it is these bytes, which were taken before when as many items were left. */
static inline bool tn_cbor_take_again(tn_cbor *c, tn_text rest, uint64_t left)
{
    if (c->status || !rest.len || c->left[c->depth - 1] != left || c->end - c->pos < rest.len ||
        memcmp(c->data + c->pos, rest.ptr, rest.len) != 0)
        return false;
    c->pos += rest.len;
    c->depth--;
    return true;
}

static inline tn_text tn_cbor_take_text(tn_cbor *c, const char *expected)
{
    /* 0x60: text of length 0 */
    size_t left = c->end - c->pos, n = left ? (size_t)c->data[c->pos] - 0x60 : SIZE_MAX;
    if (n < 24 && n < left && tn_cbor_is_ascii(c->data + c->pos + 1, n)) {
        c->pos += 1 + n;
        return (tn_text){ (const char *)c->data + c->pos - n, n };
    }
    return tn_cbor_text_slow(c, expected);
}

static inline tn_text tn_cbor_text(tn_cbor *c) { return tn_cbor_take_text(c, "text"); }

static inline bool tn_cbor_key(tn_cbor *c, tn_text *key)
{
    if (!tn_cbor_item(c))
        return false;
    *key = tn_cbor_take_text(c, "a text key");
    return !c->status;
}

static inline uint64_t tn_cbor_u64(tn_cbor *c)
{
    if (c->pos < c->end && c->data[c->pos] < 24)
        return c->data[c->pos++];
    return tn_cbor_u64_slow(c);
}

#endif
