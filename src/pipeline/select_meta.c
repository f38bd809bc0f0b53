/* pipeline/select_meta.c - the metadata of a tensor that several are joined into: what all of them have. */
#include "pipeline/select.h"
#include "base/error.h"
#include "store/file.h"
#include "store/names.h"

#include <stdlib.h>
#include <string.h>

/* What the first tensor has, and how many of those before have the same. */
typedef struct common {
    const tn_file   *file;
    const tn_tensor *first;
    tn_names         keys;      /* of the first */
    uint32_t        *alike;     /* of each key: tensors with the same value */
    uint32_t         tensors;
    bool             same_properties;
    bool             may_drop;
} common;

static const char *key_at(const void *owner, size_t i)
{
    return ((const tn_tensor *)owner)->meta[i].key;
}

static tn_status fail_unlike(const common *c, const tn_tensor *t, const char *key, tn_error *err)
{
    tn_status status = tn_refuse(err, TN_ERR_LOSS, TN_REASON_DROP_METADATA, NULL,
                                 "its metadata %s is not that of %s, which it is joined to",
                                 tn_quote_z(key).text, tn_quote_z(c->first->name).text);
    return tn_in_tensor(status, t->name, err);
}

static bool same_properties(const tn_properties *a, const tn_properties *b)
{
    if (!a || !b || !a->given || !b->given)
        return !(a && a->given) && !(b && b->given);
    bool same = a->requires_grad == b->requires_grad && a->is_pinned == b->is_pinned &&
                a->zero_copy_compatible == b->zero_copy_compatible && a->nextra == b->nextra;
    for (size_t i = 0; i < a->nextra && same; i++)
        same = strcmp(a->extra[i].key, b->extra[i].key) == 0 &&
               strcmp(a->extra[i].json, b->extra[i].json) == 0;
    return same;
}

static tn_status compare(common *c, const tn_tensor *t, tn_error *err)
{
    size_t same = 0;
    c->tensors++;
    for (size_t i = 0; i < t->nmeta; i++) {
        size_t k = tn_names_find(&c->keys, c->first, key_at, t->meta[i].key);
        bool is_same = k != SIZE_MAX && tn_meta_same_value(&t->meta[i], &c->first->meta[k]);
        if (!is_same && !c->may_drop)
            return fail_unlike(c, t, t->meta[i].key, err);
        if (is_same)
            c->alike[k]++;
        same += is_same;
    }
    for (size_t k = 0; same < c->first->nmeta && !c->may_drop; k++)
        if (c->alike[k] < c->tensors)
            return fail_unlike(c, t, c->first->meta[k].key, err);
    bool alike = same_properties(tn_file_properties(c->file, c->first), tn_file_properties(c->file, t));
    c->same_properties &= alike;
    return alike || c->may_drop ? TN_OK : fail_unlike(c, t, "properties", err);
}

static tn_status compare_all(common *c, const tn_origin *o, tn_error *err)
{
    for (uint32_t i = 0; i < o->ninputs; i++)
        TN_TRY(compare_all(c, o->inputs[i], err));
    return o->source ? compare(c, o->source, err) : TN_OK;
}

/* The metadata that all have, in the order of the first. */
static tn_status keep_alike(const common *c, tn_arena *arena, tn_tensor *made, tn_error *err)
{
    tn_meta *meta = tn_arena_zalloc(arena, c->first->nmeta, sizeof *meta);
    if (!meta)
        return tn_fail_nomem(err);
    made->nmeta = 0;
    for (size_t k = 0; k < c->first->nmeta; k++)
        if (c->alike[k] == c->tensors)
            meta[made->nmeta++] = c->first->meta[k];
    made->meta = meta;
    return TN_OK;
}

tn_status tn_select_meta(const tn_selection *s, size_t i, tn_tensor *made, const tn_properties **properties,
                         tn_error *err)
{
    const tn_tensor *first = s->walk->tensors[i];
    const tn_origin *o = s->origins ? s->origins[i] : NULL;
    const tn_create_options *create = s->options->create;
    common c = { .file = s->file, .first = first, .same_properties = true,
                 .may_drop = create && create->drop_metadata };
    size_t other;
    made->meta = first->meta;
    made->nmeta = first->nmeta;
    *properties = tn_file_properties(s->file, first);
    if (!o || o->sources < 2)
        return TN_OK;
    c.alike = calloc(first->nmeta + 1, sizeof *c.alike);
    tn_status status = c.alike && tn_names_init(&c.keys, first->nmeta) ? TN_OK : tn_fail_nomem(err);
    if (!status) {
        tn_names_add_all(&c.keys, first, key_at, first->nmeta, &other);         /* no two are the same */
        status = compare_all(&c, o, err);
    }
    if (!status)
        status = keep_alike(&c, s->arena, made, err);
    if (!c.same_properties)
        *properties = NULL;
    tn_names_free(&c.keys);
    free(c.alike);
    return status;
}

/* ---- of the file ---- */

static bool has_key(const tn_file *file, const char *key)
{
    size_t n, i = 0;
    const tn_meta *meta = tn_file_meta(file, &n);
    while (i < n && strcmp(meta[i].key, key) != 0)
        i++;
    return i < n;
}

tn_status tn_select_file_meta(const tn_selection *s, tn_writer *writer, tn_error *err)
{
    size_t n;
    const tn_meta *meta = s->other ? tn_file_meta(s->other, &n) : NULL;
    for (size_t i = 0; meta && i < n; i++)
        TN_TRY(tn_writer_add_meta(writer, &meta[i], err));
    meta = tn_file_meta(s->file, &n);
    for (size_t i = 0; i < n; i++)
        if (!s->other || !has_key(s->other, meta[i].key))
            TN_TRY(tn_writer_add_meta(writer, &meta[i], err));
    return TN_OK;
}
