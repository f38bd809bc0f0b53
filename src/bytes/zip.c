/* bytes/zip.c - the parts of zip (APPNOTE 6.3) that archives of arrays
 * use: one disk, zip64, no encryption. */
#include "bytes/zip.h"
#include "base/error.h"

#include <stdlib.h>

#define LOCAL_MARK     0x04034b50u
#define ENTRY_MARK     0x02014b50u
#define END_MARK       0x06054b50u
#define END64_MARK     0x06064b50u
#define LOCATOR64_MARK 0x07064b50u
#define MOST_32        0xffffffffu      /* "see zip64", and the first size that needs it */
#define MOST_16        0xffffu

enum {
    ENTRY_BYTES = 46, END_BYTES = 22, END64_BYTES = 56, LOCATOR64_BYTES = 20, COMMENT_MAX = 65535,
    FLAG_ENCRYPTED = 1, FLAG_UTF8 = 0x800, EXTRA_ZIP64 = 1, EXTRA_NOTE = 'T' | 'n' << 8,
    VERSION = 20, VERSION64 = 45,
    DAY = 1 << 5 | 1            /* 1980-01-01: the same input gives the same bytes */
};

static tn_quoted found_mark(const uint8_t *bytes)    { return tn_quote((const char *)bytes, 4); }
static tn_cur cursor(const uint8_t *bytes, size_t n) { return (tn_cur){ .base = bytes, .end = n }; }

/* --- the directory --- */

/* The end record of an archive. */
typedef struct ending {
    bool     found;
    uint64_t at;                /* its offset: the directory ends there */
    uint64_t disk, count, count_here, size, offset;
} ending;

/* The last position where an end could be: a comment up to the end of the file follows it. */
static bool find_end(const uint8_t *tail, size_t n, size_t *at)
{
    for (size_t i = n >= END_BYTES ? n - END_BYTES + 1 : 0; i-- > 0;) {
        tn_cur c = cursor(tail + i, n - i);
        if (tail[i] != 'P' || tn_cur_le(&c, 4) != END_MARK)
            continue;
        tn_cur_take(&c, END_BYTES - 6);
        if (tn_cur_le(&c, 2) == tn_cur_left(&c)) {
            *at = i;
            return true;
        }
    }
    return false;
}

/* The numbers of an end; widths in bytes. */
static void read_end(tn_cur *c, unsigned disk, unsigned count, unsigned size, ending *e)
{
    e->disk = tn_cur_le(c, disk);
    e->disk |= tn_cur_le(c, disk);
    e->count_here = tn_cur_le(c, count);
    e->count = tn_cur_le(c, count);
    e->size = tn_cur_le(c, size);
    e->offset = tn_cur_le(c, size);
}

/* A locator before the end points to a record with numbers that do not fit. */
static tn_status read_end64(const tn_source *source, ending *e, tn_error *err)
{
    uint8_t bytes[END64_BYTES];
    if (e->at < LOCATOR64_BYTES)
        return TN_OK;
    uint64_t locator = e->at - LOCATOR64_BYTES;
    tn_status status = tn_source_read(source, locator, bytes, LOCATOR64_BYTES, err);
    tn_cur c = cursor(bytes, LOCATOR64_BYTES);
    if (status || tn_cur_le(&c, 4) != LOCATOR64_MARK)
        return status;
    tn_cur_take(&c, 4);
    uint64_t at = tn_cur_le(&c, 8);
    if (at > locator || locator - at < END64_BYTES)
        return tn_fail_at(err, TN_ERR_CORRUPT, locator,
                          "the zip64 end should be before byte %llu but is said to be at %llu",
                          (unsigned long long)locator, (unsigned long long)at);
    status = tn_source_read(source, at, bytes, END64_BYTES, err);
    c = cursor(bytes, END64_BYTES);
    if (!status && tn_cur_le(&c, 4) != END64_MARK)
        return tn_fail_at(err, TN_ERR_CORRUPT, at,
                          "expected the end of a zip64 archive, \"PK\\x06\\x06\", but found %s",
                          found_mark(bytes).text);
    tn_cur_take(&c, 12);
    e->at = at;
    read_end(&c, 4, 8, 8, e);
    return status;
}

/* An end in the last n bytes, if there is one: e->found. */
static tn_status find_in_tail(const tn_source *source, size_t n, ending *e, tn_error *err)
{
    uint64_t size = tn_source_size(source);
    size_t at = 0;
    uint8_t *tail = malloc(n ? n : 1);
    tn_status status = tail ? tn_source_read(source, size - n, tail, n, err) : tn_fail_nomem(err);
    e->found = !status && find_end(tail, n, &at);
    if (e->found) {
        e->at = size - n + at;
        tn_cur c = cursor(tail + at + 4, END_BYTES - 4);
        read_end(&c, 2, 2, 4, e);
    }
    free(tail);
    return status;
}

