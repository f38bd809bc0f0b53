/* formats/onnx/pair.c - the model and its data (store/pair.h), and those that they replace. */
#include "formats/onnx/onnx.h"
#include "base/error.h"
#include "store/pair.h"
#include "store/publish.h"

#include <string.h>

static const tn_pair pair = { TN_ONNX_SUFFIX, TN_ONNX_DATA_SUFFIX };

static bool is_member(const char *path, const char *name) { return tn_pair_is_data(&pair, path, name); }

const char *tn_onnx_member_name(tn_writer *w, size_t i, const char *id)
{
    (void)i;                    /* there is one */
    return tn_pair_data_name(&pair, w, id);
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
        return tn_pair_fail_exists(w, plain, err);
    return has_model && w->options.replace ? add_old_data(w, err) : TN_OK;
}

void tn_onnx_look_beside(const tn_beside *b)
{
    if (tn_pair_stem(&pair, b->path) < strlen(b->path))
        tn_note_strays(b, is_member);
}
