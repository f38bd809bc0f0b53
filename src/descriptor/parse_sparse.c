/* descriptor/parse_sparse.c - the sparse block: COO and CSR with their data in
 * the document.
 *
 * Values become elements of their type, rounded once, from the decimal text
 * and not from a double; what does not fit the type is refused. */
#include "descriptor/reader.h"
#include "tensor/code.h"
#include "tensor/decimal.h"

#include <stdio.h>
#include <stdlib.h>

static void note(tn_wia_reader *r, tn_wia_sparse_member member)
{
    r->notes.sparse[member].there = true;
    r->notes.sparse[member].at = tn_wia_at(r);
}

/* --- members --- */

void tn_wia_read_format(tn_wia_reader *r)
{
    note(r, TN_WIA_FORMAT);
    r->d->sparse.format = tn_sparse_format_words.words[tn_wia_word(r, &tn_sparse_format_words)];
}

void tn_wia_read_nnz(tn_wia_reader *r)
{
    note(r, TN_WIA_NNZ);
    r->d->sparse.has_nnz = true;
    r->d->sparse.nnz = tn_wia_size(r);
}

void tn_wia_read_pointers(tn_wia_reader *r)
{
    note(r, TN_WIA_POINTERS);
    r->d->sparse.pointers = tn_wia_integers(r, &r->d->sparse.npointers);
}

void tn_wia_read_columns(tn_wia_reader *r)
{
    note(r, TN_WIA_COLUMNS);
    r->d->sparse.indices = tn_wia_integers(r, &r->d->sparse.nindices);
}

static void read_index_type(tn_wia_reader *r)
{
    r->d->sparse.index_type = tn_wia_type(tn_index_type_words.words[tn_wia_word(r, &tn_index_type_words)]);
}

/* One row of COO indices; all have the same length. */
static void read_row(tn_wia_reader *r, bool first)
{
    uint32_t n = 0;
    size_t at = tn_wia_at(r);
    tn_json_array(&r->j);
    for (; tn_json_item(&r->j) && tn_wia_room(r, n); n++)
        tn_wia_push(r, (uint64_t)tn_json_i64(&r->j));
    if (first)
        r->notes.row = n;
    if (n == 0)
        tn_wia_reject(r, at, "expected an index for each dimension but found none");
    else if (n != r->notes.row)
        tn_wia_reject(r, at, "expected %u indices, as in the first row, but found %u", r->notes.row, n);
}

static void read_index_rows(tn_wia_reader *r)
{
    tn_wia_sparse *s = &r->d->sparse;
    r->nwords = 0;
    tn_json_array(&r->j);
    for (bool first = true; tn_json_item(&r->j); first = false)
        read_row(r, first);
    s->nindices = r->nwords;
    s->indices = tn_wia_copy(r, r->words, r->nwords * sizeof *r->words);
}

void tn_wia_read_indices(tn_wia_reader *r)
{
    static const tn_wia_field fields[] = {
        TN_WIA_FIELD("dtype", read_index_type), TN_WIA_FIELD("data", read_index_rows)
    };
    note(r, TN_WIA_INDICES);
    tn_wia_object(r, "indices", fields, TN_WIA_COUNT(fields), r->d);
    if (!r->d->sparse.indices)
        tn_wia_reject(r, r->notes.sparse[TN_WIA_INDICES].at, "expected data but found none");
}

static void read_value_type(tn_wia_reader *r)
{
    size_t at;
    tn_text text = tn_wia_string(r, &at);
    r->notes.value_type = tn_wia_type(tn_wia_kept(r, text));
    if (!r->notes.value_type)
        tn_wia_reject(r, at, "expected a type this build has but found %s",
                      tn_quote(text.ptr, text.len).text);
}

/* Values are read later, when their type is known. */
static void find_data(tn_wia_reader *r)
{
    r->notes.has_data = true;
    r->notes.data = r->j;
    tn_json_skip(&r->j);
}

