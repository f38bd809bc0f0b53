/* formats/mtx/write.c - a matrix as text.
 *
 * Its parts are kept in memory until they are complete: the banner depends on the
 * values, and an array is written column by column. */
#include "formats/mtx/mtx.h"
#include "base/checked.h"
#include "base/error.h"
#include "tensor/indices.h"

#include <string.h>

enum { TEXT = 0, PARTS = 1 };   /* the writer's files; the second is memory */

/* --- planning --- */

static tn_status check_tensor(const tn_tensor *t, tn_error *err)
{
    if (t->form != TN_FORM_DENSE && t->form != TN_FORM_COO && t->form != TN_FORM_CSR)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "mtx holds dense, coo and csr tensors but found form %s",
                       tn_quote_z(tn_tensor_form_name(t)).text);
    if (t->rank != 2)
        return tn_fail(err, TN_ERR_UNSUPPORTED, "mtx holds a matrix: expected 2 dimensions but found %u",
                       t->rank);
    for (uint32_t k = 0; k < t->nparts; k++)
        if (t->parts[k].padded)
            return tn_fail(err, TN_ERR_UNSUPPORTED, "mtx cannot hold padding");
    return TN_OK;
}

static tn_status check_plan(const tn_writer *w, tn_error *err)
{
    if (w->options.align != 1)
        return tn_fail(err, TN_ERR_ARGUMENT, "mtx is text and cannot align data to %llu",
                       (unsigned long long)w->options.align);
    if (w->ntensors != 1)
        return tn_refuse(err, TN_ERR_ARGUMENT, TN_REASON_ONLY, NULL,
                         "mtx holds one matrix and there are %zu tensors: choose one", w->ntensors);
    const tn_tensor *t = w->entries[0].more->whole;
    return tn_in_tensor(check_tensor(t, err), t->name, err);
}

tn_status tn_mtx_plan(tn_writer *w, tn_error *err)
{
    uint64_t size = 0;
    uint32_t file;
    if (check_plan(w, err) || tn_writer_add_file(w, w->path, &file, err))
        return err->status;
    for (size_t i = 0; i < w->count; i++) {
        w->entries[i].file = PARTS;
        w->entries[i].offset = size;
        if (!tn_add_u64(size, w->entries[i].nbytes, &size))
            return tn_fail(err, TN_ERR_LIMIT, "the matrix would take more than 2^64 bytes");
    }
    return tn_writer_add_memory(w, w->dry_run ? 0 : size, &file, err);
}

/* --- the matrix --- */

static uint64_t pointer_of(const tn_mtx_matrix *m, uint64_t row)
{
    return tn_index_get(m->tensor->parts[2].array.dtype, m->pointers, row);
}

/* From the row of the last entry on, if this one is not before it. */
static uint64_t row_of(const tn_mtx_matrix *m, uint64_t entry)
{
    uint64_t low = *m->row, high = (uint64_t)m->tensor->shape[0];
    enum { NEAR = 8 };
    for (unsigned i = 0; i < NEAR && pointer_of(m, low + 1) <= entry; i++)
        low++;
    if (pointer_of(m, low) > entry)
        low = 0;
    while (pointer_of(m, low + 1) <= entry) {           /* it is in [low + 1, high) */
        uint64_t middle = low + 1 + (high - low - 1) / 2;
        low = pointer_of(m, middle) <= entry ? middle : low;
        high = pointer_of(m, middle) <= entry ? high : middle;
    }
    return *m->row = low;
}

uint64_t tn_mtx_index(const tn_mtx_matrix *m, uint64_t entry, unsigned dimension)
{
    if (m->pointers && !dimension)
        return row_of(m, entry);
    return tn_index_get(m->tensor->parts[1].array.dtype, m->indices,
                        m->pointers ? entry : 2 * entry + dimension);
}

