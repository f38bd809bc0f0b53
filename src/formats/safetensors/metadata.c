/* formats/safetensors/metadata.c - the contents of `__metadata__`: text of the
 * user, and Tenon's records as JSON text.
 *
 * The field `meta` of a record holds the metadata of a tensor, or metadata of the
 * file that is not text.  A value that JSON cannot hold exactly is null there;
 * the field `cbor` has it under the same key, as CBOR in hexadecimal. */
#include "formats/safetensors/safetensors.h"
#include "base/error.h"
#include "bytes/transcode.h"
#include "store/record.h"

#include <stdlib.h>

static const char *pair_key(const void *owner, size_t i)
{
    return ((const tn_st_metadata *)owner)->pairs[i].key;
}

/* --- reading records --- */

/* The fields of a record that need more than a conversion to CBOR. */
typedef struct fields {
    tn_text meta, cbor;
    tn_text order;              /* of the file record */
    bool    fillers;            /* likewise */
} fields;

/* Reads a record and appends its other fields to `others` as items of a CBOR map; the file record (`others`
 * is NULL) has none. */
static void take_fields(tn_json *j, fields *r, tn_buf *others)
{
    tn_text key;
    tn_json_object(j);
    while (tn_json_key(j, &key)) {
        bool meta = tn_text_is(key, "meta"), own = meta || tn_text_is(key, "cbor");
        tn_text *value = meta ? &r->meta : &r->cbor;
        if (own && value->len) {
            tn_json_reject(j, TN_ERR_CORRUPT, "the field %s is there twice", tn_quote(key.ptr, key.len).text);
        } else if (own) {
            *value = tn_json_raw(j);
        } else if (others && !tn_text_is(key, "file")) {        /* only zTensor has that one */
            tn_cbor_put_text(others, key.ptr, key.len);
            tn_json_to_cbor(j, others);
        } else if (!others && tn_text_is(key, "fillers")) {
            r->fillers = tn_json_bool(j);
        } else if (!others && tn_text_is(key, "order")) {
            r->order = tn_json_raw(j);
        } else {
            tn_json_skip(j);
        }
    }
    tn_json_done(j);
}

/* Appends the CBOR item that `hex` is the text of. */
static void put_hex(tn_json *j, tn_text hex, tn_buf *out)
{
    tn_cbor c;
    size_t begin = out->size, n = hex.len / 2;
    tn_buf_fill(out, 0, n);
    if (out->bad)
        return;
    bool valid = tn_hex_read(hex, out->data + begin, n);
    tn_cbor_init(&c, out->data + begin, n, j->arena);
    tn_cbor_skip(&c);
    if (!valid || !tn_cbor_done(&c))
        tn_json_reject(j, TN_ERR_CORRUPT, "expected one CBOR item in hexadecimal but found %s",
                       tn_quote(hex.ptr, hex.len).text);
}

static bool next_special(tn_json *special, tn_text *key, tn_text *hex)
{
    if (!tn_json_key(special, key))
        return false;
    *hex = tn_json_string(special);
    return !special->status;
}

/* `meta` and `cbor` as one CBOR map.  The keys of `cbor` are some of those of
 * `meta`, in the same order, so one walk over both is enough. */
static void join_meta(tn_json *meta, tn_json *special, tn_buf *out)
{
    tn_text key, special_key = { 0 }, hex = { 0 };
    tn_json_object(special);
    bool more = next_special(special, &special_key, &hex);
    tn_cbor_open_map(out);
    tn_json_object(meta);
    while (tn_json_key(meta, &key)) {
        tn_cbor_put_text(out, key.ptr, key.len);
        if (more && tn_text_equal(key, special_key)) {
            tn_json_null(meta);
            put_hex(special, hex, out);
            more = next_special(special, &special_key, &hex);
        } else {
            tn_json_to_cbor(meta, out);
        }
    }
    tn_cbor_close(out);
    if (more)
        tn_json_reject(special, TN_ERR_CORRUPT, "expected key %s of \"cbor\" in \"meta\", in the same order",
                       tn_quote(special_key.ptr, special_key.len).text);
}

