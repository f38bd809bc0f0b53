/* formats/safetensors/shards.c - sharded sets: the `weight_map` of
 * `STEM.safetensors.index.json` names the file of each tensor. */
#include "formats/safetensors/safetensors.h"
#include "base/checked.h"
#include "base/cursor.h"
#include "base/error.h"
#include "bytes/transcode.h"
#include "store/publish.h"

#include <stdio.h>
#include <stdlib.h>

/* --- reading --- */

/* Headers beyond the first bytes of their files are fetched together. */
static void expect_headers(const tn_file *file)
{
    for (size_t i = 1; i < file->nshards; i++) {
        const tn_source *source = file->shards[i].source;
        uint64_t size = tn_source_size(source), n;
        uint8_t length[8];
        if (!tn_source_is_far(source) || size < sizeof length ||
            tn_source_read(source, 0, length, sizeof length, NULL))
            continue;
        n = tn_load_u64le(length);
        if (n <= TN_ST_HEADER_MAX && n <= size - sizeof length)
            tn_source_expect(source, &(tn_range){ sizeof length, n }, 1);
    }
}

static tn_status read_files(tn_set_index *x, tn_file *file, tn_st_merged *all, tn_error *err)
{
    expect_headers(file);
    for (uint32_t shard = 1; shard <= x->nfiles; shard++)
        if (tn_st_read_shard(file, shard, x, all, err))
            return tn_in_file(err->status, file->shards[shard].path, err);
    return tn_set_check_found(x, err);
}

tn_status tn_st_open_set(tn_file *file, tn_error *err)
{
    tn_set_index x = { 0 };
    tn_st_merged all = { 0 };
    bool failed = tn_set_open(&x, file, TN_ST_HEADER_MAX, err) || read_files(&x, file, &all, err) ||
                  tn_set_merge_index(&x, file, false, &all.meta, err) || tn_st_finish_open(file, &all, err);
    tn_set_free(&x);
    tn_set_merged_free(&all.meta);
    return failed ? err->status : TN_OK;
}

/* --- writing: which entry goes into which file --- */

uint64_t tn_st_place(const tn_writer *w, uint64_t at, uint64_t nbytes)
{
    const tn_st_out *out = w->state;
    uint64_t placed = at;
    if (out->fills && nbytes && !tn_align_u64(at, w->options.align, &placed))
        placed = UINT64_MAX;
    return placed;
}

/* Bytes of data when entries [first, last) follow the first `at` bytes. */
static uint64_t end_after(const tn_writer *w, uint64_t at, size_t first, size_t last)
{
    for (size_t i = first; i < last; i++) {
        at = tn_st_place(w, at, w->entries[i].nbytes);
        if (!tn_add_u64(at, w->entries[i].nbytes, &at))
            return UINT64_MAX;
    }
    return at;
}

static size_t end_of_tensor(const tn_writer *w, size_t first)
{
    size_t last = first + 1;
    while (last < w->count && w->entries[last].tensor == w->entries[first].tensor)
        last++;
    return last;
}

/* Distributes the entries over files, in order and whole tensors only.  Returns
 * the number of files; `files` may be NULL, to count them. */
static size_t cut(const tn_writer *w, tn_st_out_file *files)
{
    uint64_t limit = w->options.shard_size ? w->options.shard_size : UINT64_MAX, at = 0;
    size_t n = 0, first = 0;
    for (size_t i = 0, last; i < w->count; i = last) {
        last = end_of_tensor(w, i);
        uint64_t end = end_after(w, at, i, last);
        if (end > limit && i > first) {
            if (files)
                files[n] = (tn_st_out_file){ .first = first, .last = i };
            n++;
            first = i;
            end = end_after(w, 0, i, last);
        }
        at = end;
    }
    if (files)
        files[n] = (tn_st_out_file){ .first = first, .last = w->count };
    return n + 1;
}

