/* formats/mtx/read.c - one matrix as text, named after the file unless a note
 * has a name. */
#include "formats/mtx/mtx.h"
#include "base/error.h"
#include "base/text.h"
#include "tensor/array.h"
#include "tensor/layout.h"

#include <string.h>

static bool same_letters(const char *a, const char *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (tn_lower(a[i]) != tn_lower(b[i]))
            return false;
    return true;
}

static int probe(const uint8_t *head, size_t n)
{
    size_t banner = strlen(TN_MTX_BANNER);
    return n >= banner && same_letters((const char *)head, TN_MTX_BANNER, banner) ? 100 : 0;
}

/* Never NULL: text can hold every type. */
static const char *type_name(const tn_dtype_info *type)
{
    return type->name;
}

/* --- for writing too --- */

tn_dtype tn_mtx_usual_type(tn_mtx_field field)
{
    static const tn_dtype types[] = {
        [TN_MTX_REAL] = TN_FLOAT64, [TN_MTX_INTEGER] = TN_INT64, [TN_MTX_UNSIGNED] = TN_UINT64,
        [TN_MTX_COMPLEX] = TN_COMPLEX128,
        [TN_MTX_PATTERN] = TN_BOOL,
    };
    return types[field];
}

static bool may_hold(tn_mtx_field field, const tn_dtype_info *type)
{
    switch (field) {
    case TN_MTX_REAL:     return type->kind == TN_KIND_FLOAT;
    case TN_MTX_COMPLEX:  return type->kind == TN_KIND_COMPLEX;
    case TN_MTX_PATTERN:  return type->kind == TN_KIND_BOOL;
    case TN_MTX_UNSIGNED: return type->kind == TN_KIND_UINT;
    default:              return type->kind != TN_KIND_FLOAT && type->kind != TN_KIND_COMPLEX;
    }
}

tn_dtype tn_mtx_usual_index(const int64_t shape[2])
{
    return shape[0] <= INT32_MAX && shape[1] <= INT32_MAX ? TN_INT32 : TN_INT64;
}

/* --- the banner --- */

const char *const tn_mtx_fields[] = {
    [TN_MTX_REAL] = "real", [TN_MTX_INTEGER] = "integer", [TN_MTX_UNSIGNED] = "unsigned-integer",
    [TN_MTX_COMPLEX] = "complex", [TN_MTX_PATTERN] = "pattern", [TN_MTX_DOUBLE] = "double", NULL,
};

/* Reads the next word of the banner; *which is its index in a list that ends in NULL. */
static bool take_word(tn_mtx_reader *r, const char **p, const char *const *words, const char *what,
                      unsigned *which)
{
    const char *word = tn_mtx_skip_blanks(*p, r->end);
    size_t n = (size_t)(tn_mtx_word_end(word, r->end) - word);
    *which = 0;
    while (words[*which] && (n != strlen(words[*which]) || !same_letters(word, words[*which], n)))
        ++*which;
    *p = word + n;
    return words[*which] || tn_mtx_refuse(r, word, "%s", what);
}

/* Refuses words that contradict each other. */
static const char *check_words(tn_mtx_reader *r, const char *p)
{
    const char *what = NULL;
    if (r->array && r->field == TN_MTX_PATTERN)
        what = "a field with values in an array";
    else if (r->symmetry == TN_MTX_HERMITIAN && r->field != TN_MTX_COMPLEX)
        what = "complex values in a hermitian matrix";
    else if (r->symmetry == TN_MTX_SKEW && (r->field == TN_MTX_PATTERN || r->field == TN_MTX_UNSIGNED))
        what = "values with a sign in a skew-symmetric matrix";
    return what ? tn_mtx_refuse(r, p, "%s", what) : p;
}

static const char *take_banner(tn_mtx_reader *r)
{
    static const char *const banner[] = { TN_MTX_BANNER, NULL }, *const objects[] = { "matrix", NULL };
    static const char *const formats[] = { "coordinate", "array", NULL };
    static const char *const symmetries[] = {
        [TN_MTX_GENERAL] = "general", [TN_MTX_SYMMETRIC] = "symmetric", [TN_MTX_SKEW] = "skew-symmetric",
        [TN_MTX_HERMITIAN] = "hermitian", NULL,
    };
    unsigned only, format, field, symmetry;
    const char *p = r->text;
    if (p == r->end || *p != '%')
        return tn_mtx_refuse(r, p, "the banner %s", TN_MTX_BANNER);
    if (!take_word(r, &p, banner, "the banner " TN_MTX_BANNER, &only) ||
        !take_word(r, &p, objects, "\"matrix\"", &only) ||
        !take_word(r, &p, formats, "\"coordinate\" or \"array\"", &format))
        return NULL;
    const char *word = tn_mtx_skip_blanks(p, r->end);
    if (!take_word(r, &p, tn_mtx_fields,
                   "\"real\", \"double\", \"integer\", \"unsigned-integer\", \"complex\" or \"pattern\"",
                   &field))
        return NULL;
    r->array = format;
    r->field = field == TN_MTX_DOUBLE ? TN_MTX_REAL : (tn_mtx_field)field;
    r->field_word = tn_arena_text(&r->file->arena, word, (size_t)(p - word));
    if (!r->field_word)
        return tn_fail_nomem(r->err), NULL;
    if (!take_word(r, &p, symmetries, "\"general\", \"symmetric\", \"skew-symmetric\" or \"hermitian\"",
                   &symmetry))
        return NULL;
    r->symmetry = (tn_mtx_symmetry)symmetry;
    return check_words(r, word) ? tn_mtx_end_line(r, p) : NULL;
}