/* Appends the metadata of a record as a CBOR map; failures are j's. */
static void put_meta_map(tn_json *j, const fields *r, tn_buf *out)
{
    static const tn_text none = { "{}", 2 };
    tn_text meta = r->meta.len ? r->meta : none;
    tn_text special = r->cbor.len ? r->cbor : none;
    tn_json m, s;
    tn_json_init(&m, meta.ptr, meta.len, j->arena);
    tn_json_init(&s, special.ptr, special.len, j->arena);
    join_meta(&m, &s, out);
    const tn_json *failed = m.status ? &m : &s;
    if (failed->status)
        tn_json_reject(j, failed->status, "%s", failed->why);
}

/* The text of a record is inside a string: its bytes are not those of the file. */
static tn_status check_record(const tn_json *j, const tn_buf *out, const tn_st_pair *pair, tn_error *err)
{
    if (out->bad || j->status == TN_ERR_NOMEM)
        return tn_fail_nomem(err);
    if (!j->status)
        return TN_OK;
    tn_status status = j->status == TN_ERR_TRUNCATED ? TN_ERR_CORRUPT : j->status;
    return tn_fail_at(err, status, pair->at, "metadata key %s: expected a record of Tenon: %s",
                      tn_quote_z(pair->key).text, j->why);
}

/* The pair of this key, or NULL.  It is no longer metadata of the user. */
static const tn_st_pair *claim_pair(tn_st_metadata *m, const char *key)
{
    size_t i = tn_names_find(&m->names, m, pair_key, key);
    if (i >= m->count)
        return NULL;
    m->pairs[i].claimed = true;
    return &m->pairs[i];
}

tn_status tn_st_metadata_claim(tn_st_metadata *m, tn_arena *arena, const char *name, tn_text *record,
                               tn_error *err)
{
    *record = (tn_text){ 0 };
    if (!m->has_records)
        return TN_OK;
    m->scratch.size = 0;
    tn_buf_puts(&m->scratch, TN_ST_RECORD);
    tn_buf_put(&m->scratch, name, strlen(name) + 1);
    TN_NEED(!m->scratch.bad, err);
    const tn_st_pair *pair = claim_pair(m, (const char *)m->scratch.data);
    if (!pair)
        return TN_OK;
    tn_buf cbor = { 0 };
    fields r = { 0 };
    tn_json j;
    tn_json_init(&j, pair->value.ptr, pair->value.len, arena);
    tn_cbor_open_map(&cbor);
    take_fields(&j, &r, &cbor);
    if (r.meta.len || r.cbor.len) {
        tn_cbor_put_z(&cbor, "meta");
        put_meta_map(&j, &r, &cbor);
    }
    tn_cbor_close(&cbor);
    tn_status status = check_record(&j, &cbor, pair, err);
    if (!status) {
        *record = (tn_text){ tn_arena_copy(arena, cbor.data, cbor.size), cbor.size };
        status = record->ptr ? TN_OK : tn_fail_nomem(err);
    }
    tn_buf_free(&cbor);
    return status;
}

static tn_status read_file_record(tn_st_metadata *m, tn_file *file, tn_error *err)
{
    const tn_st_pair *pair = claim_pair(m, TN_ST_FILE_RECORD);
    if (!pair)
        return TN_OK;
    tn_buf cbor = { 0 };
    fields r = { 0 };
    tn_json j;
    tn_json_init(&j, pair->value.ptr, pair->value.len, &file->arena);
    take_fields(&j, &r, NULL);
    put_meta_map(&j, &r, &cbor);
    m->fillers = r.fillers;
    m->order = r.order;
    tn_status status = check_record(&j, &cbor, pair, err);
    const tn_text map = { (const char *)cbor.data, cbor.size };
    if (!status)
        status = tn_meta_parse_map(map, pair->at, &file->arena, &m->file_meta, &m->nfile_meta, err);
    tn_buf_free(&cbor);
    return status;
}

