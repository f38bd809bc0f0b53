/* formats/raw/scaled.c - tensors of a datatype.
 *
 * The descriptor describes the codes as they are stored.  Its scheme is one of
 * Tenon's own.  The member TN_RAW_OWN has the datatype and the places of the other
 * parts, which are in the data too because they may be large. */
#include "formats/raw/raw.h"
#include "base/error.h"
#include "bytes/json.h"
#include "store/record.h"
#include "descriptor/descriptor.h"
#include "tensor/array.h"
#include "tensor/form.h"

#include <tenon/datatype.h>

#include <string.h>

#define SCHEME "tenon:scaled"

/* --- writing --- */

tn_wia_extra tn_raw_scheme(void)
{
    return (tn_wia_extra){ .path = "dtype", .key = "quantization", .json = "{\"scheme\":\"" SCHEME "\"}" };
}

/* NULL: nothing is written. */
static void put_text(tn_buf *out, const char *key, const char *text)
{
    if (!text)
        return;
    tn_json_put_key(out, key);
    tn_json_put_z(out, text);
}

static void put_shape(tn_buf *out, uint32_t rank, const int64_t *shape)
{
    tn_json_put_key(out, "shape");
    tn_json_put_shape(out, rank, shape);
}

static void put_part(tn_buf *out, const tn_part *p, const tn_raw_place *place)
{
    tn_json_put_comma(out);
    tn_buf_putc(out, '{');
    put_text(out, "role", p->role);
    put_text(out, "dtype", tn_dtype_get(p->array.dtype)->name);
    put_shape(out, p->array.rank, p->array.shape);
    put_text(out, "file", place->file);
    put_text(out, "encoding", place->encoding);
    tn_buf_printf(out, ",\"offset\":%llu,\"size\":%llu}", (unsigned long long)place->offset,
                  (unsigned long long)place->size);
}

void tn_raw_put_scaled(tn_buf *out, const tn_tensor *t, const tn_raw_place *places)
{
    const tn_scaling *s = t->scaling;
    char rotation[48];
    put_text(out, "datatype", s->datatype);
    if (s->unpacked)
        tn_buf_puts(out, ",\"unpacked\":true");
    if (s->rotation.size) {
        tn_rotation_format(rotation, sizeof rotation, &s->rotation);
        put_text(out, "rotation", rotation);
    }
    if (s->store != TN_UNKNOWN)
        put_text(out, "store", tn_dtype_get(s->store)->name);
    put_shape(out, t->rank, t->shape);
    tn_buf_puts(out, ",\"parts\":[");
    for (uint32_t k = 1; k < t->nparts; k++)
        put_part(out, &t->parts[k], &places[k]);
    tn_buf_putc(out, ']');
}

/* --- reading --- */

static bool says_scheme(const char *json)
{
    tn_arena arena = { 0 };
    tn_json j;
    tn_text key;
    bool found = false;
    tn_json_init(&j, json, strlen(json), &arena);
    tn_json_object(&j);
    while (tn_json_key(&j, &key)) {
        if (tn_text_is(key, "scheme"))
            found = tn_text_is(tn_json_string(&j), SCHEME);
        else
            tn_json_skip(&j);
    }
    tn_arena_free(&arena);
    return found && !j.status;
}

bool tn_raw_has_datatype(const tn_descriptor *d)
{
    for (size_t i = 0; i < d->nextra; i++)
        if (strcmp(d->extra[i].path, "dtype") == 0 && strcmp(d->extra[i].key, "quantization") == 0)
            return !d->sparse.format && says_scheme(d->extra[i].json);
    return false;
}

/* Only a raw part in the data of the descriptors can be read. */
static void take_part(tn_json *j, tn_part *p, uint64_t *offset)
{
    tn_text key;
    bool has_offset = false;
    tn_json_object(j);
    while (tn_json_key(j, &key)) {
        if (tn_text_is(key, "role"))
            p->role = tn_json_keep(j, tn_json_string(j));
        else if (tn_text_is(key, "dtype"))
            p->array.dtype = tn_json_dtype(j);
        else if (tn_text_is(key, "shape"))
            p->array.shape = tn_json_shape(j, NULL, &p->array.rank);
        else if (tn_text_is(key, "offset"))
            *offset = tn_json_u64(j), has_offset = true;
        else if (tn_text_is(key, "encoding") && !tn_text_is(tn_json_string(j), "raw"))
            tn_json_reject(j, TN_ERR_UNSUPPORTED, "expected a part whose encoding is raw");
        else if (tn_text_is(key, "file"))
            tn_json_reject(j, TN_ERR_UNSUPPORTED,
                           "expected a part in the same file as the first but found one in another");
        else if (!tn_text_is(key, "encoding"))
            tn_json_skip(j);
    }
    if (!p->role || p->array.dtype == TN_UNKNOWN || !p->array.shape || !has_offset)
        tn_json_reject(j, TN_ERR_CORRUPT, "expected role, dtype, shape and offset of a part");
}