static tn_status find_ending(const tn_source *source, ending *e, tn_error *err)
{
    static const size_t tail_max = END_BYTES + COMMENT_MAX;
    uint64_t size = tn_source_size(source);
    size_t n = size < tail_max ? (size_t)size : tail_max;
    /* there is hardly ever a comment */
    TN_TRY(find_in_tail(source, n < END_BYTES ? n : END_BYTES, e, err));
    if (!e->found)
        TN_TRY(find_in_tail(source, n, e, err));
    if (!e->found)
        return tn_fail_at(err, TN_ERR_TRUNCATED, size,
                          "expected the end of a zip archive in the last %zu bytes but found none", n);
    /* Some writers add a zip64 end without need: then there is something between the directory and this
     * end. */
    bool wide = e->count == MOST_16 || e->size == MOST_32 || e->offset == MOST_32 ||
                e->offset + e->size != e->at;
    return wide ? read_end64(source, e, err) : TN_OK;
}

tn_status tn_zip_open(const tn_source *source, tn_arena *arena, tn_zip_directory *d, tn_error *err)
{
    ending e = { 0 };
    TN_TRY(find_ending(source, &e, err));
    if (e.disk || e.count != e.count_here)
        return tn_fail_at(err, TN_ERR_UNSUPPORTED, e.at, "an archive on several disks is not read");
    if (e.size > e.at || e.offset != e.at - e.size)
        return tn_fail_at(err, TN_ERR_CORRUPT, e.at,
                          "expected a directory that ends here but it has %llu bytes at %llu",
                          (unsigned long long)e.size, (unsigned long long)e.offset);
    if (e.count > e.size / ENTRY_BYTES)
        return tn_fail_at(err, TN_ERR_CORRUPT, e.at, "%llu members do not fit a directory of %llu bytes",
                          (unsigned long long)e.count, (unsigned long long)e.size);
    const uint8_t *bytes = NULL;
    TN_TRY(tn_index_check_size(e.size, e.at, err));
    TN_TRY(tn_source_copy(source, e.offset, e.size, arena, &bytes, err));
    *d = (tn_zip_directory){ .entries = cursor(bytes, (size_t)e.size), .at = e.offset, .count = e.count };
    return TN_OK;
}

/* --- members --- */

/* Takes the note, and numbers that do not fit 32 bits; false: they are missing. */
static bool take_extra(tn_cur extra, tn_zip_member *m)
{
    bool wide = m->decoded == MOST_32 || m->size == MOST_32 || m->local == MOST_32;
    while (!extra.bad && tn_cur_left(&extra) >= 4) {
        uint64_t id = tn_cur_le(&extra, 2), n = tn_cur_le(&extra, 2);
        const uint8_t *bytes = tn_cur_take(&extra, n);
        if (bytes && id == EXTRA_NOTE)
            m->note = (tn_text){ (const char *)bytes, (size_t)n };
        if (!bytes || id != EXTRA_ZIP64 || !wide)
            continue;
        tn_cur c = cursor(bytes, (size_t)n);
        wide = false;
        m->decoded = m->decoded == MOST_32 ? tn_cur_le(&c, 8) : m->decoded;
        m->size = m->size == MOST_32 ? tn_cur_le(&c, 8) : m->size;
        m->local = m->local == MOST_32 ? tn_cur_le(&c, 8) : m->local;
        if (c.bad)
            return false;
    }
    return !wide;
}

tn_status tn_zip_next(tn_zip_directory *d, tn_zip_member *m, tn_error *err)
{
    tn_cur *c = &d->entries;
    *m = (tn_zip_member){ .at = d->at + c->pos };
    const uint8_t *mark = tn_cur_left(c) < 4 ? NULL : c->base + c->pos;
    if (tn_cur_le(c, 4) != ENTRY_MARK)
        return tn_fail_at(err, TN_ERR_CORRUPT, m->at,
                          "expected an entry of the archive's directory, \"PK\\x01\\x02\", but found %s",
                          mark ? found_mark(mark).text : "its end");
    tn_cur_take(c, 4);
    m->encrypted = tn_cur_le(c, 2) & FLAG_ENCRYPTED;
    m->method = (unsigned)tn_cur_le(c, 2);
    tn_cur_take(c, 4);
    m->crc = (uint32_t)tn_cur_le(c, 4);
    m->size = tn_cur_le(c, 4);
    m->decoded = tn_cur_le(c, 4);
    size_t name = (size_t)tn_cur_le(c, 2), extra = (size_t)tn_cur_le(c, 2), comment = (size_t)tn_cur_le(c, 2);
    tn_cur_take(c, 8);
    m->local = tn_cur_le(c, 4);
    const uint8_t *text = tn_cur_take(c, name), *fields = tn_cur_take(c, extra);
    tn_cur_take(c, comment);
    if (c->bad)
        return tn_fail_at(err, TN_ERR_CORRUPT, m->at, "an entry reaches beyond the archive's directory");
    m->name = (tn_text){ (const char *)text, name };
    if (!take_extra(cursor(fields, extra), m))
        return tn_fail_at(err, TN_ERR_CORRUPT, m->at,
                          "member %s: expected its sizes as zip64 but they are not there",
                          tn_quote(m->name.ptr, name).text);
    return TN_OK;
}