/* --- reading `__metadata__` --- */

static tn_status add_pair(tn_st_metadata *m, const tn_st_pair *pair, tn_error *err)
{
    TN_NEED(TN_GROW(m->pairs, m->count, m->cap), err);
    m->pairs[m->count++] = *pair;
    m->has_records |= tn_begins_with(pair->key, TN_ST_RECORD);
    size_t other = tn_names_add(&m->names, m, pair_key, m->count - 1);
    TN_NEED(other != TN_NAMES_NOMEM, err);
    if (other != TN_NAMES_ADDED)
        return tn_fail_at(err, TN_ERR_CORRUPT, pair->at, "metadata key %s is there twice: first at byte %llu",
                          tn_quote_z(pair->key).text, (unsigned long long)m->pairs[other].at);
    return TN_OK;
}

tn_status tn_st_metadata_read(tn_st_metadata *m, tn_file *file, tn_json *j, uint64_t base, tn_error *err)
{
    tn_text key;
    tn_json_object(j);
    while (tn_json_key(j, &key)) {
        tn_st_pair pair = { .at = base + j->pos, .value = tn_json_string(j) };
        if (j->status)
            return tn_fail_at(err, j->status, base + j->at, "metadata key %s: %s",
                              tn_quote(key.ptr, key.len).text, j->why);
        pair.key = tn_file_text(file, key, "metadata key", pair.at, err);
        if (!pair.key || add_pair(m, &pair, err))
            return err->status;
    }
    if (j->status)
        return tn_fail_at(err, j->status, base + j->at, TN_ST_METADATA ": %s", j->why);
    return read_file_record(m, file, err);
}

void tn_st_metadata_free(tn_st_metadata *m)
{
    free(m->pairs);
    tn_names_free(&m->names);
    tn_buf_free(&m->scratch);
    *m = (tn_st_metadata){ 0 };
}

/* --- metadata of several files --- */

tn_status tn_st_metadata_merge(const tn_st_metadata *m, tn_file *file, const char *from, tn_st_merged *all,
                               tn_error *err)
{
    tn_status status = TN_OK;
    for (size_t i = 0; i < m->count && !status; i++) {
        const tn_st_pair *pair = &m->pairs[i];
        if (pair->claimed)
            continue;
        const char *text = tn_file_text(file, pair->value, "metadata value", pair->at, err);
        const tn_meta meta = { .key = pair->key, .text = text };
        status = text ? tn_set_merge(&all->meta, &meta, from, pair->at, err) : err->status;
    }
    for (size_t i = 0; i < m->nfile_meta && !status; i++)
        status = tn_set_merge(&all->meta, &m->file_meta[i], from, TN_NO_OFFSET, err);
    if (!status && m->order.len && !all->order.len) {
        all->order = (tn_text){ tn_arena_copy(&file->arena, m->order.ptr, m->order.len), m->order.len };
        status = all->order.ptr ? TN_OK : tn_fail_nomem(err);
    }
    return status;
}

/* --- the order of metadata --- */

static const char *item_key(const void *owner, size_t i)
{
    return ((const tn_set_merged *)owner)->items[i].key;
}

/* Moves the items whose keys are listed to the front of `sorted`, in this order, and counts them. */
static size_t take_listed(const tn_st_merged *all, tn_arena *arena, tn_meta *sorted, bool *taken, tn_json *j)
{
    size_t n = 0;
    tn_json_init(j, all->order.ptr, all->order.len, arena);
    tn_json_array(j);
    while (tn_json_item(j)) {
        const char *key = tn_json_keep(j, tn_json_string(j));
        size_t i = key ? tn_names_find(&all->meta.names, &all->meta, item_key, key) : SIZE_MAX;
        if (i >= all->meta.count || taken[i])
            continue;
        taken[i] = true;
        sorted[n++] = all->meta.items[i];
    }
    return n;
}

