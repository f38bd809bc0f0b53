/* formats/ztensor/read.c - the index of a zTensor 0.1 file. */
#include "base/cursor.h"
#include "base/error.h"
#include "bytes/checksum.h"
#include "bytes/codec.h"
#include "store/record.h"
#include "formats/ztensor/ztensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int probe(const uint8_t *head, size_t n)
{
    return n >= ZT_MAGIC_BYTES && memcmp(head, ZT_MAGIC, ZT_MAGIC_BYTES) == 0 ? 100 : 0;
}

static const char *type_name(const tn_dtype_info *type)
{
    return type->ztensor;
}

static const tn_format_key keys[] = {
    { "byte-order", "little|big", "byte order of raw elements of several bytes" },
    TN_OCP_NAMES_KEY, { 0 },
};

/* With their lengths: every key of every tensor is looked up here. */
static const tn_text field_names[ZT_CUSTOM] = {
    [ZT_NAME] = { "name", 4 }, [ZT_OFFSET] = { "offset", 6 }, [ZT_SIZE] = { "size", 4 },
    [ZT_DTYPE] = { "dtype", 5 }, [ZT_SHAPE] = { "shape", 5 }, [ZT_ENCODING] = { "encoding", 8 },
    [ZT_LAYOUT] = { "layout", 6 }, [ZT_ENDIANNESS] = { "data_endianness", 15 },
    [ZT_CHECKSUM] = { "checksum", 8 }, [ZT_TENON] = { "tenon", 5 },
};

zt_field zt_field_of(tn_text key)
{
    zt_field field = 0;
    while (field < ZT_CUSTOM && !tn_text_equal(key, field_names[field]))
        field++;
    return field;
}

tn_status zt_find_index(tn_file *f, zt_index *index, tn_error *err)
{
    const tn_source *source = f->shards[0].source;
    uint64_t size = tn_source_size(source);
    uint8_t magic[ZT_MAGIC_BYTES], tail[ZT_TAIL_BYTES];
    if (size < ZT_MAGIC_BYTES + ZT_TAIL_BYTES)
        return tn_fail_at(err, TN_ERR_TRUNCATED, size, "expected at least 16 bytes but the file has %llu",
                          (unsigned long long)size);
    if (tn_source_read(source, 0, magic, sizeof magic, err) ||
        tn_source_read(source, size - sizeof tail, tail, sizeof tail, err))
        return err->status;
    if (!probe(magic, sizeof magic))
        return tn_fail_at(err, TN_ERR_CORRUPT, 0, "expected the magic \"" ZT_MAGIC "\" but found %s",
                          tn_quote((const char *)magic, sizeof magic).text);
    uint64_t room = size - ZT_MAGIC_BYTES - ZT_TAIL_BYTES, n = tn_load_u64le(tail);
    if (n > room)
        return tn_fail_at(err, TN_ERR_CORRUPT, size - sizeof tail,
                          "expected an index of at most %llu bytes but found %llu: the end may be missing",
                          (unsigned long long)room, (unsigned long long)n);
    TN_TRY(tn_index_check_size(n, size - sizeof tail, err));
    index->at = size - sizeof tail - n;
    index->size = (size_t)n;
    return tn_source_copy(source, index->at, n, &f->arena, &index->bytes, err);
}

/* The entry being read. */
typedef struct entry_reader {
    tn_file  *file;
    tn_cbor  *c;
    tn_entry  e;
    unsigned  seen;             /* one bit per zt_field */
    tn_text   field;            /* whose value is being read; none between two fields */
    tn_meta  *custom;           /* reused by all entries */
    size_t    ncustom, custom_cap;
    tn_text   last_type;        /* of the entry before: most entries repeat it */
    tn_dtype  last_dtype;
    const int64_t *last_shape;
    uint32_t  last_rank;
    tn_entry  last;             /* an entry that others may repeat but for its name and place... */
    unsigned  last_seen;
    tn_text   rest;             /* ...its bytes after these; len 0: there is none */
    uint64_t  rest_left;        /* items of the map that they are */
} entry_reader;

static void take_dtype(entry_reader *r)
{
    tn_text t = tn_cbor_text(r->c);
    if (r->c->status)
        return;
    if (!r->last_type.ptr || !tn_text_equal(t, r->last_type)) {
        r->last_type = t;
        r->last_dtype = TN_UNKNOWN;
        for (tn_dtype d = 1; d < TN_DTYPE_COUNT; d++) {
            const char *name = tn_dtype_get(d)->ztensor;
            if (name && tn_text_is(t, name))
                r->last_dtype = d;
        }
    }
    r->e.dtype = r->last_dtype;
    r->e.stored.type = r->e.dtype == TN_UNKNOWN ? tn_cbor_keep(r->c, t) : tn_dtype_get(r->e.dtype)->ztensor;
}

static void take_shape(entry_reader *r)
{
    r->e.shape = r->last_shape = tn_cbor_shape(r->c, r->last_shape, &r->last_rank);
    r->e.rank = r->last_rank;
}

