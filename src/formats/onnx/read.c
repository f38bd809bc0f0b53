/* formats/onnx/read.c - opening a model: its tensors become entries.
 *
 * The bytes of raw_data, and of floats in one packed piece, are used in place.  Numbers that are stored one
 * by one or in varints are decoded here, into at most eight times their size. */
#include "formats/onnx/onnx.h"
#include "base/error.h"
#include "tensor/array.h"

#include <string.h>

/* ---- recognising ---- */

/* A varint; false: it goes on beyond these bytes, or has more than 64 bits. */
static bool take_varint(const uint8_t *head, size_t n, size_t *pos, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; *pos < n && shift < 64; shift += 7) {
        uint8_t byte = head[(*pos)++];
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* Passes over the value of a field; false: it ends beyond these bytes. */
static bool skip_value(const uint8_t *head, size_t n, size_t *pos, unsigned wire, uint64_t *value)
{
    uint64_t size = 0;
    if (wire == TN_WIRE_FIXED32 || wire == TN_WIRE_FIXED64)
        size = wire == TN_WIRE_FIXED32 ? 4 : 8;
    else if (!take_varint(head, n, pos, value))
        return false;
    if (wire == TN_WIRE_LENGTH)
        size = *value;
    bool inside = size <= n - *pos;
    *pos = inside ? *pos + (size_t)size : n;
    return inside;
}

tn_onnx_glance tn_onnx_look(const tn_proto_kind *kind, const uint8_t *head, size_t n)
{
    enum { ANY_WIRE = TN_PROTO_VARINTS | TN_PROTO_FIXED32S | TN_PROTO_FIXED64S };
    tn_onnx_glance g = { 0 };
    uint64_t tag, value = 0;
    for (size_t pos = 0; pos < n && !g.cut;) {
        if (!take_varint(head, n, &pos, &tag) || !(ANY_WIRE & 1u << (tag & 7)))
            return (tn_onnx_glance){ 0 };
        bool later = tag >> 3 >= kind->count;
        if (!later && !(kind->rules[tag >> 3].name && kind->rules[tag >> 3].wires & 1u << (tag & 7)))
            return (tn_onnx_glance){ 0 };
        if (!skip_value(head, n, &pos, tag & 7, &value))
            g.cut = tag >> 3;
        if (!g.first) {
            g.first = tag >> 3;
            g.value = value;
        }
        if (later)
            g.later |= !(g.seen & UINT64_C(1) << TN_ONNX_MODEL_GRAPH);
        else
            g.seen |= UINT64_C(1) << (tag >> 3);
    }
    return g;
}

/* There is no magic: all fields of the first bytes must be those of a model, and there are at least two.
 * Other models begin with a version too (Core ML): what ONNX does not have may follow the graph only, and
 * short texts end here. */
static int probe(const uint8_t *head, size_t n)
{
    const tn_onnx_glance g = tn_onnx_look(&tn_onnx_model_kind, head, n);
    bool begins = g.first == TN_ONNX_MODEL_PRODUCER_NAME || g.first == TN_ONNX_MODEL_GRAPH ||
                  (g.first == TN_ONNX_MODEL_IR_VERSION && g.value >= 1 && g.value <= 127);
    bool short_text = g.cut >= TN_ONNX_MODEL_PRODUCER_NAME && g.cut <= TN_ONNX_MODEL_DOMAIN;
    return begins && !g.later && !short_text && g.seen & (g.seen - 1) ? 60 : 0;
}

/* ---- entries ---- */

/* Where its data is in the files that are open. */
static tn_stored stored_of(const tn_onnx_model *m, const tn_onnx_tensor *t)
{
    tn_stored s = { .offset = t->offset, .size = t->size, .type = t->type };
    if (t->place == TN_ONNX_EXTERNAL)
        s.shard = t->file;
    if (t->place == TN_ONNX_DECODED && t->size)
        s.shard = (uint32_t)m->file->nshards - 1;
    if (t->place == TN_ONNX_EXTERNAL && t->external->checksum) {
        s.checksum = TN_CHECKSUM_UNKNOWN;
        s.checksum_text = t->external->checksum;
    }
    return s;
}

static tn_status check_indices(const tn_onnx_tensor *t, uint64_t nbytes, tn_error *err)
{
    if (t->size == nbytes)
        return TN_OK;
    return tn_fail_at(err, TN_ERR_CORRUPT, t->at,
                      "its indices take %llu bytes but %llu are stored", (unsigned long long)nbytes,
                      (unsigned long long)t->size);
}

static tn_status add_sparse(tn_onnx_model *m, tn_entry *e, const tn_onnx_tensor *values,
                            const tn_onnx_tensor *indices, tn_error *err)
{
    const tn_stored stored = stored_of(m, indices);
    tn_part part = { .role = "indices", .array = { indices->dtype, indices->rank, indices->shape, NULL },
                     .stored = tn_file_keep_stored(m->file, &stored, NULL) };
    TN_NEED(part.stored, err);
    if (tn_array_nbytes(&part.array, &part.nbytes))
        return tn_fail_at(err, TN_ERR_LIMIT, indices->at, "its indices take more than 2^63 bytes");
    TN_TRY(check_indices(indices, part.nbytes, err));
    e->shape = values->sparse->dims;
    e->rank = values->sparse->rank;
    tn_entry_make_sparse(e, TN_FORM_COO, values->shape, &part, 1);
    return tn_file_add(m->file, e, err);
}

static tn_status add_entry(tn_onnx_model *m, size_t i, tn_error *err)
{
    const tn_onnx_tensor *t = &m->tensors[i];
    tn_entry e = { .name = t->name, .at = t->at, .dtype = t->dtype, .rank = t->rank, .shape = t->shape,
                   .stored = stored_of(m, t) };
    e.more.sums_file = e.stored.checksum_text != NULL;
    if (t->is_segment)
        e.more.opaque = "segment";
    if (t->type && strcmp(t->type, "STRING") == 0)
        e.more.never = "its elements are texts (STRING), which are listed and not read";
    if (t->sparse)
        return tn_in_tensor(add_sparse(m, &e, t, &m->tensors[i + 1], err), t->name, err);
    return t->is_indices ? TN_OK : tn_file_add(m->file, &e, err);
}

static tn_status keep_decoded(tn_onnx_model *m, tn_error *err)
{
    uint32_t shard;
    if (!m->decoded)
        return TN_OK;
    uint64_t most = m->file->max_bytes;
    if (most && m->decoded > most)
        return tn_refuse(err, TN_ERR_LIMIT, TN_REASON_MAX_BYTES, NULL,
                         "its numbers take %llu bytes in memory, more than the %llu allowed",
                         (unsigned long long)m->decoded, (unsigned long long)most);
    uint8_t *data = tn_arena_zalloc(m->arena, m->decoded, 1);
    TN_NEED(data, err);
    for (size_t i = 0; i < m->count; i++)
        if (m->tensors[i].place == TN_ONNX_DECODED)
            TN_TRY(tn_onnx_decode(m, &m->tensors[i], data + m->tensors[i].offset));
    return tn_file_add_decoded(m->file, data, m->decoded, &shard, err);
}

static tn_status read_model(tn_onnx_model *m, tn_error *err)
{
    TN_TRY(tn_onnx_walk(m, err));
    TN_TRY(tn_onnx_open_external(m, err));
    TN_TRY(keep_decoded(m, err));
    TN_TRY(tn_file_expect(m->file, m->count, err));
    for (size_t i = 0; i < m->count; i++)
        TN_TRY(add_entry(m, i, err));
    TN_TRY(tn_file_check_ranges(m->file, TN_TILING_VIEWS, NULL, NULL, err));
    return tn_file_set_meta(m->file, m->meta, m->nmeta, err);
}

static tn_status open_onnx(tn_file *file, tn_error *err)
{
    tn_onnx_model m = { .file = file, .arena = &file->arena, .source = file->shards[0].source };
    tn_status status = read_model(&m, err);
    tn_onnx_free(&m);
    return status;
}

static const tn_format_key keys[] = {
    { "graph", "", "the model whose graph the tensors are for" },
    { "external", "no|yes", "data goes to NAME" TN_ONNX_DATA_SUFFIX ", aligned" }, { 0 },
};

const tn_format tn_format_onnx = {
    .info = {
        .name = "onnx", .suffix = TN_ONNX_SUFFIX,
        .title = "the tensors of ONNX models, inside or in other files",
        .reads = true, .writes = true, .probes = true, .keys = keys,
    },
    .probe = probe,
    .has_no_magic = true,
    .open = open_onnx,
    .type_name = tn_onnx_type_name,
    .not_carried = "its graph",
    .min_align = 1,
    .look_beside = tn_onnx_look_beside,
    .plan = tn_onnx_plan,
    .finish = tn_onnx_finish,
};