/* If the name in the local header differed, two readers could see two different archives.  `here` has its
 * first bytes. */
static tn_status check_name(const tn_source *source, const tn_zip_member *m, tn_text here, uint64_t at,
                            tn_error *err)
{
    uint8_t buffer[256];
    bool same = memcmp(here.ptr, m->name.ptr, here.len) == 0;
    for (size_t done = here.len; done < m->name.len && same;) {
        size_t n = m->name.len - done < sizeof buffer ? m->name.len - done : sizeof buffer;
        TN_TRY(tn_source_read(source, at + done, buffer, n, err));
        same = memcmp(buffer, m->name.ptr + done, n) == 0;
        done += n;
    }
    if (same)
        return TN_OK;
    return tn_fail_at(err, TN_ERR_CORRUPT, at, "member %s has another name in its own header",
                      tn_quote(m->name.ptr, m->name.len).text);
}

/* What the local header says after its mark. */
static tn_status check_local(const tn_source *source, const tn_zip_directory *d, tn_cur c, tn_zip_member *m,
                             tn_error *err)
{
    tn_cur_take(&c, 4);
    unsigned method = (unsigned)tn_cur_le(&c, 2);
    tn_cur_take(&c, 16);
    uint64_t length = tn_cur_le(&c, 2), extra = tn_cur_le(&c, 2),
             room = d->at - m->local - TN_ZIP_LOCAL_BYTES;
    if (method != m->method || length != m->name.len)
        return tn_fail_at(err, TN_ERR_CORRUPT, m->local,
                          "member %s: expected method %u and a name of %zu bytes in its own header, as in "
                          "the directory, but found %u and %llu", tn_quote(m->name.ptr, m->name.len).text,
                          m->method, m->name.len, method, (unsigned long long)length);
    if (length + extra > room || m->size > room - length - extra)
        return tn_fail_at(err, TN_ERR_CORRUPT, m->at,
                          "member %s: its header and its %llu bytes do not fit the %llu before the directory",
                          tn_quote(m->name.ptr, m->name.len).text, (unsigned long long)m->size,
                          (unsigned long long)(d->at - m->local));
    m->data = m->local + TN_ZIP_LOCAL_BYTES + length + extra;
    size_t here = tn_cur_left(&c) < m->name.len ? tn_cur_left(&c) : m->name.len;
    const tn_text name = { (const char *)tn_cur_take(&c, here), here };
    return check_name(source, m, name, m->local + TN_ZIP_LOCAL_BYTES, err);
}

tn_status tn_zip_locate(const tn_source *source, const tn_zip_directory *d, tn_zip_member *m, tn_error *err)
{
    uint8_t bytes[TN_ZIP_LOCAL_BYTES + 256];
    size_t n = m->name.len < 256 ? TN_ZIP_LOCAL_BYTES + m->name.len : sizeof bytes;
    if (m->local > d->at || d->at - m->local < TN_ZIP_LOCAL_BYTES)
        return tn_fail_at(err, TN_ERR_CORRUPT, m->at,
                          "member %s is said to be at %llu but the directory begins at %llu",
                          tn_quote(m->name.ptr, m->name.len).text, (unsigned long long)m->local,
                          (unsigned long long)d->at);
    n = n < d->at - m->local ? n : (size_t)(d->at - m->local);
    TN_TRY(tn_source_read(source, m->local, bytes, n, err));    /* usually all that is needed, in one call */
    tn_cur c = cursor(bytes, n);
    if (tn_cur_le(&c, 4) != LOCAL_MARK)
        return tn_fail_at(err, TN_ERR_CORRUPT, m->local,
                          "expected the header of member %s, \"PK\\x03\\x04\", but found %s",
                          tn_quote(m->name.ptr, m->name.len).text, found_mark(bytes).text);
    return check_local(source, d, c, m, err);
}

/* --- writing --- */