static void take_layout(entry_reader *r)
{
    tn_text t = tn_cbor_text(r->c);
    r->e.more.opaque = tn_text_is(t, "dense") ? NULL : tn_cbor_keep(r->c, t);
}

static void take_encoding(entry_reader *r)
{
    tn_text t = tn_cbor_text(r->c);
    const tn_codec *codec = tn_codec_named(t);
    if (codec && codec->sums_decoded)           /* one of archives */
        codec = NULL;
    r->e.stored.encoding = codec ? (uint8_t)codec->id : TN_ENCODING_UNKNOWN;
    if (!codec)
        r->e.more.encoding_name = tn_cbor_keep(r->c, t);
}

static void take_endianness(entry_reader *r)
{
    tn_text t = tn_cbor_text(r->c);
    if (tn_text_is(t, "big"))
        r->e.stored.order = TN_BIG_ENDIAN;
    else if (!tn_text_is(t, "little") && !r->c->status)
        tn_cbor_reject(r->c, TN_ERR_CORRUPT, "expected \"little\" or \"big\" but found %s",
                       tn_quote(t.ptr, t.len < 20 ? t.len : 20).text);
}

static void take_checksum(entry_reader *r)
{
    if (tn_cbor_peek(r->c) == TN_CBOR_NULL) {
        tn_cbor_null(r->c);
        return;
    }
    tn_text t = tn_cbor_text(r->c);
    if (r->c->status)
        return;
    r->e.stored.checksum_text = tn_cbor_keep(r->c, t);
    if (!r->c->status)
        r->e.stored.checksum = (uint8_t)tn_checksum_kind(r->e.stored.checksum_text);
}

static void take_custom(entry_reader *r, tn_text key)
{
    if (!TN_GROW(r->custom, r->ncustom, r->custom_cap)) {
        tn_cbor_reject(r->c, TN_ERR_NOMEM, "out of memory");
        return;
    }
    tn_meta *m = &r->custom[r->ncustom++];
    *m = (tn_meta){ .key = tn_cbor_keep(r->c, key) };
    tn_meta_take(r->c, m);
}

static void take_field(entry_reader *r, zt_field field, tn_text key)
{
    if (field != ZT_CUSTOM && r->seen & 1u << field) {
        tn_cbor_reject(r->c, TN_ERR_CORRUPT, "expected once but found it twice");
        return;
    }
    r->seen |= 1u << field;
    switch (field) {
    case ZT_NAME:       r->e.name = tn_cbor_keep(r->c, tn_cbor_text(r->c)); break;
    case ZT_OFFSET:     r->e.stored.offset = tn_cbor_u64(r->c); break;
    case ZT_SIZE:       r->e.stored.size = tn_cbor_u64(r->c); break;
    case ZT_DTYPE:      take_dtype(r); break;
    case ZT_SHAPE:      take_shape(r); break;
    case ZT_ENCODING:   take_encoding(r); break;
    case ZT_ENDIANNESS: take_endianness(r); break;
    case ZT_CHECKSUM:   take_checksum(r); break;
    case ZT_TENON:      r->e.record = tn_cbor_raw(r->c); break;
    case ZT_CUSTOM:     take_custom(r, key); break;
    case ZT_LAYOUT:     take_layout(r); break;
    }
}

/* The rules of this format alone. */
static tn_status check_entry(const entry_reader *r, uint64_t index_at, tn_error *err)
{
    const tn_entry *e = &r->e;
    for (unsigned i = 0; i < ZT_REQUIRED; i++)
        if (!(r->seen & 1u << i))
            return tn_fail_at(err, TN_ERR_CORRUPT, e->at, "%srequired field \"%s\" is missing",
                              e->name ? "" : "a tensor without a name: ", field_names[i].ptr);
    unsigned long long offset = e->stored.offset, size = e->stored.size;
    if (offset % ZT_ALIGN || offset < ZT_MAGIC_BYTES)
        return tn_fail_at(err, TN_ERR_CORRUPT, e->at,
                          "expected its data at a multiple of 64 after the magic but found it at %llu",
                          offset);
    if (offset > index_at || size > index_at - offset)
        return tn_fail_at(err, TN_ERR_CORRUPT, e->at,
                          "data of %llu bytes at %llu runs past the start of the index at %llu", size, offset,
                          (unsigned long long)index_at);
    return tn_meta_check_unique(e->meta, e->nmeta, e->at, err);
}

enum { PLACE = 1u << ZT_NAME | 1u << ZT_OFFSET | 1u << ZT_SIZE };

/* Neighbours differ in name and place, which come first; the rest is taken from the last entry if it is the
 * same bytes. */
static bool take_rest(entry_reader *r)
{
    const tn_entry own = r->e;
    if (r->seen != PLACE || !tn_cbor_take_again(r->c, r->rest, r->rest_left))
        return false;
    r->e = r->last;
    r->e.name = own.name;
    r->e.at = own.at;
    r->e.stored.offset = own.stored.offset;
    r->e.stored.size = own.stored.size;
    r->e.repeats = own.stored.size == r->last.stored.size;
    r->seen = r->last_seen;
    r->last.stored.size = own.stored.size;
    return true;
}

