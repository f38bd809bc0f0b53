/* formats/pytorch/zip.c - archives of torch 1.6 and later, and those of TorchScript. */
#include "formats/pytorch/pytorch.h"
#include "base/error.h"
#include "bytes/checksum.h"
#include "store/archive.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Of a deflated pickle: these, and so many for each stored byte. */
enum { FREE_OPCODES = 1 << 20, MAX_OPCODES = 32 };

typedef struct archive {
    tn_archive   zip;
    const char **names;         /* of the members, in the folder */
    bool        *is_summed;     /* of the members: a tensor has its checksum */
    tn_names     table;
    size_t       folder;        /* bytes of the folder's name, with its slash */
    size_t       next;          /* the member behind the storage that was found last */
} archive;

static const char *member_name(const void *owner, size_t i)
{
    return ((const archive *)owner)->names[i];
}

/* --- recognising --- */

/* What begins an archive of torch behind the name of its folder. */
static bool is_own_name(tn_text name)
{
    static const char *const inside[] = { "data.pkl", "data/", "version", "byteorder", "code/",
                                          ".format_version", ".data/", "constants.pkl", "constants/" };
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        size_t n = strlen(inside[i]);
        if (name.len >= n && memcmp(name.ptr, inside[i], n) == 0)
            return true;
    }
    return !name.len;           /* the folder itself, as zip tools write it */
}

bool tn_pt_is_zip(const uint8_t *head, size_t n)
{
    enum { NAME_LENGTH = 26 };
    if (n < TN_ZIP_LOCAL_BYTES || memcmp(head, "PK\3\4", 4) != 0)
        return false;
    size_t length = (size_t)(head[NAME_LENGTH] | head[NAME_LENGTH + 1] << 8);
    length = length < n - TN_ZIP_LOCAL_BYTES ? length : n - TN_ZIP_LOCAL_BYTES;
    const char *name = (const char *)head + TN_ZIP_LOCAL_BYTES;
    const char *slash = length ? memchr(name, '/', length) : NULL;
    return slash && is_own_name((tn_text){ slash + 1, length - (size_t)(slash + 1 - name) });
}

/* --- members --- */

static tn_status check_member(const tn_zip_member *m, tn_text folder, tn_error *err)
{
    tn_error why;
    if (m->name.len < folder.len || memcmp(m->name.ptr, folder.ptr, folder.len) != 0)
        return tn_fail_at(err, TN_ERR_CORRUPT, m->at, "member %s is not in the folder %s of the others",
                          tn_quote(m->name.ptr, m->name.len).text, tn_quote(folder.ptr, folder.len).text);
    if (m->encrypted && tn_member_check_method(m, &why))
        return tn_member_fail(m, &why, err);
    return tn_member_check_sizes(m, &why) ? tn_member_fail(m, &why, err) : TN_OK;
}

/* One folder has all members, and each name is there once. */
static tn_status index_members(tn_pt_reader *r, archive *a, tn_error *err)
{
    const tn_zip_member *members = a->zip.members;
    const char *slash = a->zip.count ? memchr(members[0].name.ptr, '/', members[0].name.len) : NULL;
    if (!slash)
        return tn_fail_at(err, TN_ERR_UNSUPPORTED, 0, "the members of the archive are not in a folder");
    const tn_text folder = { members[0].name.ptr, (size_t)(slash + 1 - members[0].name.ptr) };
    a->folder = folder.len;
    a->names = malloc(a->zip.count * sizeof *a->names);
    a->is_summed = calloc(a->zip.count, sizeof *a->is_summed);
    TN_NEED(a->names && a->is_summed && tn_names_init(&a->table, a->zip.count), err);
    for (size_t i = 0; i < a->zip.count; i++) {
        const tn_zip_member *m = &members[i];
        TN_TRY(check_member(m, folder, err));
        a->names[i] = tn_arena_text(&r->arena, m->name.ptr + folder.len, m->name.len - folder.len);
        TN_NEED(a->names[i], err);
    }
    size_t other, i = tn_names_add_all(&a->table, a, member_name, a->zip.count, &other);
    if (i < a->zip.count)
        return tn_fail_at(err, TN_ERR_CORRUPT, members[i].at, "two members of the archive are called %s",
                          tn_quote_z(a->names[i]).text);
    return TN_OK;
}

static const tn_zip_member *find(const archive *a, const char *name)
{
    size_t i = tn_names_find(&a->table, a, member_name, name);
    return i < a->zip.count ? &a->zip.members[i] : NULL;
}

