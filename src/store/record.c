/* store/record.c - records, carriers, metadata as CBOR. */
#include "store/record.h"
#include "base/error.h"
#include "bytes/transcode.h"
#include "store/dims.h"
#include "store/names.h"
#include "tensor/array.h"
#include "quant/grammar/datatype.h"
#include "tensor/form.h"

#include <stdlib.h>
#include <string.h>

bool tn_record_empty(const tn_record *r)
{
    return !r->has_array && !r->form && !r->extents && !r->layout && !r->tied && !r->nfile_meta && !r->nmeta;
}

static void put_key(tn_buf *out, const char *key)
{
    tn_cbor_put_z(out, key);
}

static void put_text(tn_buf *out, const char *key, const char *text)
{
    put_key(out, key);
    tn_cbor_put_z(out, text);
}

static void put_shape(tn_buf *out, const char *key, uint32_t rank, const int64_t *shape)
{
    put_key(out, key);
    tn_cbor_put_array(out, rank);
    for (uint32_t i = 0; i < rank; i++)
        tn_cbor_put_u64(out, (uint64_t)shape[i]);
}

static void put_array(tn_buf *out, const char *type, tn_dtype dtype, uint32_t rank, const int64_t *shape)
{
    put_text(out, "dtype", type ? type : tn_dtype_get(dtype)->name);
    put_shape(out, "shape", rank, shape);
}

static uint64_t scaling_fields(const tn_scaling *s)
{
    if (!s)
        return 0;
    if (!s->datatype)
        return 1u + (s->axis >= 0);
    return 1u + s->unpacked + (s->rotation.size > 0) + (s->store != TN_UNKNOWN);
}

static void put_datatype(tn_buf *out, const tn_scaling *s)
{
    char rotation[48];
    put_text(out, "datatype", s->datatype);
    if (s->unpacked) {
        put_key(out, "unpacked");
        tn_cbor_put_bool(out, true);
    }
    if (s->rotation.size) {
        tn_rotation_format(rotation, sizeof rotation, &s->rotation);
        put_text(out, "rotation", rotation);
    }
    if (s->store != TN_UNKNOWN)
        put_text(out, "store", tn_dtype_get(s->store)->name);
}

static void put_scaling(tn_buf *out, const tn_scaling *s)
{
    if (s->datatype) {
        put_datatype(out, s);
        return;
    }
    if (s->axis >= 0) {
        put_key(out, "axis");
        tn_cbor_put_u64(out, (uint64_t)s->axis);
    }
    put_key(out, "range");
    tn_cbor_put_array(out, 2);
    tn_cbor_put_i64(out, s->range[0]);
    tn_cbor_put_i64(out, s->range[1]);
}

static void put_texts(tn_buf *out, const char *key, const char *const *texts, uint32_t n)
{
    put_key(out, key);
    tn_cbor_put_array(out, n);
    for (uint32_t i = 0; i < n; i++)
        tn_cbor_put_z(out, texts[i]);
}

static void put_tensor(tn_buf *out, const tn_record *r)
{
    put_key(out, "tensor");
    tn_cbor_put_map(out, 4u + (r->entries != NULL) + scaling_fields(r->scaling));
    put_text(out, "form", r->form);
    put_array(out, r->tensor_type, r->tensor_dtype, r->tensor_rank, r->tensor_shape);
    put_texts(out, "parts", r->roles, r->nroles);
    if (r->entries)
        put_texts(out, "entries", r->entries, r->nroles - 1);
    if (r->scaling)
        put_scaling(out, r->scaling);
}

void tn_meta_put_map(const tn_meta *meta, size_t n, tn_buf *out)
{
    tn_cbor_put_map(out, n);
    for (size_t i = 0; i < n; i++) {
        put_key(out, meta[i].key);
        if (meta[i].text)
            tn_cbor_put_z(out, meta[i].text);
        else
            tn_buf_put(out, meta[i].cbor, meta[i].cbor_size);
    }
}

/* Nothing if there is none. */
static void put_meta(tn_buf *out, const char *key, const tn_meta *meta, size_t n)
{
    if (!n)
        return;
    put_key(out, key);
    tn_meta_put_map(meta, n, out);
}

