/* formats/raw/pair.c - the names of the two files, and the pair that they replace.
 *
 *     NAME.json          the descriptors, which name the data
 *     NAME.bin           the data of a pair that replaced nothing
 *     NAME-0123abcd.bin  the data of a pair that replaced another */
#include "formats/raw/raw.h"
#include "base/error.h"
#include "store/publish.h"
#include "descriptor/descriptor.h"

#include <stdlib.h>
#include <string.h>

size_t tn_raw_stem_length(const char *path)
{
    size_t n = strlen(path), suffix = strlen(TN_RAW_SUFFIX);
    return n > suffix && tn_ends_with(path, TN_RAW_SUFFIX) ? n - suffix : n;
}

/* Whether the data of descriptors at `path` can have this name. */
static bool is_member(const char *path, const char *name)
{
    const char *base = tn_base_name(path);
    size_t stem = tn_raw_stem_length(base), n = strlen(name);
    if (n <= stem || memcmp(name, base, stem) != 0)
        return false;
    name += stem;
    return strcmp(name, TN_RAW_DATA_SUFFIX) == 0 ||
           (name[0] == '-' && tn_is_set_id(name + 1) &&
            strcmp(name + 1 + TN_SET_ID, TN_RAW_DATA_SUFFIX) == 0 &&
            !tn_is_others_id(path, stem, name + 1, TN_RAW_SUFFIX));
}

const char *tn_raw_member_name(tn_writer *w, size_t i, const char *id)
{
    const char *base = tn_base_name(w->path);
    (void)i;                    /* there is one */
    int stem = (int)tn_raw_stem_length(base);
    if (!id)
        return tn_arena_printf(&w->arena, "%.*s" TN_RAW_DATA_SUFFIX, stem, base);
    return tn_arena_printf(&w->arena, "%.*s-%s" TN_RAW_DATA_SUFFIX, stem, base, id);
}

/* ---- the old pair ---- */

/* A document without a tensor has a data file too. */
static bool has_data(const tn_descriptors *set)
{
    bool data = set->count == 0;
    for (size_t i = 0; i < set->count; i++)
        data |= !set->items[i].sparse.format;
    return data;
}

/* The path of the data of the old document; NULL: it has none, or is no such document. */
static tn_status find_old_data(tn_writer *w, const char **data, tn_error *err)
{
    tn_descriptors *set = NULL;
    tn_text text;
    const char *name = NULL;
    *data = NULL;
    tn_status status = tn_load_text(w->path, TN_RAW_DOCUMENT_MAX, &w->arena, &text, err);
    if (!status && text.ptr)
        status = tn_descriptors_parse(text.ptr, text.len, &set, NULL);
    if (!status && set && has_data(set)) {
        status = set->count ? tn_raw_data_name(&set->items[0], TN_NO_OFFSET, &w->arena, &name, NULL) : TN_OK;
        if (!status && !(*data = tn_raw_data_path(w->path, name, &w->arena)))
            status = TN_ERR_NOMEM;
    }
    tn_descriptors_free(set);
    return status == TN_ERR_NOMEM ? tn_fail_nomem(err) : TN_OK;
}

static tn_status fail_exists(tn_writer *w, const char *name, tn_error *err)
{
    tn_status status = tn_fail(err, TN_ERR_EXISTS, "already exists");
    tn_with_reason(status, TN_REASON_REPLACE, NULL, err);
    return tn_in_file(status, tn_raw_data_path(w->path, name, &w->arena), err);
}

tn_status tn_raw_plan_old(tn_writer *w, bool *replaces, tn_error *err)
{
    const char *plain = tn_raw_member_name(w, 0, NULL);
    TN_NEED(plain, err);
    if (w->dry_run)
        return TN_OK;
    bool taken = tn_exists_beside(w->path, plain);
    bool has_document = tn_exists_beside(w->path, tn_base_name(w->path));
    const char *old = NULL;
    tn_status status = TN_OK;
    *replaces = taken || has_document;
    if (taken && !w->options.replace)
        return fail_exists(w, plain, err);
    if (has_document && w->options.replace)
        status = find_old_data(w, &old, err);
    if (status || !old || !is_member(w->path, tn_base_name(old)))       /* a document may name any file */
        return status;
    w->like = old;
    return tn_writer_add_obsolete(w, tn_base_name(old), err);
}

/* ---- other files in the folder ---- */

/* Only if the descriptors have the usual suffix: NAME.bin may be another kind of file otherwise. */
void tn_raw_look_beside(const tn_beside *b)
{
    if (tn_raw_stem_length(b->path) < strlen(b->path))
        tn_note_strays(b, is_member);
}
