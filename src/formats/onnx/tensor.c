/* formats/onnx/tensor.c - one TensorProto: its shape, its type, and where its data is. */
#include "formats/onnx/onnx.h"
#include "base/error.h"
#include "tensor/array.h"

#include <inttypes.h>
#include <string.h>

/* What the fields of a TensorProto say. */
typedef struct reading {
    tn_onnx_model  *model;
    tn_proto        tensor;     /* at its first field */
    const char     *prefix, *name;
    tn_dims         dims;
    uint64_t        type, location;
    uint32_t        data;       /* the field that has the data, or 0 */
    uint32_t        pieces;     /* it comes so often */
    uint64_t        bytes;      /* of all pieces, without tags */
    tn_proto_field  piece;      /* the first of them */
    tn_onnx_entries entries;
    tn_onnx_tensor *t;
} reading;

static tn_status add_dim(reading *r, uint64_t dim, uint64_t at)
{
    tn_proto_input *in = r->tensor.in;
    if (dim > INT64_MAX)
        return tn_proto_reject(in, TN_ERR_CORRUPT, at, "dimension %u is negative: %" PRId64, r->dims.rank,
                               (int64_t)dim);
    tn_status status = tn_dims_add(&r->dims, dim, in->err);
    if (status)
        in->status = tn_at_byte(status, at, in->err);
    return status;
}

/* One by one, or packed. */
static tn_status add_dims(reading *r, const tn_proto_field *f)
{
    uint64_t dim;
    if (f->wire == TN_WIRE_VARINT)
        return add_dim(r, f->value, f->at);
    tn_proto all = tn_proto_enter(&r->tensor, f, &tn_onnx_tensor_kind);
    while (tn_proto_packed(&all, TN_WIRE_VARINT, &dim))
        TN_TRY(add_dim(r, dim, f->at));
    return all.in->status;
}

static tn_status add_data(reading *r, const tn_proto_field *f)
{
    if (r->data && r->data != f->number)
        return tn_proto_reject(r->tensor.in, TN_ERR_CORRUPT, f->at, "its data is in %s and in %s",
                               tn_onnx_tensor_kind.rules[r->data].name,
                               tn_onnx_tensor_kind.rules[f->number].name);
    if (!r->pieces)
        r->piece = *f;
    r->data = f->number;
    r->pieces++;
    r->bytes += f->wire == TN_WIRE_LENGTH ? f->value : 1;
    return TN_OK;
}

static tn_status take_field(reading *r, const tn_proto_field *f)
{
    switch (f->number) {
    case TN_ONNX_TENSOR_DIMS:
        return add_dims(r, f);
    case TN_ONNX_TENSOR_TYPE:
        r->type = f->value;
        break;
    case TN_ONNX_TENSOR_LOCATION:
        r->location = f->value;
        break;
    case TN_ONNX_TENSOR_SEGMENT:
        r->t->is_segment = true;
        break;
    case TN_ONNX_TENSOR_NAME:
        if (!r->name)
            r->name = tn_proto_text(&r->tensor, f, "tensor name", r->model->arena);
        break;
    case TN_ONNX_TENSOR_EXTERNAL:
        return tn_onnx_add_entry(r->model, &r->tensor, f, &r->entries);
    case TN_ONNX_TENSOR_FLOATS: case TN_ONNX_TENSOR_INT32S: case TN_ONNX_TENSOR_STRINGS:
    case TN_ONNX_TENSOR_INT64S: case TN_ONNX_TENSOR_RAW: case TN_ONNX_TENSOR_DOUBLES:
    case TN_ONNX_TENSOR_UINT64S:
        return add_data(r, f);
    default:
        break;
    }
    return r->tensor.in->status;
}

/* ---- where the data is ---- */

/* Numbers that are stored as they are in memory: one packed piece of floats. */
static bool is_range(const reading *r)
{
    bool floats = r->data == TN_ONNX_TENSOR_FLOATS || r->data == TN_ONNX_TENSOR_DOUBLES;
    return r->data == TN_ONNX_TENSOR_RAW ||
           (floats && r->pieces == 1 && r->piece.wire == TN_WIRE_LENGTH);
}

