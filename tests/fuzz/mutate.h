/* tests/fuzz/mutate.h - mutations that know the structure of an input.
 *
 * A change at random breaks the length or the checksum in front of it, and nothing
 * behind that is ever read.  Here JSON and CBOR are changed value by value, and
 * what depends on the bytes that were changed is computed again:
 *
 *     mutate_json, mutate_cbor    values deleted, doubled, exchanged, made odd
 *     mutate_safetensors          length of the header, offsets, size of the data
 *     mutate_ztensor              size of the index, checksums
 *     mutate_npy                  length of the header, size of the data
 *     mutate_btf                  offsets of records that move
 *     mutate_wire                 length of a packet
 *
 * Archives are in mutate_npz.h.  One time in eight an input is changed without any
 * repair, for what readers say of lengths that are wrong. */
#ifndef TN_FUZZ_MUTATE_H
#define TN_FUZZ_MUTATE_H

#include <inttypes.h>
#include <string.h>

#include <tenon/dtype.h>

#include "bytes/checksum.h"
#include "require.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

/* ---- bytes ---- */

typedef struct mutant {
    uint8_t *data;
    size_t   size, cap;
    uint64_t random;
} mutant;

static inline uint64_t mutant_random(mutant *m)
{
    m->random += UINT64_C(0x9e3779b97f4a7c15);      /* splitmix64 */
    uint64_t z = m->random;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* 0 .. n-1; 0 of nothing. */
static inline size_t mutant_pick(mutant *m, size_t n)
{
    return n ? (size_t)(mutant_random(m) % n) : 0;
}

/* `n` bytes instead of `gone` at `at`; nothing happens where they do not fit. They may be the mutant's
 * own. */
static inline bool replace_range(mutant *m, size_t at, size_t gone, const void *bytes, size_t n)
{
    if (at > m->size || gone > m->size - at || m->size - gone + n > m->cap)
        return false;
    uint8_t *copy = malloc(n ? n : 1);
    REQUIRE(copy);
    if (n)
        memcpy(copy, bytes, n);
    memmove(m->data + at + n, m->data + at + gone, m->size - at - gone);
    if (n)
        memcpy(m->data + at, copy, n);
    m->size = m->size - gone + n;
    free(copy);
    return true;
}

/* libFuzzer's own mutations, of a range alone; it may grow. */
static inline void mutate_range(mutant *m, size_t at, size_t n)
{
    size_t cap = m->cap - m->size + n;
    cap = cap < n + 256 ? cap : n + 256;
    uint8_t *copy = malloc(cap ? cap : 1);
    REQUIRE(copy);
    if (n)
        memcpy(copy, m->data + at, n);
    size_t size = cap ? LLVMFuzzerMutate(copy, n, cap) : 0;
    replace_range(m, at, n, copy, size);
    free(copy);
}

/* The same, but the range keeps its size. */
static inline void mutate_in_place(mutant *m, size_t at, size_t n)
{
    uint8_t *copy = calloc(1, n ? n : 1);
    REQUIRE(copy);
    if (n) {
        memcpy(copy, m->data + at, n);
        LLVMFuzzerMutate(copy, n, n);
        memcpy(m->data + at, copy, n);
    }
    free(copy);
}

static inline void set_le(uint8_t *p, uint64_t value, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        p[i] = (uint8_t)(value >> 8 * i);
}

static inline uint64_t get_le(const uint8_t *p, unsigned n)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < n; i++)
        value |= (uint64_t)p[i] << 8 * i;
    return value;
}

/* ---- values of JSON and CBOR ---- */

enum { SPANS_MAX = 600, DEPTH_MAX = 24 };

typedef struct span {
    size_t begin, end;          /* of the value */
    size_t from;                /* of the member: its key, or the value itself */
    size_t body;                /* CBOR: behind the head */
    int    parent;              /* or -1 */
    bool   is_key;
} span;

typedef struct spans {
    const uint8_t *text;
    size_t         size;
    int            count;
    span           at[SPANS_MAX];
} spans;

