/* formats/npz/scipy_read.c - the arrays of a SciPy matrix as one tensor.
 *
 * Members are first listed like those of any archive.  The format and the shape
 * are part of the index, so their data is read here. */
#include "formats/npz/npz.h"
#include "base/error.h"
#include "store/columns.h"
#include "store/numbers.h"
#include "tensor/form.h"

#include <stdio.h>

enum { DATA, SHAPE, FORMAT, INDICES, INDPTR, ROW, COL, COORDS, OFFSETS, IS_ARRAY, NAMES };

static const char *const names[NAMES] = {
    "data", "shape", "format", "indices", "indptr", "row", "col", "coords", "offsets", "_is_array",
};

enum { FORMAT_LETTERS = 3, FORMAT_BYTES_MAX = 4 * FORMAT_LETTERS };

typedef enum kind { CSR, COO, CSC, BSR, DIA, KINDS } kind;
static const char *const formats[KINDS] = { "csr", "coo", "csc", "bsr", "dia" };

typedef struct matrix {
    tn_file         *file;
    const char      *name;              /* or NULL */
    const tn_tensor *array[NAMES];      /* NULL: there is none */
    bool             others;            /* there are arrays by other names */
    const char      *format;            /* one of `formats`, or NULL */
    kind             kind;
    uint32_t         rank;
    int64_t         *shape;
    int64_t          entries;
    tn_stored        values;            /* how they are stored... */
    tn_stored_more   more;
    tn_part          companions[2];     /* ...and the other parts */
    uint32_t         ncompanions;
} matrix;

static const tn_part *part_of(const matrix *m, int k)
{
    return m->array[k]->parts;
}

/* The byte of array k, for messages. */
static uint64_t place_of(const matrix *m, int k)
{
    return m->file->at[m->array[k] - m->file->tensors];
}

/* --- recognition --- */

static void find_arrays(matrix *m)
{
    const tn_file *f = m->file;
    m->others = f->left_out != NULL;
    for (size_t i = 0; i < f->count; i++) {
        const tn_tensor *t = &f->tensors[i];
        int k = 0;
        while (k < NAMES && strcmp(names[k], t->name) != 0)
            k++;
        if (k == NAMES || m->array[k] || (t->nmeta && k != DATA))
            m->others = true;
        else
            m->array[k] = t;
    }
}

/* Old versions of SciPy wrote the format as text, in characters of four bytes. */
static size_t format_bytes(const tn_part *p)
{
    const char *type = p->stored->type;
    size_t n = 0;
    if (strcmp(type, "|S3") == 0)
        n = FORMAT_LETTERS;
    else if (strcmp(type, "<U3") == 0 || strcmp(type, ">U3") == 0)
        n = FORMAT_BYTES_MAX;
    bool fits = p->array.rank == 0 && (p->stored->encoding != TN_ENCODING_RAW || p->stored->size == n);
    return fits ? n : 0;
}

/* All bytes of a small part, checked. */
static tn_status load(const matrix *m, int k, const tn_part *p, uint8_t *to, tn_error *err)
{
    tn_stream s = { 0 };
    const tn_tensor *t = m->array[k];
    bool failed = tn_stream_open(&s, m->file, t, p, 0, p->nbytes, tn_part_checksum(p), err) ||
                  tn_stream_read(&s, to, err) || tn_stream_check(&s, t, p, err);
    tn_stream_free(&s);
    return failed ? err->status : TN_OK;
}

/* m->format stays NULL if the text is no format of SciPy. */
static tn_status read_format(matrix *m, tn_error *err)
{
    uint8_t bytes[FORMAT_BYTES_MAX];
    char text[FORMAT_LETTERS + 1] = "";
    tn_part p = *part_of(m, FORMAT);
    size_t size = format_bytes(&p), step = size / FORMAT_LETTERS;
    const int64_t extent = (int64_t)size;
    p.array = (tn_array){ .dtype = TN_UINT8, .rank = 1, .shape = &extent };
    p.nbytes = size;
    TN_TRY(load(m, FORMAT, &p, bytes, err));
    for (size_t i = 0; i < size; i++) {
        bool low = i % step == (p.stored->order == TN_BIG_ENDIAN ? step - 1 : 0);
        if (low)
            text[i / step] = (char)bytes[i];
        else if (bytes[i])      /* beyond ASCII: no format of SciPy */
            return TN_OK;
    }
    for (kind k = CSR; k < KINDS; k++)
        if (strcmp(formats[k], text) == 0) {
            m->kind = k;
            m->format = formats[k];
        }
    return TN_OK;
}