void tn_record_put(const tn_record *r, tn_buf *out)
{
    tn_cbor_put_map(out, 2u * r->has_array + (r->form != NULL) + (r->extents != NULL) + (r->fill != 0) +
                             (r->layout != NULL) + (r->tied != NULL) + (r->nfile_meta > 0) + (r->nmeta > 0));
    if (r->has_array)
        put_array(out, r->type, r->dtype, r->rank, r->shape);
    if (r->form)
        put_tensor(out, r);
    if (r->extents)
        put_shape(out, "extents", r->extents_rank, r->extents);
    if (r->fill != 0) {
        put_key(out, "fill");
        tn_cbor_put_f64(out, r->fill);
    }
    if (r->layout)
        put_text(out, "layout", r->layout);
    if (r->tied)
        put_text(out, "tied", r->tied);
    put_meta(out, "file", r->file_meta, r->nfile_meta);
    put_meta(out, "meta", r->meta, r->nmeta);
}

tn_status tn_record_put_edited(tn_text cbor, const char *key, const tn_meta *file_meta, size_t n,
                               tn_arena *arena, tn_buf *out, tn_error *err)
{
    tn_buf kept = { 0 };
    uint64_t count = n > 0;
    tn_text field;
    tn_cbor c;
    tn_cbor_init(&c, cbor.ptr, cbor.len, arena);
    if (cbor.len)
        tn_cbor_map(&c);
    while (cbor.len && tn_cbor_key(&c, &field)) {
        tn_text value = tn_cbor_raw(&c);
        if (tn_text_is(field, "file") || tn_text_is(field, "meta"))
            continue;           /* written anew; zTensor keeps the tensor's as custom fields */
        tn_cbor_put_text(&kept, field.ptr, field.len);
        tn_buf_put(&kept, value.ptr, value.len);
        count++;
    }
    if (count) {
        put_key(out, key);
        tn_cbor_put_map(out, count);
        tn_buf_put(out, kept.data, kept.size);
    }
    put_meta(out, "file", file_meta, n);
    tn_status status = kept.bad ? tn_fail_nomem(err) : TN_OK;
    tn_buf_free(&kept);
    return !status && cbor.len && c.status ? tn_cbor_fail(&c, TN_NO_OFFSET, err) : status;
}

const int64_t *tn_cbor_shape(tn_cbor *c, const int64_t *known, uint32_t *rank)
{
    tn_dims dims;
    tn_error why;
    dims.rank = 0;
    tn_cbor_array(c);
    while (tn_cbor_item(c))
        if (tn_dims_add(&dims, tn_cbor_u64(c), &why))
            tn_cbor_reject(c, why.status, "%s", why.text);
    const int64_t *shape = c->status ? NULL : tn_dims_keep(&dims, c->arena, known, *rank);
    if (!shape)
        tn_cbor_reject(c, TN_ERR_NOMEM, "out of memory");
    *rank = shape ? dims.rank : 0;
    return shape;
}

const int64_t *tn_json_shape(tn_json *j, const int64_t *known, uint32_t *rank)
{
    tn_dims dims;
    tn_error why;
    dims.rank = 0;
    tn_json_array(j);
    while (tn_json_item(j))
        if (tn_dims_add(&dims, tn_json_u64(j), &why))
            tn_json_reject(j, why.status, "%s", why.text);
    const int64_t *shape = j->status ? NULL : tn_dims_keep(&dims, j->arena, known, *rank);
    if (!shape)
        tn_json_reject(j, TN_ERR_NOMEM, "out of memory");
    *rank = shape ? dims.rank : 0;
    return shape;
}

/* A copy in the arena; NULL, and the reader has failed, without memory. */
static void *copy_items(tn_cbor *c, const void *items, size_t size)
{
    void *copy = c->status ? NULL : tn_arena_copy(c->arena, items, size);
    if (!copy)
        tn_cbor_reject(c, TN_ERR_NOMEM, "out of memory");
    return copy;
}

static const char *take_text(tn_cbor *c)
{
    return tn_cbor_keep(c, tn_cbor_text(c));
}

static tn_dtype take_dtype(tn_cbor *c, const char **name)
{
    *name = take_text(c);
    return *name ? tn_dtype_parse(*name) : TN_UNKNOWN;
}

tn_dtype tn_json_dtype(tn_json *j)
{
    const char *name = tn_json_keep(j, tn_json_string(j));
    tn_dtype dtype = name ? tn_dtype_parse(name) : TN_UNKNOWN;
    if (name && dtype == TN_UNKNOWN)
        tn_json_reject(j, TN_ERR_UNSUPPORTED, "type %s is not known to this build", tn_quote_z(name).text);
    return dtype;
}