static inline int add_span(spans *s, size_t begin, size_t from, int parent)
{
    if (s->count == SPANS_MAX)
        return -1;
    s->at[s->count] = (span){ .begin = begin, .end = begin, .from = from, .parent = parent };
    return s->count++;
}

/* ---- JSON ---- */

static inline size_t skip_space(const spans *s, size_t at)
{
    while (at < s->size && memchr(" \t\r\n,:", s->text[at], 6))
        at++;
    return at;
}

static inline size_t skip_string(const spans *s, size_t at)
{
    for (at++; at < s->size && s->text[at] != '"'; at++)
        at += s->text[at] == '\\';
    return at < s->size ? at + 1 : s->size;
}

/* A value and all in it; returns where it ends.  Text that is no JSON gives spans that are none. */
static inline size_t scan_json(spans *s, size_t at, size_t from, int parent, int depth)
{
    int own = add_span(s, at, from, parent);
    if (own < 0 || depth == DEPTH_MAX || at >= s->size)
        return s->size;
    uint8_t first = s->text[at];
    if (first == '"') {
        at = skip_string(s, at);
    } else if (first == '{' || first == '[') {
        at = skip_space(s, at + 1);
        for (; at < s->size && !memchr("]}", s->text[at], 2); at = skip_space(s, at)) {
            size_t member = at;
            if (first == '{' && s->text[at] == '"') {
                int key = add_span(s, at, at, own);
                at = skip_string(s, at);
                if (key >= 0) {
                    s->at[key].end = at;
                    s->at[key].is_key = true;
                }
                at = skip_space(s, at);
            }
            at = scan_json(s, at, member, own, depth + 1);
        }
        at = at < s->size ? at + 1 : s->size;
    } else {
        while (at < s->size && !memchr(" \t\r\n,:]}[{\"", s->text[at], 11))
            at++;
        at += at == s->at[own].begin;
    }
    at = at < s->size ? at : s->size;
    s->at[own].end = at;
    return at;
}

static inline const char *odd_json(mutant *m)
{
    static const char *const odd[] = {
        "0", "1", "2", "3", "4", "8", "16", "-1", "-0", "0.5", "1.5", "1e999", "1e-999", "255", "4294967296",
        "9007199254740993",
        "9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709551615",
        "18446744073709551616",
        "1e3", "01", "null", "true", "false", "[]", "{}", "[1]", "[2,3]", "[1,1,1]", "[null]", "{\"a\":1}",
        "\"\"", "\"a\"",
        "\"\\u0000\"", "\"\\ud83d\\ude42\"", "\"\\ud800\"", "\"\xc3\xa9\"", "\"\xff\"", "\"0\"", "\"*\"",
        "\"..\"", "\"a/b\"",
    };
    return odd[mutant_pick(m, sizeof odd / sizeof *odd)];
}

static inline void mutate_json(mutant *m, size_t begin, size_t n);

/* JSON in a string, as records of safetensors are: its text is changed and put back. */
static inline void mutate_nested(mutant *m, const span *v)
{
    mutant inner = { .data = malloc(2 * (v->end - v->begin) + 600), .random = mutant_random(m) };
    uint8_t *escaped = malloc(4 * (v->end - v->begin) + 1300);
    size_t n = 0;
    REQUIRE(inner.data && escaped);
    inner.cap = v->end - v->begin + 600;
    for (size_t i = v->begin + 1; i + 1 < v->end; i++) {
        i += m->data[i] == '\\' && i + 2 < v->end && (m->data[i + 1] == '"' || m->data[i + 1] == '\\');
        inner.data[inner.size++] = m->data[i];
    }
    mutate_json(&inner, 0, inner.size);
    escaped[n++] = '"';
    for (size_t i = 0; i < inner.size; i++) {
        if (inner.data[i] == '"' || inner.data[i] == '\\')
            escaped[n++] = '\\';
        escaped[n++] = inner.data[i];
    }
    escaped[n++] = '"';
    replace_range(m, v->begin, v->end - v->begin, escaped, n);
    free(escaped);
    free(inner.data);
}

static inline void delete_json(mutant *m, const span *v)
{
    size_t from = v->from, end = v->end;
    if (end < m->size && m->data[end] == ',')
        end++;
    else if (from > 0 && m->data[from - 1] == ',')
        from--;
    replace_range(m, from, end - from, "", 0);
}