/* Array k is one that a matrix of this format has. */
static bool belongs(const matrix *m, int k)
{
    if (k == IS_ARRAY)          /* tells the Python class: nothing is lost with it */
        return m->array[k]->dtype == TN_BOOL && m->array[k]->rank == 0;
    if (k <= FORMAT)
        return true;
    if (m->kind == COO)
        return m->array[COORDS] ? k == COORDS : k == ROW || k == COL;
    return m->kind == DIA ? k == OFFSETS : k == INDICES || k == INDPTR;
}

static bool has_others(const matrix *m)
{
    bool others = m->others;
    for (int k = 0; k < NAMES; k++)
        others = others || (m->array[k] && !belongs(m, k));
    return others;
}

/* The arrays stay plain arrays. */
static tn_status leave_plain(const matrix *m, const char *why)
{
    tn_file_warn(m->file, place_of(m, FORMAT), "the arrays of this SciPy %s matrix are listed one by one: %s",
                 m->format, why);
    return TN_OK;
}

/* --- checks --- */

static tn_quoted type_of(const tn_part *p)
{
    const tn_dtype_info *type = tn_dtype_get(p->array.dtype);
    tn_quoted q;
    if (!type)
        return tn_quote_z(p->stored->type);
    snprintf(q.text, sizeof q.text, "%s", type->name);
    return q;
}

typedef struct words { char text[160]; } words;

static words describe(const tn_part *p)
{
    words w;
    if (p->array.rank == 1)
        snprintf(w.text, sizeof w.text, "%lld of type %s", (long long)p->array.shape[0], type_of(p).text);
    else
        snprintf(w.text, sizeof w.text, "an array of %u dimensions", p->array.rank);
    return w;
}

/* Array k is there and has `length` elements, of the type of `alike` if that is given. */
static tn_status check_vector(const matrix *m, int k, uint64_t length, const tn_part *alike, tn_error *err)
{
    if (!m->array[k])
        return tn_fail_at(err, TN_ERR_CORRUPT, place_of(m, FORMAT),
                          "member \"%s.npy\": a SciPy %s matrix has one but it is not in the archive",
                          names[k], m->format);
    const tn_part *p = part_of(m, k);
    if (p->array.rank == 1 && (uint64_t)p->array.shape[0] == length &&
        (!alike || alike->array.dtype == p->array.dtype))
        return TN_OK;
    tn_quoted type = { "" };
    if (alike)
        type = type_of(alike);
    return tn_fail_at(err, TN_ERR_CORRUPT, place_of(m, k),
                      "member \"%s.npy\": expected %llu elements%s%s but found %s", names[k],
                      (unsigned long long)length, alike ? " of type " : "", type.text, describe(p).text);
}

static tn_status check_rank(const matrix *m, tn_error *err)
{
    if (m->rank == 2)
        return TN_OK;
    return tn_fail_at(err, TN_ERR_CORRUPT, place_of(m, SHAPE),
                      "member \"shape.npy\": expected 2 dimensions but found %u", m->rank);
}

static tn_status read_shape(matrix *m, tn_error *err)
{
    const tn_part *p = part_of(m, SHAPE);
    const tn_array *a = &p->array;
    uint8_t bytes[TN_MAX_RANK * sizeof *m->shape];
    if (a->rank != 1 || a->shape[0] < 1 || a->shape[0] > TN_MAX_RANK ||
        (a->dtype != TN_INT64 && a->dtype != TN_INT32))
        return tn_fail_at(err, TN_ERR_CORRUPT, place_of(m, SHAPE),
                          "member \"shape.npy\": expected 1 to %d dimensions of type int64 but found %s",
                          TN_MAX_RANK, describe(p).text);
    m->rank = (uint32_t)a->shape[0];
    m->shape = tn_arena_zalloc(&m->file->arena, m->rank, sizeof *m->shape);
    tn_status status = m->shape ? load(m, SHAPE, p, bytes, err) : tn_fail_nomem(err);
    for (uint32_t i = 0; i < m->rank && !status; i++) {
        m->shape[i] = tn_value_get(a->dtype, bytes, i).i;
        if (m->shape[i] < 0)
            status = tn_fail_at(err, TN_ERR_CORRUPT, place_of(m, SHAPE),
                                "member \"shape.npy\": dimension %u is %lld", i, (long long)m->shape[i]);
    }
    return status;
}

/* --- the tensor --- */

