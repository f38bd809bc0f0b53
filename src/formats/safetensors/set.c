/* formats/safetensors/set.c - the names of a set, and the set that it replaces.
 *
 *     STEM.safetensors.index.json               the index, which names the files of the set
 *     STEM-00001-of-00002.safetensors           files of a set that replaced nothing
 *     STEM-0123abcd-00001-of-00002.safetensors  files of a set that replaced another
 *     STEM.safetensors                          a single file: loaders prefer it to the index */
#include "formats/safetensors/safetensors.h"
#include "base/error.h"
#include "bytes/json.h"
#include "store/publish.h"

#include <stdio.h>
#include <stdlib.h>

/* --- names --- */

bool tn_st_is_index_path(const char *path)
{
    return tn_ends_with(path, TN_ST_INDEX_SUFFIX);
}

/* Bytes of a path or name before its suffix. */
static size_t stem_length(const char *path)
{
    size_t n = strlen(path);
    if (tn_st_is_index_path(path))
        return n - strlen(TN_ST_INDEX_SUFFIX);
    return tn_ends_with(path, TN_ST_SUFFIX) ? n - strlen(TN_ST_SUFFIX) : n;
}

const char *tn_st_path_with(tn_writer *w, const char *suffix)
{
    size_t folder = (size_t)(tn_base_name(w->path) - w->path);
    size_t n = folder + stem_length(w->path + folder);
    return tn_arena_printf(&w->arena, "%.*s%s", (int)n, w->path, suffix);
}

const char *tn_st_member_name(tn_writer *w, size_t i, const char *id)
{
    const char *base = tn_base_name(w->path);
    const tn_st_out *out = w->state;
    const char *dash = id ? "-" : "";
    id = id ? id : "";
    return tn_arena_printf(&w->arena, "%.*s%s%s-%05zu-of-%05zu" TN_ST_SUFFIX, (int)stem_length(base), base,
                           dash, id, i + 1, out->nfiles);
}

/* The text behind five digits or more, or NULL. */
static const char *skip_number(const char *text)
{
    size_t n = strspn(text, "0123456789");
    return n >= 5 ? text + n : NULL;
}

/* "00001-of-00002.safetensors" */
static bool is_numbered(const char *text)
{
    text = skip_number(text);
    text = text && strncmp(text, "-of-", 4) == 0 ? skip_number(text + 4) : NULL;
    return text && strcmp(text, TN_ST_SUFFIX) == 0;
}

/* Whether a set at this path can have a file of this name. */
static bool is_member(const char *path, const char *name)
{
    const char *base = tn_base_name(path);
    size_t stem = stem_length(base), n = strlen(name);
    if (n <= stem + 1 || memcmp(name, base, stem) != 0 || name[stem] != '-')
        return false;
    name += stem + 1;
    if (is_numbered(name))
        return true;
    return tn_is_set_id(name) && name[TN_SET_ID] == '-' && is_numbered(name + TN_SET_ID + 1) &&
           !tn_is_others_id(path, stem, name, TN_ST_INDEX_SUFFIX);
}

/* --- the old set --- */

typedef struct old_names {
    const char **items;
    size_t       count, cap;
    tn_names     names;
} old_names;

static const char *old_name(const void *owner, size_t i)
{
    return ((const old_names *)owner)->items[i];
}

static tn_status keep_name(old_names *all, tn_arena *arena, tn_text name, tn_error *err)
{
    /* most tensors are in the same file as the one before */
    if (all->count && tn_text_is(name, all->items[all->count - 1]))
        return TN_OK;
    const char *copy = tn_arena_text(arena, name.ptr, name.len);
    TN_NEED(copy && TN_GROW(all->items, all->count, all->cap), err);
    all->items[all->count] = copy;
    size_t added = tn_names_add(&all->names, all, old_name, all->count);
    all->count += added == TN_NAMES_ADDED;
    return added == TN_NAMES_NOMEM ? tn_fail_nomem(err) : TN_OK;
}

/* Collects the file names of the weight_map.  A text that is no index has none. */
static tn_status read_names(old_names *all, tn_arena *arena, tn_text text, tn_error *err)
{
    tn_json j;
    tn_text key, name;
    tn_json_init(&j, text.ptr, text.len, arena);
    tn_json_object(&j);
    while (tn_json_key(&j, &key)) {
        if (!tn_text_is(key, "weight_map")) {
            tn_json_skip(&j);
            continue;
        }
        tn_json_object(&j);
        while (tn_json_key(&j, &key)) {
            name = tn_json_string(&j);
            if (!j.status && keep_name(all, arena, name, err))
                return err->status;
        }
    }
    return j.status == TN_ERR_NOMEM ? tn_fail_nomem(err) : TN_OK;
}

