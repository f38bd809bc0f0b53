/* formats/onnx/write.c - writing is replacing: the graph of a model with other data.
 *
 * All is known before any data: the new model is made in plan(), without its data, and kept in memory.  So
 * the model that has the graph may be the one that is replaced. */
#include "base/checked.h"
#include "base/error.h"
#include "formats/onnx/splice.h"
#include "store/publish.h"
#include "tensor/array.h"

#include <string.h>

/* From which size on data goes to another file, and is aligned to pages. */
enum { EXTERNAL_FROM = 1 << 10, PAGES_FROM = 1 << 20, PAGE = 4096, ALIGN = 64 };

/* The writer's state. */
typedef struct output {
    uint8_t     *bytes;         /* of the model without data */
    tn_onnx_run *runs;
    size_t       nruns;
    size_t      *names;         /* where the name of the data is in `bytes` */
    size_t       nnames;
    uint64_t     size;          /* of the model */
    uint32_t     file;
    bool         external;      /* there is a file of data, the writer's first */
    bool         replaces;      /* other files: the name of the data gets an id */
} output;

/* ---- what goes where ---- */

typedef struct matching {
    tn_writer     *w;
    tn_onnx_model *model;
    tn_onnx_data  *data;        /* of each tensor of the model */
    tn_out_entry **entries;     /* likewise; NULL: it stays */
    bool          *used;        /* of each entry */
} matching;

static const char *entry_name(const void *owner, size_t i)
{
    return ((const tn_writer *)owner)->entries[i].name;
}

static const tn_tensor *whole_of(const tn_writer *w, const tn_out_entry *e)
{
    return w->entries[w->first_entry[e->tensor]].more->whole;
}

static tn_status check_form(const tn_tensor *whole, const tn_onnx_tensor *t, tn_error *err)
{
    bool coo = t->sparse || t->is_indices;
    if (whole->form != (coo ? TN_FORM_COO : TN_FORM_DENSE))
        return tn_refuse(err, TN_ERR_UNSUPPORTED, TN_REASON_FORM, coo ? "coo" : "dense",
                         "the graph needs form %s but found %s", coo ? "coo" : "dense",
                         tn_tensor_form_name(whole));
    if (t->sparse && !tn_same_shape(whole->rank, whole->shape, t->sparse->rank, t->sparse->dims))
        return tn_fail(err, TN_ERR_UNSUPPORTED, "the graph needs shape %s but found %s",
                       tn_show_shape(t->sparse->rank, t->sparse->dims).text,
                       tn_show_shape(whole->rank, whole->shape).text);
    return TN_OK;
}

/* Type and shape are those of the graph, which would not fit others. */
static tn_status check_part(const tn_writer *w, const tn_out_entry *e, const tn_onnx_tensor *t, tn_error *err)
{
    const tn_tensor *whole = whole_of(w, e);
    const tn_array *a = &whole->parts[e->part].array;
    TN_TRY(check_form(whole, t, err));
    if (a->dtype != t->dtype || !tn_same_shape(a->rank, a->shape, t->rank, t->shape))
        return tn_fail(err, TN_ERR_UNSUPPORTED,
                       "the graph needs %s %s but found %s %s: types and shapes stay those of the model",
                       tn_dtype_get(t->dtype)->name, tn_show_shape(t->rank, t->shape).text,
                       tn_dtype_get(a->dtype)->name, tn_show_shape(a->rank, a->shape).text);
    const tn_out_more *more = e->more;
    bool lost = more->nmeta || more->properties || whole->layout || whole->parts[e->part].padded;
    if (lost && !w->options.drop_metadata)
        return tn_refuse(err, TN_ERR_LOSS, TN_REASON_DROP_METADATA, NULL,
                         "it has metadata, a layout or padding, which a model cannot hold");
    return TN_OK;
}

static tn_status match_one(matching *m, size_t i, tn_error *err)
{
    const tn_onnx_tensor *t = &m->model->tensors[i];
    tn_writer *w = m->w;
    if (t->place == TN_ONNX_UNREAD) {
        m->data[i].stays = true;
        return TN_OK;
    }
    size_t k = tn_names_find(&w->names, w, entry_name, t->name);
    if (k >= w->count)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "the graph needs it but it is not in the input");
    tn_out_entry *e = &w->entries[k];
    if (m->used[k])
        return tn_fail(err, TN_ERR_CORRUPT, "two tensors of the model have this name");
    TN_TRY(check_part(w, e, t, err));
    m->used[k] = true;
    m->entries[i] = e;
    m->data[i].nbytes = e->nbytes;
    return TN_OK;
}

