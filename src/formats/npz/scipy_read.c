/* formats/npz/scipy_read.c - the arrays of a SciPy matrix as one tensor.
 *
 * Members are listed as of any archive first.  Two of them, the format and the
 * shape, say what the others are: they are part of the index and are read. */
#include "formats/npz/npz.h"
#include "base/error.h"
#include "store/stream.h"
#include "tensor/form.h"

#include <stdio.h>

const tn_format tn_format_scipy = {
    .info = {
        .name = "scipy-npz", .suffix = TN_NPZ_SUFFIX,
        .title = "one SciPy matrix, csr or coo, as scipy.sparse.save_npz() writes it",
        .reads = true, .writes = true, .probes = true,      /* npz sees that it is one */
    },
    .open = tn_scipy_open,
    .type_name = tn_npy_type_name,
    .min_align = TN_NPY_ALIGN,
    .plan = tn_scipy_plan,
    .finish = tn_scipy_finish,
};

enum { DATA, SHAPE, FORMAT, INDICES, INDPTR, ROW, COL, COORDS, OFFSETS, IS_ARRAY, NAMES };

static const char *const names[NAMES] = {
    "data", "shape", "format", "indices", "indptr", "row", "col", "coords", "offsets", "_is_array",
};

enum { FORMAT_LETTERS = 3, FORMAT_BYTES_MAX = 4 * FORMAT_LETTERS };

static const char *const formats[] = { "csr", "coo", "csc", "bsr", "dia" };

typedef struct matrix {
    tn_file         *file;
    const char      *name;              /* or NULL */
    const tn_tensor *array[NAMES];      /* NULL: there is none */
    bool             others;            /* there are arrays by other names */
    const char      *format;            /* one of `formats` */
    uint32_t         rank;
    int64_t         *shape;
    tn_part          companions[2];     /* of the values */
    uint32_t         ncompanions;
} matrix;

static const tn_part *part_of(const matrix *m, int k)
{
    return m->array[k]->parts;
}

static uint64_t place_of(const matrix *m, int k)
{
    return m->file->at[m->array[k] - m->file->tensors];
}

/* --- is it one --- */

static int number_of(const char *name)
{
    int k = 0;
    while (k < NAMES && strcmp(names[k], name) != 0)
        k++;
    return k;
}

