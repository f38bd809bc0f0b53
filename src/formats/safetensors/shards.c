/* formats/safetensors/shards.c - sets of files: `STEM.safetensors.index.json`
 * says in its `weight_map` which tensor is in which file beside it. */
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
    const char **files;         /* of shard 1, 2 ... (shard 0 is the index) as the index names them */
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

/* Whether an object with a key weight_map begins here; the text may end anywhere. */
static bool has_weight_map(const char *text, size_t n)
{
    tn_arena arena = { 0 };
    tn_json j;
    tn_text key;
    bool found = false;
    while (n && (text[n - 1] & 0x80))           /* half a character is no character */
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
    while (i < n && (head[i] == ' ' || head[i] == '\n' || head[i] == '\r' || head[i] == '\t'))
        i++;
    if (i == n || head[i] != '{' || !memmem(head + i, n - i, mark, strlen(mark)))
        return 0;
    /* inside of something else, or damaged: ours to explain */
    return has_weight_map((const char *)head, n) ? 80 : 30;
}

/* The path of a file in the folder of the index. */
static const char *beside(tn_file *file, const char *name)
{
    const char *path = file->shards[0].path;
    return tn_arena_printf(&file->arena, "%.*s%s", (int)(tn_base_name(path) - path), path, name);
}

/* A file named for the first time: only a plain name beside the index is followed. */
static tn_status add_file(tn_st_index *x, tn_file *file, const char *name, uint64_t at, tn_error *err)
{
    if (!*name || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return tn_fail_at(err, TN_ERR_CORRUPT, at,
                          "expected the plain name of a file in the same folder but found %s",
                          tn_quote_z(name).text);
    const char **grown = tn_grow(x->files, x->nfiles, &x->files_cap, sizeof *grown);
    const char *path = beside(file, name);
    if (!grown || !path)
        return tn_fail_nomem(err);
    x->files = grown;
    x->files[x->nfiles++] = name;
    if (tn_names_add(&x->file_names, x, listed_file, x->nfiles - 1) == TN_NAMES_NOMEM)
        return tn_fail_nomem(err);
    uint32_t shard;
    tn_status status = tn_file_add_shard(file, path, &shard, err);
    return tn_in_file(status, path, err);
}

/* The shard of this file name; opens it when it is new. */
static tn_status find_file(tn_st_index *x, tn_file *file, tn_text name, uint64_t at, uint32_t *shard,
                           tn_error *err)
{
    if (x->count) {             /* tensors of one file mostly follow each other */
        *shard = x->tensors[x->count - 1].shard;
        if (tn_text_is(name, x->files[*shard - 1]))
            return TN_OK;
    }
    const char *text = tn_file_text(file, name, "file name", at, err);
    if (!text)
        return err->status;
    size_t i = tn_names_find(&x->file_names, x, listed_file, text);
    tn_status status = TN_OK;
    if (i >= x->nfiles) {
        i = x->nfiles;
        status = add_file(x, file, text, at, err);
    }
    *shard = (uint32_t)i + 1;
    return status;
}

static tn_status list_tensor(tn_st_index *x, tn_file *file, tn_text name, tn_text file_name, uint64_t at,
                             tn_error *err)
{
    listed l = { .at = at, .name = tn_file_text(file, name, "tensor name", at, err) };
    if (!l.name)
        return err->status;
    tn_status status = find_file(x, file, file_name, at, &l.shard, err);
    if (status)
        return status;
    listed *grown = tn_grow(x->tensors, x->count, &x->cap, sizeof *grown);
    if (!grown)
        return tn_fail_nomem(err);
    x->tensors = grown;
    x->tensors[x->count++] = l;
    size_t other = tn_names_add(&x->names, x, listed_name, x->count - 1);
    if (other == TN_NAMES_NOMEM)
        return tn_fail_nomem(err);
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
        tn_status status = list_tensor(x, file, name, file_name, at, err);
        if (status)
            return status;
    }
    return j->status ? tn_json_fail(j, 0, err) : TN_OK;
}

