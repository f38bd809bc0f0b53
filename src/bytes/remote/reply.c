/* bytes/remote/reply.c - headers and errors of a server. */
#include "bytes/remote/reply.h"

/* ---- headers ---- */

tn_text tn_remote_trim(tn_text t)
{
    while (t.len && tn_is_space(t.ptr[0])) {
        t.ptr++;
        t.len--;
    }
    while (t.len && tn_is_space(t.ptr[t.len - 1]))
        t.len--;
    return t;
}

static bool is_name(tn_text name, const char *wanted)
{
    if (name.len != strlen(wanted))
        return false;
    for (size_t i = 0; i < name.len; i++)
        if (tn_lower(name.ptr[i]) != wanted[i])
            return false;
    return true;
}

/* A number at the front of the text, which loses it; false: there is none, or it is too large. */
static bool take_number(tn_text *t, uint64_t *number)
{
    size_t n = 0;
    *number = 0;
    for (; n < t->len && tn_is_digit(t->ptr[n]); n++)
        if (!tn_add_digit(number, t->ptr[n]))
            return false;
    t->ptr += n;
    t->len -= n;
    return n && *number <= TN_REMOTE_SIZE_MAX;
}

static bool take_char(tn_text *t, char c)
{
    bool is = t->len && *t->ptr == c;
    t->ptr += is;
    t->len -= is;
    return is;
}

/* "bytes 0-99/1000", "bytes 0-99/" and a star, "bytes" a star and "/1000". */
static void take_range(tn_reply *r, tn_text v)
{
    uint64_t first = 0, last = 0, total = 0;
    if (v.len < 6 || strncmp(v.ptr, "bytes ", 6) != 0)
        return;
    v = tn_remote_trim((tn_text){ v.ptr + 6, v.len - 6 });
    bool has_range = !take_char(&v, '*');
    bool numbers = !has_range || (take_number(&v, &first) && take_char(&v, '-') && take_number(&v, &last));
    if (!numbers || last < first)
        return;
    if (!take_char(&v, '/'))
        return;
    bool has_total = take_number(&v, &total) && !v.len;
    if (!has_total && !(v.len == 1 && *v.ptr == '*'))
        return;
    if (has_range && has_total && last >= total)
        return;
    r->has_range = has_range;
    r->has_total = has_total;
    r->first = has_range ? first : 0;
    r->last = has_range ? last : 0;
    r->total = has_total ? total : 0;
}

/* Printable text that fits, else "". */
static void take_text(char *to, size_t cap, tn_text v)
{
    size_t n = v.len < cap ? v.len : 0;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)v.ptr[i] < ' ' || (unsigned char)v.ptr[i] > '~')
            n = 0;
    memcpy(to, v.ptr, n);
    to[n] = '\0';
}

static void take_field(tn_reply *r, tn_text name, tn_text v)
{
    uint64_t number;
    if (is_name(name, "content-range")) {
        take_range(r, v);
    } else if (is_name(name, "content-length")) {
        r->has_length = take_number(&v, &r->length) && !v.len;
    } else if (is_name(name, "content-encoding")) {
        r->is_encoded = v.len && !is_name(v, "identity");
    } else if (is_name(name, "etag")) {
        take_text(r->etag, sizeof r->etag, v);
    } else if (is_name(name, "last-modified")) {
        take_text(r->modified, sizeof r->modified, v);
    } else if (is_name(name, "x-amz-bucket-region")) {
        take_text(r->region, sizeof r->region, v);
    } else if (is_name(name, "retry-after")) {
        r->has_wait = take_number(&v, &number) && !v.len && number <= 86400;
        r->wait = r->has_wait ? (unsigned)number : 0;
    }
}

void tn_reply_line(tn_reply *r, const char *line, size_t n)
{
    tn_text all = tn_remote_trim((tn_text){ line, n });
    if (all.len >= 9 && strncmp(all.ptr, "HTTP/", 5) == 0) {
        const char *space = memchr(all.ptr, ' ', all.len), *end = all.ptr + all.len;
        space = space ? space : end;
        tn_text rest = { space, (size_t)(end - space) };
        uint64_t status = 0;
        rest = tn_remote_trim(rest);
        *r = (tn_reply){ 0 };
        if (take_number(&rest, &status) && status >= 100 && status <= 999)
            r->status = (int)status;
        return;
    }
    const char *colon = all.len ? memchr(all.ptr, ':', all.len) : NULL;
    if (!colon)
        return;
    size_t length = (size_t)(colon - all.ptr);
    take_field(r, (tn_text){ all.ptr, length }, tn_remote_trim((tn_text){ colon + 1, all.len - length - 1 }));
}

bool tn_reply_is_strong(const tn_reply *r)
{
    return r->etag[0] && !tn_begins_with(r->etag, "W/");
}

/* ---- XML ---- */

/* Where "<TAG>" or "</TAG>" begins; NULL: nowhere. */
static const char *find_mark(tn_text xml, const char *start, const char *tag)
{
    size_t a = strlen(start), n = strlen(tag);
    for (const char *p = xml.ptr, *end = xml.ptr + xml.len; p && (size_t)(end - p) >= a + n + 1; p++) {
        p = memchr(p, '<', (size_t)(end - p));
        if (!p || (size_t)(end - p) < a + n + 1)
            return NULL;
        if (memcmp(p, start, a) == 0 && memcmp(p + a, tag, n) == 0 && p[a + n] == '>')
            return p;
    }
    return NULL;
}

bool tn_xml_next(tn_text *xml, const char *tag, tn_text *value)
{
    const char *open = xml->len ? find_mark(*xml, "<", tag) : NULL;
    if (!open)
        return false;
    const char *text = open + strlen(tag) + 2, *end = xml->ptr + xml->len;
    const char *close = find_mark((tn_text){ text, (size_t)(end - text) }, "</", tag);
    if (!close)
        return false;
    *value = (tn_text){ text, (size_t)(close - text) };
    *xml = (tn_text){ close, (size_t)(end - close) };
    return true;
}

/* The length of an entity at the front, and what it means; 0: it is none that we know. */
static size_t entity(tn_text t, char *meaning)
{
    static const struct { const char *text; char meaning; } known[] = {
        { "&amp;", '&' }, { "&lt;", '<' }, { "&gt;", '>' }, { "&quot;", '"' }, { "&apos;", '\'' },
        { "&#34;", '"' }, { "&#39;", '\'' },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t n = strlen(known[i].text);
        if (t.len >= n && memcmp(t.ptr, known[i].text, n) == 0) {
            *meaning = known[i].meaning;
            return n;
        }
    }
    return 0;
}

bool tn_xml_text(tn_text xml, const char *tag, char *to, size_t cap)
{
    tn_text value;
    size_t n = 0;
    if (!tn_xml_next(&xml, tag, &value) || tn_text_has_nul(value))
        return false;
    while (value.len && n + 1 < cap) {
        size_t taken = *value.ptr == '&' ? entity(value, &to[n]) : 0;
        if (!taken) {
            to[n] = *value.ptr;
            taken = 1;
        }
        n++;
        value.ptr += taken;
        value.len -= taken;
    }
    to[n] = '\0';
    return !value.len;
}