static tn_status check_pointers(const tn_mtx_matrix *m, tn_error *err)
{
    tn_row_pointer p = { .dtype = m->tensor->parts[2].array.dtype, .rows = (uint64_t)m->tensor->shape[0],
                         .entries = m->entries };
    for (; p.i <= p.rows; p.i++, p.before = p.found) {
        p.found = pointer_of(m, p.i);
        if (!tn_row_pointer_is_right(&p))
            return tn_fail(err, TN_ERR_CORRUPT, "%s", tn_row_pointer_fault(&p).text);
    }
    return TN_OK;
}

static tn_status check_indices(const tn_mtx_matrix *m, tn_error *err)
{
    const tn_tensor *t = m->tensor;
    if (m->pointers)
        TN_TRY(check_pointers(m, err));
    for (uint64_t i = 0; i < m->entries; i++) {
        for (unsigned k = 0; k < 2; k++) {
            uint64_t index = tn_mtx_index(m, i, k);
            if (index >= (uint64_t)t->shape[k])
                return tn_fail(err, TN_ERR_CORRUPT, "%s",
                               tn_index_fault(t->parts[1].array.dtype, i, k, t->shape[k], index).text);
        }
    }
    return TN_OK;
}

/* A pattern, if all values are true.  unsigned-integer, which few readers know, only if it is needed. */
static tn_mtx_field choose_field(const tn_mtx_matrix *m, uint64_t elements)
{
    const tn_dtype_info *type = tn_dtype_get(m->tensor->dtype);
    bool all = m->indices != NULL;
    switch (type->kind) {
    case TN_KIND_FLOAT:   return TN_MTX_REAL;
    case TN_KIND_COMPLEX: return TN_MTX_COMPLEX;
    case TN_KIND_BOOL:
        for (uint64_t i = 0; i < elements && all; i++)
            all = m->values[i] != 0;
        return all ? TN_MTX_PATTERN : TN_MTX_INTEGER;
    default:
        for (uint64_t i = 0; i < elements && type->dtype == TN_UINT64; i++)
            if (tn_code_get(m->values, i, 64) > INT64_MAX)
                return TN_MTX_UNSIGNED;
        return TN_MTX_INTEGER;
    }
}

static tn_mtx_matrix matrix_of(const tn_writer *w)
{
    const tn_out_entry *e = w->entries;
    tn_mtx_matrix m = { .tensor = e->more->whole };
    if (!w->dry_run)
        m.values = w->files[PARTS].memory + e[0].offset;
    if (w->count > 1 && !w->dry_run)
        m.indices = w->files[PARTS].memory + e[1].offset;
    if (w->count > 2 && !w->dry_run)
        m.pointers = w->files[PARTS].memory + e[2].offset;
    if (w->count > 1)
        m.entries = (uint64_t)e->shape[0];
    return m;
}

/* --- the text --- */

enum { PIECE = 256 << 10, LINE_MAX_BYTES = 2 * (20 + 1) + 2 * (TN_MTX_NUMBER_MAX + 1) };

typedef struct output {
    tn_writer           *w;
    const tn_mtx_matrix *m;
    tn_mtx_numbers       numbers;
    char                *piece, *next;
    uint64_t             at;            /* where the piece belongs */
    bool                 symmetric;     /* only the lower triangle */
} output;

static tn_status flush(output *o, tn_error *err)
{
    size_t n = (size_t)(o->next - o->piece);
    tn_status status = tn_writer_put(o->w, TEXT, o->at, o->piece, n, err);
    o->at += n;
    o->next = o->piece;
    return status;
}

/* Writes element i, behind a blank if it follows an index, and ends the line. */
static tn_status put_value(output *o, uint64_t i, tn_error *err)
{
    const tn_mtx_numbers *n = &o->numbers;
    char *p = o->next;
    for (unsigned k = 0; k < n->count && o->m->field != TN_MTX_PATTERN; k++) {
        uint64_t code = tn_code_get(o->m->values, i * n->count + k, n->type->bits);
        if (k || o->m->indices)
            *p++ = ' ';
        p = n->type->kind == TN_KIND_FLOAT ? tn_mtx_put_real(&n->real, code, p)
                                           : tn_mtx_put_integer(n->type, code, p);
    }
    *p++ = '\n';
    o->next = p;
    return p - o->piece > PIECE - LINE_MAX_BYTES ? flush(o, err) : TN_OK;
}

