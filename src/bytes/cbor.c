/* bytes/cbor.c - the CBOR reader and writer.
 *
 * After a failure the data ends at the current position, so only functions that count items test `status`. */
#include "bytes/cbor.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

static const tn_text nothing = { "", 0 };

/* major types */
enum { UINT = 0, NEGATIVE = 1, BYTES = 2, TEXT = 3, ARRAY = 4, MAP = 5, TAG = 6, SIMPLE = 7 };
/* info of SIMPLE */
enum { SIMPLE_FALSE = 20, SIMPLE_TRUE, SIMPLE_NULL, SIMPLE_BYTE = 24, HALF, SINGLE, DOUBLE };
enum { INDEFINITE = 31, BREAK = 0xff };

#define UNTIL_BREAK UINT64_MAX     /* in tn_cbor.left: more than any valid count */

/* The first bytes of every item: its major type and a number. */
typedef struct head {
    unsigned major, info;
    uint64_t value;             /* 0 when info is INDEFINITE */
} head;

/* --- failing --- */

bool tn_cbor_reject(tn_cbor *c, tn_status status, const char *format, ...)
{
    if (c->status)
        return false;           /* the first failure counts */
    c->status = status;
    c->at = c->pos;
    c->end = c->pos;
    va_list args;
    va_start(args, format);
    vsnprintf(c->why, sizeof c->why, format, args);
    va_end(args);
    c->why[tn_utf8_valid(c->why, strlen(c->why))] = '\0';      /* a cut must not leave half a character */
    return false;
}

tn_status tn_cbor_fail(const tn_cbor *c, uint64_t offset, tn_error *err)
{
    if (c->status == TN_ERR_NOMEM)
        return tn_fail_nomem(err);
    return tn_fail_at(err, c->status, offset == TN_NO_OFFSET ? offset : offset + c->at, "%s", c->why);
}

static const char *name_of(uint8_t first_byte)
{
    static const char *const majors[] = {
        "an integer", "a negative integer", "bytes", "text", "an array", "a map", "a tag"
    };
    switch (first_byte) {
    case SIMPLE << 5 | SIMPLE_FALSE: return "false";
    case SIMPLE << 5 | SIMPLE_TRUE:  return "true";
    case SIMPLE << 5 | SIMPLE_NULL:  return "null";
    case SIMPLE << 5 | HALF:
    case SIMPLE << 5 | SINGLE:
    case SIMPLE << 5 | DOUBLE:       return "a float";
    case BREAK:                      return "a break";
    default: return first_byte >> 5 == SIMPLE ? "a simple value" : majors[first_byte >> 5];
    }
}

/* Fails because something else than `expected` is at pos. */
static bool unexpected(tn_cbor *c, const char *expected)
{
    if (c->pos == c->end)
        return tn_cbor_reject(c, TN_ERR_TRUNCATED, "expected %s but the data ends", expected);
    return tn_cbor_reject(c, TN_ERR_CORRUPT, "expected %s but found %s", expected, name_of(c->data[c->pos]));
}

/* --- heads --- */

void tn_cbor_init(tn_cbor *c, const void *data, size_t n, tn_arena *arena)
{
    *c = (tn_cbor){ .data = n ? data : (const void *)"", .end = n, .arena = arena };
}

static inline uint64_t load_be(const uint8_t *p, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++)
        value = value << 8 | p[i];
    return value;
}

/* A head whose number is not in its first byte.  Leaves pos on failure. */
static bool take_long_head(tn_cbor *c, head *h)
{
    if (h->info == INDEFINITE) {
        if (h->major < BYTES || h->major > MAP)
            return unexpected(c, h->major == SIMPLE ? "an item" : "a definite length");
        h->value = 0;
        c->pos++;
        return true;
    }
    if (h->info > 27)
        return tn_cbor_reject(c, TN_ERR_CORRUPT, "expected an item but found the reserved byte 0x%02X",
                              c->data[c->pos]);
    size_t bytes = (size_t)1 << (h->info - 24), left = c->end - c->pos - 1;
    if (bytes > left)
        return tn_cbor_reject(c, TN_ERR_TRUNCATED, "expected a number of %zu bytes but only %zu follow",
                              bytes, left);
    h->value = load_be(c->data + c->pos + 1, bytes);
    c->pos += 1 + bytes;
    return true;
}