tn_status tn_st_metadata_sort(tn_st_merged *all, tn_file *file, tn_error *err)
{
    size_t count = all->meta.count;
    if (!all->order.len || !count)
        return TN_OK;
    tn_json j;
    tn_meta *sorted = tn_arena_zalloc(&file->arena, count, sizeof *sorted);
    bool *taken = tn_arena_zalloc(&file->arena, count, sizeof *taken);
    TN_NEED(sorted && taken, err);
    size_t n = take_listed(all, &file->arena, sorted, taken, &j);
    if (j.status)
        return j.status == TN_ERR_NOMEM
                   ? tn_fail_nomem(err)
                   : tn_fail(err, TN_ERR_CORRUPT, "the order of the metadata: %s", j.why);
    for (size_t i = 0; i < count; i++)  /* what others have added */
        if (!taken[i])
            sorted[n++] = all->meta.items[i];
    memcpy(all->meta.items, sorted, count * sizeof *sorted);
    return TN_OK;
}

/* --- writing --- */

static const char *reserved_name(const void *owner, size_t i)
{
    return ((const tn_meta *)owner)[i].key + strlen(TN_ST_RECORD);
}

tn_status tn_st_reserved_init(tn_st_reserved *r, const tn_meta *meta, size_t n, tn_error *err)
{
    *r = (tn_st_reserved){ .meta = meta };
    for (size_t i = 0; i < n; i++) {
        if (!tn_begins_with(meta[i].key, TN_ST_RECORD))
            continue;
        TN_NEED(tn_names_add(&r->names, meta, reserved_name, i) != TN_NAMES_NOMEM, err);
    }
    return TN_OK;
}

size_t tn_st_reserved_find(const tn_st_reserved *r, const char *name)
{
    return tn_names_find(&r->names, r->meta, reserved_name, name);
}

tn_status tn_st_fail_reserved(const char *key, tn_error *err)
{
    const char *what = strcmp(key, TN_ST_FILE_RECORD) == 0 ? "the file" : "a tensor";
    return tn_fail(err, TN_ERR_LOSS, "metadata key %s would be read back as Tenon's record of %s",
                   tn_quote_z(key).text, what);
}

static void put_item(tn_buf *out, tn_buf *special, const tn_meta *m)
{
    tn_json_put_key(out, m->key);
    if (m->text) {
        tn_json_put_z(out, m->text);
        return;
    }
    if (tn_cbor_to_json(m->cbor, m->cbor_size, out))
        return;
    tn_buf_puts(out, "null");
    tn_json_put_key(special, m->key);
    tn_buf_putc(special, '"');
    for (size_t i = 0; i < m->cbor_size; i++)
        tn_buf_printf(special, "%02x", m->cbor[i]);
    tn_buf_putc(special, '"');
}

/* The fields `meta` and, where needed, `cbor`; text is left out of the file record. */
static void put_meta_fields(tn_buf *out, const tn_meta *meta, size_t n, bool with_text)
{
    tn_buf special = { 0 };
    tn_json_put_key(out, "meta");
    tn_buf_putc(out, '{');
    for (size_t i = 0; i < n; i++)
        if (meta[i].key && (with_text || !meta[i].text))
            put_item(out, &special, &meta[i]);
    tn_buf_putc(out, '}');
    if (special.size) {
        tn_buf_puts(out, ",\"cbor\":{");
        tn_buf_put(out, special.data, special.size);
        tn_buf_putc(out, '}');
    }
    out->bad |= special.bad;
    tn_buf_free(&special);
}