static tn_status put_entries(output *o, tn_error *err)
{
    for (uint64_t i = 0; i < o->m->entries; i++) {
        uint64_t row = tn_mtx_index(o->m, i, 0), column = tn_mtx_index(o->m, i, 1);
        if (o->symmetric && column > row)
            continue;
        o->next = tn_mtx_put_u64(row + 1, o->next);
        *o->next++ = ' ';
        o->next = tn_mtx_put_u64(column + 1, o->next);
        TN_TRY(put_value(o, i, err));
    }
    return TN_OK;
}

static tn_status put_columns(output *o, tn_error *err)
{
    uint64_t rows = (uint64_t)o->m->tensor->shape[0], columns = (uint64_t)o->m->tensor->shape[1];
    for (uint64_t column = 0; rows && column < columns; column++)
        for (uint64_t row = o->symmetric ? column : 0; row < rows; row++)
            TN_TRY(put_value(o, row * columns + column, err));
    return TN_OK;
}

static uint64_t lines_of(const tn_mtx_matrix *m, bool symmetric)
{
    uint64_t n = m->entries;
    for (uint64_t i = 0; i < m->entries && symmetric; i++)
        n -= tn_mtx_index(m, i, 1) > tn_mtx_index(m, i, 0);
    return n;
}

static void put_head(tn_buf *b, const tn_writer *w, const tn_mtx_matrix *m, bool symmetric)
{
    const int64_t *shape = m->tensor->shape;
    const char *format = m->indices ? "coordinate" : "array";
    tn_buf_printf(b, "%s matrix %s %s %s\n", TN_MTX_BANNER, format, tn_mtx_fields[m->field],
                  symmetric ? "symmetric" : "general");
    tn_mtx_put_comments(b, w, m);
    tn_buf_printf(b, "%lld %lld", (long long)shape[0], (long long)shape[1]);
    if (m->indices)
        tn_buf_printf(b, " %llu", (unsigned long long)lines_of(m, symmetric));
    tn_buf_putc(b, '\n');
}

static tn_status put_text(output *o, tn_error *err)
{
    tn_buf head = { 0 };
    put_head(&head, o->w, o->m, o->symmetric);
    tn_status status =
        head.bad ? tn_fail_nomem(err) : tn_writer_put(o->w, TEXT, 0, head.data, head.size, err);
    o->at = head.size;
    tn_buf_free(&head);
    if (!status)
        status = o->m->indices ? put_entries(o, err) : put_columns(o, err);
    return status ? status : flush(o, err);
}

static tn_status write_matrix(tn_writer *w, tn_mtx_matrix *m, tn_error *err)
{
    output o = { .w = w, .m = m, .numbers = tn_mtx_numbers_of(m->tensor->dtype),
                 .symmetric = tn_writer_choice(w, TN_MTX_ONE_TRIANGLE),
                 .piece = tn_arena_alloc(&w->arena, PIECE) };
    o.next = o.piece;
    if (!o.piece)
        return tn_in_tensor(tn_fail_nomem(err), m->tensor->name, err);
    if ((m->indices && check_indices(m, err)) ||
        (o.symmetric && tn_mtx_check_symmetric(m, err)))
        return tn_in_tensor(err->status, m->tensor->name, err);
    tn_status status = put_text(&o, err);
    w->files[TEXT].end = o.at;
    return status;
}

tn_status tn_mtx_finish(tn_writer *w, tn_error *err)
{
    tn_mtx_matrix m = matrix_of(w);
    uint64_t row = 0;
    m.row = &row;
    uint64_t elements =
        w->count > 1 ? m.entries : (uint64_t)m.tensor->shape[0] * (uint64_t)m.tensor->shape[1];
    if (w->dry_run) {
        w->files[TEXT].end = elements < INT64_MAX / LINE_MAX_BYTES ? elements * LINE_MAX_BYTES : INT64_MAX;
        return TN_OK;
    }
    m.field = choose_field(&m, elements);
    return write_matrix(w, &m, err);
}