static tn_status match_all(matching *m, tn_error *err)
{
    const tn_writer *w = m->w;
    for (size_t i = 0; i < m->model->count; i++)
        TN_TRY(tn_in_tensor(match_one(m, i, err), m->model->tensors[i].name, err));
    for (size_t k = 0; k < w->count; k++)
        if (!m->used[k])
            return tn_in_tensor(tn_refuse(err, TN_ERR_UNSUPPORTED, TN_REASON_ONLY, NULL,
                                          "the graph has no tensor of this name"), w->entries[k].name, err);
    if (m->model->others_external)
        return tn_fail(err, TN_ERR_UNSUPPORTED,
                       "byte %llu of the model: a tensor that is not read has data in another file, which is "
                       "not carried over", (unsigned long long)m->model->others_external);
    return TN_OK;
}

static const char *meta_key(const void *owner, size_t i)
{
    return ((const tn_meta *)owner)[i].key;
}

/* Metadata must be that of the model, which stays as it is. */
static tn_status check_meta(const tn_writer *w, const tn_onnx_model *model, tn_error *err)
{
    tn_names keys = { 0 };
    size_t other;
    bool good = tn_names_init(&keys, model->nmeta);
    if (good)
        tn_names_add_all(&keys, model->meta, meta_key, model->nmeta, &other);   /* no two are the same */
    tn_status status = good ? TN_OK : tn_fail_nomem(err);
    for (size_t i = 0; i < w->nmeta && !status && !w->options.drop_metadata; i++) {
        size_t k = tn_names_find(&keys, model->meta, meta_key, w->meta[i].key);
        if (k >= model->nmeta || !tn_meta_same_value(&w->meta[i], &model->meta[k]))
            status = tn_refuse(err, TN_ERR_LOSS, TN_REASON_DROP_METADATA, NULL,
                               "metadata %s is not that of the model, which stays as it is",
                               tn_quote_z(w->meta[i].key).text);
    }
    tn_names_free(&keys);
    return status;
}

/* ---- data in another file ---- */

/* In the order in which it comes. */
static tn_status place_external(matching *m, uint64_t *end, tn_error *err)
{
    tn_writer *w = m->w;
    *end = 0;
    for (size_t k = 0; k < w->count; k++) {
        tn_out_entry *e = &w->entries[k];
        uint64_t align = e->nbytes >= PAGES_FROM ? PAGE : ALIGN;
        align = align > w->options.align ? align : w->options.align;
        e->offset = TN_UNPLACED;
        if (e->nbytes < EXTERNAL_FROM)
            continue;
        if (!tn_align_u64(*end, align, &e->offset) || !tn_add_u64(e->offset, e->nbytes, end) ||
            *end > INT64_MAX)
            return tn_fail(err, TN_ERR_LIMIT, "the file would be larger than 2^63 bytes");
    }
    for (size_t i = 0; i < m->model->count; i++) {
        const tn_out_entry *e = m->entries[i];
        m->data[i].external = e && e->offset != TN_UNPLACED;
        m->data[i].offset = m->data[i].external ? e->offset : 0;
    }
    return TN_OK;
}

static tn_status add_data_file(tn_writer *w, output *o, uint64_t end, const char **name, tn_error *err)
{
    uint32_t file;
    *name = tn_onnx_member_name(w, 0, o->replaces ? TN_SET_NO_ID : NULL);
    TN_NEED(*name, err);
    TN_TRY(tn_writer_check_name(w, *name, err));
    TN_TRY(tn_writer_add_member(w, &file, err));
    w->files[file].end = end;
    for (size_t k = 0; k < w->count && o->replaces; k++)
        w->entries[k].checksum = TN_CHECKSUM_CRC32C;            /* for the id */
    return TN_OK;
}

/* ---- planning ---- */

/* Keeps what finish() writes. */
static tn_status keep_splice(tn_writer *w, const tn_onnx_splice *s, output *o, tn_error *err)
{
    o->bytes = tn_arena_copy(&w->arena, s->bytes.data, s->bytes.size);
    o->runs = tn_arena_copy(&w->arena, s->runs, s->nruns * sizeof *s->runs);
    o->names = tn_arena_copy(&w->arena, s->names, s->nnames * sizeof *s->names);
    o->nruns = s->nruns;
    o->nnames = s->nnames;
    o->size = s->size;
    return o->bytes && o->runs && o->names ? TN_OK : tn_fail_nomem(err);
}