/* --- the size line --- */

static bool take_size(tn_mtx_reader *r, const char **p, const char *what, uint64_t *size)
{
    const char *first = tn_mtx_skip_blanks(*p, r->end), *end = tn_mtx_word_end(first, r->end);
    const char *digit = first;
    *size = 0;
    while (digit < end && tn_is_digit(*digit) && tn_add_digit(size, *digit) && *size <= INT64_MAX)
        digit++;
    *p = end;
    return (digit > first && digit == end) || tn_mtx_refuse(r, first, "%s below 2^63", what);
}

/* Bytes of the shortest possible line; the last line may lack its end. */
static uint64_t shortest_line(const tn_mtx_reader *r)
{
    uint64_t indices = r->array ? 0 : 4;
    switch (r->field) {
    case TN_MTX_COMPLEX: return indices + 4;
    case TN_MTX_PATTERN: return indices;
    default:             return indices + 2;
    }
}

/* The number of values in the text of an array. */
static uint64_t listed_values(const tn_mtx_reader *r)
{
    uint64_t rows = (uint64_t)r->shape[0], columns = (uint64_t)r->shape[1], all = rows * columns;
    switch (r->symmetry) {
    case TN_MTX_GENERAL: return all;
    case TN_MTX_SKEW:    return (all - rows) / 2;
    default:             return (all - rows) / 2 + rows;
    }
}

/* `line` is the size line and has this number; the entries begin at p. */
static tn_status check_size(tn_mtx_reader *r, const char *line, const char *p, unsigned long long number)
{
    uint64_t left = (uint64_t)(r->end - p), at = (uint64_t)(line - r->text), elements;
    long long rows = r->shape[0], columns = r->shape[1];
    if (r->symmetry != TN_MTX_GENERAL && rows != columns)
        return tn_fail_at(r->err, TN_ERR_CORRUPT, at,
                          "line %llu: expected as many rows as columns in a matrix with a symmetry but found "
                          "%lld and %lld", number, rows, columns);
    if (tn_shape_count(2, r->shape, &elements))
        return tn_fail_at(r->err, TN_ERR_LIMIT, at,
                          "line %llu: expected at most 2^63 - 1 elements but found %lld rows of %lld", number,
                          rows, columns);
    if (r->array)
        r->listed = listed_values(r);
    if (r->listed > (left + 1) / shortest_line(r))
        return tn_fail_at(r->err, TN_ERR_TRUNCATED, at,
                          "line %llu: expected %llu %s but found only %llu bytes behind this line", number,
                          (unsigned long long)r->listed, r->array ? "values" : "entries",
                          (unsigned long long)left);
    return TN_OK;
}

static const char *take_sizes(tn_mtx_reader *r, const char *line)
{
    uint64_t rows, columns, number = r->line;
    const char *p = line;
    if (!take_size(r, &p, "a number of rows", &rows) || !take_size(r, &p, "a number of columns", &columns) ||
        (!r->array && !take_size(r, &p, "a number of entries", &r->listed)))
        return NULL;
    p = tn_mtx_end_line(r, p);
    r->shape[0] = (int64_t)rows;
    r->shape[1] = (int64_t)columns;
    return p && !check_size(r, line, p, number) ? p : NULL;
}

/* --- types and memory --- */

/* Whether all elements but the least integer can be negated. */
static bool is_negatable(const tn_dtype_info *type)
{
    return type->kind != TN_KIND_UINT && type->kind != TN_KIND_BOOL && type->specials != TN_SPECIALS_E8M0 &&
           type->specials != TN_SPECIALS_FNUZ;
}

/* The types and the layout of the note must fit the matrix. */
static tn_status check_note(tn_mtx_reader *r)
{
    r->dtype = r->dtype ? r->dtype : tn_mtx_usual_type(r->field);
    r->index = r->index ? r->index : tn_mtx_usual_index(r->shape);
    const tn_dtype_info *type = tn_dtype_get(r->dtype), *index = tn_dtype_get(r->index);
    if (!may_hold(r->field, type))
        return tn_mtx_refuse_note(r, TN_ERR_CORRUPT, 0,
                                  "expected a type that fits the field of the banner but found %s",
                                  type->name);
    if (r->symmetry == TN_MTX_SKEW && !is_negatable(type))
        return tn_mtx_refuse_note(r, TN_ERR_CORRUPT, 0,
                                  "expected a type that can be negated, as a skew-symmetric matrix is, but "
                                  "found %s",
                                  type->name);
    if ((index->kind != TN_KIND_INT && index->kind != TN_KIND_UINT) || index->bits < 32)
        return tn_mtx_refuse_note(r, TN_ERR_CORRUPT, 0,
                                  "expected indices of type int32, int64, uint32 or uint64 but found %s",
                                  index->name);
    tn_error why;
    if (r->layout && tn_layout_check_shape(r->layout, 2, r->shape, &why))
        return tn_mtx_refuse_note(r, TN_ERR_CORRUPT, 0, "%s", why.text);
    return TN_OK;
}