static void find_arrays(matrix *m)
{
    const tn_file *f = m->file;
    m->others = f->left_out != NULL;
    for (size_t i = 0; i < f->count; i++) {
        const tn_tensor *t = &f->tensors[i];
        int k = number_of(t->name);
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
    size_t n = strcmp(type, "|S3") == 0                               ? FORMAT_LETTERS
               : strcmp(type, "<U3") == 0 || strcmp(type, ">U3") == 0 ? FORMAT_BYTES_MAX
                                                                      : 0;
    bool fits = p->array.rank == 0 && (p->stored->encoding != TN_ENCODING_RAW || p->stored->size == n);
    return fits ? n : 0;
}

/* All bytes of a small part, checked. */
static tn_status load(const matrix *m, int k, const tn_part *p, uint8_t *to, tn_error *err)
{
    tn_stream s = { 0 };
    tn_status status = tn_stream_open(&s, m->file, m->array[k], p, 0, p->nbytes, tn_part_checksum(p), err);
    if (!status)
        status = tn_stream_read(&s, to, err);
    if (!status)
        status = tn_stream_check(&s, m->array[k], p, err);
    tn_stream_free(&s);
    return status;
}

/* m->format stays NULL where the text is none of SciPy's. */
static tn_status read_format(matrix *m, tn_error *err)
{
    uint8_t bytes[FORMAT_BYTES_MAX];
    char text[FORMAT_LETTERS + 1] = "";
    tn_part p = *part_of(m, FORMAT);
    size_t size = format_bytes(&p), step = size / FORMAT_LETTERS;
    const int64_t extent = (int64_t)size;
    p.array = (tn_array){ .dtype = TN_UINT8, .rank = 1, .shape = &extent };
    p.nbytes = size;
    tn_status status = load(m, FORMAT, &p, bytes, err);
    for (size_t i = 0; i < size && !status; i++) {
        bool low = i % step == (p.stored->order == TN_BIG_ENDIAN ? step - 1 : 0);
        if (low)
            text[i / step] = (char)bytes[i];
        else if (bytes[i])      /* a letter beyond ASCII: no format that SciPy has */
            return TN_OK;
    }
    for (size_t i = 0; i < sizeof formats / sizeof *formats && !status; i++)
        if (strcmp(formats[i], text) == 0)
            m->format = formats[i];
    return status;
}

static bool belongs(const matrix *m, int k)
{
    if (k == IS_ARRAY)          /* which class of Python's it was: nothing is lost with it */
        return m->array[k]->dtype == TN_BOOL && m->array[k]->rank == 0;
    bool csr = strcmp(m->format, "csr") == 0, coords = m->array[COORDS];
    return k <= FORMAT || (csr ? k == INDICES || k == INDPTR : coords ? k == COORDS : k == ROW || k == COL);
}

static bool has_others(const matrix *m)
{
    bool others = m->others;
    for (int k = 0; k < NAMES; k++)
        others = others || (m->array[k] && !belongs(m, k));
    return others;
}

/* The arrays stay what they are, plain ones. */
static tn_status leave(const matrix *m, const char *why)
{
    tn_file_warn(m->file, place_of(m, FORMAT), "the arrays of this SciPy %s matrix are listed one by one: %s",
                 m->format, why);
    return TN_OK;
}

/* --- what the arrays must be --- */

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

static tn_status check_there(const matrix *m, int k, tn_error *err)
{
    return m->array[k] ? TN_OK
                       : tn_fail_at(err, TN_ERR_CORRUPT, place_of(m, FORMAT),
                                    "member \"%s.npy\": a SciPy %s matrix has one but it "
                                    "is not in the archive", names[k], m->format);
}

/* Array k has so many elements, of the type of another if that is given. */
static tn_status check_vector(const matrix *m, int k, uint64_t length, const tn_part *alike, tn_error *err)
{
    tn_status status = check_there(m, k, err);
    if (status)
        return status;
    const tn_part *p = part_of(m, k);
    if (p->array.rank == 1 && (uint64_t)p->array.shape[0] == length &&
        (!alike || alike->array.dtype == p->array.dtype))
        return TN_OK;
    return tn_fail_at(err, TN_ERR_CORRUPT, place_of(m, k),
                      "member \"%s.npy\": expected %llu elements%s%s but found %s", names[k],
                      (unsigned long long)length, alike ? " of type " : "", alike ? type_of(alike).text : "",
                      describe(p).text);
}

static tn_status check_rank(const matrix *m, uint32_t rank, tn_error *err)
{
    return m->rank == rank ? TN_OK
                           : tn_fail_at(err, TN_ERR_CORRUPT, place_of(m, SHAPE),
                                        "member \"shape.npy\": expected %u dimensions but found %u", rank,
                                        m->rank);
}

static tn_status read_shape(matrix *m, tn_error *err)
{
    const tn_part *p = part_of(m, SHAPE);
    const tn_array *a = &p->array;
    uint8_t bytes[TN_MAX_RANK * sizeof *m->shape];
    bool fits = a->rank == 1 && a->shape[0] > 0 && a->shape[0] <= TN_MAX_RANK &&
                (a->dtype == TN_INT64 || a->dtype == TN_INT32);
    if (!fits)
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

/* --- putting them together --- */

static uint64_t entries_of(const matrix *m)
{
    return (uint64_t)part_of(m, DATA)->array.shape[0];
}

static void add_companion(matrix *m, const char *role, const tn_part *p)
{
    m->companions[m->ncompanions] = *p;
    m->companions[m->ncompanions++].role = role;
}

static tn_status take_csr(matrix *m, tn_error *err)
{
    tn_status status = check_rank(m, 2, err);
    if (!status)
        status = check_vector(m, INDICES, entries_of(m), NULL, err);
    if (!status)
        status = check_vector(m, INDPTR, (uint64_t)m->shape[0] + 1, part_of(m, INDICES), err);
    if (status)
        return status;
    add_companion(m, "indices", part_of(m, INDICES));
    add_companion(m, "indptr", part_of(m, INDPTR));
    return TN_OK;
}

/* For each entry a row: of `entries` rows and `rank` columns. */
static const int64_t *shape_of_indices(const matrix *m)
{
    const int64_t shape[] = { (int64_t)entries_of(m), m->rank };
    return tn_arena_copy(&m->file->arena, shape, sizeof shape);
}

/* The columns of the indices are two arrays. */
static tn_status take_columns(matrix *m, tn_error *err)
{
    tn_status status = check_rank(m, 2, err);
    if (!status)
        status = check_vector(m, ROW, entries_of(m), NULL, err);
    if (!status)
        status = check_vector(m, COL, entries_of(m), part_of(m, ROW), err);
    if (status)
        return status;
    const tn_part both[] = { *part_of(m, ROW), *part_of(m, COL) };
    tn_part indices = {
        .array = { .dtype = both[0].array.dtype, .rank = 2, .shape = shape_of_indices(m) },
        .nbytes = both[0].nbytes + both[1].nbytes,
    };
    const tn_stored_more more = { .columns = tn_arena_copy(&m->file->arena, both, sizeof both) };
    indices.stored = tn_file_keep_stored(m->file, &(tn_stored){ .type = both[0].stored->type }, &more);
    if (!indices.array.shape || !more.columns || !indices.stored)
        return tn_fail_nomem(err);
    add_companion(m, "indices", &indices);
    return TN_OK;
}

/* The columns of the indices are the rows of one array: the same elements, seen the other way round. */
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
    /* columns that were rows need not be told apart */
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

/* Of all arrays this tensor is left. */
static tn_status replace_all(matrix *m, tn_error *err)
{
    tn_file *f = m->file;
    const tn_tensor *data = m->array[DATA];
    tn_entry e = {
        .name = m->name ? m->name : tn_file_stem(f, TN_NPZ_SUFFIX), .at = place_of(m, DATA),
        .dtype = data->dtype, .rank = 1, .shape = data->shape,
        .stored = *data->parts[0].stored, .more = *tn_stored_more_of(&data->parts[0]),
        .meta = data->meta, .nmeta = data->nmeta, .form = tn_form_parse(m->format),
        .value_dtype = data->dtype,
        .value_shape = m->shape, .value_rank = m->rank, .companions = m->companions,
        .ncompanions = m->ncompanions,
    };
    if (!e.name)
        return tn_fail_nomem(err);
    f->count = 0;
    return tn_file_add(f, &e, err);
}

/* A csr or coo matrix. */
static tn_status join(matrix *m, bool *joined, tn_error *err)
{
    const tn_part *data = part_of(m, DATA);
    bool csr = strcmp(m->format, "csr") == 0;
    tn_status status = read_shape(m, err);
    if (status)
        return status;
    if (data->array.rank != 1)
        return tn_fail_at(err, TN_ERR_CORRUPT, place_of(m, DATA),
                          "member \"data.npy\": expected a vector but found %s", describe(data).text);
    if (data->array.dtype == TN_UNKNOWN)
        return leave(m, "the type of its values is not known to this build");
    if (csr && m->rank == 1)
        return leave(m, "it has one dimension: save it as coo to read it as a sparse tensor");
    status = csr ? take_csr(m, err) : m->array[COORDS] ? take_coords(m, err) : take_columns(m, err);
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
    tn_status status = read_format(&m, err);
    if (status || !m.format)
        return status;
    if (strcmp(m.format, "csr") != 0 && strcmp(m.format, "coo") != 0)
        return leave(&m, "save it as csr or coo to read it as a sparse tensor");
    if (has_others(&m))
        return leave(&m, "there are others beside them");
    return join(&m, joined, err);
}

tn_status tn_scipy_open(tn_file *f, tn_error *err)
{
    const char *name;
    bool joined = false;
    tn_status status = tn_npz_list(f, &name, err);
    if (!status)
        status = tn_scipy_join(f, name, &joined, err);
    if (!status && !joined)
        return tn_fail(err, TN_ERR_UNSUPPORTED,
                       "expected a csr or coo matrix as scipy.sparse.save_npz() writes it but "
                       "found other arrays");
    return status;
}
