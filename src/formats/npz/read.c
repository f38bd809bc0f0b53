/* formats/npz/read.c - an archive of arrays, each named after its member.
 *
 * Stored members are used in place.  Of deflated members only the header of the
 * array is decoded here. */
#include "formats/npz/npz.h"
#include "base/error.h"
#include "bytes/checksum.h"
#include "store/archive.h"

#include <stdlib.h>

static bool is_npy_name(tn_text name)
{
    size_t n = strlen(TN_NPY_SUFFIX);
    return name.len >= n && memcmp(name.ptr + name.len - n, TN_NPY_SUFFIX, n) == 0;
}

/* Many formats are zip archives: this one begins with an array. */
static int probe(const uint8_t *head, size_t n)
{
    enum { NAME_LENGTH = 26 };
    if (n >= 4 && memcmp(head, "PK\5\6", 4) == 0)
        return 40;              /* no members at all */
    if (n < TN_ZIP_LOCAL_BYTES || memcmp(head, "PK\3\4", 4) != 0)
        return 0;
    size_t length = (size_t)(head[NAME_LENGTH] | head[NAME_LENGTH + 1] << 8);
    if (length > n - TN_ZIP_LOCAL_BYTES)
        return 20;
    return is_npy_name((tn_text){ (const char *)head + TN_ZIP_LOCAL_BYTES, length }) ? 90 : 20;
}

/* A deflated header may be a thousand times as long as its stored bytes.  Comments are kept in memory: those
 * of all deflated headers may take this many bytes more than the file. */
#define COMMENTS_MAX ((uint64_t)16 << 20)

typedef struct reader {
    tn_file         *file;
    tn_archive       archive;
    tn_member_reader member;
    uint8_t         *head;      /* the first bytes of the member: at most a prefix and the longest header */
    uint64_t         comments;  /* bytes of comments in deflated members so far */
    bool             has_arrays;    /* the name of some member says so */
    tn_error         left_out;  /* why the first skipped member is skipped, or status TN_OK */
    const char      *name;      /* tensor name in the header of the last array that has one, or NULL */
} reader;

/* --- the header of an array --- */

static tn_status begin_head(reader *r, const tn_zip_member *m, tn_error *err)
{
    if (!r->head && !(r->head = malloc(TN_NPY_PREFIX_MAX + TN_NPY_HEADER_MAX)))
        return tn_fail_nomem(err);
    return tn_member_begin(&r->member, r->archive.source, m, err);
}

static tn_status count_comment(reader *r, const tn_zip_member *m, const tn_npy_header *h, tn_error *err)
{
    uint64_t most = COMMENTS_MAX + tn_source_size(r->archive.source);
    r->comments += m->method == TN_ZIP_DEFLATED ? h->comment : 0;
    if (r->comments <= most)
        return TN_OK;
    return tn_fail_at(err, TN_ERR_LIMIT, m->data,
                      "expected at most %llu bytes of comments in deflated headers but found %llu",
                      (unsigned long long)most, (unsigned long long)r->comments);
}

static tn_status take_note(reader *r, const tn_zip_member *m, tn_npy_header *h, tn_error *err)
{
    tn_error why;
    tn_status status = tn_npy_take_note(m->note, &r->file->arena, h, &why);
    return status ? tn_fail_at(err, status, m->at, "its note in the directory: %s", why.text) : TN_OK;
}

static tn_status load_header(reader *r, const tn_zip_member *m, tn_npy_header *h, uint32_t *crc,
                             tn_error *err)
{
    uint64_t at = m->method == TN_ZIP_STORED ? m->data : TN_NO_OFFSET;
    size_t size = 0;
    if (begin_head(r, m, err) || tn_member_read(&r->member, r->head, TN_NPY_PREFIX_MAX, err) ||
        tn_npy_header_size(r->head, r->member.have, at, &size, err) ||
        (size <= m->decoded && tn_member_read(&r->member, r->head, size, err)))
        return err->status;
    uint64_t have = r->member.have < m->decoded ? r->member.have : m->decoded;
    if (have < size)
        return tn_fail_at(err, TN_ERR_TRUNCATED, m->data, "its header takes %zu bytes but it has %llu", size,
                          (unsigned long long)(size <= m->decoded ? have : m->decoded));
    /* of the elements, from those of the member and of the header before them */
    *crc = m->crc ^ tn_crc32_join(tn_crc32(0, r->head, size), 0, m->decoded - size);
    TN_TRY(tn_npy_parse(r->head, size, at, &r->file->arena, h, err));
    TN_TRY(count_comment(r, m, h, err));
    return m->note.len ? take_note(r, m, h, err) : TN_OK;
}

/* --- one member --- */

/* TN_ERR_UNSUPPORTED with the reason for a member that is well formed but not read. */
static tn_status check_readable(const tn_zip_member *m, tn_error *err)
{
    if (!is_npy_name(m->name))
        return tn_fail_at(err, TN_ERR_UNSUPPORTED, m->at, "its name does not end in " TN_NPY_SUFFIX);
    if (tn_utf8_valid(m->name.ptr, m->name.len) != m->name.len)
        return tn_fail_at(err, TN_ERR_UNSUPPORTED, m->at, "its name is not UTF-8");
    return tn_member_check_method(m, err);
}