static inline bool take_head(tn_cbor *c, head *h)
{
    if (c->pos == c->end)
        return unexpected(c, "an item");
    uint8_t byte = c->data[c->pos];
    *h = (head){ byte >> 5, byte & 31, byte & 31 };
    if (h->info > 23)
        return take_long_head(c, h);
    c->pos++;
    return true;
}

static inline bool is_next(const tn_cbor *c, unsigned major)
{
    return c->pos < c->end && c->data[c->pos] >> 5 == major;
}

static void skip_tags(tn_cbor *c)
{
    head h;
    for (unsigned tags = 0; is_next(c, TAG); tags++) {
        if (tags == TN_CBOR_MAX_TAGS)
            tn_cbor_reject(c, TN_ERR_LIMIT, "expected at most %d tags on an item but found more",
                           TN_CBOR_MAX_TAGS);
        take_head(c, &h);
    }
}

/* Takes the head of an item that must have this major type. */
static inline bool take_major(tn_cbor *c, unsigned major, const char *expected, head *h)
{
    if (!is_next(c, major))
        skip_tags(c);
    return is_next(c, major) ? take_head(c, h) : unexpected(c, expected);
}

tn_cbor_type tn_cbor_peek(tn_cbor *c)
{
    static const tn_cbor_type majors[] = {
        TN_CBOR_UINT, TN_CBOR_NEGATIVE, TN_CBOR_BYTES, TN_CBOR_TEXT, TN_CBOR_ARRAY, TN_CBOR_MAP
    };
    if (c->pos == c->end)
        return TN_CBOR_END;
    size_t pos = c->pos;
    head h;
    skip_tags(c);
    if (!take_head(c, &h))
        return TN_CBOR_END;
    c->pos = pos;
    if (h.major != SIMPLE)
        return majors[h.major];
    switch (h.info) {
    case SIMPLE_FALSE: return TN_CBOR_FALSE;
    case SIMPLE_TRUE:  return TN_CBOR_TRUE;
    case SIMPLE_NULL:  return TN_CBOR_NULL;
    case HALF:
    case SINGLE:
    case DOUBLE:       return TN_CBOR_FLOAT;
    default:           return TN_CBOR_OTHER;
    }
}

bool tn_cbor_done(tn_cbor *c)
{
    if (c->pos < c->end)
        tn_cbor_reject(c, TN_ERR_CORRUPT, "expected the end of the data but found %zu more bytes",
                       c->end - c->pos);
    return !c->status;
}

const char *tn_cbor_keep(tn_cbor *c, tn_text text)
{
    if (tn_text_has_nul(text))
        tn_cbor_reject(c, TN_ERR_CORRUPT, "expected text without NUL characters");
    if (c->status)
        return NULL;
    const char *copy = tn_arena_text(c->arena, text.ptr, text.len);
    if (!copy)
        tn_cbor_reject(c, TN_ERR_NOMEM, "out of memory");
    return copy;
}

/* --- arrays and maps --- */

/* Enters a container whose head was at `at`, if as many items as it says can follow. */
static inline bool enter(tn_cbor *c, size_t at, const head *h)
{
    size_t left = c->end - c->pos;
    if (h->value > (h->major == MAP ? left / 2 : left)) {
        c->pos = at;
        return tn_cbor_reject(c, TN_ERR_TRUNCATED, "expected %" PRIu64 " %s but only %zu bytes follow",
                              h->value, h->major == MAP ? "entries" : "items", left);
    }
    if (c->depth == TN_CBOR_MAX_DEPTH) {
        c->pos = at;
        return tn_cbor_reject(c, TN_ERR_LIMIT, "expected at most %d nested arrays and maps but found more",
                              TN_CBOR_MAX_DEPTH);
    }
    c->left[c->depth++] = h->info == INDEFINITE ? UNTIL_BREAK : h->value;
    return true;
}

bool tn_cbor_array(tn_cbor *c)
{
    size_t at = c->pos;
    head h;
    return take_major(c, ARRAY, "an array", &h) && enter(c, at, &h);
}

bool tn_cbor_map(tn_cbor *c)
{
    size_t at = c->pos;
    head h;
    return take_major(c, MAP, "a map", &h) && enter(c, at, &h);
}

bool tn_cbor_next_slow(tn_cbor *c)
{
    if (c->status)
        return false;
    if (c->left[c->depth - 1] == UNTIL_BREAK) {
        if (c->pos == c->end)
            return unexpected(c, "an item or a break");
        if (c->data[c->pos] != BREAK)
            return true;
        c->pos++;
    }
    c->depth--;
    return false;
}