tn_status tn_st_cut(tn_writer *w, tn_st_out *out, tn_error *err)
{
    if (!w->options.shard_size && tn_st_is_index_path(w->path))
        return tn_refuse(err, TN_ERR_ARGUMENT, TN_REASON_SHARD_SIZE, NULL,
                         "this is the name of the index of a sharded set: give a shard size, or end the name "
                         "in " TN_ST_SUFFIX);
    out->nfiles = cut(w, NULL);
    out->files = tn_arena_zalloc(&w->arena, out->nfiles, sizeof *out->files);
    TN_NEED(out->files, err);
    cut(w, out->files);
    TN_TRY(tn_st_plan_old(w, out, err));
    for (size_t i = 0; i < out->nfiles && out->nfiles > 1; i++)
        TN_TRY(tn_writer_add_member(w, &out->files[i].file, err));
    if (out->nfiles > 1)
        return TN_OK;
    const char *path = tn_st_is_index_path(w->path) ? tn_st_path_with(w, TN_ST_SUFFIX) : w->path;
    return path ? tn_writer_add_file(w, path, &out->files[0].file, err) : tn_fail_nomem(err);
}

/* --- writing: the index --- */

/* total_size, as other programs write it, and the file's metadata (which is in
 * every shard too) as far as JSON can hold it. */
static void put_index_metadata(const tn_st_out *out, tn_buf *b)
{
    uint64_t total = 0;
    for (size_t i = 0; i < out->nfiles; i++)
        total += out->files[i].data_size;
    tn_buf_printf(b, "{\"metadata\":{\"total_size\":%llu", (unsigned long long)total);
    for (size_t i = 0; i < out->nmeta; i++) {
        const tn_meta *m = &out->meta[i];
        size_t before = b->size;
        if (!m->key || strcmp(m->key, "total_size") == 0)
            continue;
        tn_json_put_key(b, m->key);
        if (m->text)
            tn_json_put_z(b, m->text);
        else if (!tn_cbor_to_json(m->cbor, m->cbor_size, b))
            b->size = before;
    }
}

static void put_weight(tn_buf *b, const char *name, const char *file)
{
    tn_json_put_key(b, name);
    tn_json_put_z(b, file);
}

static void put_weight_map(const tn_writer *w, const tn_st_out *out, tn_buf *b)
{
    tn_buf_puts(b, "},\"weight_map\":{");
    for (size_t k = 0; k < out->nfiles; k++) {
        const tn_st_out_file *f = &out->files[k];
        const char *name = w->files[f->file].path;
        for (size_t i = f->first; i < f->last; i++)
            put_weight(b, w->entries[i].name, name);
        for (size_t i = 0; i < f->fillers; i++)
            put_weight(b, tn_st_filler_name(f->first_filler + i).text, name);
    }
    tn_buf_puts(b, "}}\n");
}

static tn_status build_index(const tn_writer *w, const tn_st_out *out, tn_buf *b, tn_error *err)
{
    put_index_metadata(out, b);
    put_weight_map(w, out, b);
    TN_NEED(!b->bad, err);
    if (b->size > TN_ST_HEADER_MAX)
        return tn_fail(err, TN_ERR_LIMIT, "the index would take %zu bytes but at most %u can be read back",
                       b->size, TN_ST_HEADER_MAX);
    return TN_OK;
}

/* Refuses an index or a name that is too long before any data is written.  Only the length of the id is known
 * yet. */
static tn_status check_index(tn_writer *w, const tn_st_out *out, tn_error *err)
{
    tn_buf b = { 0 };
    const char *id = out->replaces ? TN_SET_NO_ID : NULL, *name = NULL;
    for (size_t i = 0; i < out->nfiles; i++)
        if (!(w->files[out->files[i].file].path = name = tn_st_member_name(w, i, id)))
            return tn_fail_nomem(err);
    /* the last name: none is longer */
    bool failed = tn_writer_check_name(w, name, err) || build_index(w, out, &b, err);
    tn_buf_free(&b);
    return failed ? err->status : TN_OK;
}

tn_status tn_st_plan_index(tn_writer *w, tn_st_out *out, tn_error *err)
{
    if (out->nfiles == 1)
        return TN_OK;
    const char *path = tn_st_path_with(w, TN_ST_INDEX_SUFFIX);
    tn_status status = path ? check_index(w, out, err) : tn_fail_nomem(err);
    return status ? status : tn_writer_add_file(w, path, &out->index_file, err);
}

tn_status tn_st_put_index(tn_writer *w, tn_st_out *out, tn_error *err)
{
    tn_buf b = { 0 };
    bool failed = tn_writer_name_members(w, tn_st_member_name, out->replaces, err) ||
                  build_index(w, out, &b, err) ||
                  tn_writer_put(w, out->index_file, 0, b.data, b.size, err);
    w->files[out->index_file].end = b.size;
    tn_buf_free(&b);
    return failed ? err->status : TN_OK;
}
