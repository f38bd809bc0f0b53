/* formats/onnx/pair.c - the names of the two files, and those that they replace.
 *
 *     NAME.onnx                 the model, which names the data
 *     NAME.onnx.data            the data of a model that replaced nothing
 *     NAME-0123abcd.onnx.data   the data of a model that replaced another */
#include "formats/onnx/onnx.h"
#include "base/error.h"
#include "store/publish.h"

#include <string.h>

static size_t stem_length(const char *path)
{
    size_t n = strlen(path), suffix = strlen(TN_ONNX_SUFFIX);
    return n > suffix && tn_ends_with(path, TN_ONNX_SUFFIX) ? n - suffix : n;
}

/* Whether the data of a model at `path` can have this name. */
static bool is_member(const char *path, const char *name)
{
    const char *base = tn_base_name(path);
    size_t stem = stem_length(base), n = strlen(name);
    if (n <= stem || memcmp(name, base, stem) != 0)
        return false;
    name += stem;
    return strcmp(name, TN_ONNX_DATA_SUFFIX) == 0 ||
           (name[0] == '-' && tn_is_set_id(name + 1) &&
            strcmp(name + 1 + TN_SET_ID, TN_ONNX_DATA_SUFFIX) == 0 &&
            !tn_is_others_id(path, stem, name + 1, TN_ONNX_SUFFIX));
}

const char *tn_onnx_member_name(tn_writer *w, size_t i, const char *id)
{
    const char *base = tn_base_name(w->path);
    (void)i;                    /* there is one */
    int stem = (int)stem_length(base);
    if (!id)
        return tn_arena_printf(&w->arena, "%.*s" TN_ONNX_DATA_SUFFIX, stem, base);
    return tn_arena_printf(&w->arena, "%.*s-%s" TN_ONNX_DATA_SUFFIX, stem, base, id);
}

/* The data of the old model is obsolete, if its names are those of its data.  A file that is no model has
 * none. */
static tn_status add_old_data(tn_writer *w, tn_error *err)
{
    tn_source *source = NULL;
    tn_error why;
    tn_status status = tn_source_open(w->path, TN_IO_PREAD, &source, &why);
    tn_onnx_model old = { .arena = &w->arena, .source = source };
    if (!status)
        status = tn_onnx_walk(&old, &why);
    bool nomem = status == TN_ERR_NOMEM;
    const char *data = NULL;
    for (size_t i = 0; i < old.count && !status && !data; i++)      /* what is written has one file of data */
        if (old.tensors[i].external && is_member(w->path, old.tensors[i].external->location))
            data = old.tensors[i].external->location;
    if (data) {
        w->like = tn_arena_join(&w->arena, w->path, (size_t)(tn_base_name(w->path) - w->path), data);
        nomem = !w->like || tn_writer_add_obsolete(w, data, err);
    }
    tn_onnx_free(&old);
    tn_source_close(source);
    return nomem ? tn_fail_nomem(err) : TN_OK;
}

static tn_status fail_exists(tn_writer *w, const char *name, tn_error *err)
{
    tn_status status = tn_refuse(err, TN_ERR_EXISTS, TN_REASON_REPLACE, NULL, "already exists");
    const char *path = tn_arena_join(&w->arena, w->path, (size_t)(tn_base_name(w->path) - w->path), name);
    return tn_in_file(status, path, err);
}

tn_status tn_onnx_plan_old(tn_writer *w, bool external, bool *replaces, tn_error *err)
{
    const char *plain = tn_onnx_member_name(w, 0, NULL);
    TN_NEED(plain, err);
    *replaces = false;
    if (w->dry_run || w->fd >= 0)
        return TN_OK;
    bool taken = tn_exists_beside(w->path, plain);
    bool has_model = tn_exists_beside(w->path, tn_base_name(w->path));
    *replaces = taken || has_model;
    if (external && taken && !w->options.replace)
        return fail_exists(w, plain, err);
    return has_model && w->options.replace ? add_old_data(w, err) : TN_OK;
}

void tn_onnx_look_beside(const tn_beside *b)
{
    if (stem_length(b->path) < strlen(b->path))
        tn_note_strays(b, is_member);
}
