/* formats/npz/write.c - members are stored, so that they can be mapped, and all offsets are known before any
 * data; or they are deflated.
 *
 * A deflated member is one stream for all readers, but the elements are compressed before the headers are
 * written.  So the array's header is a block of its own, which is not compressed, before the blocks of the
 * elements. */
#include "formats/npz/npz.h"
#include "base/checked.h"
#include "base/error.h"
#include "bytes/checksum.h"

/* --- planning --- */

static tn_status make_name(tn_writer *w, const char *stem, tn_text *name, tn_error *err)
{
    size_t n = strlen(stem);
    if (n > TN_ZIP_NAME_MAX - strlen(TN_NPY_SUFFIX))
        return tn_in_tensor(tn_fail(err, TN_ERR_LIMIT, "its name has %zu bytes but a member's has at most %d",
                                    n, TN_ZIP_NAME_MAX),
                            stem, err);
    *name = (tn_text){ tn_arena_printf(&w->arena, "%s" TN_NPY_SUFFIX, stem), n + strlen(TN_NPY_SUFFIX) };
    return name->ptr ? TN_OK : tn_fail_nomem(err);
}

/* One item of the note; its CBOR is in `map`. */
static void add_meta(tn_meta *items, size_t *n, const char *key, const tn_meta *meta, size_t count,
                     tn_buf *map)
{
    if (!count)
        return;
    tn_meta_put_map(meta, count, map);
    items[(*n)++] = (tn_meta){ .key = key, .cbor = map->data, .cbor_size = map->size };
}

static tn_status put_note(tn_writer *w, const tn_out_entry *e, const char *name, bool with_meta,
                          tn_text *note, tn_error *err)
{
    tn_meta items[4];
    tn_buf meta = { 0 }, file = { 0 }, json = { 0 };
    size_t n = 0;
    if (name)
        items[n++] = (tn_meta){ .key = TN_NPY_NAME, .text = name };
    if (e->more->record.len)
        items[n++] = (tn_meta){ .key = TN_NPY_RECORD, .cbor = (const uint8_t *)e->more->record.ptr,
                                .cbor_size = e->more->record.len };
    if (with_meta)
        add_meta(items, &n, TN_NPY_META, e->more->meta, e->more->nmeta, &meta);
    if (with_meta && e == w->entries)
        add_meta(items, &n, TN_NPY_FILE_META, w->meta, w->nmeta, &file);
    bool bad = meta.bad || file.bad;
    if (n && !bad)
        tn_meta_put_json(&json, items, n);
    *note = (tn_text){ 0 };
    if (json.size)
        *note = (tn_text){ tn_arena_copy(&w->arena, json.data, json.size), json.size };
    bad |= json.bad || (json.size && !note->ptr);
    tn_buf_free(&meta);
    tn_buf_free(&file);
    tn_buf_free(&json);
    return bad ? tn_fail_nomem(err) : TN_OK;
}

tn_status tn_npz_set_note(tn_writer *w, const tn_out_entry *e, const char *name, tn_npz_member *m,
                          tn_error *err)
{
    tn_text *note = &m->zip.note;
    TN_TRY(put_note(w, e, name, true, note, err));
    if (note->len > TN_ZIP_NOTE_MAX && w->options.drop_metadata)
        TN_TRY(put_note(w, e, name, false, note, err));
    if (note->len <= TN_ZIP_NOTE_MAX)
        return TN_OK;
    return tn_in_tensor(tn_refuse(err, TN_ERR_LIMIT, TN_REASON_DROP_METADATA, NULL,
                                  "its metadata and name take %zu bytes but the directory of an archive has "
                                  "room for %d", note->len, TN_ZIP_NOTE_MAX), e->name, err);
}

/* Of a stored block: the kind of block, and its size twice, the second time inverted. */
enum { BLOCK_HEAD = 5 };

unsigned tn_npz_method(const tn_out_entry *e)
{
    return e->encoding == TN_ENCODING_DEFLATE ? TN_ZIP_DEFLATED : TN_ZIP_STORED;
}

static bool is_deflated(const tn_npz_member *m) { return m->zip.method == TN_ZIP_DEFLATED; }

static uint64_t head_size(const tn_npz_member *m)
{
    return tn_zip_local_size(m->zip.name.len, m->zip.wide) + (is_deflated(m) ? BLOCK_HEAD : 0) +
           m->header.len;
}

uint64_t tn_npz_room_before(const tn_writer *w, size_t entry)
{
    return head_size((const tn_npz_member *)w->state + entry);
}

