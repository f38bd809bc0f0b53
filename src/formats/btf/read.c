/* formats/btf/read.c - the table of offsets, and the records.
 *
 * Records may be anywhere and in any order.  Overlaps and gaps, which no writer
 * leaves, are warnings: the file can be read. */
#include "formats/btf/btf.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/vector.h"
#include "store/dims.h"
#include "store/ranges.h"
#include "tensor/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The file has numbers only; these are the names TensorFlow Runtime prints. */
static const char *const type_names[BTF_TYPES] = {
    "i8", "i16", "i32", "i64", "f32", "f64", "ui8", "ui16", "ui32", "ui64",
};

static const char *type_name(const tn_dtype_info *type)
{
    return type->btf >= 0 ? type_names[type->btf] : NULL;
}

typedef struct reader {
    tn_file         *file;
    const tn_source *source;
    uint64_t         size;      /* of the file */
    uint64_t         table_end;
    uint64_t         index_bytes;   /* of the table and of the headers of all records so far */
    tn_piece        *records;   /* their bytes without padding; numbered as tensors are */
    size_t           count, cap;
    bool             disordered;
} reader;

/* Many entries of the table, of 8 bytes each, can name one record with a long header.  So all headers
 * together may take no more bytes than the file has, or than this in a small file. */
enum { INDEX_BYTES_MIN = 64 << 10 };

/* The tensor being read. */
typedef struct record {
    tn_entry e;
    uint64_t next;              /* first byte of the record not yet read */
    uint64_t shape_at;          /* byte of the dimensions that were read last */
    uint8_t  layout;
    tn_part  indices;           /* of a COO tensor */
} record;

/* --- one record --- */

static tn_status cut_short(const reader *r, const record *s, const char *what, uint64_t n, tn_error *err)
{
    return tn_fail_at(err, TN_ERR_TRUNCATED, s->next, "its %s takes %llu bytes but the file ends after %llu",
                      what, (unsigned long long)n, (unsigned long long)(r->size - s->next));
}

/* Reads the next n bytes of the record. */
static tn_status take(reader *r, record *s, void *to, size_t n, const char *what, tn_error *err)
{
    uint64_t most = r->size < INDEX_BYTES_MIN ? INDEX_BYTES_MIN : r->size;
    if (n > r->size - s->next)
        return cut_short(r, s, what, n, err);
    r->index_bytes += n;
    if (r->index_bytes > most)
        return tn_fail_at(err, TN_ERR_LIMIT, s->e.at,
                          "too many records overlap: expected the table and their headers in at most %llu "
                          "bytes but up to here they take %llu", (unsigned long long)most,
                          (unsigned long long)r->index_bytes);
    tn_status status = tn_source_read(r->source, s->next, to, n, err);
    s->next += n;
    return status;
}

static tn_dtype type_of(uint8_t code)
{
    for (int dtype = 0; dtype < TN_DTYPE_COUNT; dtype++) {
        const tn_dtype_info *type = tn_dtype_get((tn_dtype)dtype);
        if (type && type->btf == code)
            return (tn_dtype)dtype;
    }
    return TN_UNKNOWN;
}

static bool is_zero(const uint8_t *bytes, size_t n)
{
    static const uint8_t zeros[BTF_WORD];
    return memcmp(bytes, zeros, n) == 0;
}

static tn_status take_header(reader *r, record *s, uint64_t *rank, tn_error *err)
{
    uint8_t h[BTF_HEADER];
    TN_TRY(take(r, s, h, sizeof h, "header", err));
    *rank = tn_load_u64le(h);
    s->e.dtype = type_of(h[8]);
    s->layout = h[9];
    if (s->e.dtype == TN_UNKNOWN)
        return tn_fail_at(err, TN_ERR_CORRUPT, s->e.at + 8, "expected a type from 0 to %d but found %u",
                          BTF_TYPES - 1, h[8]);
    if (s->layout > BTF_COO)
        return tn_fail_at(err, TN_ERR_CORRUPT, s->e.at + 9,
                          "expected layout 0 (dense), 1 or 2 (COO) but found %u", h[9]);
    if (s->layout == BTF_COO_TFRT)
        tn_file_warn(r->file, s->e.at + 9,
                     "tensor %s: its layout is 1, TensorFlow Runtime's code for COO: the specification "
                     "has 2",
                     tn_quote_z(s->e.name).text);
    enum { RESERVED_AT = BTF_HEADER - BTF_RESERVED };
    if (!is_zero(h + RESERVED_AT, BTF_RESERVED))
        tn_file_warn(r->file, s->e.at + RESERVED_AT, "tensor %s: its reserved bytes are not 0",
                     tn_quote_z(s->e.name).text);
    return TN_OK;
}

