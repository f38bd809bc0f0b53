/* formats/npz/scipy_write.c - a tensor of form csr or coo as the members that
 * scipy.sparse.load_npz() expects.
 *
 * SciPy stores the two columns of the indices of a coo matrix as two arrays.  The
 * indices are first written behind everything else, and split at the end. */
#include "formats/npz/npz.h"
#include "base/checked.h"
#include "base/error.h"
#include "bytes/checksum.h"
#include "store/columns.h"
#include "store/stream.h"

#include <stdlib.h>

enum { RANK = 2, DATA = 0, ROW = 1, COL = 2, MEMBERS_MAX = 6 };

typedef struct plan {
    tn_npz_member members[MEMBERS_MAX]; /* first: see tn_npz_room_before() */
    const void   *bytes[MEMBERS_MAX];   /* elements of a small member; NULL: of the writer's entries */
    size_t        count;
    uint64_t      at;                   /* offset of the next member */
} plan;

static bool is_coo(const tn_tensor *t)
{
    return t->form == TN_FORM_COO;
}

/* Its places are known only when it is written. */
static bool is_deflated(const tn_writer *w)
{
    return w->entries[DATA].encoding != TN_ENCODING_RAW;
}

/* --- checks --- */

bool tn_scipy_keeps(const tn_tensor *t)
{
    return (is_coo(t) || t->form == TN_FORM_CSR) && t->rank == RANK;
}

static tn_status check_form(const tn_tensor *t, tn_error *err)
{
    if (!is_coo(t) && t->form != TN_FORM_CSR)
        return tn_refuse(err, TN_ERR_UNSUPPORTED, TN_REASON_FORM, "csr",
                         "scipy-npz holds a tensor of form csr or coo but found %s",
                         tn_quote_z(tn_tensor_form_name(t)).text);
    if (t->rank != RANK)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "scipy-npz holds a matrix, of 2 dimensions, but found %u",
                       t->rank);
    return TN_OK;
}

static tn_status check_types(const tn_tensor *t, tn_error *err)
{
    const tn_dtype_info *type = tn_dtype_get(t->dtype), *index = tn_dtype_get(t->parts[1].array.dtype);
    /* SciPy has the types of NumPy but for half precision */
    if (!tn_npy_type_name(type) || t->dtype == TN_FLOAT16 || t->dtype == TN_BFLOAT16)
        return tn_refuse(err, TN_ERR_UNSUPPORTED, TN_REASON_CAST, "f32", "scipy.sparse has no type %s",
                         type->name);
    if (index->kind != TN_KIND_INT)
        return tn_refuse(err, TN_ERR_UNSUPPORTED, TN_REASON_FORM,
                         is_coo(t) ? "coo,index=int64" : "csr,index=int64",
                         "scipy.sparse has indices of type int32 or int64 but found %s", index->name);
    for (uint32_t k = 0; k < t->nparts; k++)
        if (t->parts[k].padded)
            return tn_fail(err, TN_ERR_UNSUPPORTED, "scipy-npz cannot hold padding");
    return TN_OK;
}

static tn_status check(const tn_writer *w, tn_error *err)
{
    if (w->ntensors != 1)
        return tn_refuse(err, TN_ERR_ARGUMENT, TN_REASON_ONLY, NULL,
                         "scipy-npz holds one tensor and there are %zu: choose one", w->ntensors);
    const tn_tensor *t = w->entries[0].more->whole;
    tn_status status = check_form(t, err);
    if (!status)
        status = check_types(t, err);
    if (!status && is_coo(t) && is_deflated(w))
        status = tn_refuse(err, TN_ERR_UNSUPPORTED, TN_REASON_FORM, "csr",
                           "scipy-npz holds compressed data of form csr only but found coo");
    if (!status && t->layout && !w->options.drop_metadata)
        status = tn_refuse(err, TN_ERR_LOSS, TN_REASON_DROP_METADATA, NULL,
                           "scipy-npz cannot hold its layout");
    return tn_in_tensor(status, t->name, err);
}

/* --- planning --- */

static tn_status add_member(tn_writer *w, plan *p, const char *name, const tn_npy_array *array,
                            uint64_t nbytes, tn_error *err)
{
    tn_npz_member *m = &p->members[p->count++];
    m->nbytes = nbytes;
    return tn_npz_place(w, name, array, m, &p->at, err);
}

/* A member whose elements are those of entry k. */
static tn_status add_entry(tn_writer *w, plan *p, const char *name, size_t k, tn_error *err)
{
    tn_out_entry *e = &w->entries[k];
    const tn_npy_array array = tn_npy_array_of(e);
    const char *own = k == DATA && !w->options.drop_names ? e->name : NULL;
    TN_TRY(tn_npz_set_note(w, e, own, &p->members[p->count], err));
    p->members[p->count].zip.method = tn_npz_method(e);
    tn_status status = add_member(w, p, name, &array, e->nbytes, err);
    tn_npz_set_offset(e, &p->members[k], 0);
    return status;
}

/* One column of the indices. */
static tn_status add_column(tn_writer *w, plan *p, const char *name, tn_error *err)
{
    const tn_out_entry *e = &w->entries[1];
    tn_npy_array array = tn_npy_array_of(e);
    array.rank = 1;
    return add_member(w, p, name, &array, e->nbytes / RANK, err);
}