/* Members mostly come in the order in which tensors name them. */
static const tn_zip_member *find_storage(archive *a, const char *name)
{
    if (a->next < a->zip.count && strcmp(a->names[a->next], name) == 0)
        return &a->zip.members[a->next++];
    const tn_zip_member *m = find(a, name);
    if (m)
        a->next = (size_t)(m - a->zip.members) + 1;
    return m;
}

/* 0 with bytes: the writer was told to compute none. */
static bool has_crc(const tn_zip_member *m) { return m->crc || !m->decoded; }

/* All bytes of a member in memory, with the right checksum. */
static tn_status load_bytes(tn_pt_reader *r, const archive *a, const tn_zip_member *m, tn_text *bytes,
                            tn_error *err)
{
    TN_TRY(tn_member_check_method(m, err));
    TN_TRY(tn_index_check_size(m->decoded, m->data, err));
    tn_member_reader reader = { 0 };
    uint8_t *to = tn_arena_alloc(&r->arena, (size_t)m->decoded + 1);    /* one more: it may be longer */
    tn_status status = to ? tn_member_begin(&reader, a->zip.source, m, err) : tn_fail_nomem(err);
    if (!status)
        status = tn_member_read(&reader, to, (size_t)m->decoded + 1, err);
    tn_member_end(&reader);
    TN_TRY(status);
    if (reader.have != m->decoded)
        return tn_fail_at(err, TN_ERR_CORRUPT, m->data, "expected %" PRIu64 " decoded bytes but found %s",
                          m->decoded, reader.have < m->decoded ? "fewer" : "more");
    uint32_t crc = tn_crc32(0, to, reader.have);
    if (has_crc(m) && crc != m->crc)
        return tn_fail_at(err, TN_ERR_CORRUPT, m->data, "expected crc32 0x%08x but found 0x%08x", m->crc,
                          crc);
    *bytes = (tn_text){ (const char *)to, reader.have };
    return TN_OK;
}

static tn_status load(tn_pt_reader *r, const archive *a, const tn_zip_member *m, tn_text *bytes,
                      tn_error *err)
{
    tn_error why;
    tn_status status = load_bytes(r, a, m, bytes, &why);
    if (status == TN_ERR_NOMEM || status == TN_ERR_IO) {
        *err = why;
        return status;
    }
    return status ? tn_member_fail(m, &why, err) : TN_OK;
}

/* --- storages --- */

static tn_status missing(const archive *a, const tn_pt_pickle *from, tn_text key, tn_error *err)
{
    char old[64], name[100];
    snprintf(old, sizeof old, "tensors/%.*s", (int)(key.len < 40 ? key.len : 40), key.ptr);
    if (find(a, old))
        return tn_fail_at(err, TN_ERR_UNSUPPORTED, 0,
                          "it is of the zip format that torch 1.4 tried, which no later version reads: load "
                          "it there and save it again");
    snprintf(name, sizeof name, "%s%.*s", from->folder, (int)(key.len < 60 ? key.len : 60), key.ptr);
    return tn_fail_at(err, TN_ERR_CORRUPT, from->at, "the archive has no member %s", tn_quote_z(name).text);
}

static tn_status locate(tn_pt_reader *r, const tn_pt_pickle *from, const tn_pt_storage *s, tn_pt_place *place,
                        tn_error *err)
{
    archive *a = r->storages;
    char buffer[128], *name = buffer;
    size_t folder = strlen(from->folder);
    if (folder + s->key.len >= sizeof buffer && !(name = tn_arena_alloc(&r->arena, folder + s->key.len + 1)))
        return tn_fail_nomem(err);
    memcpy(name, from->folder, folder);
    memcpy(name + folder, s->key.ptr, s->key.len);
    name[folder + s->key.len] = 0;
    const tn_zip_member *m = tn_text_has_nul(s->key) ? NULL : find_storage(a, name);
    if (!m)
        return missing(a, from, s->key, err);
    tn_error why;
    if (tn_member_check_method(m, &why))
        return tn_member_fail(m, &why, err);
    TN_TRY(tn_pt_check_storage(s, m->decoded, m->at, err));
    *place = (tn_pt_place){ .offset = m->data, .size = m->size, .decoded = m->decoded,
                            .encoding = tn_member_encoding(m), .has_crc = has_crc(m), .crc = m->crc,
                            .is_summed = &a->is_summed[m - a->zip.members] };
    return TN_OK;
}