/* Reads `n` dimensions, at most TN_MAX_RANK. */
static tn_status take_dims(reader *r, record *s, uint64_t n, const char *what, tn_dims *dims, tn_error *err)
{
    uint8_t bytes[TN_MAX_RANK * BTF_WORD];
    s->shape_at = s->next;
    dims->rank = 0;
    tn_status status = take(r, s, bytes, (size_t)n * BTF_WORD, what, err);
    for (uint64_t i = 0; i < n && !status; i++)
        status = tn_at_byte(tn_dims_add(dims, tn_load_u64le(bytes + i * BTF_WORD), err),
                            s->shape_at + i * BTF_WORD, err);
    return status;
}

static tn_status take_shape(reader *r, record *s, uint64_t rank, tn_dims *dims, tn_error *err)
{
    if (rank > (r->size - s->next) / BTF_WORD)
        return tn_fail_at(err, TN_ERR_TRUNCATED, s->next,
                          "it has %llu dimensions but the file ends after %llu bytes",
                          (unsigned long long)rank, (unsigned long long)(r->size - s->next));
    if (rank > TN_MAX_RANK)
        return tn_fail_at(err, TN_ERR_LIMIT, s->e.at, "expected at most %d dimensions but found %llu",
                          TN_MAX_RANK, (unsigned long long)rank);
    return take_dims(r, s, rank, "shape", dims, err);
}

/* Steps over an array, whose shape was read before. */
static tn_status take_array(const reader *r, record *s, const tn_array *a, const char *what, tn_stored *to,
                            tn_error *err)
{
    uint64_t n;
    const char *type = type_name(tn_dtype_get(a->dtype));
    if (tn_array_nbytes(a, &n))
        return tn_fail_at(err, TN_ERR_LIMIT, s->shape_at,
                          "expected its %s in at most %lld bytes but shape %s of %s takes more", what,
                          (long long)INT64_MAX, tn_show_shape(a->rank, a->shape).text, type);
    if (n > r->size - s->next)
        return cut_short(r, s, what, n, err);
    *to = (tn_stored){ .offset = s->next, .size = n, .type = type };
    s->next += n;
    return TN_OK;
}

/* The shape of the indices: one row per entry. */
static tn_status take_entries(reader *r, record *s, uint32_t rank, const int64_t **shape, tn_error *err)
{
    tn_dims dims;
    TN_TRY(take_dims(r, s, 2, "shape of indices", &dims, err));
    if (dims.dims[1] != (int64_t)rank)
        return tn_fail_at(err, TN_ERR_CORRUPT, s->shape_at + BTF_WORD,
                          "expected rows of %u indices, as many as it has dimensions, but found %lld", rank,
                          (long long)dims.dims[1]);
    *shape = tn_dims_keep(&dims, &r->file->arena, NULL, 0);
    return *shape ? TN_OK : tn_fail_nomem(err);
}

/* All of a COO record before its values. */
static tn_status take_coo(reader *r, record *s, const tn_dims *dims, tn_error *err)
{
    tn_dims count;
    const int64_t *shape = NULL;
    uint64_t elements;
    if (tn_shape_count(dims->rank, dims->dims, &elements))
        return tn_fail_at(err, TN_ERR_LIMIT, s->shape_at,
                          "expected at most %lld elements but shape %s has more", (long long)INT64_MAX,
                          tn_show_shape(dims->rank, dims->dims).text);
    TN_TRY(take_entries(r, s, dims->rank, &shape, err));
    s->indices = (tn_part){ .role = "indices", .array = { .dtype = TN_UINT64, .rank = 2, .shape = shape } };
    tn_stored extent = { 0 };
    TN_TRY(take_array(r, s, &s->indices.array, "array of indices", &extent, err));
    s->indices.nbytes = extent.size;
    s->indices.stored = tn_file_keep_stored(r->file, &extent, NULL);
    TN_NEED(s->indices.stored, err);
    TN_TRY(take_dims(r, s, 1, "number of values", &count, err));
    if (count.dims[0] != shape[0])
        return tn_fail_at(err, TN_ERR_CORRUPT, s->shape_at,
                          "expected %lld values, as many as rows of indices, but found %lld",
                          (long long)shape[0], (long long)count.dims[0]);
    tn_entry_make_sparse(&s->e, TN_FORM_COO, shape, &s->indices, 1);
    return TN_OK;
}

