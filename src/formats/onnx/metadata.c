/* formats/onnx/metadata.c - what a model says about itself. */
#include "formats/onnx/onnx.h"
#include "base/error.h"
#include "bytes/cbor.h"
#include "store/record.h"

#include <stdlib.h>
#include <string.h>

enum { OPSET_DOMAIN = 1, OPSET_VERSION = 2, GRAPH_NAME = 2 };
static const tn_proto_rule opset_fields[] = {
    [OPSET_DOMAIN] = { "domain", TN_PROTO_LENGTH, true },
    [OPSET_VERSION] = { "version", TN_PROTO_VARINT, true },
};
static const tn_proto_kind opset_kind = TN_PROTO_KIND("OperatorSetIdProto", opset_fields);

static const tn_proto_rule graph_fields[] = { [GRAPH_NAME] = { "name", TN_PROTO_LENGTH, true } };
static const tn_proto_kind graph_kind = TN_PROTO_KIND("GraphProto", graph_fields);

/* The keys, in the order in which they are listed; metadata_props follow. */
enum { IR_VERSION, OPSET_IMPORT, PRODUCER_NAME, PRODUCER_VERSION, DOMAIN, MODEL_VERSION, DOC_STRING, GRAPH,
       KEYS };
static const char *const keys[KEYS] = { "ir_version", "opset_import", "producer_name", "producer_version",
                                        "domain", "model_version", "doc_string", "graph_name" };

enum { MAX_DOMAINS = 1000 };    /* they are compared with each other; models have a handful */

typedef struct reader {
    tn_onnx_model *model;
    tn_meta        known[KEYS]; /* key NULL: not there */
    tn_meta       *opsets;      /* their versions */
    size_t         nopsets, opsets_cap;
    size_t         domains;     /* of opset_import, with those that come again */
} reader;

static tn_status nomem(const reader *r)
{
    return r->model->in->status = tn_fail_nomem(r->model->in->err);
}

/* An empty text says nothing. */
static tn_status take_text(reader *r, const tn_proto *p, const tn_proto_field *f, int key)
{
    const char *text = tn_proto_text(p, f, keys[key], r->model->arena);
    if (text && *text)
        r->known[key] = (tn_meta){ .key = keys[key], .text = text };
    return p->in->status;
}

static tn_status take_cbor(reader *r, tn_meta *meta, const char *key, tn_buf *cbor)
{
    *meta = (tn_meta){ .key = key, .cbor_size = cbor->size };
    meta->cbor = cbor->bad ? NULL : tn_arena_copy(r->model->arena, cbor->data, cbor->size);
    tn_buf_free(cbor);
    return meta->cbor ? TN_OK : nomem(r);
}

static tn_status take_number(reader *r, uint64_t number, tn_meta *meta, const char *key)
{
    tn_buf cbor = { 0 };
    tn_cbor_put_i64(&cbor, (int64_t)number);
    return take_cbor(r, meta, key, &cbor);
}

/* Models with the same domain twice exist: the first counts. */
static tn_status take_opset(reader *r, const tn_proto *model, const tn_proto_field *field)
{
    tn_proto p = tn_proto_enter(model, field, &opset_kind);
    tn_proto_field f;
    const char *domain = "";
    uint64_t version = 0;
    while (tn_proto_next(&p, &f)) {
        if (f.number == OPSET_DOMAIN)
            domain = tn_proto_text(&p, &f, "domain", r->model->arena);
        else if (f.number == OPSET_VERSION)
            version = f.value;
    }
    TN_TRY(p.in->status);
    if (r->domains++ == MAX_DOMAINS)
        return tn_proto_reject(p.in, TN_ERR_LIMIT, field->at,
                               "expected at most %d domains in opset_import but found more", MAX_DOMAINS);
    for (size_t i = 0; i < r->nopsets; i++) {
        if (strcmp(r->opsets[i].key, domain) != 0)
            continue;
        if (r->model->file)
            tn_file_warn(r->model->file, field->at, "opset_import has the domain %s twice: the first counts",
                         tn_quote_z(domain).text);
        return TN_OK;
    }
    if (!TN_GROW(r->opsets, r->nopsets, r->opsets_cap))
        return nomem(r);
    return take_number(r, version, &r->opsets[r->nopsets++], domain);
}