/* --- the archive --- */

static tn_status read_byte_order(tn_pt_reader *r, const archive *a, tn_error *err)
{
    const tn_zip_member *m = find(a, "byteorder");
    tn_text text = { 0 };
    r->order = TN_LITTLE_ENDIAN;
    if (!m)
        return TN_OK;
    TN_TRY(load(r, a, m, &text, err));
    if (tn_text_is(text, "big"))
        r->order = TN_BIG_ENDIAN;
    else if (!tn_text_is(text, "little"))
        return tn_fail_at(err, TN_ERR_CORRUPT, m->data, "expected the byte order little or big but found %s",
                          tn_quote(text.ptr, text.len).text);
    return TN_OK;
}

/* Values take more memory than opcodes, so few deflated bytes may not be very many of these. */
static uint64_t most_opcodes(const tn_zip_member *m)
{
    return m->method == TN_ZIP_STORED ? 0 : FREE_OPCODES + MAX_OPCODES * m->size;
}

/* Runs the pickle of a member and walks through what it makes. */
static tn_status read_pickle(tn_pt_reader *r, const archive *a, const tn_zip_member *m, bool constants,
                             tn_error *err)
{
    tn_pt_pickle *p = tn_arena_zalloc(&r->arena, 1, sizeof *p);
    TN_NEED(p, err);
    *p = (tn_pt_pickle){ .at = m->data, .is_raw = m->method == TN_ZIP_STORED,
                         .folder = constants ? "constants/" : "data/" };
    TN_TRY(load(r, a, m, &p->bytes, err));
    tn_pt_machine machine = { .arena = &r->arena, .base = p->is_raw ? p->at : TN_NO_OFFSET,
                              .cur = { .base = (const uint8_t *)p->bytes.ptr, .end = p->bytes.len },
                              .most_opcodes = most_opcodes(m),
                              .is_script = find(a, "constants.pkl") != NULL };
    tn_pt_value root;
    tn_error why;
    tn_status status = tn_pt_run(&machine, &root, &why);
    if (!status && tn_cur_left(&machine.cur))
        status = tn_fail_at(&why, TN_ERR_CORRUPT, p->at + (p->is_raw ? machine.cur.pos : 0),
                            "%zu bytes follow the end of the pickle", tn_cur_left(&machine.cur));
    if (status && status != TN_ERR_NOMEM)
        tn_member_fail(m, &why, err);
    else if (status)
        tn_fail_nomem(err);
    else if (constants)
        status = tn_pt_walk_constants(r, &machine, p, &root, err);
    else
        status = tn_pt_walk(r, &machine, p, &root, err);
    if (!status)
        status = tn_pt_name_calls(r, &machine, p, err);
    tn_pt_machine_free(&machine);
    return status;
}

static tn_status read_archive(tn_pt_reader *r, archive *a, tn_error *err)
{
    TN_TRY(index_members(r, a, err));
    const tn_zip_member *data = find(a, "data.pkl"), *constants = find(a, "constants.pkl");
    if (!data)
        return tn_fail_at(err, TN_ERR_UNSUPPORTED, 0,
                          "it is a zip archive without data.pkl, which torch.save() would have written");
    TN_TRY(read_byte_order(r, a, err));
    TN_TRY(read_pickle(r, a, data, false, err));
    if (constants) {
        TN_TRY(read_pickle(r, a, constants, true, err));
        tn_file_warn(r->file, constants->data, "the program of a TorchScript archive is not carried over");
    }
    r->locate = locate;
    r->storages = a;
    return tn_pt_add_tensors(r, err);
}

tn_status tn_pt_read_zip(tn_pt_reader *r, tn_error *err)
{
    archive a = { 0 };
    if (tn_ends_with(r->file->shards[r->shard].path, ".distcp"))
        return tn_fail_at(err, TN_ERR_UNSUPPORTED, 0, "it is a part of a distributed checkpoint, which this "
                          "version does not read: in Python, torch.distributed.checkpoint can save it as one "
                          "file");
    bool failed = tn_archive_open(&a.zip, r->file->shards[r->shard].source, &r->arena, err) ||
                  read_archive(r, &a, err);
    tn_archive_free(&a.zip);
    free(a.names);
    free(a.is_summed);
    tn_names_free(&a.table);
    return failed ? err->status : TN_OK;
}