static tn_status take_record(reader *r, record *s, tn_error *err)
{
    tn_file *f = r->file;
    static const tn_tensor none;
    const tn_tensor *last = f->count ? &f->tensors[f->count - 1] : &none;
    tn_dims dims;
    uint64_t rank = 0;
    if (take_header(r, s, &rank, err) || take_shape(r, s, rank, &dims, err))
        return err->status;
    s->e.rank = dims.rank;
    s->e.shape = tn_dims_keep(&dims, &f->arena, last->shape, last->rank);
    TN_NEED(s->e.shape, err);
    if (s->layout != BTF_DENSE && take_coo(r, s, &dims, err))
        return err->status;
    const tn_array elements = { .dtype = s->e.dtype, .rank = s->e.rank, .shape = s->e.shape };
    tn_status status = take_array(r, s, &elements, "data", &s->e.stored, err);
    return status ? status : tn_file_add(f, &s->e, err);
}

/* --- the table --- */

static tn_status note_record(reader *r, uint64_t begin, uint64_t end, tn_error *err)
{
    TN_NEED(TN_GROW(r->records, r->count, r->cap), err);
    r->disordered |= r->count && begin < r->records[r->count - 1].end;
    r->records[r->count] = (tn_piece){ .begin = begin, .end = end, .number = r->count };
    r->count++;
    return TN_OK;
}

/* Byte `at` of the table has the offset of the record. */
static tn_status read_record(reader *r, record *s, uint64_t at, tn_error *err)
{
    uint64_t begin = s->next;
    if (begin < r->table_end || begin > r->size)
        return tn_fail_at(err, TN_ERR_CORRUPT, at,
                          "expected its record between %llu, the end of the table, and %llu, the end of the "
                          "file, but found it at %llu", (unsigned long long)r->table_end,
                          (unsigned long long)r->size, (unsigned long long)begin);
    if (begin % BTF_WORD)
        tn_file_warn(r->file, at,
                     "tensor \"%s\": expected its record at a multiple of %d but found it at %llu", s->e.name,
                     BTF_WORD, (unsigned long long)begin);
    tn_status status = take_record(r, s, err);
    return status ? status : note_record(r, begin, s->next, err);
}

/* The name of a tensor is its number. */
static tn_status read_tensor(reader *r, size_t i, uint64_t at, uint64_t begin, tn_error *err)
{
    record s = { .e = { .name = tn_arena_printf(&r->file->arena, "%zu", i), .at = begin }, .next = begin };
    return s.e.name ? tn_in_tensor(read_record(r, &s, at, err), s.e.name, err) : tn_fail_nomem(err);
}

/* Offsets are read a few at a time: a false count costs no memory. */
static tn_status read_records(reader *r, uint64_t n, tn_error *err)
{
    enum { MANY = 512 };
    uint8_t offsets[MANY * BTF_WORD];
    for (uint64_t first = 0; first < n; first += MANY) {
        size_t count = n - first < MANY ? (size_t)(n - first) : MANY;
        uint64_t at = BTF_WORD * (1 + first);
        TN_TRY(tn_source_read(r->source, at, offsets, count * BTF_WORD, err));
        for (size_t i = 0; i < count; i++)
            TN_TRY(read_tensor(r, (size_t)first + i, at + i * BTF_WORD, tn_load_u64le(offsets + i * BTF_WORD),
                               err));
    }
    return TN_OK;
}