/* An array of texts, one per part. */
static const char **take_texts(tn_cbor *c, uint32_t *n)
{
    const char *texts[TN_MAX_PARTS];
    *n = 0;
    tn_cbor_array(c);
    while (tn_cbor_item(c)) {
        if (*n == TN_MAX_PARTS) {
            tn_cbor_reject(c, TN_ERR_LIMIT, "expected at most %d parts but found more", TN_MAX_PARTS);
            return NULL;
        }
        texts[(*n)++] = take_text(c);
    }
    return copy_items(c, texts, *n * sizeof *texts);
}

static bool take_range(tn_cbor *c, int64_t range[2])
{
    size_t n = 0;
    tn_cbor_array(c);
    while (tn_cbor_item(c)) {
        int64_t bound = tn_cbor_i64(c);
        if (n < 2)
            range[n] = bound;
        n++;
    }
    if (!c->status && n != 2)
        tn_cbor_reject(c, TN_ERR_CORRUPT, "expected a range of 2 numbers but found %zu", n);
    return !c->status;
}

static void take_axis(tn_cbor *c, tn_scaling *s)
{
    uint64_t axis = tn_cbor_u64(c);
    /* the check of the form refuses larger ones */
    s->axis = axis < TN_MAX_RANK ? (int32_t)axis : TN_MAX_RANK;
}

static void take_rotation(tn_cbor *c, tn_rotation *rotation)
{
    tn_error why;
    const char *text = take_text(c);
    if (text && tn_rotation_parse(text, rotation, &why))
        tn_cbor_reject(c, TN_ERR_CORRUPT, "%s", why.text);
}

/* A type that this build does not know could be anything: do not read its numbers as codes. */
static void take_store(tn_cbor *c, tn_scaling *s)
{
    const char *name = NULL;
    s->store = take_dtype(c, &name);
    if (!c->status && s->store == TN_UNKNOWN)
        tn_cbor_reject(c, TN_ERR_CORRUPT, "expected float8_e4m3fn or float8_e5m2 to store numbers as but "
                       "found %.40s", tn_quote_z(name).text);
}

/* Reads a field of a scaled tensor; false: it is another field. */
static bool take_scaling(tn_cbor *c, tn_text key, tn_scaling *s, bool *range)
{
    if (tn_text_is(key, "axis"))
        take_axis(c, s);
    else if (tn_text_is(key, "range"))
        *range = take_range(c, s->range);
    else if (tn_text_is(key, "datatype"))
        s->datatype = take_text(c);
    else if (tn_text_is(key, "unpacked"))
        s->unpacked = tn_cbor_bool(c);
    else if (tn_text_is(key, "rotation"))
        take_rotation(c, &s->rotation);
    else if (tn_text_is(key, "store"))
        take_store(c, s);
    else
        return false;
    return true;
}

/* Keeps either the datatype or axis and range. */
static void settle_scaling(tn_cbor *c, const tn_scaling *s, bool range, tn_record *r)
{
    const tn_scaling affine = { .axis = s->axis, .range = { s->range[0], s->range[1] } };
    const tn_scaling typed = { .axis = -1, .datatype = s->datatype, .unpacked = s->unpacked,
                               .rotation = s->rotation, .store = s->store };
    if (c->status || (!range && !s->datatype))
        return;
    r->scaling = copy_items(c, s->datatype ? &typed : &affine, sizeof *s);
}

static void take_tensor(tn_cbor *c, tn_record *r)
{
    tn_text key;
    bool range = false;
    uint32_t nentries = 0;
    tn_scaling scaling = { .axis = -1 };
    tn_cbor_map(c);
    while (tn_cbor_key(c, &key)) {
        if (tn_text_is(key, "form"))
            r->form = take_text(c);
        else if (tn_text_is(key, "dtype"))
            r->tensor_dtype = take_dtype(c, &r->tensor_type);
        else if (tn_text_is(key, "shape"))
            r->tensor_shape = tn_cbor_shape(c, NULL, &r->tensor_rank);
        else if (tn_text_is(key, "parts"))
            r->roles = take_texts(c, &r->nroles);
        else if (tn_text_is(key, "entries"))
            r->entries = take_texts(c, &nentries);
        else if (!take_scaling(c, key, &scaling, &range))
            tn_cbor_skip(c);
    }
    settle_scaling(c, &scaling, range, r);
    if (!c->status && (!r->form || !r->nroles || !r->tensor_shape || !r->tensor_type))
        tn_cbor_reject(c, TN_ERR_CORRUPT, "expected form, dtype, shape and parts");
    if (!c->status && r->entries && nentries != r->nroles - 1)
        tn_cbor_reject(c, TN_ERR_CORRUPT,
                       "expected %u entries, one for each part but the first, but found %u", r->nroles - 1,
                       nentries);
}

