/* formats/safetensors/shards.c - sharded sets: the `weight_map` of
 * `STEM.safetensors.index.json` names the file of each tensor. */
#include "formats/safetensors/safetensors.h"
#include "base/checked.h"
#include "base/error.h"
#include "bytes/transcode.h"
#include "store/publish.h"

#include <stdio.h>
#include <stdlib.h>

/* --- reading --- */

typedef struct listed {
    const char *name;
    uint64_t    at;
    uint32_t    shard;
    bool        found;
} listed;

typedef struct tn_st_index {
    listed      *tensors;
    size_t       count, cap;
    tn_names     names;
    const char **files;         /* names of shards 1, 2 ... (shard 0 is the index) */
    size_t       nfiles, files_cap;
    tn_names     file_names;
    tn_text      metadata;      /* JSON object, or len 0 */
    uint64_t     metadata_at;
} tn_st_index;

static const char *listed_name(const void *owner, size_t i)
{
    return ((const tn_st_index *)owner)->tensors[i].name;
}

static const char *listed_file(const void *owner, size_t i)
{
    return ((const tn_st_index *)owner)->files[i];
}

/* Whether the text begins with an object that has a key weight_map.  It may be cut anywhere. */
static bool has_weight_map(const char *text, size_t n)
{
    tn_arena arena = { 0 };
    tn_json j;
    tn_text key;
    bool found = false;
    while (n && (text[n - 1] & 0x80))           /* a character may be cut */
        n--;
    tn_json_init(&j, text, n, &arena);
    tn_json_object(&j);
    while (!found && tn_json_key(&j, &key)) {
        found = tn_text_is(key, "weight_map");
        if (!found)
            tn_json_skip(&j);
    }
    tn_arena_free(&arena);
    return found;
}

int tn_st_probe_index(const uint8_t *head, size_t n)
{
    static const char mark[] = "\"weight_map\"";
    size_t i = 0;
    while (i < n && tn_is_space((char)head[i]))
        i++;
    if (i == n || head[i] != '{' || !memmem(head + i, n - i, mark, strlen(mark)))
        return 0;
    /* 30: nested in something else, or damaged, which the reader explains */
    return has_weight_map((const char *)head, n) ? 80 : 30;
}

/* Opens a file that is named for the first time.  It must be in the folder of the index. */
static tn_status add_file(tn_st_index *x, tn_file *file, const char *name, uint64_t at, tn_error *err)
{
    uint32_t shard;
    const char *index = file->shards[0].path;
    int folder = (int)(tn_base_name(index) - index);
    if (!tn_is_plain_name((tn_text){ name, strlen(name) }))
        return tn_fail_at(err, TN_ERR_CORRUPT, at,
                          "expected the plain name of a file in the same folder but found %s",
                          tn_quote_z(name).text);
    TN_NEED(TN_GROW(x->files, x->nfiles, x->files_cap), err);
    x->files[x->nfiles++] = name;
    const char *path = tn_arena_printf(&file->arena, "%.*s%s", folder, index, name);
    TN_NEED(path && tn_names_add(&x->file_names, x, listed_file, x->nfiles - 1) != TN_NAMES_NOMEM, err);
    return tn_in_file(tn_file_add_shard(file, path, &shard, err), path, err);
}

/* The shard of this file name; it is opened if it is new. */
static tn_status find_file(tn_st_index *x, tn_file *file, tn_text name, uint64_t at, uint32_t *shard,
                           tn_error *err)
{
    if (x->count) {             /* most tensors are in the same file as the one before */
        *shard = x->tensors[x->count - 1].shard;
        if (tn_text_is(name, x->files[*shard - 1]))
            return TN_OK;
    }
    const char *text = tn_file_text(file, name, "file name", at, err);
    if (!text)
        return err->status;
    size_t i = tn_names_find(&x->file_names, x, listed_file, text);
    *shard = (uint32_t)(i < x->nfiles ? i : x->nfiles) + 1;
    return i < x->nfiles ? TN_OK : add_file(x, file, text, at, err);
}

static tn_status list_tensor(tn_st_index *x, tn_file *file, tn_text name, tn_text file_name, uint64_t at,
                             tn_error *err)
{
    listed l = { .at = at, .name = tn_file_text(file, name, "tensor name", at, err) };
    if (!l.name || find_file(x, file, file_name, at, &l.shard, err))
        return err->status;
    TN_NEED(TN_GROW(x->tensors, x->count, x->cap), err);
    x->tensors[x->count++] = l;
    size_t other = tn_names_add(&x->names, x, listed_name, x->count - 1);
    TN_NEED(other != TN_NAMES_NOMEM, err);
    if (other != TN_NAMES_ADDED)
        return tn_in_tensor(tn_fail_at(err, TN_ERR_CORRUPT, at, "it is listed twice: first at byte %llu",
                                       (unsigned long long)x->tensors[other].at),
                            l.name, err);
    return TN_OK;
}

static tn_status read_weight_map(tn_st_index *x, tn_file *file, tn_json *j, tn_error *err)
{
    tn_text name;
    tn_json_object(j);
    while (tn_json_key(j, &name)) {
        uint64_t at = j->pos;
        tn_text file_name = tn_json_string(j);
        if (j->status)
            return tn_fail_at(err, j->status, j->at, "tensor %s: %s", tn_quote(name.ptr, name.len).text,
                              j->why);
        TN_TRY(list_tensor(x, file, name, file_name, at, err));
    }
    return j->status ? tn_json_fail(j, 0, err) : TN_OK;
}