static tn_status read_table(reader *r, tn_error *err)
{
    uint8_t count[BTF_WORD];
    if (r->size < sizeof count)
        return tn_fail_at(err, TN_ERR_TRUNCATED, r->size,
                          "expected the number of tensors, %d bytes, but the file has %llu", BTF_WORD,
                          (unsigned long long)r->size);
    TN_TRY(tn_source_read(r->source, 0, count, sizeof count, err));
    uint64_t n = tn_load_u64le(count), most = r->size / BTF_WORD - 1;
    if (n > most)
        return tn_fail_at(err, TN_ERR_TRUNCATED, 0,
                          "expected at most %llu tensors, whose offsets the file has room for, but found "
                          "%llu", (unsigned long long)most, (unsigned long long)n);
    r->table_end = r->index_bytes = BTF_WORD * (1 + n);
    return read_records(r, n, err);
}

/* --- overlaps and gaps --- */

static const char *name_of(const reader *r, const tn_piece *which)
{
    return r->file->tensors[which->number].name;
}

/* A record that begins before an earlier one ends. */
static void note_overlap(reader *r, const tn_piece *earlier, const tn_piece *later)
{
    tn_tensor *t = &r->file->tensors[later->number];
    if (later->begin != earlier->begin) {
        tn_file_warn(r->file, later->begin,
                     "tensor \"%s\": its record begins inside that of \"%s\", which ends at %llu", t->name,
                     name_of(r, earlier), (unsigned long long)earlier->end);
        return;
    }
    tn_file_warn(r->file, later->begin, "tensor \"%s\": its record is that of \"%s\"", t->name,
                 name_of(r, earlier));
    if (t->nparts == 1 && t->parts[0].nbytes)
        t->tied = name_of(r, earlier);
}

/* Checks the bytes between a record (NULL: the table) and `end`, the next record or the end of the file. */
static tn_status check_gap(reader *r, const tn_piece *last, uint64_t end, tn_error *err)
{
    uint8_t bytes[BTF_WORD];
    uint64_t from = last ? last->end : r->table_end;
    size_t padding = last ? (size_t)(-(last->end - last->begin) % BTF_WORD) : 0;
    padding = padding < end - from ? padding : (size_t)(end - from);
    TN_TRY(tn_source_read(r->source, from, bytes, padding, err));
    if (!is_zero(bytes, padding))
        tn_file_warn(r->file, from, "tensor \"%s\": its padding is not 0", name_of(r, last));
    from += padding;
    if (from < end) {
        tn_file_warn(r->file, from,
                     end < r->size ? "%llu bytes belong to no record"
                                   : "%llu bytes at the end belong to no record",
                     (unsigned long long)(end - from));
        r->file->left_out = "bytes that belong to no record";
    }
    return TN_OK;
}

static tn_status check_gaps(reader *r, tn_error *err)
{
    /* the record that ends last so far; the first one that begins where `next` begins */
    const tn_piece *last = NULL, *same = NULL;
    tn_status status = TN_OK;
    if (r->disordered)
        tn_sort_by_place(r->records, r->count, sizeof *r->records);
    for (size_t i = 0; i < r->count && !status; i++) {
        const tn_piece *next = &r->records[i];
        bool again = same && same->begin == next->begin;
        if (tn_overlaps(last, next))
            note_overlap(r, again ? same : last, next);
        else
            status = check_gap(r, last, next->begin, err);
        same = again ? same : next;
        last = last && last->end >= next->end ? last : next;
    }
    return status ? status : check_gap(r, last, r->size, err);
}

static tn_status open_btf(tn_file *file, tn_error *err)
{
    reader r = { .file = file, .source = file->shards[0].source };
    r.size = tn_source_size(r.source);
    bool failed = read_table(&r, err) || check_gaps(&r, err);
    free(r.records);
    return failed ? err->status : TN_OK;
}

static const tn_format_key keys[] = {
    { "coo-code", "2|1", "layout code of COO tensors; TensorFlow Runtime reads 1" },
    { 0 },
};

const tn_format tn_format_btf = {
    .info = { .name = "btf", .suffix = ".btf",
              .title = "Binary Tensor Format of TensorFlow Runtime: dense and COO, no names",
              .reads = true, .writes = true, .keys = keys },
    .open = open_btf,
    .type_name = type_name,
    .index_type = TN_UINT64,
    .min_align = BTF_WORD,
    .plan = tn_btf_plan,
    .finish = tn_btf_finish,
};