static void take_parts(tn_json *j, tn_raw_scaled *s)
{
    s->nparts = 0;
    tn_json_array(j);
    while (tn_json_item(j)) {
        if (s->nparts == TN_RAW_COMPANIONS) {
            tn_json_reject(j, TN_ERR_LIMIT, "expected at most %d parts but found more", TN_RAW_COMPANIONS);
            return;
        }
        uint32_t k = s->nparts++;
        s->parts[k] = (tn_part){ 0 };
        take_part(j, &s->parts[k], &s->offsets[k]);
    }
}

static void take_rotation(tn_json *j, tn_rotation *rotation)
{
    tn_error why;
    const char *text = tn_json_keep(j, tn_json_string(j));
    if (text && tn_rotation_parse(text, rotation, &why))
        tn_json_reject(j, TN_ERR_CORRUPT, "%s", why.text);
}

bool tn_raw_take_scaled_item(tn_json *j, tn_text key, tn_raw_scaled *s)
{
    if (tn_text_is(key, "datatype"))
        s->scaling.datatype = tn_json_keep(j, tn_json_string(j));
    else if (tn_text_is(key, "unpacked"))
        s->scaling.unpacked = tn_json_bool(j);
    else if (tn_text_is(key, "rotation"))
        take_rotation(j, &s->scaling.rotation);
    else if (tn_text_is(key, "store"))
        s->scaling.store = tn_json_dtype(j);
    else if (tn_text_is(key, "shape"))
        s->shape = tn_json_shape(j, NULL, &s->rank);
    else if (tn_text_is(key, "parts"))
        take_parts(j, s);
    else
        return false;
    return true;
}

/* Checks that a part is inside the data. */
static tn_status place_part(tn_file *f, const tn_entry *e, uint64_t offset, tn_part *p, tn_error *err)
{
    const tn_shard *data = &f->shards[e->stored.shard];
    const tn_dtype_info *type = tn_dtype_get(p->array.dtype);
    uint64_t have = tn_source_size(data->source);
    if (tn_shape_nbytes(p->array.dtype, p->array.rank, p->array.shape, &p->nbytes))
        return tn_fail_at(err, TN_ERR_LIMIT, e->at, "the shape of its part %s takes more than 2^63 bytes",
                          tn_quote_z(p->role).text);
    if (offset > have || p->nbytes > have - offset)
        return tn_fail_at(err, TN_ERR_CORRUPT, e->at,
                          "its part %s takes %llu bytes from %llu on but %s has %llu",
                          tn_quote_z(p->role).text, (unsigned long long)p->nbytes, (unsigned long long)offset,
                          tn_quote_z(data->path).text, (unsigned long long)have);
    const tn_stored stored = { .offset = offset, .size = p->nbytes,
                               .type = tn_type_label(type), .order = e->stored.order,
                               .shard = e->stored.shard };
    p->stored = tn_file_keep_stored(f, &stored, NULL);
    return p->stored ? TN_OK : tn_fail_nomem(err);
}

tn_status tn_raw_take_datatype(tn_file *f, tn_raw_scaled *s, tn_entry *e, tn_error *err)
{
    if (!s->scaling.datatype || !s->shape)
        return tn_fail_at(err, TN_ERR_CORRUPT, e->at, TN_RAW_OWN
                          ": expected datatype and shape with the scheme \"" SCHEME "\" but found no %s",
                          s->shape ? "datatype" : "shape");
    for (uint32_t k = 0; k < s->nparts; k++)
        TN_TRY(place_part(f, e, s->offsets[k], &s->parts[k], err));
    s->scaling.axis = -1;
    e->form = TN_FORM_SCALED;
    e->scaling = tn_scaling_keep(&f->arena, &s->scaling, &f->datatype);
    e->value_rank = s->rank;
    e->value_shape = s->shape;
    e->companions = tn_arena_copy(&f->arena, s->parts, s->nparts * sizeof *s->parts);
    e->ncompanions = s->nparts;
    return e->scaling && e->companions ? TN_OK : tn_fail_nomem(err);
}
