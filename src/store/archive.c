/* store/archive.c - the members of a zip archive. */
#include "store/archive.h"
#include "base/checked.h"
#include "base/error.h"
#include "bytes/checksum.h"
#include "store/ranges.h"

#include <stdlib.h>

/* A small archive whose members share bytes could decode to any size. */
static tn_status check_overlaps(const tn_archive *a, tn_piece *pieces, tn_error *err)
{
    bool sorted = true;
    for (size_t i = 0; i < a->count; i++) {
        const tn_zip_member *m = &a->members[i];
        pieces[i] = (tn_piece){ .begin = m->local, .end = m->data + m->size, .number = i };
        sorted = sorted && (!i || pieces[i - 1].begin <= pieces[i].begin);
    }
    if (!sorted)
        tn_sort_by_place(pieces, a->count, sizeof *pieces);
    for (size_t i = 1; i < a->count; i++) {
        const tn_piece *before = &pieces[i - 1], *here = &pieces[i];
        const tn_text name = a->members[here->number].name, other = a->members[before->number].name;
        if (tn_overlaps(before, here))
            return tn_fail_at(err, TN_ERR_CORRUPT, here->begin,
                              "member %s overlaps member %s, which ends at %llu",
                              tn_quote(name.ptr, name.len).text, tn_quote(other.ptr, other.len).text,
                              (unsigned long long)before->end);
    }
    return TN_OK;
}

/* The headers of all members, their own and those of the arrays in them, are fetched together. */
static void expect_heads(const tn_archive *a, const tn_zip_directory *d)
{
    enum { OF_ARRAY = 512, OF_DEFLATED = 4096 + 64 };
    tn_range *heads = tn_source_is_far(a->source) ? malloc((a->count + 1) * sizeof *heads) : NULL;
    size_t n = 0;
    for (size_t i = 0; heads && i < a->count; i++) {
        const tn_zip_member *m = &a->members[i];
        uint64_t size = TN_ZIP_LOCAL_BYTES + m->name.len;
        size += m->method == TN_ZIP_DEFLATED ? OF_DEFLATED : OF_ARRAY;
        if (m->local < d->at)
            heads[n++] = (tn_range){ m->local, tn_min_u64(size, d->at - m->local) };
    }
    tn_source_expect(a->source, heads, n);
    free(heads);
}

static tn_status read_members(tn_archive *a, tn_zip_directory *d, tn_error *err)
{
    for (; a->count < d->count; a->count++)
        TN_TRY(tn_zip_next(d, &a->members[a->count], err));
    expect_heads(a, d);
    for (size_t i = 0; i < a->count; i++)
        TN_TRY(tn_zip_locate(a->source, d, &a->members[i], err));
    if (tn_cur_left(&d->entries))
        return tn_fail_at(err, TN_ERR_CORRUPT, d->at + d->entries.pos,
                          "the archive's directory has %zu more bytes than its %zu members take",
                          tn_cur_left(&d->entries), a->count);
    return TN_OK;
}

tn_status tn_archive_open(tn_archive *a, const tn_source *source, tn_arena *arena, tn_error *err)
{
    tn_zip_directory d;
    *a = (tn_archive){ .source = source };
    TN_TRY(tn_zip_open(source, arena, &d, err));
    size_t count = d.count ? (size_t)d.count : 1;       /* no more than fit the directory */
    a->members = malloc(count * sizeof *a->members);
    tn_piece *pieces = malloc(count * sizeof *pieces);
    tn_status status = a->members && pieces ? read_members(a, &d, err) : tn_fail_nomem(err);
    if (!status)
        status = check_overlaps(a, pieces, err);
    free(pieces);
    return status;
}

void tn_archive_free(tn_archive *a)
{
    free(a->members);
    *a = (tn_archive){ 0 };
}

/* --- one member --- */