/* --- numbers and words --- */

uint64_t tn_cbor_u64_slow(tn_cbor *c)
{
    head h;
    return take_major(c, UINT, "an integer that is not negative", &h) ? h.value : 0;
}

int64_t tn_cbor_i64(tn_cbor *c)
{
    skip_tags(c);
    size_t at = c->pos;
    head h;
    if (!take_major(c, is_next(c, NEGATIVE) ? NEGATIVE : UINT, "an integer", &h))
        return 0;
    if (h.value > INT64_MAX) {
        c->pos = at;
        return tn_cbor_reject(c, TN_ERR_LIMIT,
                              "expected an integer of 64 bits with its sign but found %s%" PRIu64,
                              h.major == NEGATIVE ? "-1-" : "", h.value);
    }
    return h.major == NEGATIVE ? -1 - (int64_t)h.value : (int64_t)h.value;
}

static double half_to_double(uint64_t bits)
{
    int exponent = (int)(bits >> 10 & 31);
    double mantissa = (double)(bits & 1023), magnitude = mantissa == 0 ? (double)INFINITY : (double)NAN;
    if (exponent == 0)
        magnitude = ldexp(mantissa, -24);
    else if (exponent < 31)
        magnitude = ldexp(mantissa + 1024, exponent - 25);
    return bits >> 15 ? -magnitude : magnitude;
}