/* Numbers are decoded later, all at once: into eight times their bytes at most, since each takes a byte. */
static tn_status place_decoded(reading *r, const tn_onnx_type *type, uint64_t nbytes)
{
    if (nbytes / type->width > r->bytes)
        return tn_proto_reject(r->tensor.in, TN_ERR_CORRUPT, r->piece.at, "its shape has %" PRIu64
                               " numbers but %s has %" PRIu64 " bytes", nbytes / type->width,
                               tn_onnx_tensor_kind.rules[r->data].name, r->bytes);
    r->t->place = TN_ONNX_DECODED;
    r->t->numbers = type;
    r->t->offset = r->model->decoded;
    r->t->size = nbytes;
    r->model->decoded += nbytes;
    return TN_OK;
}

static tn_status place_inside(reading *r, const tn_onnx_type *type, uint64_t nbytes, tn_proto all)
{
    const char *field = tn_onnx_tensor_kind.rules[type->field].name;
    if (!r->data && nbytes)
        return tn_proto_reject(all.in, TN_ERR_CORRUPT, r->t->at, "it has no data: expected %" PRIu64
                               " bytes of raw_data, or %s", nbytes, field);
    if (!r->data)
        return TN_OK;
    if (r->data != TN_ONNX_TENSOR_RAW && r->data != type->field)
        return tn_proto_reject(all.in, TN_ERR_CORRUPT, r->piece.at,
                               "its data is in %s, expected raw_data or, for %s, %s",
                               tn_onnx_tensor_kind.rules[r->data].name, type->name, field);
    if (!is_range(r))
        return place_decoded(r, type, nbytes);
    r->t->place = TN_ONNX_INSIDE;
    r->t->offset = r->piece.begin;
    r->t->size = r->piece.value;
    if (r->t->size != nbytes)
        return tn_proto_reject(all.in, TN_ERR_CORRUPT, r->piece.at, "shape and type take %" PRIu64
                               " bytes but %" PRIu64 " are stored", nbytes, r->t->size);
    return TN_OK;
}

static tn_status place_unread(reading *r)
{
    bool raw = r->data == TN_ONNX_TENSOR_RAW;
    r->t->place = TN_ONNX_UNREAD;
    if (r->location && !r->model->others_external)
        r->model->others_external = r->t->at;
    r->t->offset = raw ? r->piece.begin : 0;
    r->t->size = raw ? r->piece.value : 0;
    return TN_OK;
}

static tn_status place(reading *r, const tn_onnx_type *type, tn_proto all)
{
    uint64_t nbytes;
    enum { INSIDE = 0, EXTERNAL = 1 };
    if (r->location > EXTERNAL)
        return tn_proto_reject(all.in, TN_ERR_CORRUPT, r->t->at,
                               "expected data_location 0 or 1 but found %" PRIu64, r->location);
    if (!type || type->dtype == TN_UNKNOWN || r->t->is_segment)
        return place_unread(r);
    if (tn_shape_nbytes(type->dtype, r->dims.rank, r->dims.dims, &nbytes))
        return tn_proto_reject(all.in, TN_ERR_LIMIT, r->t->at, "its shape takes more than 2^63 bytes");
    if (r->location == INSIDE)
        return place_inside(r, type, nbytes, all);
    if (r->data)
        return tn_proto_reject(all.in, TN_ERR_CORRUPT, r->piece.at, "its data is in another file and in %s",
                               tn_onnx_tensor_kind.rules[r->data].name);
    return tn_onnx_read_external(r->model, &r->entries, r->t->at, r->t);
}

static tn_status find_type(reading *r, const tn_onnx_type **type)
{
    tn_onnx_tensor *t = r->t;
    *type = tn_onnx_type_of(r->type);
    if (r->type == 0)
        return tn_proto_reject(r->tensor.in, TN_ERR_CORRUPT, t->at,
                               "it has no data_type, or 0, which is none");
    t->dtype = *type ? (*type)->dtype : TN_UNKNOWN;
    t->type = *type ? (*type)->name
                    : tn_arena_printf(r->model->arena, "data_type %" PRIu64, r->type);
    t->shape = tn_dims_keep(&r->dims, r->model->arena, NULL, 0);
    t->rank = r->dims.rank;
    if (!t->type || !t->shape)
        r->tensor.in->status = tn_fail_nomem(r->tensor.in->err);
    return r->tensor.in->status;
}