static uint64_t entries_of(const matrix *m)
{
    return (uint64_t)m->entries;
}

static void add_companion(matrix *m, const char *role, const tn_part *p)
{
    m->companions[m->ncompanions] = *p;
    m->companions[m->ncompanions++].role = role;
}

static tn_status take_csr(matrix *m, tn_error *err)
{
    if (check_rank(m, err) || check_vector(m, INDICES, entries_of(m), NULL, err) ||
        check_vector(m, INDPTR, (uint64_t)m->shape[0] + 1, part_of(m, INDICES), err))
        return err->status;
    add_companion(m, "indices", part_of(m, INDICES));
    add_companion(m, "indptr", part_of(m, INDPTR));
    return TN_OK;
}

/* One row of `rank` indices per entry. */
static const int64_t *shape_of_indices(const matrix *m)
{
    const int64_t shape[] = { (int64_t)entries_of(m), m->rank };
    return tn_arena_copy(&m->file->arena, shape, sizeof shape);
}

/* Two arrays are the columns of the indices. */
static tn_status take_columns(matrix *m, tn_error *err)
{
    if (check_rank(m, err) || check_vector(m, ROW, entries_of(m), NULL, err) ||
        check_vector(m, COL, entries_of(m), part_of(m, ROW), err))
        return err->status;
    const tn_part both[] = { *part_of(m, ROW), *part_of(m, COL) };
    tn_part indices = {
        .array = { .dtype = both[0].array.dtype, .rank = 2, .shape = shape_of_indices(m) },
        .nbytes = both[0].nbytes + both[1].nbytes,
    };
    const tn_stored_more more = { .derive = &tn_derive_columns, .nfrom = 2,
                                  .from = tn_arena_copy(&m->file->arena, both, sizeof both) };
    indices.stored = tn_file_keep_stored(m->file, &(tn_stored){ .type = both[0].stored->type }, &more);
    TN_NEED(indices.array.shape && more.from && indices.stored, err);
    add_companion(m, "indices", &indices);
    return TN_OK;
}

/* One array is the transpose of the indices: the same elements with other strides. */
static tn_status take_coords(matrix *m, tn_error *err)
{
    tn_part p = *part_of(m, COORDS);
    const tn_array *a = &p.array;
    int64_t entries = (int64_t)entries_of(m);
    if (a->rank != 2 || a->shape[0] != (int64_t)m->rank || a->shape[1] != entries)
        return tn_fail_at(err, TN_ERR_CORRUPT, place_of(m, COORDS),
                          "member \"coords.npy\": expected %u rows of %lld elements but found %s", m->rank,
                          (long long)entries, a->rank == 2 ? "other rows" : describe(&p).text);
    const int64_t stride[] = { 1, entries };
    tn_stored_more more = *tn_stored_more_of(&p);
    /* a Fortran-ordered array is the transpose already; a vector has one order */
    bool same = more.stride || m->rank == 1 || entries < 2;
    more.stride = same ? NULL : tn_arena_copy(&m->file->arena, stride, sizeof stride);
    p.array.shape = shape_of_indices(m);
    p.data = NULL;
    p.stored = tn_file_keep_stored(m->file, p.stored, &more);
    if (!p.array.shape || (!same && !more.stride) || !p.stored)
        return tn_fail_nomem(err);
    add_companion(m, "indices", &p);
    return TN_OK;
}

/* --- csc, bsr and dia as coo --- */

/* A part that is made of others, which are those of the arrays `from`. */
static tn_status set_derived(matrix *m, const tn_scipy_derive *how, const int *from, uint32_t n,
                             tn_stored_more *more, tn_error *err)
{
    tn_part parts[2];
    for (uint32_t i = 0; i < n; i++) {
        parts[i] = *part_of(m, from[i]);
        parts[i].role = names[from[i]];
    }
    tn_scipy_derive *kept = tn_arena_copy(&m->file->arena, how, sizeof *how);
    TN_NEED(kept, err);
    memcpy(kept->shape, m->shape, sizeof kept->shape);
    *more = (tn_stored_more){ .derive = &kept->derive, .nfrom = n,
                              .from = tn_arena_copy(&m->file->arena, parts, n * sizeof *parts) };
    TN_NEED(more->from, err);
    return TN_OK;
}