static tn_status add_indices(tn_writer *w, plan *p, bool coo, tn_error *err)
{
    if (coo ? add_column(w, p, "row", err) : add_entry(w, p, "indices", 1, err))
        return err->status;
    return coo ? add_column(w, p, "col", err) : add_entry(w, p, "indptr", 2, err);
}

/* The shape, the format, and that it is a sparse array (`*` multiplies elements)
 * and not a sparse matrix. */
static tn_status add_index(tn_writer *w, plan *p, const tn_tensor *t, tn_error *err)
{
    static const int64_t extent = RANK;
    static const bool yes = true;
    const tn_npy_array shape = { .type = "<i8", .rank = 1, .shape = &extent };
    const tn_npy_array format = { .type = "|S3" }, is_array = { .type = "|b1" };
    const void **bytes = &p->bytes[p->count];
    bytes[0] = t->shape;
    bytes[1] = tn_form_name(t->form);
    bytes[2] = &yes;
    if (add_member(w, p, "shape", &shape, RANK * sizeof *t->shape, err) ||
        add_member(w, p, "format", &format, 3, err))
        return err->status;
    return add_member(w, p, "_is_array", &is_array, sizeof yes, err);
}

tn_status tn_scipy_plan(tn_writer *w, tn_error *err)
{
    uint32_t file;
    plan *p = tn_arena_zalloc(&w->arena, 1, sizeof *p);
    TN_NEED(p, err);
    TN_TRY(check(w, err));
    const tn_tensor *t = w->entries[0].more->whole;
    for (size_t i = 0; i < w->count; i++)
        if (w->entries[i].more->record.len)
            w->entries[i].more->record.len = 0;         /* SciPy's members hold all of it */
    if (add_entry(w, p, "data", DATA, err) || add_indices(w, p, is_coo(t), err) ||
        (!is_deflated(w) && add_index(w, p, t, err)))
        return err->status;
    uint64_t end = p->at;
    if (is_coo(t)) {
        w->entries[1].offset = p->at;
        if (!tn_add_u64(p->at, w->entries[1].nbytes, &end) || end > INT64_MAX)
            return tn_fail(err, TN_ERR_LIMIT, "the file would take more than 2^63 bytes");
    }
    TN_TRY(tn_writer_add_file(w, w->path, &file, err));
    w->files[file].end = end;
    w->state = p;
    return TN_OK;
}

/* --- finishing --- */

static tn_status split_rows(tn_writer *w, const tn_source *written, uint8_t *window, tn_error *err)
{
    plan *p = w->state;
    const tn_out_entry *e = &w->entries[1];
    size_t size = tn_dtype_get(e->dtype)->bits / 8, most = TN_WINDOW / (RANK * size);
    uint64_t rows = e->nbytes / (RANK * size);
    for (uint64_t done = 0; done < rows; done += most) {
        size_t n = rows - done < most ? (size_t)(rows - done) : most;
        uint8_t *column = window + TN_WINDOW;
        TN_TRY(tn_source_read(written, e->offset + done * RANK * size, window, n * RANK * size, err));
        for (size_t k = 0; k < RANK; k++) {
            tn_npz_member *m = &p->members[ROW + k];
            tn_copy_apart(column, size, window + k * size, RANK * size, size, n);
            m->crc = tn_crc32(m->crc, column, n * size);
            TN_TRY(tn_writer_put(w, e->file, m->data + done * size, column, n * size, err));
        }
    }
    return TN_OK;
}

static tn_status split_indices(tn_writer *w, tn_error *err)
{
    const tn_out_entry *e = &w->entries[1];
    tn_source *written;
    if (w->dry_run || !e->nbytes)
        return TN_OK;
    TN_TRY(tn_sink_read_back(w->files[e->file].sink, &written, err));
    uint8_t *window = malloc(TN_WINDOW + TN_WINDOW / RANK);
    tn_status status = window ? split_rows(w, written, window, err) : tn_fail_nomem(err);
    free(window);
    tn_source_close(written);
    return status;
}

tn_status tn_scipy_finish(tn_writer *w, tn_error *err)
{
    plan *p = w->state;
    const tn_tensor *t = w->entries[0].more->whole;
    bool coo = is_coo(t);
    tn_status status = coo ? split_indices(w, err) : TN_OK;
    for (size_t i = 0; i < w->count && !(coo && i == 1); i++) {
        p->members[i].crc = w->entries[i].digest->crc;
        tn_npz_take_place(&p->members[i], &w->entries[i]);
    }
    p->at = w->files[0].end;
    if (!status && is_deflated(w))
        status = add_index(w, p, t, err);
    for (size_t i = 0; i < p->count && !status; i++) {
        tn_npz_member *m = &p->members[i];
        if (!p->bytes[i])
            continue;
        m->crc = tn_crc32(0, p->bytes[i], (size_t)m->nbytes);
        status = tn_writer_put(w, 0, m->data, p->bytes[i], (size_t)m->nbytes, err);
    }
    return status ? status : tn_npz_write_index(w, p->members, p->count, err);
}