/* Sets the place and the checksum of the elements. */
static tn_status place(reader *r, const tn_zip_member *m, const tn_npy_header *h, uint32_t crc, tn_entry *e,
                       tn_error *err)
{
    tn_stored *s = &e->stored;
    bool deflated = m->method == TN_ZIP_DEFLATED;
    if (s->size != m->decoded - h->size)
        return tn_fail_at(err, TN_ERR_CORRUPT, e->at,
                          "shape and type take %llu bytes but %llu follow the header",
                          (unsigned long long)s->size, (unsigned long long)(m->decoded - h->size));
    s->offset = deflated ? m->data : m->data + h->size;
    if (deflated) {
        s->encoding = tn_member_encoding(m);
        s->size = m->size;
        e->more.skip = h->size;
    }
    return tn_stored_set_crc32(s, crc, &r->file->arena, err);
}

static tn_status read_array(reader *r, const tn_zip_member *m, tn_error *err)
{
    tn_npy_header h;
    uint32_t crc = 0;
    tn_entry e = { .at = m->local };
    const tn_text name = { m->name.ptr, m->name.len - strlen(TN_NPY_SUFFIX) };
    e.name = tn_file_text(r->file, name, "name", m->at, err);
    if (!e.name || tn_member_check_sizes(m, err) || load_header(r, m, &h, &crc, err))
        return err->status;
    if (h.name)
        r->name = h.name;
    if (h.never)
        tn_file_warn(r->file, m->local, "member %s: %s", tn_quote(m->name.ptr, m->name.len).text, h.never);
    if (tn_npy_describe(r->file, &h, m->decoded - h.size, &e, err) || place(r, m, &h, crc, &e, err))
        return err->status;
    return tn_file_add(r->file, &e, err);
}

/* The other members can still be read. */
static void skip_member(reader *r, const tn_zip_member *m, const tn_error *why)
{
    tn_file_warn(r->file, m->at, "member %s is not read: %s", tn_quote(m->name.ptr, m->name.len).text,
                 why->text);
    r->file->left_out = "members that are not read";
    if (!r->left_out.status)
        tn_member_fail(m, why, &r->left_out);
}

static tn_status read_member(reader *r, const tn_zip_member *m, tn_error *err)
{
    tn_error why;
    r->has_arrays |= is_npy_name(m->name);
    if (check_readable(m, &why)) {
        skip_member(r, m, &why);
        return TN_OK;
    }
    tn_status status = read_array(r, m, &why);
    if (status && status != TN_ERR_NOMEM && status != TN_ERR_IO)
        return tn_member_fail(m, &why, err);
    if (status)
        *err = why;
    return status;
}

/* --- the archive --- */

/* The archive of another program. */
static tn_status name_foreign(const reader *r, tn_error *err)
{
    uint8_t head[256];
    uint64_t size = tn_source_size(r->archive.source);
    size_t n = size < sizeof head ? (size_t)size : sizeof head;
    TN_TRY(tn_source_read(r->archive.source, 0, head, n, err));
    const char *foreign = tn_format_foreign(head, n);
    return foreign ? tn_fail_at(err, TN_ERR_UNSUPPORTED, 0, "it is %s", foreign) : TN_OK;
}

static tn_status read_members(reader *r, tn_error *err)
{
    const tn_archive *a = &r->archive;
    TN_TRY(tn_file_expect(r->file, a->count, err));
    for (size_t i = 0; i < a->count; i++)
        TN_TRY(read_member(r, &a->members[i], err));
    if (a->count && !r->has_arrays)
        TN_TRY(name_foreign(r, err));
    if (!r->file->count && r->left_out.status)
        return tn_fail_at(err, r->left_out.status, r->left_out.offset, "%s", r->left_out.text);
    return TN_OK;
}

tn_status tn_npz_list(tn_file *file, const char **name, tn_error *err)
{
    reader r = { .file = file };
    bool failed = tn_archive_open(&r.archive, file->shards[0].source, &file->arena, err) ||
                  read_members(&r, err);
    tn_member_end(&r.member);
    tn_archive_free(&r.archive);
    free(r.head);
    *name = r.name;
    return failed ? err->status : TN_OK;
}

static tn_status open_npz(tn_file *file, tn_error *err)
{
    const char *name;
    bool joined = false;
    if (tn_npz_list(file, &name, err) || tn_scipy_join(file, name, &joined, err))
        return err->status;
    if (joined)
        file->format = &tn_format_scipy;
    return TN_OK;
}

static const tn_format_key keys[] = { TN_OCP_NAMES_KEY, { 0 } };

const tn_format tn_format_npz = {
    .info = {
        .name = "npz", .suffix = TN_NPZ_SUFFIX,
        .title = "NumPy arrays in a zip archive, as numpy.savez() writes them",
        .reads = true, .writes = true, .probes = true, .compresses = true, .keys = keys,
    },
    .probe = probe,
    .open = open_npz,
    .type_name = tn_npy_type_name,
    .archive_codec = TN_ENCODING_DEFLATE,
    .room_before = tn_npz_room_before,
    .names_parts = true,
    .min_align = TN_NPY_ALIGN,
    .plan = tn_npz_plan,
    .finish = tn_npz_finish,
};
