/* formats/onnx/splice.c - a model with other data. */
#include "formats/onnx/splice.h"
#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What protobuf reads and writes as one message. */
#define MODEL_MAX ((UINT64_C(1) << 31) - 1)

/* A message of the model, and how its length changes. */
typedef struct part {
    tn_onnx_message message;
    size_t          outer;      /* the message around it; SIZE_MAX: the model */
    uint64_t        size;       /* of its new fields */
} part;

static int by_begin(const void *a, const void *b)
{
    uint64_t x = ((const part *)a)->message.begin, y = ((const part *)b)->message.begin;
    return (x > y) - (x < y);
}

static tn_status too_large(const tn_onnx_splice *s)
{
    return tn_refuse(s->err, TN_ERR_LIMIT, s->location ? TN_REASON_NONE : TN_REASON_EXTERNAL, NULL,
                     "the model would take more than the %" PRIu64 " bytes that protobuf reads",
                     MODEL_MAX);
}

/* ---- the fields of a tensor ---- */

static bool has_data(uint32_t number)
{
    switch (number) {
    case TN_ONNX_TENSOR_FLOATS: case TN_ONNX_TENSOR_INT32S: case TN_ONNX_TENSOR_STRINGS:
    case TN_ONNX_TENSOR_INT64S: case TN_ONNX_TENSOR_RAW: case TN_ONNX_TENSOR_DOUBLES:
    case TN_ONNX_TENSOR_UINT64S: case TN_ONNX_TENSOR_EXTERNAL: case TN_ONNX_TENSOR_LOCATION:
        return true;
    default:
        return false;
    }
}

/* Appends bytes of the model. */
static tn_status copy_range(tn_onnx_splice *s, tn_buf *to, uint64_t begin, uint64_t end)
{
    TN_TRY(tn_index_check_size(to->size + (end - begin), begin, s->err));
    uint8_t *room = tn_buf_room(to, (size_t)(end - begin));
    TN_NEED(room, s->err);
    TN_TRY(tn_source_read(s->model->source, begin, room, (size_t)(end - begin), s->err));
    to->size += (size_t)(end - begin);
    return TN_OK;
}

/* The fields that stay, as they are in the model. */
static tn_status keep_fields(tn_onnx_splice *s, const tn_onnx_tensor *t, tn_onnx_data *d)
{
    tn_proto_input *in = s->model->in;
    const tn_proto_field whole = { .begin = t->begin, .value = t->end - t->begin };
    const tn_proto outer = tn_proto_open(in, &tn_onnx_model_kind);
    tn_proto p = tn_proto_enter(&outer, &whole, &tn_onnx_tensor_kind);
    tn_proto_field f;
    tn_buf fields = { 0 };
    tn_status status = TN_OK;
    while (!status && tn_proto_next(&p, &f))
        if (!has_data(f.number))
            status = copy_range(s, &fields, f.at, p.pos);
    if (!status)
        status = in->status;
    d->fields_size = fields.size;
    d->fields = status ? NULL : tn_arena_copy(s->model->arena, fields.data, fields.size);
    tn_buf_free(&fields);
    return status || d->fields ? status : tn_fail_nomem(s->err);
}

static void put_entry(tn_buf *b, const char *key, const char *value)
{
    tn_buf entry = { 0 };
    tn_proto_put_text(&entry, TN_ONNX_ENTRY_KEY, key);
    tn_proto_put_text(&entry, TN_ONNX_ENTRY_VALUE, value);
    tn_proto_put_tag(b, TN_ONNX_TENSOR_EXTERNAL, TN_WIRE_LENGTH);
    tn_proto_put_varint(b, entry.size);
    tn_buf_put(b, entry.data, entry.size);
    b->bad |= entry.bad;
    tn_buf_free(&entry);
}

/* What follows the fields that stay, up to data that is inside the model.  *name is where the location is. */
static void put_place(const tn_onnx_splice *s, const tn_onnx_data *d, tn_buf *b, size_t *name)
{
    char number[24];
    enum { EXTERNAL = 1 };
    if (!d->external) {
        if (!d->nbytes)
            return;             /* nothing says that there is none: onnx refuses an empty field */
        tn_proto_put_tag(b, TN_ONNX_TENSOR_RAW, TN_WIRE_LENGTH);
        tn_proto_put_varint(b, d->nbytes);
        return;
    }
    put_entry(b, "location", s->location);
    *name = b->size - strlen(s->location);
    snprintf(number, sizeof number, "%" PRIu64, d->offset);
    put_entry(b, "offset", number);
    snprintf(number, sizeof number, "%" PRIu64, d->nbytes);
    put_entry(b, "length", number);
    tn_proto_put_tag(b, TN_ONNX_TENSOR_LOCATION, TN_WIRE_VARINT);
    tn_proto_put_varint(b, EXTERNAL);
}

/* ---- lengths ---- */

static tn_status size_tensor(tn_onnx_splice *s, size_t tensor, uint64_t *size)
{
    tn_onnx_data *d = &s->data[tensor];
    tn_buf place = { 0 };
    size_t name;
    if (!d->external && d->nbytes > MODEL_MAX)
        return too_large(s);
    TN_TRY(keep_fields(s, &s->model->tensors[tensor], d));
    put_place(s, d, &place, &name);
    *size = d->fields_size + place.size + (d->external ? 0 : d->nbytes);
    bool bad = place.bad;
    tn_buf_free(&place);
    return bad ? tn_fail_nomem(s->err) : TN_OK;
}