static tn_status read_index(tn_st_index *x, tn_file *file, tn_text text, tn_error *err)
{
    tn_json j;
    tn_text key;
    bool map = false;
    tn_json_init(&j, text.ptr, text.len, &file->arena);
    tn_json_object(&j);
    while (tn_json_key(&j, &key)) {
        bool is_map = tn_text_is(key, "weight_map"), is_metadata = tn_text_is(key, "metadata");
        if ((is_map && map) || (is_metadata && x->metadata.len))
            return tn_fail_at(err, TN_ERR_CORRUPT, j.pos, "%s is there twice",
                              is_map ? "weight_map" : "metadata");
        map |= is_map;
        if (is_map && read_weight_map(x, file, &j, err))
            return err->status;
        if (is_metadata) {
            x->metadata_at = j.pos;
            x->metadata = tn_json_raw(&j);
        } else if (!is_map) {
            tn_json_skip(&j);
        }
    }
    if (!tn_json_done(&j))
        return tn_json_fail(&j, 0, err);
    return map ? TN_OK : tn_fail(err, TN_ERR_CORRUPT, "the index has no weight_map");
}

tn_status tn_st_index_claim(tn_st_index *x, tn_file *file, const char *name, uint32_t shard,
                            uint64_t at, tn_error *err)
{
    size_t i = tn_names_find(&x->names, x, listed_name, name);
    if (i >= x->count && !file->strict) {
        tn_file_warn(file, at, "tensor %s is in %s but not in the index", tn_quote_z(name).text,
                     tn_quote_z(x->files[shard - 1]).text);
        return TN_OK;
    }
    if (i >= x->count)
        return tn_fail_at(err, TN_ERR_CORRUPT, at, "it is not in the index %s",
                          tn_quote_z(file->shards[0].path).text);
    if (x->tensors[i].shard != shard)
        return tn_fail_at(err, TN_ERR_CORRUPT, at, "it is here but the index says it is in %s",
                          tn_quote_z(x->files[x->tensors[i].shard - 1]).text);
    x->tensors[i].found = true;
    return TN_OK;
}

static tn_status check_found(const tn_st_index *x, tn_error *err)
{
    for (size_t i = 0; i < x->count; i++) {
        const listed *l = &x->tensors[i];
        if (!l->found)
            return tn_in_tensor(tn_fail_at(err, TN_ERR_CORRUPT, l->at,
                                           "it is not in %s, where the index says it is",
                                           tn_quote_z(x->files[l->shard - 1]).text),
                                l->name, err);
    }
    return TN_OK;
}

static tn_status read_files(tn_st_index *x, tn_file *file, tn_st_merged *all, tn_error *err)
{
    for (uint32_t shard = 1; shard <= x->nfiles; shard++)
        if (tn_st_read_shard(file, shard, x, all, err))
            return tn_in_file(err->status, file->shards[shard].path, err);
    return check_found(x, err);
}

/* A value of the index's metadata: text, or else CBOR. */
static tn_status take_value(tn_json *j, tn_file *file, uint64_t at, tn_meta *meta, tn_error *err)
{
    if (tn_json_peek(j) == TN_JSON_STRING) {
        tn_text text = tn_json_string(j);
        if (j->status)
            return tn_json_fail(j, at, err);
        meta->text = tn_file_text(file, text, "metadata value", at, err);
        return meta->text ? TN_OK : err->status;
    }
    tn_buf cbor = { 0 };
    tn_json_to_cbor(j, &cbor);
    if (!j->status && !cbor.bad)
        meta->cbor = tn_arena_copy(&file->arena, cbor.data, cbor.size);
    meta->cbor_size = cbor.size;
    tn_buf_free(&cbor);
    if (j->status)
        return tn_json_fail(j, at, err);
    return meta->cbor ? TN_OK : tn_fail_nomem(err);
}

static tn_status merge_index_metadata(const tn_st_index *x, tn_file *file, tn_st_merged *all, tn_error *err)
{
    tn_json j;
    tn_text key;
    if (!x->metadata.len)
        return TN_OK;
    tn_json_init(&j, x->metadata.ptr, x->metadata.len, &file->arena);
    tn_json_object(&j);
    while (tn_json_key(&j, &key)) {
        if (tn_text_is(key, "total_size")) {        /* follows from the tensors */
            tn_json_skip(&j);
            continue;
        }
        tn_meta meta = { .key = tn_file_text(file, key, "metadata key", x->metadata_at, err) };
        if (!meta.key || take_value(&j, file, x->metadata_at, &meta, err) ||
            tn_st_merge(all, &meta, file->shards[0].path, x->metadata_at, err))
            return err->status;
    }
    return j.status ? tn_json_fail(&j, x->metadata_at, err) : TN_OK;
}

static tn_status load_index(tn_file *file, tn_text *text, tn_error *err)
{
    if (!*file->shards[0].path)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "this is the index of a sharded set, whose files are found "
                       "by its path: open it by path");
    return tn_file_load(file, TN_ST_HEADER_MAX, "an index", text, err);
}

tn_status tn_st_open_set(tn_file *file, tn_error *err)
{
    tn_st_index x = { 0 };
    tn_st_merged all = { 0 };
    tn_text text = { 0 };
    bool failed = load_index(file, &text, err) || read_index(&x, file, text, err) ||
                  read_files(&x, file, &all, err) || merge_index_metadata(&x, file, &all, err) ||
                  tn_st_finish_open(file, &all, err);
    free(x.tensors);
    free(x.files);
    tn_names_free(&x.names);
    tn_names_free(&x.file_names);
    tn_st_merged_free(&all);
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
