/* formats/gguf/rewrite.c - a file with other metadata: the list of tensors and the data stay the same bytes.
 *
 * Version and byte order are kept.  The data follows the header at the next multiple of the alignment, so it
 * moves if the header gets longer or shorter than its padding allows.  A file system can share it between
 * the old file and the new one only if it moves by whole blocks.  If the metadata has TN_GGUF_PADDING, an
 * array of u8, that gets so many items that it does. */
#include "formats/gguf/gguf.h"
#include "base/checked.h"
#include "base/error.h"

#include <inttypes.h>

enum { BLOCK = 4096 };          /* of most file systems */

typedef struct edit {
    tn_file       *file;
    tn_gguf_in     in;
    tn_gguf_header old;
    tn_arena       arena;
    tn_buf         pairs, header;
    uint64_t       npairs;
    bool           set;         /* it is the first file of a set, whose keys stay */
    bool           has_padding;
    size_t         padding_at;  /* in the pairs, where its items go */
} edit;

static bool is_padding(const tn_meta *m)
{
    tn_meta_type items;
    return strcmp(m->key, TN_GGUF_PADDING) == 0 && tn_meta_type_of(m, &items) == TN_META_ARRAY &&
           items == TN_META_U8;
}

static void put_padding(edit *x)
{
    const tn_gguf_out o = { &x->pairs, x->old.style };
    tn_gguf_put_string(&o, (tn_text){ TN_GGUF_PADDING, sizeof TN_GGUF_PADDING - 1 });
    tn_gguf_put_uint(&o, TN_META_ARRAY, 4);
    tn_gguf_put_uint(&o, TN_META_U8, 4);
    tn_gguf_put_wide(&o, 0);            /* see fit_padding() */
    x->has_padding = true;
    x->padding_at = x->pairs.size;
}

static tn_status put_pair(edit *x, const tn_meta *m, tn_error *err)
{
    const tn_gguf_out o = { &x->pairs, x->old.style };
    x->npairs++;
    if (is_padding(m)) {
        put_padding(x);
        return TN_OK;
    }
    tn_status status = tn_gguf_put_pair(&o, m, err);
    if (status == TN_ERR_LOSS)
        err->status = status = TN_ERR_ARGUMENT;
    return status;
}

static tn_status put_new(edit *x, const tn_meta *m, tn_error *err)
{
    if (x->set && tn_gguf_is_split_key(m->key))
        return tn_fail(err, TN_ERR_ARGUMENT, "metadata %s tells of the files of the set and cannot be set",
                       tn_quote_z(m->key).text);
    return put_pair(x, m, err);
}

/* The new metadata is the old one in its order, some of it removed, and what was added. */
static tn_status put_meta(edit *x, tn_error *err)
{
    const tn_meta *new = x->file->meta;
    size_t n = x->file->nmeta, next = 0;
    for (size_t i = 0; i < x->old.nmeta; i++) {
        const tn_meta *old = &x->old.meta[i];
        if (x->set && tn_gguf_is_split_key(old->key))
            TN_TRY(put_pair(x, old, err));
        else if (next < n && strcmp(new[next].key, old->key) == 0)
            TN_TRY(put_new(x, &new[next++], err));
    }
    for (; next < n; next++)
        TN_TRY(put_new(x, &new[next], err));
    return TN_OK;
}

/* Offsets are multiples of the alignment: another one would move the tensors. */
static tn_status check_alignment(const edit *x, tn_error *err)
{
    const tn_meta *found = NULL;
    uint64_t alignment;
    for (size_t i = 0; i < x->file->nmeta; i++)
        if (strcmp(x->file->meta[i].key, TN_GGUF_ALIGNMENT) == 0)
            found = &x->file->meta[i];
    tn_status status = tn_gguf_alignment(found, &alignment, err);
    if (!status && alignment != x->old.alignment)
        status = tn_fail(err, TN_ERR_ARGUMENT, TN_GGUF_ALIGNMENT " is that of the data, %" PRIu64
                         ", and cannot be edited: convert the file with another alignment",
                         x->old.alignment);
    return status;
}

/* Puts so many items into the padding that the data, after `tensors` more bytes, moves by whole blocks. */
static tn_status fit_padding(edit *x, uint64_t start, uint64_t tensors, tn_error *err)
{
    const uint64_t data = x->file->shards[0].data_begin;
    const size_t n = (size_t)((data - start - x->pairs.size - tensors) % BLOCK), wide = x->old.style.wide,
                 after = x->pairs.size - x->padding_at;
    tn_buf count = { 0 };
    const tn_gguf_out o = { &count, x->old.style };
    tn_gguf_put_wide(&o, n);
    bool good = tn_buf_room(&x->pairs, n) && !count.bad;
    if (good) {
        uint8_t *items = x->pairs.data + x->padding_at;
        x->pairs.size += n;
        memmove(items + n, items, after);
        memset(items, 0, n);
        memcpy(items - wide, count.data, wide);
    }
    tn_buf_free(&count);
    return good ? TN_OK : tn_fail_nomem(err);
}

static tn_status put_header(edit *x, tn_error *err)
{
    const tn_gguf_out o = { &x->header, x->old.style };
    uint64_t end = tn_gguf_at(&x->in), size = end - x->old.tensors_at;
    tn_gguf_put_start(&o, x->old.tensors, x->npairs);
    if (x->has_padding)
        TN_TRY(fit_padding(x, x->header.size, size, err));
    tn_buf_put(&x->header, x->pairs.data, x->pairs.size);
    uint8_t *tensors = tn_buf_room(&x->header, (size_t)size);
    TN_NEED(tensors && !x->pairs.bad, err);
    x->header.size += (size_t)size;
    TN_TRY(tn_source_read(x->file->shards[0].source, x->old.tensors_at, tensors, (size_t)size, err));
    return tn_index_check_size(x->header.size, TN_NO_OFFSET, err);
}

static tn_status write_all(const edit *x, tn_sink *sink, uint64_t *size, uint64_t *shared, tn_error *err)
{
    const tn_shard *s = &x->file->shards[0];
    uint64_t old_size = tn_source_size(s->source), data = 0, begin = x->header.size;
    if (old_size >= s->data_begin) {    /* else it has no tensors, and ends before the padding */
        data = old_size - s->data_begin;
        if (!tn_align_u64(begin, x->old.alignment, &begin))
            return tn_fail(err, TN_ERR_LIMIT, "the file would take more than 2^63 bytes");
    }
    *size = begin + data;
    TN_TRY(tn_sink_write(sink, 0, x->header.data, x->header.size, err));
    return data ? tn_sink_copy_range(sink, begin, s->source, s->data_begin, data, shared, err) : TN_OK;
}

tn_status tn_gguf_rewrite(tn_file *file, tn_sink *sink, uint64_t *size, uint64_t *shared, tn_error *err)
{
    edit x = { .file = file, .set = file->nshards > 1 };
    bool failed = tn_gguf_begin(&x.in, file->shards[0].source, err) ||
                  tn_gguf_read_header(&x.in, &x.old, &x.arena) || tn_gguf_skip_tensors(&x.in, &x.old) ||
                  check_alignment(&x, err) || put_meta(&x, err) || put_header(&x, err) ||
                  write_all(&x, sink, size, shared, err);
    tn_gguf_end(&x.in);
    tn_gguf_header_free(&x.old);
    tn_buf_free(&x.pairs);
    tn_buf_free(&x.header);
    tn_arena_free(&x.arena);
    return failed ? err->status : TN_OK;
}