tn_status tn_onnx_read_tensor(tn_onnx_model *m, const tn_proto *outer, const tn_proto_field *field,
                              const char *prefix, const char *name, tn_onnx_tensor *t)
{
    const tn_onnx_type *type;
    tn_proto_field f;
    const tn_proto all = tn_proto_enter(outer, field, &tn_onnx_tensor_kind);
    reading r = { .model = m, .tensor = all, .name = name, .t = t };
    *t = (tn_onnx_tensor){ .at = field->at, .begin = all.pos, .end = all.end };
    tn_status status = TN_OK;
    while (!status && tn_proto_next(&r.tensor, &f))
        status = take_field(&r, &f);
    if (!all.in->status && (!r.name || !*r.name))
        tn_proto_reject(all.in, TN_ERR_CORRUPT, t->at, "a tensor of the model has no name");
    if (!all.in->status)
        t->name = tn_onnx_name(m, prefix, r.name, t->at);
    if (!all.in->status && !find_type(&r, &type))
        place(&r, type, all);
    return r.name ? tn_in_tensor(all.in->status, r.name, all.in->err) : all.in->status;
}

/* ---- numbers ---- */

typedef struct decoding {
    tn_proto            tensor;
    const tn_onnx_type *type;
    const char         *field;  /* its name */
    uint8_t            *out;
    uint64_t            left;   /* bytes */
} decoding;

/* One number; those of int32_data are cut to 32 bits, as every reader does. */
static tn_status put_number(decoding *d, uint64_t bits, uint64_t at)
{
    const tn_onnx_type *type = d->type;
    int64_t value = (int64_t)bits;
    if (type->field == TN_ONNX_TENSOR_INT32S && bits <= UINT32_MAX)
        value = (int32_t)(uint32_t)bits;
    bool wide = type->field == TN_ONNX_TENSOR_UINT64S && value < 0;
    if ((type->low || type->high) && (wide || value < type->low || value > type->high))
        return tn_proto_reject(d->tensor.in, TN_ERR_CORRUPT, at,
                               "expected numbers from %" PRId64 " to %" PRId64 " but found %" PRId64,
                               type->low, type->high, value);
    if (d->left < type->width)
        return tn_proto_reject(d->tensor.in, TN_ERR_CORRUPT, at, "%s has more numbers than its shape",
                               d->field);
    for (unsigned i = 0; i < type->width; i++)
        *d->out++ = (uint8_t)((uint64_t)value >> 8 * i);
    d->left -= type->width;
    return TN_OK;
}

static tn_wire wire_of(uint32_t field)
{
    if (field == TN_ONNX_TENSOR_FLOATS)
        return TN_WIRE_FIXED32;
    return field == TN_ONNX_TENSOR_DOUBLES ? TN_WIRE_FIXED64 : TN_WIRE_VARINT;
}

static tn_status put_piece(decoding *d, const tn_proto_field *f)
{
    uint64_t bits;
    if (f->wire != TN_WIRE_LENGTH)
        return put_number(d, f->value, f->at);
    tn_proto all = tn_proto_enter(&d->tensor, f, &tn_onnx_tensor_kind);
    while (tn_proto_packed(&all, wire_of(d->type->field), &bits))
        TN_TRY(put_number(d, bits, f->at));
    return all.in->status;
}

tn_status tn_onnx_decode(tn_onnx_model *m, const tn_onnx_tensor *t, uint8_t *out)
{
    const tn_proto outer = tn_proto_open(m->in, &tn_onnx_model_kind);
    const tn_proto_field whole = { .begin = t->begin, .value = t->end - t->begin };
    decoding d = { .tensor = tn_proto_enter(&outer, &whole, &tn_onnx_tensor_kind),
                   .type = t->numbers, .field = tn_onnx_tensor_kind.rules[t->numbers->field].name, .out = out,
                   .left = t->size };
    tn_proto_field f;
    tn_status status = TN_OK;
    while (!status && tn_proto_next(&d.tensor, &f))
        if (f.number == d.type->field)
            status = put_piece(&d, &f);
    if (!m->in->status && d.left)
        tn_proto_reject(m->in, TN_ERR_CORRUPT, t->at, "%s has fewer numbers than its shape", d.field);
    return tn_in_tensor(m->in->status, t->name, m->in->err);
}