tn_status tn_npz_place(tn_writer *w, const char *name, const tn_npy_array *array, tn_npz_member *m,
                       uint64_t *at, tn_error *err)
{
    m->zip.local = *at;
    /* an upper bound: neither the length of the header is known yet nor what the elements are deflated to */
    m->zip.wide = m->nbytes > UINT32_MAX - (is_deflated(m) ? UINT32_MAX / 2 : 2 * TN_NPY_NUMPY_MAX);
    TN_TRY(make_name(w, name, &m->zip.name, err));
    uint64_t before = *at + tn_zip_local_size(m->zip.name.len, m->zip.wide);
    TN_TRY(tn_npy_build_header(w, array, is_deflated(m) ? 0 : before, &m->header, err));
    if (is_deflated(m))
        return TN_OK;
    m->stored = m->nbytes;
    m->zip.size = m->header.len + m->nbytes;
    m->data = before + m->header.len;
    if (!tn_add_u64(m->data, m->nbytes, at) || *at > INT64_MAX)
        return tn_fail(err, TN_ERR_LIMIT, "the file would take more than 2^63 bytes");
    return TN_OK;
}

void tn_npz_set_offset(tn_out_entry *e, const tn_npz_member *m, uint32_t file)
{
    e->file = file;
    e->offset = is_deflated(m) ? TN_UNPLACED : m->data;
    e->checksum = TN_CHECKSUM_CRC32;
}

tn_status tn_npz_plan(tn_writer *w, tn_error *err)
{
    uint32_t file;
    uint64_t at = 0;
    tn_npz_member *members = tn_arena_zalloc(&w->arena, w->count, sizeof *members);
    TN_NEED(members, err);
    if (tn_writer_check_file_meta(w, "npz", err) || tn_writer_add_file(w, w->path, &file, err))
        return err->status;
    for (size_t i = 0; i < w->count; i++) {
        tn_out_entry *e = &w->entries[i];
        tn_npy_array array = tn_npy_array_of(e);
        members[i].nbytes = e->nbytes;
        members[i].zip.method = tn_npz_method(e);
        TN_TRY(tn_npz_set_note(w, e, NULL, &members[i], err));
        TN_TRY(tn_npz_place(w, e->name, &array, &members[i], &at, err));
        tn_npz_set_offset(e, &members[i], file);
    }
    w->files[file].end = at;
    w->state = members;
    return TN_OK;
}

/* --- finishing --- */

void tn_npz_take_place(tn_npz_member *m, const tn_out_entry *e)
{
    if (!is_deflated(m))
        return;
    m->data = e->offset;
    m->stored = e->size;
    m->zip.size = BLOCK_HEAD + m->header.len + e->size;
    m->zip.decoded = m->header.len + m->nbytes;
    m->zip.local = e->offset - head_size(m);
}

/* Both headers before the elements: they hold a checksum of these. */
static tn_status put_headers(tn_writer *w, tn_npz_member *m, tn_error *err)
{
    tn_buf b = { 0 };
    m->zip.crc = tn_crc32_join(tn_crc32(0, m->header.ptr, m->header.len), m->crc, m->nbytes);
    tn_zip_put_local(&b, &m->zip);
    if (is_deflated(m)) {
        tn_buf_putc(&b, 0);     /* not the last block, stored */
        tn_buf_put_le(&b, m->header.len, 2);
        tn_buf_put_le(&b, ~(uint64_t)m->header.len & 0xffff, 2);
    }
    tn_buf_put(&b, m->header.ptr, m->header.len);
    tn_status status = b.bad ? tn_fail_nomem(err) : tn_writer_put(w, 0, m->zip.local, b.data, b.size, err);
    tn_buf_free(&b);
    return status;
}

tn_status tn_npz_write_index(tn_writer *w, tn_npz_member *members, size_t n, tn_error *err)
{
    tn_buf b = { 0 };
    tn_status status = TN_OK;
    uint64_t at = 0;
    for (size_t i = 0; i < n && !status; i++) {
        uint64_t end = members[i].data + members[i].stored;
        at = end > at ? end : at;       /* deflated ones are in the order in which they were complete */
        status = put_headers(w, &members[i], err);
        tn_zip_put_entry(&b, &members[i].zip);
    }
    if (!status)
        status = tn_index_check_size(b.size, TN_NO_OFFSET, err);
    tn_zip_put_end(&b, n, at, b.size);
    if (!status)
        status = b.bad ? tn_fail_nomem(err) : tn_writer_put(w, 0, at, b.data, b.size, err);
    w->files[0].end = at + b.size;
    tn_buf_free(&b);
    return status;
}

tn_status tn_npz_finish(tn_writer *w, tn_error *err)
{
    tn_npz_member *members = w->state;
    for (size_t i = 0; i < w->count; i++) {
        const tn_out_entry *e = &w->entries[i];
        members[i].crc = e->digest->crc;
        tn_npz_take_place(&members[i], e);
    }
    return tn_npz_write_index(w, members, w->count, err);
}