static void set_places(matching *m, const output *o)
{
    for (size_t i = 0; i < m->model->count; i++) {
        tn_out_entry *e = m->entries[i];
        if (!e)
            continue;
        e->file = m->data[i].external ? 0 : o->file;
        e->offset = m->data[i].offset;
    }
}

static tn_status plan_files(matching *m, tn_error *err)
{
    tn_writer *w = m->w;
    uint64_t end = 0;
    output *o = tn_arena_zalloc(&w->arena, 1, sizeof *o);
    tn_onnx_splice s = { .model = m->model, .data = m->data, .err = err };
    TN_NEED(o, err);
    if (tn_writer_choice(w, "external"))
        TN_TRY(place_external(m, &end, err));
    o->external = end > 0;
    TN_TRY(tn_onnx_plan_old(w, o->external, &o->replaces, err));
    if (o->external)
        TN_TRY(add_data_file(w, o, end, &s.location, err));
    tn_status status = tn_onnx_splice_model(&s);
    if (!status)
        status = keep_splice(w, &s, o, err);
    tn_onnx_splice_free(&s);
    TN_TRY(status);
    TN_TRY(tn_writer_add_file(w, w->path, &o->file, err));
    w->files[o->file].end = o->size;
    set_places(m, o);
    w->state = o;
    return TN_OK;
}

static tn_status plan_model(tn_writer *w, tn_onnx_model *model, tn_error *err)
{
    matching m = { .w = w, .model = model };
    m.data = tn_arena_zalloc(&w->arena, model->count, sizeof *m.data);
    m.entries = tn_arena_zalloc(&w->arena, model->count, sizeof *m.entries);
    m.used = tn_arena_zalloc(&w->arena, w->count, sizeof *m.used);
    TN_NEED(m.data && m.entries && m.used, err);
    TN_TRY(match_all(&m, err));
    TN_TRY(check_meta(w, model, err));
    return plan_files(&m, err);
}

/* The model that has the graph: what the option names, or the input. */
static tn_status open_graph(const tn_writer *w, tn_source **own, const tn_source **graph, tn_error *err)
{
    const char *path = tn_writer_text(w, "graph");
    const tn_file *in = w->reading;
    *own = NULL;
    if (path) {
        TN_TRY(tn_in_file(tn_source_open(path, TN_IO_AUTO, own, err), path, err));
        *graph = *own;
        return TN_OK;
    }
    if (!in || in->nmembers || in->format != &tn_format_onnx)
        return tn_refuse(err, TN_ERR_ARGUMENT, TN_REASON_GRAPH, NULL,
                         "tensors alone make no model: name the one whose graph they are for");
    *graph = in->shards[0].source;
    return TN_OK;
}

tn_status tn_onnx_plan(tn_writer *w, tn_error *err)
{
    tn_onnx_model model = { .arena = &w->arena };
    tn_source *own;
    if (w->options.align > 1 && !tn_writer_choice(w, "external"))
        return tn_refuse(err, TN_ERR_ARGUMENT, TN_REASON_EXTERNAL, NULL,
                         "data inside a model is not aligned, only data in another file");
    TN_TRY(open_graph(w, &own, &model.source, err));
    tn_status status = tn_onnx_walk(&model, err);
    if (status && own)
        tn_in_file(status, tn_writer_text(w, "graph"), err);
    if (!status)
        status = plan_model(w, &model, err);
    tn_onnx_free(&model);
    tn_source_close(own);
    return status;
}

/* ---- finishing ---- */

tn_status tn_onnx_finish(tn_writer *w, tn_error *err)
{
    const output *o = w->state;
    if (o->external) {
        TN_TRY(tn_writer_name_members(w, tn_onnx_member_name, o->replaces, err));
        for (size_t i = 0; i < o->nnames; i++)
            memcpy(o->bytes + o->names[i], w->files[0].path, strlen(w->files[0].path));
    }
    for (size_t i = 0; i < o->nruns; i++)
        TN_TRY(tn_writer_put(w, o->file, o->runs[i].offset, o->bytes + o->runs[i].at, o->runs[i].size, err));
    w->files[o->file].end = o->size;
    return TN_OK;
}