/* Indices of coo: int32 where that suffices. */
static tn_status add_places(matrix *m, const tn_scipy_derive *how, const int *from, uint32_t n, tn_error *err)
{
    bool small = m->shape[0] <= INT32_MAX && m->shape[1] <= INT32_MAX;
    tn_part p = { .array = { .dtype = small ? TN_INT32 : TN_INT64, .rank = 2, .shape = shape_of_indices(m) },
                  .nbytes = entries_of(m) * (small ? 8 : 16) };
    tn_stored_more more;
    TN_TRY(set_derived(m, how, from, n, &more, err));
    p.stored = tn_file_keep_stored(m->file, &(tn_stored){ .type = part_of(m, from[0])->stored->type }, &more);
    TN_NEED(p.array.shape && p.stored, err);
    add_companion(m, "indices", &p);
    return TN_OK;
}

static tn_status check_index_type(const matrix *m, int k, bool is_signed, tn_error *err)
{
    const tn_part *p = part_of(m, k);
    tn_dtype type = p->array.dtype;
    if (type == TN_INT32 || type == TN_INT64 || (!is_signed && (type == TN_UINT32 || type == TN_UINT64)))
        return TN_OK;
    return tn_fail_at(err, TN_ERR_CORRUPT, place_of(m, k),
                      "member \"%s.npy\": expected type int32 or int64 but found %s", names[k],
                      type_of(p).text);
}

/* The blocks of bsr are whole; an entry of csc is a block of one element. */
static tn_status take_blocks(matrix *m, tn_error *err)
{
    static const int from[] = { INDICES, INDPTR };
    const tn_array *data = &part_of(m, DATA)->array;
    bool csc = m->kind == CSC;
    tn_scipy_derive how = { .derive = tn_derive_blocks, .rows = 1, .columns = 1, .by_column = csc };
    TN_TRY(check_rank(m, err));
    if (!csc) {
        how.rows = (uint64_t)data->shape[1];
        how.columns = (uint64_t)data->shape[2];
        if (!how.rows || !how.columns || (uint64_t)m->shape[0] % how.rows ||
            (uint64_t)m->shape[1] % how.columns)
            return tn_fail_at(err, TN_ERR_CORRUPT, place_of(m, DATA),
                              "member \"data.npy\": blocks of %llu x %llu do not fill a matrix of %lld x "
                              "%lld",
                              (unsigned long long)how.rows, (unsigned long long)how.columns,
                              (long long)m->shape[0], (long long)m->shape[1]);
    }
    uint64_t lines = csc ? (uint64_t)m->shape[1] : (uint64_t)m->shape[0] / how.rows;
    if (check_vector(m, INDICES, (uint64_t)data->shape[0], NULL, err) ||
        check_vector(m, INDPTR, lines + 1, part_of(m, INDICES), err) ||
        check_index_type(m, INDICES, false, err))
        return err->status;
    if (m->more.stride) {
        static const int values[] = { DATA };
        m->values = (tn_stored){ .type = m->values.type };
        TN_TRY(set_derived(m, &(tn_scipy_derive){ .derive = tn_derive_flat }, values, 1, &m->more, err));
    }
    return add_places(m, &how, from, 2, err);
}

/* Counts the entries of all diagonals: the offsets are part of the index. */
static tn_status count_diagonals(matrix *m, uint64_t length, tn_error *err)
{
    tn_numbers s = { 0 };
    const tn_tensor *t = m->array[OFFSETS];
    const tn_part *p = part_of(m, OFFSETS);
    bool any = true;
    tn_status status = tn_numbers_open(&s, m->file, t, p, tn_part_checksum(p), err);
    while (!status && any) {
        uint64_t offset = 0;
        status = tn_numbers_next(&s, &offset, &any, err);
        const tn_diagonal d = tn_scipy_diagonal(m->shape, length, (int64_t)offset);
        if (any)                /* no more in all than the data has */
            m->entries += (int64_t)(d.end - d.begin);
    }
    if (!status)
        status = tn_stream_check(&s.stream, t, p, err);
    tn_stream_free(&s.stream);
    return status;
}

static tn_status take_diagonals(matrix *m, tn_error *err)
{
    static const int from[] = { OFFSETS, DATA };
    const tn_array *data = &part_of(m, DATA)->array;
    tn_scipy_derive how = { .derive = tn_derive_diagonal_places, .columns = (uint64_t)data->shape[1] };
    m->entries = 0;
    if (check_rank(m, err) || check_vector(m, OFFSETS, (uint64_t)data->shape[0], NULL, err) ||
        check_index_type(m, OFFSETS, true, err) || count_diagonals(m, how.columns, err) ||
        add_places(m, &how, from, 1, err))
        return err->status;
    how.derive = tn_derive_diagonal_values;
    m->values = (tn_stored){ .type = m->values.type };
    return set_derived(m, &how, from, 2, &m->more, err);
}