static uint64_t old_size(const part *p) { return p->message.end - p->message.begin; }

/* Bytes of the length before the fields; a message that keeps its size keeps these too. */
static uint64_t length_size(const part *p)
{
    return p->size == old_size(p) ? p->message.begin - p->message.length_at : tn_proto_varint_size(p->size);
}

/* Messages in the order of the model, each with the one around it. */
static tn_status sort_parts(const tn_onnx_splice *s, part **sorted)
{
    const tn_onnx_model *m = s->model;
    part *parts = calloc(m->nmessages ? m->nmessages : 1, sizeof *parts);
    TN_NEED(parts, s->err);
    for (size_t i = 0; i < m->nmessages; i++)
        parts[i].message = m->messages[i];
    if (m->nmessages)
        qsort(parts, m->nmessages, sizeof *parts, by_begin);
    for (size_t i = 0; i < m->nmessages; i++) {
        size_t outer = i ? i - 1 : SIZE_MAX;
        while (outer != SIZE_MAX && parts[outer].message.end < parts[i].message.end)
            outer = parts[outer].outer;
        parts[i].outer = outer;
        parts[i].size = old_size(&parts[i]);
    }
    *sorted = parts;
    return TN_OK;
}

/* From the innermost messages outwards.  All sizes are below 2^32 times their number: nothing wraps. */
static tn_status size_parts(tn_onnx_splice *s, part *parts)
{
    s->size = tn_source_size(s->model->source);
    for (size_t i = s->model->nmessages; i-- > 0;) {
        part *p = &parts[i];
        size_t tensor = p->message.tensor;
        if (tensor != SIZE_MAX && !s->data[tensor].stays)
            TN_TRY(size_tensor(s, tensor, &p->size));
        uint64_t *around = p->outer == SIZE_MAX ? &s->size : &parts[p->outer].size;
        *around += p->size + length_size(p) - (p->message.end - p->message.length_at);
    }
    return s->size > MODEL_MAX ? too_large(s) : TN_OK;
}

/* ---- bytes ---- */

static tn_status begin_run(tn_onnx_splice *s, uint64_t offset)
{
    TN_NEED(TN_GROW(s->runs, s->nruns, s->runs_cap), s->err);
    s->runs[s->nruns++] = (tn_onnx_run){ .at = s->bytes.size, .offset = offset };
    return TN_OK;
}

/* Where the next byte goes. */
static uint64_t offset_now(const tn_onnx_splice *s)
{
    const tn_onnx_run *last = &s->runs[s->nruns - 1];
    return last->offset + (s->bytes.size - last->at);
}

static tn_status put_tensor(tn_onnx_splice *s, tn_onnx_data *d)
{
    size_t name = SIZE_MAX;
    tn_buf_put(&s->bytes, d->fields, d->fields_size);
    put_place(s, d, &s->bytes, &name);
    if (name != SIZE_MAX) {
        TN_NEED(TN_GROW(s->names, s->nnames, s->names_cap), s->err);
        s->names[s->nnames++] = name;
    }
    if (d->external)
        return TN_OK;
    d->offset = offset_now(s);
    s->runs[s->nruns - 1].size = s->bytes.size - s->runs[s->nruns - 1].at;
    return begin_run(s, d->offset + d->nbytes);
}

static tn_status put_parts(tn_onnx_splice *s, const part *parts)
{
    uint64_t from = 0;
    TN_TRY(begin_run(s, 0));
    for (size_t i = 0; i < s->model->nmessages; i++) {
        const part *p = &parts[i];
        if (p->size == old_size(p) && p->message.tensor == SIZE_MAX)
            continue;
        if (p->message.tensor != SIZE_MAX && s->data[p->message.tensor].stays)
            continue;
        bool same = p->size == old_size(p);
        TN_TRY(copy_range(s, &s->bytes, from, same ? p->message.begin : p->message.length_at));
        if (!same)
            tn_proto_put_varint(&s->bytes, p->size);
        from = p->message.begin;
        if (p->message.tensor == SIZE_MAX)
            continue;
        TN_TRY(put_tensor(s, &s->data[p->message.tensor]));
        from = p->message.end;
    }
    TN_TRY(copy_range(s, &s->bytes, from, tn_source_size(s->model->source)));
    s->runs[s->nruns - 1].size = s->bytes.size - s->runs[s->nruns - 1].at;
    return s->bytes.bad ? tn_fail_nomem(s->err) : TN_OK;
}

tn_status tn_onnx_splice_model(tn_onnx_splice *s)
{
    part *parts = NULL;
    tn_status status = sort_parts(s, &parts);
    if (!status)
        status = size_parts(s, parts);
    if (!status)
        status = put_parts(s, parts);
    free(parts);
    return status;
}

void tn_onnx_splice_free(tn_onnx_splice *s)
{
    tn_buf_free(&s->bytes);
    free(s->runs);
    free(s->names);
}