static void put_key(tn_st_put *p, const char *prefix, const char *name)
{
    tn_buf_puts(p->out, p->open ? ",\"" : "\"" TN_ST_METADATA "\":{\"");
    p->open = true;
    tn_json_put_escaped(p->out, prefix, strlen(prefix));
    tn_json_put_escaped(p->out, name, strlen(name));
    tn_buf_puts(p->out, "\":");
}

/* A record is JSON inside a JSON string. */
static void put_value(tn_st_put *p, tn_buf *json)
{
    tn_json_put_string(p->out, (const char *)json->data, json->size);
    p->out->bad |= json->bad;
    tn_buf_free(json);
}

/* The keys of all metadata, in order: texts stand before the other values. */
static void put_order(tn_buf *out, const tn_meta *meta, size_t n)
{
    tn_json_put_key(out, "order");
    tn_buf_putc(out, '[');
    for (size_t i = 0; i < n; i++) {
        if (!meta[i].key)
            continue;
        tn_json_put_comma(out);
        tn_json_put_z(out, meta[i].key);
    }
    tn_buf_putc(out, ']');
}

void tn_st_put_file(tn_st_put *p, const tn_meta *meta, size_t n, bool fillers)
{
    bool other = false, mixed = false;
    for (size_t i = 0; i < n; i++) {
        if (meta[i].key && meta[i].text) {
            put_key(p, "", meta[i].key);
            tn_json_put_z(p->out, meta[i].text);
            mixed |= other;
        }
        other |= meta[i].key && !meta[i].text;
    }
    if (!fillers && !other)
        return;
    tn_buf json = { 0 };
    put_key(p, "", TN_ST_FILE_RECORD);
    tn_buf_putc(&json, '{');
    if (other)
        put_meta_fields(&json, meta, n, false);
    if (mixed)
        put_order(&json, meta, n);
    if (fillers) {
        tn_json_put_key(&json, "fillers");
        tn_buf_puts(&json, "true");
    }
    tn_buf_putc(&json, '}');
    put_value(p, &json);
}

/* All fields of a CBOR record but its metadata, which comes from the tensor.  A
 * record holds text, integers and values that came from JSON: all exact in JSON. */
static void put_fields(tn_buf *out, tn_text record)
{
    tn_arena arena = { 0 };
    tn_cbor c;
    tn_text key;
    tn_cbor_init(&c, record.ptr, record.len, &arena);
    tn_cbor_map(&c);
    while (tn_cbor_key(&c, &key)) {
        tn_text value = tn_cbor_raw(&c);
        if (tn_text_is(key, "meta"))
            continue;
        tn_json_put_comma(out);
        tn_json_put_string(out, key.ptr, key.len);
        tn_buf_putc(out, ':');
        out->bad |= !tn_cbor_to_json(value.ptr, value.len, out);
    }
    out->bad |= c.status != TN_OK;
    tn_arena_free(&arena);
}

void tn_st_put_record(tn_st_put *p, const char *name, tn_text record, const tn_meta *meta, size_t n)
{
    if (!record.len && !n)
        return;
    if (!n && p->size && record.len == p->record.len && memcmp(record.ptr, p->record.ptr, record.len) == 0) {
        put_key(p, TN_ST_RECORD, name);
        size_t at = p->out->size;
        if (tn_buf_room(p->out, p->size))
            tn_buf_put(p->out, p->out->data + p->at, p->size);
        p->at = at;
        return;
    }
    tn_buf json = { 0 };
    tn_buf_putc(&json, '{');
    if (record.len)
        put_fields(&json, record);
    if (n)
        put_meta_fields(&json, meta, n, true);
    tn_buf_putc(&json, '}');
    put_key(p, TN_ST_RECORD, name);
    p->at = p->out->size;
    put_value(p, &json);
    p->record = record;
    p->size = n ? 0 : p->out->size - p->at;
}

void tn_st_put_end(tn_st_put *p)
{
    if (p->open)
        tn_buf_putc(p->out, '}');
}