/* The files that the old index names become obsolete if their names are those of a set: an index may name any
 * file. */
static tn_status replace_shards(tn_writer *w, const char *index, tn_error *err)
{
    tn_arena arena = { 0 };
    old_names all = { 0 };
    tn_text text = { 0 };
    tn_status status = tn_load_text(index, TN_ST_HEADER_MAX, &arena, &text, err);
    if (!status && text.len)
        status = read_names(&all, &arena, text, err);
    for (size_t i = 0; i < all.count && !status; i++) {
        if (!is_member(w->path, all.items[i]))
            continue;
        size_t before = w->nobsolete;
        status = tn_writer_add_obsolete(w, all.items[i], err);
        if (!status && !w->like && w->nobsolete > before &&
            !(w->like = tn_st_path_with(w, all.items[i] + stem_length(tn_base_name(w->path)))))
            status = tn_fail_nomem(err);
    }
    free(all.items);
    tn_names_free(&all.names);
    tn_arena_free(&arena);
    return status;
}

static tn_status fail_exists(const char *name, const char *why, tn_error *err)
{
    tn_status status = tn_fail(err, TN_ERR_EXISTS, "%s already exists%s", tn_quote_z(name).text, why);
    return tn_with_reason(status, TN_REASON_REPLACE, NULL, err);
}

static tn_status plan_single(tn_writer *w, tn_error *err)
{
    const char *path = tn_st_path_with(w, TN_ST_INDEX_SUFFIX);
    TN_NEED(path, err);
    const char *index = tn_base_name(path);
    if (w->dry_run || w->fd >= 0 || !tn_exists_beside(w->path, index))
        return TN_OK;
    if (!w->options.replace)
        return fail_exists(index, " and its set could be taken for the new file", err);
    tn_status status = tn_writer_add_obsolete(w, index, err);
    w->obsolete_head = true;
    return status ? status : replace_shards(w, path, err);
}

static tn_status check_members(tn_writer *w, tn_st_out *out, tn_error *err)
{
    for (size_t i = 0; i < out->nfiles; i++) {
        const char *name = tn_st_member_name(w, i, NULL);
        TN_NEED(name, err);
        if (!tn_exists_beside(w->path, name))
            continue;
        out->replaces = true;
        if (w->options.replace)
            return TN_OK;
        return fail_exists(name, "", err);
    }
    return TN_OK;
}

tn_status tn_st_plan_old(tn_writer *w, tn_st_out *out, tn_error *err)
{
    if (out->nfiles == 1)
        return plan_single(w, err);
    const char *index = tn_st_path_with(w, TN_ST_INDEX_SUFFIX), *single = tn_st_path_with(w, TN_ST_SUFFIX);
    TN_NEED(index && single, err);
    if (w->dry_run)
        return TN_OK;
    bool has_single = tn_exists_beside(w->path, tn_base_name(single));
    if (has_single && !w->options.replace)
        return fail_exists(tn_base_name(single), " and would be taken for the new set", err);
    TN_TRY(check_members(w, out, err));
    if (has_single) {
        TN_TRY(tn_writer_add_obsolete(w, tn_base_name(single), err));
        w->like = single;
    }
    if (tn_exists_beside(w->path, tn_base_name(index)) && w->options.replace) {
        out->replaces = true;
        w->like = NULL;
        TN_TRY(replace_shards(w, index, err));
        w->like = w->like ? w->like : index;
    }
    for (size_t i = 0; i < w->count && out->replaces; i++)
        w->entries[i].checksum = TN_CHECKSUM_CRC32C;        /* for the id of the set */
    return TN_OK;
}

/* --- other files in the folder --- */

static bool has_beside(const tn_beside *b, const char *behind, char *name, size_t room)
{
    const char *base = tn_base_name(b->path);
    int n = snprintf(name, room, "%.*s%s", (int)stem_length(base), base, behind);
    return n > 0 && (size_t)n < room && tn_exists_beside(b->path, name);
}

void tn_st_look_beside(const tn_beside *b)
{
    char name[512];
    bool set = tn_st_is_index_path(b->path);
    if (!set && !tn_ends_with(b->path, TN_ST_SUFFIX))
        return;
    if (set && has_beside(b, TN_ST_SUFFIX, name, sizeof name))
        tn_note(b, true, "%s has the same name as the index, and programs load it instead of this set: "
                "remove one of the two", tn_quote_z(name).text);
    if (!set && has_beside(b, TN_ST_INDEX_SUFFIX, name, sizeof name)) {
        tn_note(b, true, "%s is the index of a set of the same name, which programs may load instead of this "
                "file: remove one of the two", tn_quote_z(name).text);
        return;                 /* the shards belong to that index */
    }
    tn_note_strays(b, is_member);
}