static tn_status add_meta(reader *r, const tn_meta *meta)
{
    tn_onnx_model *m = r->model;
    if (!TN_GROW(m->meta, m->nmeta, m->meta_cap))
        return nomem(r);
    m->meta[m->nmeta++] = *meta;
    return TN_OK;
}

static tn_status take_prop(reader *r, const tn_proto *model, const tn_proto_field *field)
{
    tn_proto p = tn_proto_enter(model, field, &tn_onnx_entry_kind);
    tn_proto_field f;
    const char *key = "", *value = "";
    while (tn_proto_next(&p, &f)) {
        if (f.number == TN_ONNX_ENTRY_KEY)
            key = tn_proto_text(&p, &f, "metadata key", r->model->arena);
        else if (f.number == TN_ONNX_ENTRY_VALUE)
            value = tn_proto_text(&p, &f, "metadata value", r->model->arena);
    }
    TN_TRY(p.in->status);
    static const char prefix[] = "metadata_props.";
    tn_meta meta = { .key = tn_arena_join(r->model->arena, prefix, strlen(prefix), key), .text = value };
    return meta.key ? add_meta(r, &meta) : nomem(r);
}

static tn_status take_graph_name(reader *r, const tn_proto *model, const tn_proto_field *field)
{
    tn_proto p = tn_proto_enter(model, field, &graph_kind);
    tn_proto_field f;
    while (tn_proto_next(&p, &f))
        if (f.number == GRAPH_NAME)
            TN_TRY(take_text(r, &p, &f, GRAPH));
    return p.in->status;
}

static tn_status take_field(reader *r, const tn_proto *p, const tn_proto_field *f)
{
    switch (f->number) {
    case TN_ONNX_MODEL_IR_VERSION:
        return take_number(r, f->value, &r->known[IR_VERSION], keys[IR_VERSION]);
    case TN_ONNX_MODEL_PRODUCER_NAME:
        return take_text(r, p, f, PRODUCER_NAME);
    case TN_ONNX_MODEL_PRODUCER_VERSION:
        return take_text(r, p, f, PRODUCER_VERSION);
    case TN_ONNX_MODEL_DOMAIN:
        return take_text(r, p, f, DOMAIN);
    case TN_ONNX_MODEL_VERSION:
        return f->value ? take_number(r, f->value, &r->known[MODEL_VERSION], keys[MODEL_VERSION]) : TN_OK;
    case TN_ONNX_MODEL_DOC_STRING:
        return take_text(r, p, f, DOC_STRING);
    case TN_ONNX_MODEL_GRAPH:
        return take_graph_name(r, p, f);
    case TN_ONNX_MODEL_OPSET_IMPORT:
        return take_opset(r, p, f);
    default:
        return TN_OK;
    }
}

static tn_status read_all(reader *r)
{
    const tn_proto all = tn_proto_open(r->model->in, &tn_onnx_model_kind);
    tn_proto p = all;
    tn_proto_field f;
    while (tn_proto_next(&p, &f))
        TN_TRY(take_field(r, &p, &f));
    TN_TRY(p.in->status);
    if (r->nopsets) {
        tn_buf cbor = { 0 };
        tn_meta_put_map(r->opsets, r->nopsets, &cbor);
        TN_TRY(take_cbor(r, &r->known[OPSET_IMPORT], keys[OPSET_IMPORT], &cbor));
    }
    for (int i = 0; i < KEYS; i++)
        if (r->known[i].key)
            TN_TRY(add_meta(r, &r->known[i]));
    p = all;
    while (tn_proto_next(&p, &f))
        if (f.number == TN_ONNX_MODEL_METADATA_PROPS)
            TN_TRY(take_prop(r, &p, &f));
    return p.in->status;
}

tn_status tn_onnx_read_meta(tn_onnx_model *m, tn_error *err)
{
    reader r = { .model = m };
    tn_status status = read_all(&r);
    free(r.opsets);
    return status ? status : tn_meta_check_unique(m->meta, m->nmeta, TN_NO_OFFSET, err);
}
