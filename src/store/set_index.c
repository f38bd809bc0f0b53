/* store/set_index.c - the index of a sharded set: its `weight_map` names the file of each tensor. */
#include "store/set_index.h"
#include "base/error.h"
#include "bytes/json.h"
#include "bytes/transcode.h"

#include <stdlib.h>

/* --- the index --- */

static const char *listed_name(const void *owner, size_t i)
{
    return ((const tn_set_index *)owner)->tensors[i].name;
}

static const char *listed_file(const void *owner, size_t i)
{
    return ((const tn_set_index *)owner)->files[i];
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

int tn_set_probe(const uint8_t *head, size_t n)
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

/* A file that is named for the first time.  It must be in the folder of the index. */
static tn_status add_file(tn_set_index *x, tn_file *file, const char *name, uint64_t at, tn_error *err)
{
    const char *index = file->shards[0].path;
    int folder = (int)(tn_base_name(index) - index);
    if (!tn_is_plain_name((tn_text){ name, strlen(name) }))
        return tn_fail_at(err, TN_ERR_CORRUPT, at,
                          "expected the plain name of a file in the same folder but found %s",
                          tn_quote_z(name).text);
    TN_NEED(TN_GROW(x->files, x->nfiles, x->files_cap) && TN_GROW(x->paths, x->nfiles, x->paths_cap), err);
    x->paths[x->nfiles] = tn_arena_printf(&file->arena, "%.*s%s", folder, index, name);
    TN_NEED(x->paths[x->nfiles], err);
    x->files[x->nfiles++] = name;
    TN_NEED(tn_names_add(&x->file_names, x, listed_file, x->nfiles - 1) != TN_NAMES_NOMEM, err);
    return TN_OK;
}

/* The shard of this file name. */
static tn_status find_file(tn_set_index *x, tn_file *file, tn_text name, uint64_t at, uint32_t *shard,
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

static tn_status list_tensor(tn_set_index *x, tn_file *file, tn_text name, tn_text file_name, uint64_t at,
                             tn_error *err)
{
    tn_set_listed l = { .at = at, .name = tn_file_text(file, name, "tensor name", at, err) };
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

static tn_status read_weight_map(tn_set_index *x, tn_file *file, tn_json *j, tn_error *err)
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

static tn_status read_index(tn_set_index *x, tn_file *file, tn_text text, tn_error *err)
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

tn_status tn_set_claim(tn_set_index *x, tn_file *file, const char *name, uint32_t shard,
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

tn_status tn_set_check_found(const tn_set_index *x, tn_error *err)
{
    for (size_t i = 0; i < x->count; i++) {
        const tn_set_listed *l = &x->tensors[i];
        if (!l->found)
            return tn_in_tensor(tn_fail_at(err, TN_ERR_CORRUPT, l->at,
                                           "it is not in %s, where the index says it is",
                                           tn_quote_z(x->files[l->shard - 1]).text),
                                l->name, err);
    }
    return TN_OK;
}

/* --- metadata of all files --- */

static const char *merged_key(const void *owner, size_t i)
{
    return ((const tn_set_merged *)owner)->items[i].key;
}

static bool same_value(const tn_meta *a, const tn_meta *b)
{
    if (a->text || b->text)
        return a->text && b->text && strcmp(a->text, b->text) == 0;
    return a->cbor_size == b->cbor_size && memcmp(a->cbor, b->cbor, a->cbor_size) == 0;
}

tn_status tn_set_merge(tn_set_merged *all, const tn_meta *meta, const char *from, uint64_t at, tn_error *err)
{
    TN_NEED(TN_GROW(all->items, all->count, all->cap), err);
    TN_NEED(TN_GROW(all->from, all->count, all->from_cap), err);
    all->items[all->count] = *meta;
    all->from[all->count] = from;
    size_t other = tn_names_add(&all->names, all, merged_key, all->count);
    TN_NEED(other != TN_NAMES_NOMEM, err);
    if (other == TN_NAMES_ADDED) {
        all->count++;
        return TN_OK;
    }
    if (same_value(&all->items[other], meta))
        return TN_OK;
    if (strcmp(all->from[other], from) == 0)
        return tn_fail_at(err, TN_ERR_CORRUPT, at, "metadata key %s is there twice",
                          tn_quote_z(meta->key).text);
    return tn_fail_at(err, TN_ERR_CORRUPT, at, "metadata key %s has one value in %s and another in %s",
                      tn_quote_z(meta->key).text, tn_quote_z(all->from[other]).text, tn_quote_z(from).text);
}

void tn_set_merged_free(tn_set_merged *all)
{
    free(all->items);
    free(all->from);
    tn_names_free(&all->names);
    *all = (tn_set_merged){ 0 };
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

tn_status tn_set_merge_index(const tn_set_index *x, tn_file *file, bool keeps_size, tn_set_merged *all,
                             tn_error *err)
{
    tn_json j;
    tn_text key;
    if (!x->metadata.len)
        return TN_OK;
    tn_json_init(&j, x->metadata.ptr, x->metadata.len, &file->arena);
    tn_json_object(&j);
    while (tn_json_key(&j, &key)) {
        if (tn_text_is(key, "total_size") && !keeps_size) {     /* follows from the tensors */
            tn_json_skip(&j);
            continue;
        }
        tn_meta meta = { .key = tn_file_text(file, key, "metadata key", x->metadata_at, err) };
        if (!meta.key || take_value(&j, file, x->metadata_at, &meta, err) ||
            tn_set_merge(all, &meta, file->shards[0].path, x->metadata_at, err))
            return err->status;
    }
    return j.status ? tn_json_fail(&j, x->metadata_at, err) : TN_OK;
}

static tn_status load_index(tn_file *file, size_t most, tn_text *text, tn_error *err)
{
    if (!*file->shards[0].path)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "this is the index of a sharded set, whose files are found "
                       "by its path: open it by path");
    return tn_file_load(file, most, "an index", text, err);
}

tn_status tn_set_open(tn_set_index *x, tn_file *file, size_t most, tn_error *err)
{
    tn_text text = { 0 };
    TN_TRY(load_index(file, most, &text, err));
    TN_TRY(read_index(x, file, text, err));
    return tn_file_add_shards(file, x->paths, x->nfiles, err);
}

void tn_set_free(tn_set_index *x)
{
    free(x->tensors);
    free(x->files);
    free(x->paths);
    tn_names_free(&x->names);
    tn_names_free(&x->file_names);
}