tn_status tn_member_check_method(const tn_zip_member *m, tn_error *err)
{
    if (m->encrypted)
        return tn_fail_at(err, TN_ERR_UNSUPPORTED, m->at, "it is encrypted");
    if (m->method != TN_ZIP_STORED && m->method != TN_ZIP_DEFLATED)
        return tn_fail_at(err, TN_ERR_UNSUPPORTED, m->at,
                          "expected it stored (0) or deflated (8) but found method %u", m->method);
    return TN_OK;
}

tn_status tn_member_check_sizes(const tn_zip_member *m, tn_error *err)
{
    if (m->method == TN_ZIP_STORED && m->size != m->decoded)
        return tn_fail_at(err, TN_ERR_CORRUPT, m->at,
                          "it is not compressed but has two sizes, %llu and %llu",
                          (unsigned long long)m->size, (unsigned long long)m->decoded);
    if (m->method == TN_ZIP_DEFLATED && m->decoded / tn_codec_deflate.ratio_max > m->size)
        return tn_fail_at(err, TN_ERR_CORRUPT, m->at, "no %llu bytes of deflate data decode to %llu",
                          (unsigned long long)m->size, (unsigned long long)m->decoded);
    return TN_OK;
}

tn_status tn_member_fail(const tn_zip_member *m, const tn_error *why, tn_error *err)
{
    uint64_t at = why->offset == TN_NO_OFFSET ? m->data : why->offset;
    return tn_fail_at(err, why->status, at, "member %s: %s", tn_quote(m->name.ptr, m->name.len).text,
                      why->text);
}

tn_status tn_stored_set_crc32(tn_stored *stored, uint32_t crc, tn_arena *arena, tn_error *err)
{
    char text[TN_CHECKSUM_TEXT_MAX];
    tn_digest_format(&(tn_digest){ .kind = TN_CHECKSUM_CRC32, .crc = crc }, text);
    stored->checksum = TN_CHECKSUM_CRC32;
    stored->checksum_text = tn_arena_text(arena, text, strlen(text));
    return stored->checksum_text ? TN_OK : tn_fail_nomem(err);
}

/* --- its first bytes --- */

tn_status tn_member_begin(tn_member_reader *r, const tn_source *source, const tn_zip_member *m, tn_error *err)
{
    r->source = source;
    r->member = m;
    r->have = 0;
    r->taken = 0;
    if (m->method != TN_ZIP_DEFLATED)
        return TN_OK;
    TN_TRY(tn_codec_use(&r->decoder, &tn_codec_deflate, err));
    return r->decoder.codec->decode_begin(r->decoder.state, 0, err);
}

static tn_status decode(tn_member_reader *r, uint8_t *to, size_t n, tn_error *err)
{
    uint8_t buffer[4096];
    const tn_codec_state *d = &r->decoder;
    while (r->have < n && r->taken < r->member->size && !d->codec->decode_at_end(d->state)) {
        uint64_t rest = r->member->size - r->taken;
        size_t left = rest < sizeof buffer ? (size_t)rest : sizeof buffer;
        tn_coding c = { buffer, left, to + r->have, n - r->have };
        TN_TRY(tn_source_read(r->source, r->member->data + r->taken, buffer, left, err));
        TN_TRY(d->codec->decode(d->state, &c, err));
        if (c.nin == left && c.nout == n - r->have)
            return TN_OK;
        r->taken += left - c.nin;
        r->have = n - c.nout;
    }
    return TN_OK;
}

tn_status tn_member_read(tn_member_reader *r, uint8_t *to, size_t n, tn_error *err)
{
    if (r->member->method == TN_ZIP_DEFLATED)
        return decode(r, to, n, err);
    size_t had = r->have;
    r->have = r->member->size < n ? (size_t)r->member->size : n;
    return tn_source_read(r->source, r->member->data + had, to + had, r->have - had, err);
}

void tn_member_end(tn_member_reader *r)
{
    tn_codec_free(&r->decoder);
}
