/* container/npz/write.c - members one behind the other, stored as they are, so
 * that they can be mapped; all places are known before any data is there. */
#include "container/npz/npz.h"
#include "base/checked.h"
#include "base/error.h"
#include "bytes/checksum.h"

/* One member to be. */
typedef struct planned {
    tn_zip_member member;       /* but for its crc */
    tn_text       header;       /* of the array in it */
} planned;

/* --- planning --- */

static tn_status check_meta(const tn_writer *w, tn_error *err)
{
    if (!w->nmeta || w->count || w->options.drop_metadata)
        return TN_OK;
    return tn_fail(err, TN_ERR_LOSS, TN_NO_OFFSET, "npz keeps a file's metadata with its first tensor and there is none "
                   "(--drop-metadata)");
}

static tn_status make_name(tn_writer *w, const tn_out_entry *e, tn_text *name, tn_error *err)
{
    size_t n = strlen(e->name);
    if (n > TN_ZIP_NAME_MAX - strlen(TN_NPY_SUFFIX))
        return tn_fail(err, TN_ERR_LIMIT, TN_NO_OFFSET, "tensor %s: its name has %zu bytes but a member's has at most %d",
                       tn_quote_z(e->name).text, n, TN_ZIP_NAME_MAX);
    char *text = tn_arena_alloc(&w->arena, n + sizeof TN_NPY_SUFFIX);
    if (!text)
        return tn_fail_nomem(err);
    stpcpy(stpcpy(text, e->name), TN_NPY_SUFFIX);
    *name = (tn_text){ text, n + strlen(TN_NPY_SUFFIX) };
    return TN_OK;
}

/* Places entry i from byte *at on. */
static tn_status plan_member(tn_writer *w, size_t i, uint32_t file, planned *p, uint64_t *at, tn_error *err)
{
    tn_out_entry *e = &w->entries[i];
    tn_zip_member *m = &p->member;
    m->local = *at;
    m->wide = e->nbytes > UINT32_MAX - 2 * TN_NPY_NUMPY_MAX;    /* or nearly so: the header's length is not known as yet */
    tn_status status = make_name(w, e, &m->name, err);
    if (status)
        return status;
    uint64_t before = *at + tn_zip_local_size(m->name.len, m->wide);
    status = tn_npy_make_header(w, i, before, &p->header, err);
    if (status)
        return status;
    if (!tn_add_u64(before + p->header.len, e->nbytes, at) || *at > INT64_MAX)
        return tn_fail(err, TN_ERR_LIMIT, TN_NO_OFFSET, "the file would take more than 2^63 bytes");
    m->size = p->header.len + e->nbytes;
    e->file = file;
    e->offset = before + p->header.len;
    e->checksum = TN_CHECKSUM_CRC32;
    return TN_OK;
}

tn_status tn_npz_plan(tn_writer *w, tn_error *err)
{
    uint32_t file;
    uint64_t at = 0;
    planned *plans = tn_arena_zalloc(&w->arena, w->count, sizeof *plans);
    tn_status status = plans ? check_meta(w, err) : tn_fail_nomem(err);
    if (!status)
        status = tn_writer_add_file(w, w->path, &file, err);
    for (size_t i = 0; i < w->count && !status; i++)
        status = plan_member(w, i, file, &plans[i], &at, err);
    if (!status)
        w->files[file].end = at;
    w->state = plans;
    return status;
}

/* --- finishing --- */

/* The headers before an array's elements, now that those are known. */
static tn_status put_headers(tn_writer *w, size_t i, planned *p, tn_error *err)
{
    const tn_out_entry *e = &w->entries[i];
    tn_buf b = { 0 };
    p->member.crc = tn_crc32_join(tn_crc32(0, p->header.ptr, p->header.len), e->digest.crc, e->nbytes);
    tn_zip_put_local(&b, &p->member);
    tn_buf_put(&b, p->header.ptr, p->header.len);
    tn_status status = b.bad ? tn_fail_nomem(err) : tn_writer_put(w, e->file, p->member.local, b.data, b.size, err);
    tn_buf_free(&b);
    return status;
}

tn_status tn_npz_finish(tn_writer *w, tn_error *err)
{
    planned *plans = w->state;
    tn_buf b = { 0 };
    tn_status status = TN_OK;
    uint64_t at = 0;
    for (size_t i = 0; i < w->count && !status; i++) {
        status = put_headers(w, i, &plans[i], err);
        tn_zip_put_entry(&b, &plans[i].member);
        at = w->entries[i].offset + w->entries[i].nbytes;
    }
    tn_zip_put_end(&b, w->count, at, b.size);
    if (!status)
        status = b.bad ? tn_fail_nomem(err) : tn_writer_put(w, 0, at, b.data, b.size, err);
    w->files[0].end = at + b.size;
    tn_buf_free(&b);
    return status;
}