void tn_wia_read_values(tn_wia_reader *r)
{
    static const tn_wia_field fields[] = {
        TN_WIA_FIELD("dtype", read_value_type), TN_WIA_FIELD("data", find_data)
    };
    note(r, TN_WIA_VALUES);
    switch (tn_json_peek(&r->j)) {
    case TN_JSON_ARRAY:
        find_data(r);
        break;
    case TN_JSON_OBJECT:
        tn_wia_object(r, "values", fields, TN_WIA_COUNT(fields), r->d);
        if (!r->notes.has_data)
            tn_wia_reject(r, r->notes.sparse[TN_WIA_VALUES].at, "expected data but found none");
        break;
    default:
        tn_json_unexpected(&r->j, "an array, or an object of dtype and data,");
    }
}

/* --- one value --- */

/* How values of one type are read. */
typedef struct encoder {
    const tn_dtype_info *type;      /* of the numbers: float32 for complex64 */
    tn_encode_rules      rules;
    const char          *name;
} encoder;

/* The digits of a number without sign and point, and the exponent for that: the C library reads this the same
 * in every locale. `out` has 24 bytes more than the number. */
static void without_point(tn_text number, char *out)
{
    enum { FAR = 1000000000 };          /* beyond every exponent that matters */
    size_t n = 0, i = number.ptr[0] == '-', after_point = 0;
    bool point = false;
    for (; i < number.len && number.ptr[i] != 'e' && number.ptr[i] != 'E'; i++) {
        if (number.ptr[i] == '.') {
            point = true;
            continue;
        }
        out[n++] = number.ptr[i];
        after_point += point;
    }
    long long exponent = 0;
    bool negative = false;
    for (i++; i < number.len; i++) {
        if (number.ptr[i] == '-')
            negative = true;
        else if (number.ptr[i] != '+' && exponent < FAR)
            exponent = exponent * 10 + (number.ptr[i] - '0');
    }
    snprintf(out + n, 24, "e%lld", (negative ? -exponent : exponent) - (long long)after_point);
}

/* For types narrower than float64. */
static tn_number decimal_number(tn_wia_reader *r, tn_text number)
{
    char small[96], *text = small;
    if (number.len + 24 > sizeof small && !(text = malloc(number.len + 24))) {
        tn_wia_nomem(r);
        return (tn_number){ 0 };
    }
    without_point(number, text);
    tn_number x = tn_decimal_number(text);
    if (text != small)
        free(text);
    x.negative = number.ptr[0] == '-';
    return x;
}

static tn_number read_number(tn_wia_reader *r, const tn_dtype_info *type)
{
    tn_text text;
    int64_t i;
    switch (type->kind) {
    case TN_KIND_BOOL:
        return (tn_number){ .significand = tn_json_bool(&r->j) };
    case TN_KIND_UINT:
        return (tn_number){ .significand = tn_json_u64(&r->j) };
    case TN_KIND_INT:
    case TN_KIND_FIXED:
        i = tn_json_i64(&r->j);
        return (tn_number){ .negative = i < 0, .significand = i < 0 ? 0 - (uint64_t)i : (uint64_t)i };
    default:
        break;
    }
    if (type->mantissa_bits == 52 || tn_json_peek(&r->j) == TN_JSON_STRING)
        return tn_number_of_double(tn_wia_f64(r));
    text = tn_json_number(&r->j);
    return r->j.status ? (tn_number){ 0 } : decimal_number(r, text);
}

/* Appends the code of one number to r->words. */
static void read_code(tn_wia_reader *r, const encoder *e)
{
    unsigned flags = 0;
    size_t at = tn_wia_at(r);
    tn_number number = read_number(r, e->type);
    if (r->j.status)
        return;
    uint64_t code = tn_number_encode(e->type, &e->rules, number, 0, &flags);
    if (flags & TN_ENCODED_OVERFLOW || (flags & TN_ENCODED_NAN && !tn_dtype_has_nan(e->type)))
        tn_wia_reject(r, at, "expected a value of %s but found %.*s", e->name,
                      r->j.pos - at < 40 ? (int)(r->j.pos - at) : 40, r->j.text + at);
    else
        tn_wia_push(r, code);
}

/* A complex element: an array of real and imaginary part. */
static void read_complex(tn_wia_reader *r, const encoder *e)
{
    size_t n = 0, at = tn_wia_at(r);
    tn_json_array(&r->j);
    for (; tn_json_item(&r->j) && n < 3; n++)
        read_code(r, e);
    if (n != 2)
        tn_wia_reject(r, at, "expected real and imaginary part but found %s", n < 2 ? "less" : "more");
}

/* --- all values --- */