/* The tensor replaces all arrays. */
static tn_status replace_all(matrix *m, tn_error *err)
{
    tn_file *f = m->file;
    const tn_tensor *data = m->array[DATA];
    tn_entry e = {
        .name = m->name ? m->name : tn_file_stem(f, TN_NPZ_SUFFIX), .at = place_of(m, DATA),
        .dtype = data->dtype, .rank = m->rank, .shape = m->shape,
        .stored = m->values, .more = m->more, .meta = data->meta, .nmeta = data->nmeta,
    };
    const int64_t *count = tn_arena_copy(&f->arena, &m->entries, sizeof m->entries);
    TN_NEED(e.name && count, err);
    tn_entry_make_sparse(&e, m->kind == CSR ? TN_FORM_CSR : TN_FORM_COO, count, m->companions,
                         m->ncompanions);
    f->count = 0;
    return tn_file_add(f, &e, err);
}

static tn_status count_values(matrix *m, tn_error *err)
{
    static const char *const expected[] = { "a vector", "an array of 2 dimensions",
                                            "an array of 3 dimensions" };
    static const uint32_t ranks[KINDS] = { 1, 1, 1, 3, 2 };
    const tn_part *data = part_of(m, DATA);
    uint64_t count = 0;
    if (data->array.rank != ranks[m->kind])
        return tn_fail_at(err, TN_ERR_CORRUPT, place_of(m, DATA),
                          "member \"data.npy\": expected %s but found %s",
                          expected[ranks[m->kind] - 1], describe(data).text);
    tn_shape_count(data->array.rank, data->array.shape, &count);        /* was checked */
    m->entries = (int64_t)count;
    m->values = *data->stored;
    m->more = *tn_stored_more_of(data);
    return TN_OK;
}

static tn_status take_parts(matrix *m, tn_error *err)
{
    switch (m->kind) {
    case CSR: return take_csr(m, err);
    case COO: return m->array[COORDS] ? take_coords(m, err) : take_columns(m, err);
    case DIA: return take_diagonals(m, err);
    default:  return take_blocks(m, err);
    }
}

static tn_status join(matrix *m, bool *joined, tn_error *err)
{
    TN_TRY(read_shape(m, err));
    if (part_of(m, DATA)->array.dtype == TN_UNKNOWN)
        return leave_plain(m, "the type of its values is not known to this build");
    TN_TRY(count_values(m, err));
    if (m->kind == CSR && m->rank == 1)
        return leave_plain(m, "it has one dimension: save it as coo to read it as a sparse tensor");
    tn_status status = take_parts(m, err);
    if (!status)
        status = replace_all(m, err);
    *joined = !status;
    return status;
}

tn_status tn_scipy_join(tn_file *f, const char *name, bool *joined, tn_error *err)
{
    matrix m = { .file = f, .name = name };
    find_arrays(&m);
    if (f->records || !m.array[FORMAT] || !m.array[SHAPE] || !m.array[DATA] ||
        !format_bytes(part_of(&m, FORMAT)))
        return TN_OK;
    TN_TRY(read_format(&m, err));
    if (!m.format)
        return TN_OK;
    if (has_others(&m))
        return leave_plain(&m, "the archive has other members too");
    return join(&m, joined, err);
}

static tn_status open_scipy(tn_file *f, tn_error *err)
{
    const char *name;
    bool joined = false;
    if (tn_npz_list(f, &name, err) || tn_scipy_join(f, name, &joined, err))
        return err->status;
    if (!joined)
        return tn_fail(err, TN_ERR_UNSUPPORTED,
                       "expected a matrix as scipy.sparse.save_npz() writes it but "
                       "found other arrays");
    return TN_OK;
}

const tn_format tn_format_scipy = {
    .info = {
        .name = "scipy-npz", .suffix = TN_NPZ_SUFFIX,
        .title = "one SciPy matrix, as scipy.sparse.save_npz() writes it",
        .reads = true, .writes = true, .probes = true,      /* by npz */
        .compresses = true,
    },
    .open = open_scipy,
    .keeps = tn_scipy_keeps,
    .archive_codec = TN_ENCODING_DEFLATE,
    .room_before = tn_npz_room_before,
    .type_name = tn_npy_type_name,
    .min_align = TN_NPY_ALIGN,
    .plan = tn_scipy_plan,
    .finish = tn_scipy_finish,
};