/* Allocates the elements: at most a few times the size of the text. */
static tn_status allocate(tn_mtx_reader *r)
{
    unsigned bits = tn_dtype_get(r->dtype)->bits, index_bits = tn_dtype_get(r->index)->bits;
    uint64_t elements = r->listed * (r->symmetry == TN_MTX_GENERAL ? 1 : 2);
    if (r->array)
        elements = r->count = (uint64_t)r->shape[0] * (uint64_t)r->shape[1];
    r->values = tn_arena_zalloc(&r->file->arena, tn_packed_bytes(elements, bits), 1);
    if (!r->array)
        r->indices = tn_arena_alloc(&r->file->arena, elements * 2 * (index_bits / 8));
    return r->values && (r->array || r->indices) ? TN_OK : tn_fail_nomem(r->err);
}

/* --- the tensor --- */

/* A part of decoded elements. */
static tn_status keep(tn_mtx_reader *r, const void *data, const tn_array *a, const char *type, tn_part *part)
{
    uint64_t nbytes = 0;
    tn_array_nbytes(a, &nbytes);
    *part = (tn_part){ .role = "indices", .array = *a, .nbytes = nbytes };
    tn_stored stored = { .size = nbytes, .type = type, .order = TN_HOST_ORDER };
    TN_TRY(tn_file_add_decoded(r->file, data, (size_t)nbytes, &stored.shard, r->err));
    part->stored = tn_file_keep_stored(r->file, &stored, &(tn_stored_more){ .encoding_name = "text" });
    return part->stored ? TN_OK : tn_fail_nomem(r->err);
}

static tn_status add_tensor(tn_mtx_reader *r)
{
    tn_arena *arena = &r->file->arena;
    int64_t entries[] = { (int64_t)r->count, 2 };
    const int64_t *shape = tn_arena_copy(arena, r->shape, sizeof r->shape),
                  *list = tn_arena_copy(arena, entries, sizeof entries);
    tn_part values, indices;
    tn_entry e = { .name = r->name ? r->name : tn_file_stem(r->file, TN_MTX_SUFFIX), .dtype = r->dtype,
                   .rank = 2, .shape = shape, .layout = r->layout, .meta = r->meta,
                   .nmeta = (uint32_t)r->nmeta };
    TN_NEED(shape && list && e.name, r->err);
    const tn_array matrix = { .dtype = r->dtype, .rank = 2, .shape = shape };
    const tn_array entries_only = { .dtype = r->dtype, .rank = 1, .shape = list };
    const tn_array places = { .dtype = r->index, .rank = 2, .shape = list };
    if (keep(r, r->values, r->array ? &matrix : &entries_only, r->field_word, &values) ||
        (!r->array && keep(r, r->indices, &places, "integer", &indices)))
        return r->err->status;
    if (!r->array)
        tn_entry_make_sparse(&e, TN_FORM_COO, list, &indices, 1);
    e.stored = *values.stored;
    e.more = *tn_stored_more_of(&values);
    return tn_file_add(r->file, &e, r->err);
}

static tn_status take_all(tn_mtx_reader *r)
{
    const char *p = take_banner(r);
    if (p)
        p = tn_mtx_take_comments(r, p);
    if (p)
        p = take_sizes(r, p);
    if (!p)
        return r->err->status;
    if (check_note(r) || allocate(r))
        return r->err->status;
    return tn_mtx_take_entries(r, p);
}

static tn_status open_mtx(tn_file *file, tn_error *err)
{
    tn_arena copy = { 0 };      /* of the text */
    const tn_source *source = file->shards[0].source;
    const uint8_t *text = NULL;
    tn_mtx_reader r = { .file = file, .err = err, .line = 1 };
    tn_status status = tn_source_copy(source, 0, tn_source_size(source), &copy, &text, r.err);
    r.text = (const char *)text;
    if (!status) {
        r.end = r.text + tn_source_size(source);
        status = take_all(&r);
    }
    tn_arena_free(&copy);
    return status ? status : add_tensor(&r);
}

static const tn_format_key keys[] = {
    { TN_MTX_ONE_TRIANGLE, "no|yes",
      "write the lower triangle only; an error unless the matrix is symmetric" },
    { 0 },
};

const tn_format tn_format_mtx = {
    .info = {
        .name = "mtx", .suffix = TN_MTX_SUFFIX,
        .title = "MatrixMarket: one matrix as text, coordinate or array",
        .reads = true, .writes = true, .probes = true, .keys = keys,
    },
    .probe = probe,
    .open = open_mtx,
    .type_name = type_name,
    .min_align = 1,
    .plan = tn_mtx_plan,
    .finish = tn_mtx_finish,
};
