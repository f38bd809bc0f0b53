/* formats/npz/write.c - members one behind the other, stored as they are, so
 * that they can be mapped; all places are known before any data is there. */
#include "formats/npz/npz.h"
#include "base/checked.h"
#include "base/error.h"
#include "bytes/checksum.h"

/* --- planning --- */

static tn_status check_meta(const tn_writer *w, tn_error *err)
{
    if (!w->nmeta || w->count || w->options.drop_metadata)
        return TN_OK;
    return tn_refuse(err, TN_ERR_LOSS, TN_REASON_DROP_METADATA, NULL,
                     "npz keeps a file's metadata with its first tensor and there is none");
}

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

tn_status tn_npz_place(tn_writer *w, const char *name, const tn_npy_array *array, uint64_t nbytes,
                       tn_npz_member *m, uint64_t *at, tn_error *err)
{
    m->zip.local = *at;
    /* or nearly so: the header's length is not known as yet */
    m->zip.wide = nbytes > UINT32_MAX - 2 * TN_NPY_NUMPY_MAX;
    tn_status status = make_name(w, name, &m->zip.name, err);
    if (status)
        return status;
    uint64_t before = *at + tn_zip_local_size(m->zip.name.len, m->zip.wide);
    status = tn_npy_make_header(w, array, before, &m->header, err);
    if (status)
        return status;
    m->data = before + m->header.len;
    m->nbytes = nbytes;
    if (!tn_add_u64(m->data, nbytes, at) || *at > INT64_MAX)
        return tn_fail(err, TN_ERR_LIMIT, "the file would take more than 2^63 bytes");
    m->zip.size = m->header.len + nbytes;
    return TN_OK;
}

void tn_npz_give_place(tn_out_entry *e, const tn_npz_member *m, uint32_t file)
{
    e->file = file;
    e->offset = m->data;
    e->checksum = TN_CHECKSUM_CRC32;
}

tn_status tn_npz_plan(tn_writer *w, tn_error *err)
{
    uint32_t file;
    uint64_t at = 0;
    tn_npz_member *members = tn_arena_zalloc(&w->arena, w->count, sizeof *members);
    tn_status status = members ? check_meta(w, err) : tn_fail_nomem(err);
    if (!status)
        status = tn_writer_add_file(w, w->path, &file, err);
    for (size_t i = 0; i < w->count && !status; i++) {
        tn_npy_array array = tn_npy_array_of(&w->entries[i]);
        status = tn_npz_place(w, w->entries[i].name, &array, w->entries[i].nbytes, &members[i], &at, err);
        if (!status)
            tn_npz_give_place(&w->entries[i], &members[i], file);
    }
    if (!status)
        w->files[file].end = at;
    w->state = members;
    return status;
}

/* --- finishing --- */

/* The headers before an array's elements, now that those are known. */
static tn_status put_headers(tn_writer *w, tn_npz_member *m, tn_error *err)
{
    tn_buf b = { 0 };
    m->zip.crc = tn_crc32_join(tn_crc32(0, m->header.ptr, m->header.len), m->crc, m->nbytes);
    tn_zip_put_local(&b, &m->zip);
    tn_buf_put(&b, m->header.ptr, m->header.len);
    tn_status status = b.bad ? tn_fail_nomem(err) : tn_writer_put(w, 0, m->zip.local, b.data, b.size, err);
    tn_buf_free(&b);
    return status;
}

tn_status tn_npz_end(tn_writer *w, tn_npz_member *members, size_t n, tn_error *err)
{
    tn_buf b = { 0 };
    tn_status status = TN_OK;
    uint64_t at = n ? members[n - 1].data + members[n - 1].nbytes : 0;
    for (size_t i = 0; i < n && !status; i++) {
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
    for (size_t i = 0; i < w->count; i++)
        members[i].crc = w->entries[i].digest->crc;
    return tn_npz_end(w, members, w->count, err);
}