static double single_to_double(uint64_t bits)
{
    uint32_t word = (uint32_t)bits;
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

unsigned tn_cbor_float(tn_cbor *c, uint64_t *bits)
{
    skip_tags(c);
    head h;
    *bits = 0;
    if (!is_next(c, SIMPLE) || (c->data[c->pos] & 31) < HALF || (c->data[c->pos] & 31) > DOUBLE)
        return unexpected(c, "a float");
    if (!take_head(c, &h))
        return 0;
    *bits = h.value;
    return 2u << (h.info - HALF);
}

double tn_cbor_f64(tn_cbor *c)
{
    uint64_t bits;
    unsigned width = tn_cbor_float(c, &bits);
    if (width == 2)
        return half_to_double(bits);
    if (width == 4)
        return single_to_double(bits);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

bool tn_cbor_tag(tn_cbor *c, uint64_t *tag)
{
    head h;
    bool found = is_next(c, TAG) && take_head(c, &h);
    *tag = found ? h.value : 0;
    return found;
}

static bool take_word(tn_cbor *c, unsigned word, const char *expected)
{
    skip_tags(c);
    if (c->pos == c->end || c->data[c->pos] != (SIMPLE << 5 | word))
        return unexpected(c, expected);
    c->pos++;
    return true;
}

bool tn_cbor_bool(tn_cbor *c)
{
    skip_tags(c);
    if (c->pos < c->end && c->data[c->pos] == (SIMPLE << 5 | SIMPLE_FALSE)) {
        c->pos++;
        return false;
    }
    return take_word(c, SIMPLE_TRUE, "true or false");
}

void tn_cbor_null(tn_cbor *c)
{
    take_word(c, SIMPLE_NULL, "null");
}

/* --- strings --- */

/* Takes the bytes of a string or chunk whose head was at `at`. */
static inline bool take_body(tn_cbor *c, size_t at, const head *h, tn_text *value)
{
    size_t left = c->end - c->pos;
    if (h->value > left) {
        c->pos = at;
        return tn_cbor_reject(c, TN_ERR_TRUNCATED, "expected %s of %" PRIu64 " bytes but only %zu follow",
                              name_of((uint8_t)(h->major << 5)), h->value, left);
    }
    const uint8_t *body = c->data + c->pos;
    size_t n = (size_t)h->value;
    size_t valid = h->major == BYTES || tn_cbor_is_ascii(body, n) ? n : tn_utf8_valid(body, n);
    if (valid < n) {
        c->pos += valid;
        return tn_cbor_reject(c, TN_ERR_CORRUPT, "expected UTF-8 but found byte 0x%02X", c->data[c->pos]);
    }
    *value = (tn_text){ (const char *)body, n };
    c->pos += n;
    return true;
}

/* The next chunk of an indefinite string; false after a failure and when the break was taken. */
static bool take_chunk(tn_cbor *c, unsigned major, tn_text *chunk)
{
    if (c->pos < c->end && c->data[c->pos] == BREAK) {
        c->pos++;
        return false;
    }
    size_t at = c->pos;
    head h;
    if (!is_next(c, major) || c->data[c->pos] == (major << 5 | INDEFINITE))
        return unexpected(c, major == TEXT ? "a chunk of text or a break" : "a chunk of bytes or a break");
    return take_head(c, &h) && take_body(c, at, &h, chunk);
}

/* Takes the chunks of an indefinite string; joins them in the arena when `value` is not NULL. */
static void take_chunks(tn_cbor *c, unsigned major, tn_text *value)
{
    size_t begin = c->pos, total = 0;
    tn_text chunk;
    while (take_chunk(c, major, &chunk))
        total += chunk.len;
    if (!value || c->status || total == 0)
        return;
    char *joined = tn_arena_alloc(c->arena, total);
    if (!joined) {
        tn_cbor_reject(c, TN_ERR_NOMEM, "out of memory");
        return;
    }
    *value = (tn_text){ joined, total };
    c->pos = begin;             /* again, to copy: the chunks are valid */
    while (take_chunk(c, major, &chunk)) {
        memcpy(joined, chunk.ptr, chunk.len);
        joined += chunk.len;
    }
}

static tn_text take_string(tn_cbor *c, unsigned major, const char *expected)
{
    tn_text value = nothing;
    size_t at = c->pos;
    head h;
    if (take_major(c, major, expected, &h) && h.info == INDEFINITE)
        take_chunks(c, major, &value);
    else if (!c->status)
        take_body(c, at, &h, &value);
    return value;
}

tn_text tn_cbor_text_slow(tn_cbor *c, const char *expected)
{
    return take_string(c, TEXT, expected);
}

tn_text tn_cbor_bytes(tn_cbor *c)
{
    return take_string(c, BYTES, "bytes");
}

/* --- whole items --- */

/* A container that tn_cbor_skip() is in.  A map counts keys and values alike. */
typedef struct level {
    bool map, value_due;
} level;

/* Takes an item, or the head of an array or map. */
static void take_any(tn_cbor *c, level levels[])
{
    head h;
    tn_text ignored;
    skip_tags(c);
    size_t at = c->pos;
    if (!take_head(c, &h))
        return;
    if (h.major == BYTES || h.major == TEXT) {
        if (h.info == INDEFINITE)
            take_chunks(c, h.major, NULL);
        else
            take_body(c, at, &h, &ignored);
    } else if (h.major == ARRAY || h.major == MAP) {
        if (!enter(c, at, &h))
            return;
        levels[c->depth - 1] = (level){ .map = h.major == MAP };
        if (h.major == MAP && h.info != INDEFINITE)
            c->left[c->depth - 1] = 2 * h.value;
    } else if (h.major == SIMPLE && h.info == SIMPLE_BYTE && h.value < 32) {
        c->pos = at;
        tn_cbor_reject(c, TN_ERR_CORRUPT, "expected a simple value from 32 on in two bytes but found %u",
                       (unsigned)h.value);
    }
}

/* tn_cbor_item() for a container that may be a map, which must not end before a value. */
static bool next_any(tn_cbor *c, level *l)
{
    if (l->value_due && c->pos < c->end && c->data[c->pos] == BREAK)
        return unexpected(c, "a value");
    bool until_break = c->left[c->depth - 1] == UNTIL_BREAK;
    if (!tn_cbor_item(c))
        return false;
    l->value_due = until_break && l->map && !l->value_due;
    return true;
}

void tn_cbor_skip(tn_cbor *c)
{
    level levels[TN_CBOR_MAX_DEPTH];
    unsigned outside = c->depth;
    take_any(c, levels);
    while (c->depth > outside && !c->status) {
        if (next_any(c, &levels[c->depth - 1]))
            take_any(c, levels);
    }
}

tn_text tn_cbor_raw(tn_cbor *c)
{
    size_t begin = c->pos;
    tn_cbor_skip(c);
    return c->status ? nothing : (tn_text){ (const char *)c->data + begin, c->pos - begin };
}

/* --- writing --- */

/* A head of 1 + `bytes` bytes. */
static void put_wide(tn_buf *b, unsigned major, unsigned info, uint64_t value, unsigned bytes)
{
    uint8_t out[9] = { (uint8_t)(major << 5 | info) };
    for (unsigned i = 0; i < bytes; i++)
        out[1 + i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
    tn_buf_put(b, out, 1 + bytes);
}

static void put_head(tn_buf *b, unsigned major, uint64_t value)
{
    unsigned width = 0;         /* 1 << width bytes */
    while (width < 3 && value >> (8u << width))
        width++;
    if (value < 24)
        put_wide(b, major, (unsigned)value, 0, 0);
    else
        put_wide(b, major, 24 + width, value, 1u << width);
}

void tn_cbor_put_i64(tn_buf *b, int64_t value)
{
    if (value < 0)
        put_head(b, NEGATIVE, (uint64_t)(-1 - value));
    else
        put_head(b, UINT, (uint64_t)value);
}

/* The half with the value of this finite single, if there is one. */
static bool half_of(uint32_t bits, uint16_t *half)
{
    uint32_t sign = bits >> 16 & 0x8000, mantissa = bits & 0x7fffff;
    int exponent = (int)(bits >> 23 & 0xff) - 127;
    if (exponent == -127 && mantissa == 0) {
        *half = (uint16_t)sign;
    } else if (exponent >= -14 && exponent <= 15 && !(mantissa & 0x1fff)) {
        *half = (uint16_t)(sign | (uint32_t)(exponent + 15) << 10 | mantissa >> 13);
    } else if (exponent >= -24 && exponent < -14) {     /* subnormal: units of 2^-24 */
        int shift = -1 - exponent;
        mantissa |= 0x800000;
        *half = (uint16_t)(sign | mantissa >> shift);
        return !(mantissa & ((UINT32_C(1) << shift) - 1));
    } else {
        return false;
    }
    return true;
}

void tn_cbor_put_f64(tn_buf *b, double value)
{
    uint64_t double_bits;
    uint32_t single_bits;
    uint16_t half_bits;
    if (isnan(value) || isinf(value)) {                     /* all NaNs become one */
        uint64_t infinity = value > 0 ? 0x7c00 : 0xfc00;
        put_wide(b, SIMPLE, HALF, isnan(value) ? 0x7e00 : infinity, 2);
        return;
    }
    memcpy(&double_bits, &value, sizeof value);
    float single = fabs(value) <= (double)FLT_MAX ? (float)value : 0;
    memcpy(&single_bits, &single, sizeof single);
    if ((double)single != value)
        put_wide(b, SIMPLE, DOUBLE, double_bits, 8);
    else if (half_of(single_bits, &half_bits))
        put_wide(b, SIMPLE, HALF, half_bits, 2);
    else
        put_wide(b, SIMPLE, SINGLE, single_bits, 4);
}

void tn_cbor_put_float(tn_buf *b, unsigned width, uint64_t bits)
{
    unsigned info = width == 2 ? HALF : SINGLE;
    put_wide(b, SIMPLE, width == 8 ? DOUBLE : info, bits, width);
}

void tn_cbor_put_text(tn_buf *b, const char *text, size_t n)
{
    uint8_t *to = n < 24 ? tn_buf_room(b, n + 1) : NULL;
    if (to) {                   /* an index has very many of these: head and text at once */
        to[0] = (uint8_t)(TEXT << 5 | n);
        memcpy(to + 1, text, n);
        b->size += n + 1;
        return;
    }
    put_head(b, TEXT, n);
    tn_buf_put(b, text, n);
}

void tn_cbor_put_bytes(tn_buf *b, const void *data, size_t n)
{
    put_head(b, BYTES, n);
    tn_buf_put(b, data, n);
}

void tn_cbor_put_bool(tn_buf *b, bool value) { put_head(b, SIMPLE, value ? SIMPLE_TRUE : SIMPLE_FALSE); }
void tn_cbor_put_bytes_head(tn_buf *b, uint64_t n) { put_head(b, BYTES, n); }
void tn_cbor_put_text_head(tn_buf *b, uint64_t n) { put_head(b, TEXT, n); }
void tn_cbor_put_tag(tn_buf *b, uint64_t tag)     { put_head(b, TAG, tag); }
void tn_cbor_put_null(tn_buf *b)                  { put_head(b, SIMPLE, SIMPLE_NULL); }
void tn_cbor_put_u64(tn_buf *b, uint64_t value)   { put_head(b, UINT, value); }
void tn_cbor_put_array(tn_buf *b, uint64_t count) { put_head(b, ARRAY, count); }
void tn_cbor_put_map(tn_buf *b, uint64_t count)   { put_head(b, MAP, count); }
void tn_cbor_open_map(tn_buf *b)                  { put_wide(b, MAP, INDEFINITE, 0, 0); }
void tn_cbor_close(tn_buf *b)                     { put_wide(b, SIMPLE, INDEFINITE, 0, 0); }