static tn_status read_index(tn_st_index *x, tn_file *file, tn_text text, tn_error *err)
{
    tn_json j;
    tn_text key;
    bool map = false;
    tn_status status = TN_OK;
    if (!tn_names_init(&x->names, 0) || !tn_names_init(&x->file_names, 0))
        return tn_fail_nomem(err);
    tn_json_init(&j, text.ptr, text.len, &file->arena);
    tn_json_object(&j);
    while (!status && tn_json_key(&j, &key)) {
        bool is_map = tn_text_is(key, "weight_map"), is_metadata = tn_text_is(key, "metadata");
        if ((is_map && map) || (is_metadata && x->metadata.len)) {
            status = tn_fail_at(err, TN_ERR_CORRUPT, j.pos, "%s is there twice",
                                is_map ? "weight_map" : "metadata");
        } else if (is_map) {
            map = true;
            status = read_weight_map(x, file, &j, err);
        } else if (is_metadata) {
            x->metadata_at = j.pos;
            x->metadata = tn_json_raw(&j);
        } else {
            tn_json_skip(&j);
        }
    }
    if (status)
        return status;
    if (!tn_json_done(&j))
        return tn_json_fail(&j, 0, err);
    return map ? TN_OK : tn_fail(err, TN_ERR_CORRUPT, "the index has no weight_map");
}

tn_status tn_st_index_claim(tn_st_index *x, const tn_file *file, const char *name, uint32_t shard,
                            uint64_t at, tn_error *err)
{
    size_t i = tn_names_find(&x->names, x, listed_name, name);
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
    tn_status status = TN_OK;
    for (size_t i = 0; i < x->nfiles && !status; i++) {
        status = tn_st_read_shard(file, (uint32_t)i + 1, x, all, err);
        tn_in_file(status, file->shards[i + 1].path, err);
    }
    return status ? status : check_found(x, err);
}

/* One value of the index's metadata: text as it is, anything else as CBOR. */
static tn_status take_value(tn_json *j, tn_file *file, uint64_t at, tn_meta *meta, tn_error *err)
{
    if (tn_json_peek(j) == TN_JSON_STRING) {
        tn_text text = tn_json_string(j);
        meta->text = j->status ? NULL : tn_file_text(file, text, "metadata value", at, err);
        return meta->text ? TN_OK : j->status ? tn_json_fail(j, at, err) : err->status;
    }
    tn_buf cbor = { 0 };
    tn_json_to_cbor(j, &cbor);
    if (!j->status && !cbor.bad)
        meta->cbor = tn_arena_copy(&file->arena, cbor.data, cbor.size);
    meta->cbor_size = cbor.size;
    tn_buf_free(&cbor);
    return meta->cbor ? TN_OK : j->status ? tn_json_fail(j, at, err) : tn_fail_nomem(err);
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
        if (!meta.key)
            return err->status;
        tn_status status = take_value(&j, file, x->metadata_at, &meta, err);
        if (!status)
            status = tn_st_merge(all, &meta, file->shards[0].path, x->metadata_at, err);
        if (status)
            return status;
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
    tn_status status = load_index(file, &text, err);
    if (!status)
        status = read_index(&x, file, text, err);
    if (!status)
        status = read_files(&x, file, &all, err);
    if (!status)
        status = merge_index_metadata(&x, file, &all, err);
    if (!status)
        status = tn_st_finish_open(file, &all, err);
    free(x.tensors);
    free(x.files);
    tn_names_free(&x.names);
    tn_names_free(&x.file_names);
    tn_st_merged_free(&all);
    return status;
}

/* --- writing: which entry goes into which file --- */

uint64_t tn_st_place(const tn_writer *w, uint64_t at, uint64_t nbytes)
{
    uint64_t placed = at;
    if (w->options.filler && nbytes && !tn_align_u64(at, w->options.align, &placed))
        placed = UINT64_MAX;
    return placed;
}

/* Bytes of data once entries [first, last) follow the `at` bytes before them. */
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

/* Cuts the entries, in their order and whole tensors only; gives the number of
 * files.  `files` may be NULL, to count them. */
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
                         "in %s",
                         TN_ST_SUFFIX);
    out->nfiles = cut(w, NULL);
    out->files = tn_arena_zalloc(&w->arena, out->nfiles, sizeof *out->files);
    if (!out->files)
        return tn_fail_nomem(err);
    cut(w, out->files);
    tn_status status = tn_st_plan_old(w, out, err);
    for (size_t i = 0; i < out->nfiles && out->nfiles > 1 && !status; i++)
        status = tn_writer_add_member(w, &out->files[i].file, err);
    if (status || out->nfiles > 1)
        return status;
    const char *path = tn_st_is_index_path(w->path) ? tn_st_path_with(w, TN_ST_SUFFIX) : w->path;
    return path ? tn_writer_add_file(w, path, &out->files[0].file, err) : tn_fail_nomem(err);
}