static void take_meta(tn_cbor *c, uint64_t at, const tn_meta **meta, size_t *n)
{
    tn_error why;
    tn_text map = tn_cbor_raw(c);
    if (!c->status && tn_meta_parse_map(map, at, c->arena, meta, n, &why))
        tn_cbor_reject(c, why.status, "%.80s", why.text);
}

tn_status tn_record_parse(tn_text cbor, uint64_t at, tn_arena *arena, tn_record *r, tn_error *err)
{
    *r = (tn_record){ 0 };
    tn_cbor c;
    tn_text key;
    tn_cbor_init(&c, cbor.ptr, cbor.len, arena);
    tn_cbor_map(&c);
    while (tn_cbor_key(&c, &key)) {
        if (tn_text_is(key, "dtype"))
            r->dtype = take_dtype(&c, &r->type);
        else if (tn_text_is(key, "shape"))
            r->shape = tn_cbor_shape(&c, NULL, &r->rank);
        else if (tn_text_is(key, "tensor"))
            take_tensor(&c, r);
        else if (tn_text_is(key, "extents"))
            r->extents = tn_cbor_shape(&c, NULL, &r->extents_rank);
        else if (tn_text_is(key, "fill"))
            r->fill = tn_cbor_f64(&c);
        else if (tn_text_is(key, "layout"))
            r->layout = take_text(&c);
        else if (tn_text_is(key, "tied"))
            r->tied = take_text(&c);
        else if (tn_text_is(key, "file"))
            take_meta(&c, at, &r->file_meta, &r->nfile_meta);
        else if (tn_text_is(key, "meta"))
            take_meta(&c, at, &r->meta, &r->nmeta);
        else
            tn_cbor_skip(&c);
    }
    r->has_array = r->type != NULL;
    if (!c.status && r->has_array != (r->shape != NULL))
        tn_cbor_reject(&c, TN_ERR_CORRUPT, "expected both dtype and shape or neither");
    if (c.status)       /* a record may be JSON in the file: no byte in it can be named */
        return tn_fail_at(err, c.status, at, "its \"tenon\" record: %s", c.why);
    return TN_OK;
}

/* Numbers of another datatype are read as that datatype. */
static tn_status replace_by_stored(tn_kept_datatype *last)
{
    tn_datatype *stored = NULL;
    if (!last->datatype || last->store == TN_UNKNOWN)
        return TN_OK;
    tn_status status = tn_datatype_parse_stored(tn_datatype_text(last->datatype), last->store, &stored, NULL);
    tn_datatype_free(last->datatype);
    last->datatype = status ? NULL : stored;
    return status;
}

/* The text in the arena; NULL without memory. */
static const char *keep_datatype(tn_arena *arena, const tn_scaling *s, tn_kept_datatype *last)
{
    const char *text = s->datatype;
    if (last->text && last->store == s->store && strcmp(text, last->text) == 0)
        return last->text;
    tn_datatype_free(last->datatype);
    *last = (tn_kept_datatype){ .store = s->store };
    if (tn_datatype_parse(text, &last->datatype, NULL) == TN_ERR_NOMEM)
        return NULL;
    if (last->datatype)
        text = tn_datatype_text(last->datatype);
    last->text = tn_arena_text(arena, text, strlen(text));
    if (replace_by_stored(last) == TN_ERR_NOMEM)
        last->text = NULL;
    return last->text;
}

const tn_scaling *tn_scaling_keep(tn_arena *arena, const tn_scaling *s, tn_kept_datatype *last)
{
    tn_scaling *copy = tn_arena_copy(arena, s, sizeof *s);
    if (!copy || !s->datatype)
        return copy;
    copy->datatype = keep_datatype(arena, s, last);
    return copy->datatype ? copy : NULL;
}

const tn_datatype *tn_scaling_datatype(const tn_scaling *s, const tn_kept_datatype *last)
{
    return s && s->datatype && s->datatype == last->text && s->store == last->store ? last->datatype : NULL;
}

void tn_meta_take(tn_cbor *c, tn_meta *m)
{
    if (c->pos < c->end && c->data[c->pos] >> 5 == 3) {     /* text without a tag */
        m->text = take_text(c);
    } else {
        tn_text raw = tn_cbor_raw(c);
        m->cbor = copy_items(c, raw.ptr, raw.len);
        m->cbor_size = raw.len;
    }
}

