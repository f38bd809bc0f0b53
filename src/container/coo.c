/* container/coo.c - the indices of a COO tensor: inside its shape, in order. */
#include "container/coo.h"
#include "base/error.h"
#include "container/stream.h"

#include <string.h>

typedef struct walk {
    const tn_tensor *tensor;
    const tn_part   *part;
    uint32_t         column;    /* of the next index */
    uint64_t         row;
    uint64_t         last[TN_MAX_RANK], now[TN_MAX_RANK];   /* rows of indices */
} walk;

bool tn_is_coo_indices(const tn_tensor *t, const tn_part *p)
{
    return strcmp(t->form, "coo") == 0 && t->nparts == 2 && p == &t->parts[1];
}

/* Negative ones become too large for any shape. */
static uint64_t index_at(tn_dtype dtype, const uint8_t *bytes, size_t i)
{
    tn_value v = tn_value_get(dtype, bytes, i);
    return v.kind == TN_KIND_INT ? (uint64_t)v.i : v.u;
}

static tn_status check_index(const walk *w, uint64_t index, tn_error *err)
{
    const tn_tensor *t = w->tensor;
    if (index < (uint64_t)t->shape[w->column])
        return TN_OK;
    bool negative = index > INT64_MAX && tn_dtype_get(w->part->array.dtype)->kind == TN_KIND_INT;
    return tn_fail(err, TN_ERR_CORRUPT, TN_NO_OFFSET, "tensor %s: entry %llu: expected an index below %lld in dimension %u but found "
                   "%s%llu", tn_quote_z(t->name).text, (unsigned long long)w->row, (long long)t->shape[w->column], w->column,
                   negative ? "-" : "", (unsigned long long)(negative ? -index : index));
}

/* Below, at or above 0 as row `now` comes before, with or after row `last`. */
static int compare_rows(const walk *w)
{
    for (uint32_t i = 0; i < w->tensor->rank; i++)
        if (w->now[i] != w->last[i])
            return w->now[i] < w->last[i] ? -1 : 1;
    return 0;
}

static void end_row(walk *w, tn_error *why)
{
    int order = w->row ? compare_rows(w) : 1;
    if (order <= 0 && !why->text[0])
        tn_fail(why, TN_OK, TN_NO_OFFSET, "tensor %s: entry %llu %s entry %llu", tn_quote_z(w->tensor->name).text,
                (unsigned long long)w->row, order < 0 ? "is out of order: it sorts before" : "has the indices of",
                (unsigned long long)w->row - 1);
    memcpy(w->last, w->now, w->tensor->rank * sizeof *w->now);
    w->column = 0;
    w->row++;
}

/* The indices of one window, which may begin and end inside a row. */
static tn_status check_window(walk *w, const uint8_t *bytes, size_t n, tn_error *why)
{
    tn_dtype dtype = w->part->array.dtype;
    size_t count = n / (tn_dtype_get(dtype)->bits / 8);
    for (size_t i = 0; i < count; i++) {
        w->now[w->column] = index_at(dtype, bytes, i);
        tn_status status = check_index(w, w->now[w->column], why);
        if (status)
            return status;
        if (++w->column == w->tensor->rank)
            end_row(w, why);
    }
    return TN_OK;
}

tn_status tn_coo_check(const tn_file *file, const tn_tensor *t, tn_error *why)
{
    walk w = { .tensor = t, .part = &t->parts[1] };
    tn_stream s = { 0 };
    *why = (tn_error){ .offset = TN_NO_OFFSET };
    tn_status status = tn_stream_open(&s, file, t, w.part, 0, w.part->nbytes, TN_CHECKSUM_NONE, why);
    for (size_t n = 1; n && !status;) {
        const uint8_t *bytes;
        status = tn_stream_next(&s, &bytes, &n, why);
        if (!status)
            status = check_window(&w, bytes, n, why);
    }
    tn_stream_free(&s);
    return status;
}