static void put_at_most_32(tn_buf *b, uint64_t v)  { tn_buf_put_le(b, v < MOST_32 ? v : MOST_32, 4); }
static bool is_far(const tn_zip_member *m)         { return m->local >= MOST_32; }
static unsigned version_of(const tn_zip_member *m) { return m->wide || is_far(m) ? VERSION64 : VERSION; }

static uint64_t decoded_of(const tn_zip_member *m)
{
    return m->method == TN_ZIP_STORED ? m->size : m->decoded;
}

static unsigned flags_of(tn_text name)
{
    for (size_t i = 0; i < name.len; i++)
        if ((uint8_t)name.ptr[i] & 0x80)
            return FLAG_UTF8;
    return 0;
}

/* From the version needed to the sizes: the same in both headers. */
static void put_common(tn_buf *b, const tn_zip_member *m)
{
    tn_buf_put_le(b, version_of(m), 2);
    tn_buf_put_le(b, flags_of(m->name), 2);
    tn_buf_put_le(b, m->method, 2);
    tn_buf_put_le(b, 0, 2);
    tn_buf_put_le(b, DAY, 2);
    tn_buf_put_le(b, m->crc, 4);
    put_at_most_32(b, m->wide ? MOST_32 : m->size);
    put_at_most_32(b, m->wide ? MOST_32 : decoded_of(m));
    tn_buf_put_le(b, m->name.len, 2);
}

uint64_t tn_zip_local_size(size_t name, bool wide)
{
    return TN_ZIP_LOCAL_BYTES + name + (wide ? 4 + 2 * 8 : 0);
}

void tn_zip_put_local(tn_buf *b, const tn_zip_member *m)
{
    tn_buf_put_le(b, LOCAL_MARK, 4);
    put_common(b, m);
    tn_buf_put_le(b, m->wide ? 4 + 2 * 8 : 0, 2);
    tn_buf_put(b, m->name.ptr, m->name.len);
    if (!m->wide)
        return;
    tn_buf_put_le(b, EXTRA_ZIP64, 2);
    tn_buf_put_le(b, 2 * 8, 2);
    tn_buf_put_le(b, decoded_of(m), 8);
    tn_buf_put_le(b, m->size, 8);
}

void tn_zip_put_entry(tn_buf *b, const tn_zip_member *m)
{
    unsigned extra = 16u * m->wide + 8u * is_far(m);
    size_t note = m->note.len ? 4 + m->note.len : 0;
    tn_buf_put_le(b, ENTRY_MARK, 4);
    tn_buf_put_le(b, version_of(m), 2);
    put_common(b, m);
    tn_buf_put_le(b, (extra ? 4 + extra : 0) + note, 2);
    tn_buf_fill(b, 0, 2 + 2 + 2 + 4);   /* no comment, first disk, no attributes */
    put_at_most_32(b, m->local);
    tn_buf_put(b, m->name.ptr, m->name.len);
    tn_buf_put_le(b, EXTRA_ZIP64, extra ? 2 : 0);
    tn_buf_put_le(b, extra, extra ? 2 : 0);
    tn_buf_put_le(b, decoded_of(m), m->wide ? 8 : 0);
    tn_buf_put_le(b, m->size, m->wide ? 8 : 0);
    tn_buf_put_le(b, m->local, is_far(m) ? 8 : 0);
    tn_buf_put_le(b, EXTRA_NOTE, note ? 2 : 0);
    tn_buf_put_le(b, m->note.len, note ? 2 : 0);
    tn_buf_put(b, m->note.ptr, m->note.len);
}

void tn_zip_put_end(tn_buf *b, uint64_t count, uint64_t at, uint64_t size)
{
    if (count >= MOST_16 || at >= MOST_32 || size >= MOST_32) {
        tn_buf_put_le(b, END64_MARK, 4);
        tn_buf_put_le(b, END64_BYTES - 12, 8);
        tn_buf_put_le(b, VERSION64, 2);
        tn_buf_put_le(b, VERSION64, 2);
        tn_buf_put_le(b, 0, 4 + 4);
        tn_buf_put_le(b, count, 8);
        tn_buf_put_le(b, count, 8);
        tn_buf_put_le(b, size, 8);
        tn_buf_put_le(b, at, 8);
        tn_buf_put_le(b, LOCATOR64_MARK, 4);
        tn_buf_put_le(b, 0, 4);
        tn_buf_put_le(b, at + size, 8);
        tn_buf_put_le(b, 1, 4);
    }
    tn_buf_put_le(b, END_MARK, 4);
    tn_buf_put_le(b, 0, 2 + 2);
    tn_buf_put_le(b, count < MOST_16 ? count : MOST_16, 2);
    tn_buf_put_le(b, count < MOST_16 ? count : MOST_16, 2);
    put_at_most_32(b, size);
    put_at_most_32(b, at);
    tn_buf_put_le(b, 0, 2);
}
