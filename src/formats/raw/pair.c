/* formats/raw/pair.c - the descriptors and their data (store/pair.h), and the pair that they replace. */
#include "formats/raw/raw.h"
#include "base/error.h"
#include "store/pair.h"
#include "store/publish.h"
#include "descriptor/descriptor.h"

#include <stdlib.h>
#include <string.h>

const tn_pair tn_raw_pair = { TN_RAW_SUFFIX, TN_RAW_DATA_SUFFIX };

static bool is_member(const char *path, const char *name)
{
    return tn_pair_is_data(&tn_raw_pair, path, name);
}

const char *tn_raw_member_name(tn_writer *w, size_t i, const char *id)
{
    (void)i;                    /* there is one */
    return tn_pair_data_name(&tn_raw_pair, w, id);
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
        return tn_pair_fail_exists(w, plain, err);
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
    if (tn_pair_stem(&tn_raw_pair, b->path) < strlen(b->path))
        tn_note_strays(b, is_member);
}