/* Packs the codes as elements; a complex one is two codes. */
static void store_values(tn_wia_reader *r, unsigned bits, size_t count)
{
    /* r->nwords codes of at most 8 bytes are in memory already: no overflow */
    size_t size = (size_t)tn_packed_bytes(r->nwords, bits);
    void *values = tn_arena_zalloc(&r->set->arena, size, 1);
    if (!values) {
        tn_wia_nomem(r);
        return;
    }
    for (size_t i = 0; i < r->nwords; i++)
        tn_code_put(values, i, bits, r->words[i]);
    r->d->sparse.values = values;
    r->d->sparse.nvalues = count;
}

static void read_data(tn_wia_reader *r, const tn_dtype_info *type)
{
    bool complex = type->kind == TN_KIND_COMPLEX;
    encoder e = { .type = tn_real_type(type), .name = tn_type_label(type) };
    e.rules = tn_encode_rules_for(e.type, NULL);
    size_t count = 0;
    r->nwords = 0;
    tn_json_array(&r->j);
    for (; tn_json_item(&r->j); count++) {
        if (complex)
            read_complex(r, &e);
        else
            read_code(r, &e);
    }
    if (!r->j.status)
        store_values(r, e.type->bits, count);
}

/* The type is that of the values, else of the descriptor, else FLOAT32. */
static void finish_values(tn_wia_reader *r)
{
    const tn_descriptor *d = r->d;
    tn_dtype dtype = d->base_type ? d->dtype : TN_FLOAT32;
    if (r->notes.value_type)
        dtype = r->notes.value_type;
    const tn_dtype_info *type = tn_dtype_get(dtype);
    r->d->sparse.value_type = dtype;
    if (!r->notes.has_data || r->j.status)
        return;
    if (!type) {
        tn_wia_reject(r, r->notes.sparse[TN_WIA_VALUES].at,
                      "expected values of a type this build has but found %s", tn_quote_z(d->base_type).text);
        return;
    }
    tn_json after = r->j;
    r->j = r->notes.data;
    read_data(r, type);
    if (!r->j.status)
        r->j = after;
}

/* --- the block as a whole --- */

/* The shape once more, as numbers. */
static void finish_shape(tn_wia_reader *r)
{
    const tn_descriptor *d = r->d;
    int64_t *shape = tn_arena_alloc(&r->set->arena, d->rank * sizeof *shape);
    if (!shape) {
        tn_wia_nomem(r);
        return;
    }
    for (uint32_t i = 0; i < d->rank; i++) {
        shape[i] = d->dimensions[i].value;
        if (d->dimensions[i].symbol)
            tn_wia_reject(r, r->notes.shape_at,
                          "expected numbers in the shape of a sparse tensor but found the symbol %s",
                          d->dimensions[i].symbol);
    }
    r->d->sparse.shape = shape;
    r->d->sparse.rank = d->rank;
}

static void refuse(tn_wia_reader *r, tn_wia_sparse_member member, const char *format)
{
    if (r->notes.sparse[member].there)
        tn_wia_reject(r, r->notes.sparse[member].at, "expected no such member in format %s but found one",
                      format);
}

static void check_members(tn_wia_reader *r, bool coo)
{
    if (!coo) {
        refuse(r, TN_WIA_INDICES, "CSR");
        return;
    }
    refuse(r, TN_WIA_POINTERS, "COO");
    refuse(r, TN_WIA_COLUMNS, "COO");
    if (r->d->sparse.nindices && r->notes.row != r->d->rank)
        tn_wia_reject(r, r->notes.sparse[TN_WIA_INDICES].at,
                      "expected rows of %u indices, one for each dimension, but found %u", r->d->rank,
                      r->notes.row);
}

void tn_wia_finish_sparse(tn_wia_reader *r)
{
    tn_wia_sparse *s = &r->d->sparse;
    for (int i = 0; i < TN_WIA_SPARSE && !s->format; i++)
        if (r->notes.sparse[i].there)
            tn_wia_reject(r, r->notes.sparse[i].at,
                          "expected a format (COO or CSR) too but found none");
    if (!s->format || r->j.status)
        return;
    if (!s->index_type)
        s->index_type = TN_INT64;
    check_members(r, strcmp(s->format, "COO") == 0);
    finish_shape(r);
    finish_values(r);
}