static inline void double_json(mutant *m, const span *v)
{
    if (replace_range(m, v->end, 0, m->data + v->from, v->end - v->from))
        replace_range(m, v->end, 0, ",", 1);
}

/* One value of the JSON text at `begin` becomes another. */
static inline void mutate_json(mutant *m, size_t begin, size_t n)
{
    spans *own = malloc(sizeof *own);           /* nested texts need one each */
    REQUIRE(own);
    own->text = m->data;
    own->size = begin + n;
    own->count = 0;
    scan_json(own, begin, begin, -1, 0);
    span v = own->at[mutant_pick(m, (size_t)own->count)], w = own->at[mutant_pick(m, (size_t)own->count)];
    const char *odd = odd_json(m);
    free(own);
    bool nested = v.end - v.begin > 3 && m->data[v.begin] == '"' &&
                  (m->data[v.begin + 1] == '{' || m->data[v.begin + 1] == '[');
    switch (mutant_pick(m, 8)) {
    case 0: delete_json(m, &v); break;
    case 1: double_json(m, &v); break;
    case 2:
    case 3: replace_range(m, v.begin, v.end - v.begin, m->data + w.begin, w.end - w.begin); break;
    case 4: replace_range(m, v.begin, v.end - v.begin, odd, strlen(odd)); break;
    case 5: mutate_range(m, v.begin, v.end - v.begin); break;
    default:
        if (nested)
            mutate_nested(m, &v);
        else
            mutate_range(m, v.begin + (v.end - v.begin > 2), v.end - v.begin - 2u * (v.end - v.begin > 2));
    }
}