/* --- writing: the index --- */

/* The ecosystem keeps total_size here; the file's metadata, which is in every
 * shard too, is repeated where JSON can hold it. */
static void put_index_metadata(const tn_st_out *out, tn_buf *b)
{
    uint64_t total = 0;
    for (size_t i = 0; i < out->nfiles; i++)
        total += out->files[i].data_size;
    tn_buf_printf(b, "{\"metadata\":{\"total_size\":%llu", (unsigned long long)total);
    for (size_t i = 0; i < out->nmeta; i++) {
        const tn_meta *m = &out->meta[i];
        tn_buf value = { 0 };
        if (!m->key || strcmp(m->key, "total_size") == 0)
            continue;
        if (m->text)
            tn_json_put_z(&value, m->text);
        else
            tn_cbor_to_json(m->cbor, m->cbor_size, &value);
        if (value.size) {
            tn_buf_putc(b, ',');
            tn_json_put_z(b, m->key);
            tn_buf_putc(b, ':');
            tn_buf_put(b, value.data, value.size);
        }
        b->bad |= value.bad;
        tn_buf_free(&value);
    }
}

static void put_weight(tn_buf *b, const char *name, const char *file, bool *any)
{
    if (*any)
        tn_buf_putc(b, ',');
    *any = true;
    tn_json_put_z(b, name);
    tn_buf_putc(b, ':');
    tn_json_put_z(b, file);
}

static void put_weight_map(const tn_writer *w, const tn_st_out *out, tn_buf *b)
{
    bool any = false;
    tn_buf_puts(b, "},\"weight_map\":{");
    for (size_t k = 0; k < out->nfiles; k++) {
        const tn_st_out_file *f = &out->files[k];
        const char *name = w->files[f->file].path;
        for (size_t i = f->first; i < f->last; i++)
            put_weight(b, w->entries[i].name, name, &any);
        for (size_t i = 0; i < f->fillers; i++) {
            char filler[64];
            snprintf(filler, sizeof filler, TN_ST_FILLER_START "%zu" TN_ST_FILLER_END, f->first_filler + i);
            put_weight(b, filler, name, &any);
        }
    }
    tn_buf_puts(b, "}}\n");
}

static tn_status build_index(const tn_writer *w, const tn_st_out *out, tn_buf *b, tn_error *err)
{
    put_index_metadata(out, b);
    put_weight_map(w, out, b);
    if (b->bad)
        return tn_fail_nomem(err);
    if (b->size > TN_ST_HEADER_MAX)
        return tn_fail(err, TN_ERR_LIMIT, "the index would take %zu bytes but at most %u can be read back",
                       b->size, TN_ST_HEADER_MAX);
    return TN_OK;
}

/* The id is not known as yet, but how long it is: an index or a name that is too long is refused before
 * any data is written. */
static tn_status check_index(tn_writer *w, const tn_st_out *out, tn_error *err)
{
    tn_buf b = { 0 };
    const char *id = out->replaces ? TN_SET_NO_ID : NULL, *name = NULL;
    for (size_t i = 0; i < out->nfiles; i++)
        if (!(w->files[out->files[i].file].path = name = tn_st_member_name(w, i, id)))
            return tn_fail_nomem(err);
    tn_status status = tn_writer_check_name(w, name, err);      /* the last one: none is longer */
    if (!status)
        status = build_index(w, out, &b, err);
    tn_buf_free(&b);
    return status;
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
    tn_status status = tn_writer_name_members(w, tn_st_member_name, out->replaces, err);
    if (!status)
        status = build_index(w, out, &b, err);
    if (!status)
        status = tn_writer_put(w, out->index_file, 0, b.data, b.size, err);
    w->files[out->index_file].end = b.size;
    tn_buf_free(&b);
    return status;
}