static const char *meta_key(const void *owner, size_t i)
{
    return ((const tn_meta *)owner)[i].key;
}

tn_status tn_meta_check_unique(const tn_meta *meta, size_t n, uint64_t at, tn_error *err)
{
    tn_names names;
    if (n < 2)
        return TN_OK;
    if (!tn_names_init(&names, n))
        return tn_fail_nomem(err);
    tn_status status = TN_OK;
    for (size_t i = 0; i < n && !status; i++) {
        size_t other = tn_names_add(&names, meta, meta_key, i);
        if (other == TN_NAMES_NOMEM)
            status = tn_fail_nomem(err);
        else if (other != TN_NAMES_ADDED)
            status = tn_fail_at(err, TN_ERR_CORRUPT, at, "metadata key %s is there twice",
                                tn_quote_z(meta[i].key).text);
    }
    tn_names_free(&names);
    return status;
}

/* The next key and value; false at the end or after a failure. */
static bool next_meta(tn_cbor *c, tn_meta *m)
{
    tn_text key;
    if (!tn_cbor_key(c, &key))
        return false;
    *m = (tn_meta){ 0 };
    if (tn_text_has_nul(key))
        tn_cbor_reject(c, TN_ERR_CORRUPT, "expected a metadata key without NUL characters");
    else if (!(m->key = tn_arena_text(c->arena, key.ptr, key.len)))
        tn_cbor_reject(c, TN_ERR_NOMEM, "out of memory");
    else
        tn_meta_take(c, m);
    return !c->status;
}

tn_status tn_meta_parse_map(tn_text cbor, uint64_t at, tn_arena *arena, const tn_meta **meta, size_t *n,
                            tn_error *err)
{
    tn_meta *items = NULL, m;
    size_t count = 0, cap = 0;
    tn_cbor c;
    tn_cbor_init(&c, cbor.ptr, cbor.len, arena);
    tn_cbor_map(&c);
    while (next_meta(&c, &m)) {
        if (!TN_GROW(items, count, cap)) {
            tn_cbor_reject(&c, TN_ERR_NOMEM, "out of memory");
            break;
        }
        items[count++] = m;
    }
    tn_status status = c.status ? tn_cbor_fail(&c, at, err) : tn_meta_check_unique(items, count, at, err);
    if (!status && !(*meta = tn_arena_copy(arena, items, count * sizeof *items)))
        status = tn_fail_nomem(err);
    free(items);
    *n = status ? 0 : count;
    return status;
}

/* A type of the same bytes that every container has a name for. */
static tn_dtype same_bytes(tn_dtype dtype)
{
    switch (dtype) {
    case TN_TF32:       return TN_FLOAT32;
    case TN_COMPLEX64:  return TN_FLOAT32;      /* with a last dimension of 2 */
    case TN_COMPLEX128: return TN_FLOAT64;
    case TN_FX8:        return TN_INT8;
    case TN_FX16:       return TN_INT16;
    default:            return TN_UINT8;
    }
}

tn_status tn_carrier_for(const tn_format *format, tn_dtype dtype, uint32_t rank, const int64_t *shape,
                         tn_carrier *c, tn_error *err)
{
    const tn_dtype_info *type = tn_dtype_get(dtype);
    uint64_t nbytes, count;
    if (!type || tn_shape_count(rank, shape, &count) || tn_shape_nbytes(dtype, rank, shape, &nbytes))
        return tn_fail(err, TN_ERR_LIMIT, "a type or shape that has no size");
    bool whole = type->bits % 8 == 0 || count % 8 == 0 || (count * type->bits) % 8 == 0;
    *c = (tn_carrier){ .dtype = dtype, .rank = rank, .same = true };
    if (rank)
        memcpy(c->shape, shape, rank * sizeof *shape);
    if (format->type_name(type) && (whole || !format->whole_bytes))
        return TN_OK;
    c->same = false;
    c->dtype = same_bytes(dtype);
    if (type->kind == TN_KIND_COMPLEX && rank < TN_MAX_RANK) {
        c->shape[c->rank++] = 2;
    } else if (type->kind == TN_KIND_COMPLEX || type->bits < 8) {
        c->dtype = TN_UINT8;
        c->rank = 1;
        c->shape[0] = (int64_t)nbytes;
    }
    return TN_OK;
}