/* Remembers an entry whose rest begins at byte `at`. */
static void keep_rest(entry_reader *r, size_t at, uint64_t left)
{
    const tn_cbor *c = r->c;
    bool plain = !r->ncustom && !r->e.record.len && !r->e.more.opaque && !r->e.more.encoding_name;
    r->rest = (tn_text){ 0 };
    if (c->status || !at || !plain)
        return;
    r->rest = (tn_text){ (const char *)c->data + at, c->pos - at };
    r->rest_left = left;
    r->last = r->e;
    r->last_seen = r->seen;
}

static void take_fields(entry_reader *r)
{
    tn_text key;
    size_t at = 0;
    uint64_t left = 0;
    r->seen = 0;
    r->ncustom = 0;
    r->field = (tn_text){ 0 };
    tn_cbor_map(r->c);
    while (tn_cbor_key(r->c, &key)) {
        r->field = key;
        take_field(r, zt_field_of(key), key);
        if (r->c->status)
            return;
        r->field = (tn_text){ 0 };
        if (take_rest(r))
            return;
        if (r->seen == PLACE) {
            at = r->c->pos;
            left = r->c->left[r->c->depth - 1];
        }
    }
    keep_rest(r, at, left);
}

/* The reader's message, with the entry and the field of the value. */
static tn_status fail_entry(const entry_reader *r, const zt_index *index, size_t number, tn_error *err)
{
    char entry[160], field[120] = "";
    snprintf(entry, sizeof entry, "index entry %zu", number);
    if (r->e.name)
        snprintf(entry, sizeof entry, "index entry %zu, %s", number, tn_quote_z(r->e.name).text);
    if (r->field.ptr)
        snprintf(field, sizeof field, "field %s: ", tn_quote(r->field.ptr, r->field.len).text);
    return tn_fail_at(err, r->c->status, index->at + r->c->at, "%s: %s%s", entry, field, r->c->why);
}

static tn_status read_entry(entry_reader *r, const zt_index *index, size_t number, tn_error *err)
{
    r->e = (tn_entry){ .at = index->at + r->c->pos };
    take_fields(r);
    if (r->c->status)
        return fail_entry(r, index, number, err);
    if (r->ncustom) {
        r->e.meta = tn_arena_copy(&r->file->arena, r->custom, r->ncustom * sizeof *r->custom);
        r->e.nmeta = (uint32_t)r->ncustom;
        TN_NEED(r->e.meta, err);
    }
    if (r->e.stored.encoding != TN_ENCODING_RAW)
        r->e.stored.order = TN_LITTLE_ENDIAN;      /* the field is about raw data only */
    tn_part companions[ZT_COMPANIONS];
    if (check_entry(r, index->at, err))
        return tn_in_tensor(err->status, r->e.name ? r->e.name : "", err);
    if (r->e.more.opaque && zt_take_sparse(r->file, &r->e, companions, err))
        return err->status;
    return tn_file_add(r->file, &r->e, err);
}

static tn_status read_index(entry_reader *r, const zt_index *index, tn_error *err)
{
    enum { SMALLEST_ENTRY = 48 };       /* bytes of the required keys */
    tn_cbor_array(r->c);
    TN_TRY(tn_file_expect(r->file, index->size / SMALLEST_ENTRY / 2, err));
    for (size_t i = 0; tn_cbor_item(r->c); i++)
        TN_TRY(read_entry(r, index, i, err));
    tn_cbor_done(r->c);
    return r->c->status ? tn_fail_at(err, r->c->status, index->at + r->c->at, "index: %s", r->c->why) : TN_OK;
}

static tn_status open_ztensor(tn_file *f, tn_error *err)
{
    zt_index index = { 0 };
    TN_TRY(zt_find_index(f, &index, err));
    if (index.size == 0) {              /* read as no tensors, as the format's own library does */
        tn_file_warn(f, index.at,
                     "its index has no bytes, so it lists no tensors: a file that was cut looks so");
        return TN_OK;
    }
    tn_cbor c;
    tn_cbor_init(&c, index.bytes, index.size, &f->arena);
    entry_reader r = { .file = f, .c = &c };
    tn_status status = read_index(&r, &index, err);
    free(r.custom);
    return status ? status : tn_file_check_ranges(f, TN_TILING_SHARED, NULL, NULL, err);
}

const tn_format tn_format_ztensor = {
    .info = {
        .name = "ztensor", .suffix = ".zt", .title = "zTensor 0.1: aligned, compressed, checksummed",
        .reads = true, .writes = true, .probes = true, .compresses = true, .checksums = true,
        .keys = keys,
    },
    .probe = probe,
    .open = open_ztensor,
    .type_name = type_name,
    .only_pads = true,
    .shares = true,
    .names_parts = true,
    .min_align = ZT_ALIGN,
    .plan = zt_plan,
    .finish = zt_finish,
    .rewrite = zt_rewrite,
};