/* For inputs that are nothing but JSON. */
static inline size_t mutate_text(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    mutant m = { .data = data, .size = size, .cap = max_size, .random = seed };
    if (mutant_pick(&m, 4) == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    mutate_json(&m, 0, size);
    return m.size;
}

/* ---- CBOR ---- */

static inline uint64_t read_head(const spans *s, size_t at, size_t *body)
{
    unsigned info = s->text[at] & 31u, n = info < 24 || info == 31 ? 0 : 1u << ((info - 24) & 3u);
    uint64_t value = n ? 0 : info;
    for (unsigned i = 0; i < n && at + 1 + i < s->size; i++)
        value = value << 8 | s->text[at + 1 + i];
    *body = at + 1 + n < s->size ? at + 1 + n : s->size;
    return value;
}

static inline size_t scan_cbor(spans *s, size_t at, size_t from, int parent, int depth)
{
    int own = at < s->size ? add_span(s, at, from, parent) : -1;
    if (own < 0 || depth == DEPTH_MAX)
        return s->size;
    unsigned major = s->text[at] >> 5;
    bool open = (s->text[at] & 31) == 31 && major >= 2 && major <= 5;
    uint64_t n = read_head(s, at, &at);
    s->at[own].body = at;
    if ((major == 2 || major == 3) && !open) {
        at = n < s->size - at ? at + (size_t)n : s->size;
    } else if (major == 6) {
        at = scan_cbor(s, at, at, own, depth + 1);
    } else if (major >= 2 && major <= 5) {
        for (uint64_t i = 0; (open || i < n) && at < s->size && s->text[at] != 0xff; i++) {
            size_t member = at;
            if (major == 5) {
                int key = s->count;
                at = scan_cbor(s, at, at, own, depth + 1);
                if (key < s->count)
                    s->at[key].is_key = true;
            }
            at = scan_cbor(s, at, member, own, depth + 1);
        }
        at += open && at < s->size;
    }
    s->at[own].end = at;
    return at;
}

static inline size_t put_head(uint8_t *to, unsigned major, uint64_t value)
{
    unsigned width = 8, info = 27;
    for (; width > 1 && value >> 4 * width == 0; info--)
        width /= 2;
    if (value < 24) {
        width = 0;
        info = (unsigned)value;
    }
    to[0] = (uint8_t)(major << 5 | info);
    for (unsigned i = 0; i < width; i++)
        to[1 + i] = (uint8_t)(value >> 8 * (width - 1 - i));
    return 1 + width;
}

/* Counts one item (a pair in a map) more or less, where a count is said. */
static inline void recount(mutant *m, const spans *s, int parent, int by)
{
    uint8_t head[9];
    size_t body;
    if (parent < 0 || (m->data[s->at[parent].begin] & 31) == 31)
        return;
    size_t at = s->at[parent].begin;
    const spans now = { .text = m->data, .size = m->size };
    unsigned major = m->data[at] >> 5;
    uint64_t n = read_head(&now, at, &body);
    if (major == 4 || major == 5)
        replace_range(m, at, body - at, head, put_head(head, major, n + (uint64_t)(int64_t)by));
}

/* A text or bytes with other content and a head that says how much. */
static inline void mutate_string(mutant *m, const span *v)
{
    uint8_t content[300], head[9];
    unsigned major = m->data[v->begin] >> 5;
    size_t n = v->end - v->body;
    if (n > 200)
        return;
    memcpy(content, m->data + v->body, n);
    n = LLVMFuzzerMutate(content, n, sizeof content);
    size_t k = put_head(head, major, n);
    if (replace_range(m, v->begin, v->end - v->begin, content, n))
        replace_range(m, v->begin, 0, head, k);
}

static inline void odd_cbor(mutant *m, const span *v)
{
    static const struct { const char *bytes; size_t n; } odd[] = {
        { "\x00", 1 }, { "\x01", 1 }, { "\x02", 1 }, { "\x03", 1 }, { "\x08", 1 }, { "\x18\x40", 2 },
        { "\x18\x80", 2 }, { "\x19\x01\x00", 3 },
        { "\x20", 1 }, { "\x1b\xff\xff\xff\xff\xff\xff\xff\xff", 9 },
        { "\x1b\x7f\xff\xff\xff\xff\xff\xff\xff", 9 }, { "\xf4", 1 },
        { "\xf5", 1 }, { "\xf6", 1 }, { "\xf7", 1 }, { "\xe0", 1 }, { "\x60", 1 }, { "\x40", 1 },
        { "\x41\x00", 2 }, { "\x61" "a", 2 },
        { "\x61\x00", 2 }, { "\x80", 1 }, { "\xa0", 1 }, { "\x81\x01", 2 }, { "\x82\x02\x03", 3 },
        { "\x9f\xff", 2 }, { "\xbf\xff", 2 },
        { "\x7f\x61" "a\xff", 4 }, { "\x5f\x41\x01\xff", 4 }, { "\xc1\x01", 2 }, { "\xf9\x7e\x00", 3 },
        { "\xfa\x3f\x80\x00\x00", 5 },
        { "\xfb\x3f\xf0\x00\x00\x00\x00\x00\x00", 9 }, { "\x3b\x7f\xff\xff\xff\xff\xff\xff\xff", 9 },
        { "\xa1\x61" "a\x01", 4 },
    };
    size_t i = mutant_pick(m, sizeof odd / sizeof *odd);
    replace_range(m, v->begin, v->end - v->begin, odd[i].bytes, odd[i].n);
}

/* One item of the CBOR at `begin` becomes another. */
static inline void mutate_cbor(mutant *m, size_t begin, size_t n)
{
    spans *s = malloc(sizeof *s);
    REQUIRE(s);
    s->text = m->data;
    s->size = begin + n;
    s->count = 0;
    if (n)
        scan_cbor(s, begin, begin, -1, 0);
    span none = { .begin = begin, .end = begin, .from = begin, .body = begin, .parent = -1 };
    if (!s->count)
        s->at[s->count++] = none;
    span v = s->at[mutant_pick(m, (size_t)s->count)], w = s->at[mutant_pick(m, (size_t)s->count)];
    bool string = v.end > v.begin && (m->data[v.begin] >> 5 == 2 || m->data[v.begin] >> 5 == 3);
    switch (mutant_pick(m, 7)) {
    case 0:
        replace_range(m, v.from, v.end - v.from, "", 0);
        recount(m, s, v.is_key ? -1 : v.parent, -1);
        break;
    case 1:
        if (replace_range(m, v.end, 0, m->data + v.from, v.end - v.from))
            recount(m, s, v.is_key ? -1 : v.parent, 1);
        break;
    case 2:
    case 3: replace_range(m, v.begin, v.end - v.begin, m->data + w.begin, w.end - w.begin); break;
    case 4: odd_cbor(m, &v); break;
    case 5: mutate_range(m, v.begin, v.end - v.begin); break;
    default:
        if (string)
            mutate_string(m, &v);
        else
            odd_cbor(m, &v);
    }
    free(s);
}

/* ---- safetensors ---- */

/* The direct member of an object with this key (in its quotes), or NULL. */
static inline const span *find_member(const spans *s, int object, const char *key)
{
    for (int i = 1; i < s->count; i++)
        if (s->at[i].parent == object && !s->at[i].is_key && s->at[i].from != s->at[i].begin &&
            s->size - s->at[i].from > strlen(key) && memcmp(s->text + s->at[i].from, key, strlen(key)) == 0)
            return &s->at[i];
    return NULL;
}

/* Bytes of such a tensor; 0 of one that makes no sense. */
static inline uint64_t st_bytes(const spans *s, const span *dtype, const span *shape)
{
    uint64_t bits = 0;
    for (unsigned i = 1; i < TN_DTYPE_COUNT; i++) {
        const char *name = tn_dtype_get((tn_dtype)i)->safetensors;
        if (name && dtype->end - dtype->begin == strlen(name) + 2 &&
            memcmp(s->text + dtype->begin + 1, name, strlen(name)) == 0)
            bits = tn_dtype_get((tn_dtype)i)->bits;
    }
    bool digits = false;
    uint64_t extent = 0;
    for (size_t i = shape->begin; i < shape->end && bits < 1 << 24; i++) {
        bool is_digit = s->text[i] >= '0' && s->text[i] <= '9';
        if (is_digit && extent < 1 << 24)
            extent = extent * 10 + (uint64_t)(s->text[i] - '0');
        else if (!is_digit && digits)
            bits *= extent;
        extent = is_digit ? extent : 0;
        digits = is_digit;
    }
    return bits < 1 << 24 ? (bits + 7) / 8 : 0;
}

/* Offsets of all tensors, one behind the other; returns where the last one ends. */
static inline uint64_t st_offsets(mutant *m, size_t header)
{
    struct { size_t begin, end; uint64_t from, to; } put[64];
    size_t n = 0;
    uint64_t total = 0;
    spans *s = malloc(sizeof *s);
    REQUIRE(s);
    *s = (spans){ .text = m->data, .size = 8 + header };
    scan_json(s, 8, 8, -1, 0);
    for (int i = 1; i < s->count && n < 64; i++) {
        const span *offsets = find_member(s, i, "\"data_offsets\""), *dtype = find_member(s, i, "\"dtype\""),
                   *shape = find_member(s, i, "\"shape\"");
        if (!offsets || !dtype || !shape)
            continue;
        uint64_t size = st_bytes(s, dtype, shape);
        put[n].begin = offsets->begin;
        put[n].end = offsets->end;
        put[n].from = total;
        put[n++].to = total += size;
    }
    free(s);
    while (n-- > 0) {
        char text[60];
        int k = snprintf(text, sizeof text, "[%" PRIu64 ",%" PRIu64 "]", put[n].from, put[n].to);
        replace_range(m, put[n].begin, put[n].end - put[n].begin, text, (size_t)k);
    }
    return total;
}

static inline void resize_tail(mutant *m, size_t at, uint64_t n)
{
    static const uint8_t filler[64] = { 1, 2, 3, 0x80, 0x3f, 0xff, 0x7f, 0x40 };
    if (n > m->cap || at > m->cap - n)
        return;
    if (m->size > at + n)
        m->size = at + (size_t)n;
    while (m->size < at + n)
        if (!replace_range(m, m->size, 0, filler, at + n - m->size < 64 ? (size_t)(at + n - m->size) : 64))
            return;
}

static inline size_t mutate_safetensors(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    mutant m = { .data = data, .size = size, .cap = max_size, .random = seed };
    uint64_t header = size >= 8 ? get_le(data, 8) : 0;
    if (size < 8 || header > size - 8 || mutant_pick(&m, 8) == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    size_t before = m.size;
    if (mutant_pick(&m, 8) == 0 && size - 8 - header)
        mutate_in_place(&m, 8 + (size_t)header, size - 8 - (size_t)header);
    else
        mutate_json(&m, 8, (size_t)header);
    header = header + m.size - before;
    before = m.size;
    if (mutant_pick(&m, 4)) {
        uint64_t total = st_offsets(&m, (size_t)header);
        header = header + m.size - before;
        resize_tail(&m, 8 + (size_t)header, total);
    }
    set_le(m.data, header, 8);
    return m.size;
}

/* ---- zTensor ---- */

static inline const span *find_item(const spans *s, int map, const char *key)
{
    for (int i = 1; i < s->count; i++)
        if (s->at[i].parent == map && !s->at[i].is_key && s->at[i].from != s->at[i].begin &&
            s->at[i].begin - s->at[i].from == 1 + strlen(key) &&
            memcmp(s->text + s->at[i].from + 1, key, strlen(key)) == 0)
            return &s->at[i];
    return NULL;
}

/* Checksums of all entries, where they are spelled as Tenon does. */
static inline void zt_checksums(mutant *m, size_t index_at, size_t index_size)
{
    spans *s = malloc(sizeof *s);
    REQUIRE(s);
    *s = (spans){ .text = m->data, .size = index_at + index_size };
    scan_cbor(s, index_at, index_at, -1, 0);
    for (int i = 1; i < s->count; i++) {
        const span *offset = find_item(s, i, "offset"), *size = find_item(s, i, "size");
        const span *sum = find_item(s, i, "checksum");
        size_t body;
        if (!offset || !size || !sum || sum->end - sum->body < 10)
            continue;
        uint64_t at = read_head(s, offset->begin, &body), n = read_head(s, size->begin, &body);
        char prefix[10], text[TN_CHECKSUM_TEXT_MAX];
        snprintf(prefix, sizeof prefix, "%.9s", (const char *)m->data + sum->body);
        tn_checksum kind = tn_checksum_kind(prefix);
        tn_digest digest;
        tn_hash hash;
        if (at > index_at || n > index_at - at || kind == TN_CHECKSUM_UNKNOWN ||
            tn_hash_begin(&hash, kind, NULL))
            continue;
        tn_hash_update(&hash, m->data + at, (size_t)n);
        if (tn_hash_end(&hash, &digest, NULL))
            continue;
        tn_digest_format(&digest, text);
        if (strlen(text) == sum->end - sum->body)
            memcpy(m->data + sum->body, text, strlen(text));
    }
    free(s);
}

static inline size_t mutate_ztensor(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    mutant m = { .data = data, .size = size, .cap = max_size, .random = seed };
    uint64_t index = size >= 16 ? get_le(data + size - 8, 8) : 0;
    if (size < 16 || index > size - 16 || mutant_pick(&m, 8) == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    size_t at = size - 8 - (size_t)index;
    m.size -= 8;                /* put back below */
    m.cap -= 8;
    if (mutant_pick(&m, 8) == 0 && at > 64)
        mutate_in_place(&m, 64, at - 64);
    else
        mutate_cbor(&m, at, (size_t)index);
    index = m.size - at;
    if (mutant_pick(&m, 4))
        zt_checksums(&m, at, (size_t)index);
    set_le(m.data + m.size, index, 8);
    return m.size + 8;
}

/* ---- .npy ---- */

/* Elements that the header asks for: numbers behind 'shape' times those behind 'descr'; as far as they are
 * simple. */
static inline uint64_t npy_bytes(const char *header)
{
    const char *descr = strstr(header, "'descr'"), *shape = strstr(header, "'shape'");
    const char *item = descr ? strpbrk(descr + 7, "0123456789") : NULL;
    uint64_t n = item ? strtoull(item, NULL, 10) : 0;
    shape = shape ? strchr(shape, '(') : NULL;
    for (char *end; shape && *shape && *shape != ')' && n < 1 << 20; shape = end > shape ? end : shape + 1) {
        uint64_t extent = strtoull(shape, &end, 10);
        n *= end > shape ? extent : 1;
    }
    return n;
}

/* The header of an array is 10 bytes, or 12 from version 2 on, and a text. */
static inline size_t mutate_npy_bytes(mutant *m)
{
    unsigned width = m->size > 6 && m->data[6] > 1 ? 4 : 2;
    size_t text = 8 + width;
    uint64_t n = m->size >= text ? get_le(m->data + 8, width) : 0;
    if (m->size < text || n > m->size - text || mutant_pick(m, 8) == 0)
        return LLVMFuzzerMutate(m->data, m->size, m->cap);
    size_t before = m->size;
    const uint8_t *note = n > 8 ? memmem(m->data + text, (size_t)n, "# tenon ", 8) : NULL;
    if (note && mutant_pick(m, 2))
        mutate_json(m, (size_t)(note - m->data) + 8, text + (size_t)n - (size_t)(note - m->data) - 8);
    else
        mutate_range(m, text, (size_t)n);
    n += m->size - before;
    if (mutant_pick(m, 4) && n < 1 << 16) {
        char *header = calloc(1, (size_t)n + 1);
        REQUIRE(header);
        memcpy(header, m->data + text, (size_t)n);
        uint64_t bytes = npy_bytes(header);
        free(header);
        if (bytes <= 4096)
            resize_tail(m, text + (size_t)n, bytes);
    }
    set_le(m->data + 8, n, width);
    return m->size;
}

static inline size_t mutate_npy(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    mutant m = { .data = data, .size = size, .cap = max_size, .random = seed };
    return mutate_npy_bytes(&m);
}

/* ---- BTF ---- */

/* Eight bytes come or go, or a word becomes another; the table of offsets follows. */
static inline size_t mutate_btf(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    static const uint64_t words[] = { 0, 1, 2, 3, 4, 5, 7, 8, 16, 64, 65, UINT64_C(1) << 32,
                                      UINT64_C(1) << 62, INT64_MAX, UINT64_MAX };
    static const uint8_t none[8];
    mutant m = { .data = data, .size = size, .cap = max_size, .random = seed };
    uint64_t n = size >= 16 ? get_le(data, 8) : 0;
    if (size < 16 || n > (size - 8) / 8 || mutant_pick(&m, 6) == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    size_t records = 8 + 8 * (size_t)n, at = records + 8 * mutant_pick(&m, (size - records) / 8);
    unsigned what = (unsigned)mutant_pick(&m, 5);
    size_t gone = what == 0 && size - at >= 8 ? 8 : 0, come = what == 1 ? 8 : 0;
    if (what == 2 && size - at >= 8) {
        set_le(data + at, words[mutant_pick(&m, sizeof words / sizeof *words)], 8);
    } else if (what == 3 && size - at >= 10) {          /* type and layout, if a rank stands before them */
        data[at] = (uint8_t)mutant_pick(&m, 11);
        data[at + 1] = (uint8_t)mutant_pick(&m, 4);
    } else if (what == 4 && n) {
        set_le(data + 8 + 8 * mutant_pick(&m, (size_t)n), 8 * mutant_pick(&m, size / 8), 8);
    }
    if (!replace_range(&m, at, gone, none, come))
        return m.size;
    for (size_t i = 0; i < n; i++) {
        uint64_t offset = get_le(m.data + 8 + 8 * i, 8);
        if (offset > at)
            set_le(m.data + 8 + 8 * i, offset + come - gone, 8);
    }
    return m.size;
}

/* ---- packets ---- */

/* One packet: 16 bytes of header, of which four say how much JSON follows. */
static inline size_t mutate_wire(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    mutant m = { .data = data, .size = size, .cap = max_size, .random = seed };
    if (size <= 16 || mutant_pick(&m, 8) == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    mutate_json(&m, 16, size - 16);
    if (mutant_pick(&m, 8) == 0)
        m.data[6] = (uint8_t)mutant_pick(&m, 8);
    set_le(m.data + 8, m.size - 16, 4);
    return m.size;
}

#endif
