/* store/sparse.c - checking the indices of sparse tensors: inside the shape, in order; row pointers. */
#include "store/sparse.h"
#include "base/error.h"
#include "store/numbers.h"
#include "tensor/form.h"
#include "tensor/indices.h"

#include <inttypes.h>
#include <string.h>

bool tn_is_sparse_index(const tn_tensor *t, const tn_part *p)
{
    const tn_form_info *form = tn_form_get(t->form);
    return form && form->check_data && p != &t->parts[0];
}

/* ---- numbers ---- */

static tn_status open_numbers(tn_numbers *s, const tn_file *file, const tn_tensor *t, const tn_part *p,
                              tn_error *err)
{
    return tn_numbers_open(s, file, t, p, TN_CHECKSUM_NONE, err);
}

/* The byte of the number that was read last, if the data is a range of the only file. */
static uint64_t place_of(const tn_numbers *s)
{
    const tn_part *p = s->stream.part;
    if (!tn_part_is_range(p) || s->stream.file->nshards > 1)
        return TN_NO_OFFSET;
    return tn_stored_of(p)->offset + (s->taken - 1) * (tn_dtype_get(s->dtype)->bits / 8);
}

/* The index was read last. */
static tn_status check_index(const tn_tensor *t, const tn_numbers *s, uint64_t entry, uint32_t dimension,
                             uint64_t index, tn_error *err)
{
    if (index < (uint64_t)t->shape[dimension])
        return TN_OK;
    return tn_fail_at(err, TN_ERR_CORRUPT, place_of(s), "%s",
                      tn_index_fault(s->dtype, entry, dimension, t->shape[dimension], index).text);
}

/* Notes the first entry that is before (order < 0) or equal to (order 0) the entry before it. */
static void note_order(uint64_t entry, int order, tn_error *why)
{
    if (order > 0 || why->text[0])
        return;
    tn_fail(why, TN_OK, "entry %" PRIu64 " %s entry %" PRIu64, entry,
            order < 0 ? "is out of order: it sorts before" : "has the indices of", entry - 1);
}

/* ---- COO ---- */

/* Below, at or above 0 as row `a` comes before, with or after row `b`. */
static int compare_rows(uint32_t rank, const uint64_t *a, const uint64_t *b)
{
    for (uint32_t i = 0; i < rank; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

static tn_status check_coo(const tn_tensor *t, tn_numbers *s, tn_error *why)
{
    uint64_t last[TN_MAX_RANK], now[TN_MAX_RANK], entries = (uint64_t)t->parts[1].array.shape[0];
    tn_status status = TN_OK;
    if (!t->rank && entries > 1)
        note_order(1, 0, why);       /* a scalar has one entry */
    for (uint64_t entry = 0; t->rank && entry < entries; entry++) {
        for (uint32_t i = 0; i < t->rank && !status; i++) {
            bool any = false;
            status = tn_numbers_next(s, &now[i], &any, why);
            if (!status)
                status = check_index(t, s, entry, i, now[i], why);
        }
        if (status)
            return status;
        if (entry)
            note_order(entry, compare_rows(t->rank, now, last), why);
        memcpy(last, now, t->rank * sizeof *now);
    }
    return TN_OK;
}

/* ---- CSR ---- */

/* From 0 to the number of values, never down. */
static tn_status check_pointers(const tn_tensor *t, tn_numbers *s, tn_error *why)
{
    tn_row_pointer p = { .dtype = s->dtype, .rows = (uint64_t)t->parts[2].array.shape[0] - 1,
                         .entries = (uint64_t)t->parts[0].array.shape[0] };
    for (;; p.i++, p.before = p.found) {
        bool any;
        tn_status status = tn_numbers_next(s, &p.found, &any, why);
        if (status || !any)
            return status;
        if (!tn_row_pointer_is_right(&p))
            return tn_fail_at(why, TN_ERR_CORRUPT, place_of(s), "%s", tn_row_pointer_fault(&p).text);
    }
}

/* Goes on to the row of an entry; *ends is where the present row ends. TN_ERR_CORRUPT: there is no such row,
 * which is reported with the pointers. */
static tn_status find_row(tn_numbers *pointers, uint64_t entry, uint64_t entries, uint64_t *ends,
                          bool *begins, tn_error *err)
{
    *begins = false;
    while (*ends <= entry) {
        bool any;
        uint64_t before = *ends;
        tn_status status = tn_numbers_next(pointers, ends, &any, err);
        if (status || !any || *ends < before || *ends > entries)
            return status ? status : TN_ERR_CORRUPT;
        *begins = true;
    }
    return TN_OK;
}

static bool is_fatal(tn_status status)
{
    return status == TN_ERR_NOMEM || status == TN_ERR_IO;
}

/* Without `pointers`, which may be unreadable, order is not checked. */
static tn_status check_columns(const tn_tensor *t, tn_numbers *s, tn_numbers *pointers, tn_error *why)
{
    uint64_t entries = (uint64_t)t->parts[1].array.shape[0], ends = 0, before = 0, now = 0;
    bool any = true, begins = true;
    for (uint64_t entry = 0;; entry++) {
        tn_error unread;
        tn_status status = tn_numbers_next(s, &now, &any, why);
        if (status || !any)
            return status;
        status = check_index(t, s, entry, t->rank - 1, now, why);
        if (status)
            return status;
        status = pointers ? find_row(pointers, entry, entries, &ends, &begins, &unread) : TN_OK;
        if (is_fatal(status))
            return *why = unread, status;
        pointers = status ? NULL : pointers;
        if (pointers && !begins)
            note_order(entry, now < before ? -1 : now > before, why);
        before = now;
    }
}

static tn_status check_csr_indices(const tn_file *file, const tn_tensor *t, tn_numbers *s,
                                   tn_numbers *pointers, tn_error *why)
{
    tn_error unread;
    tn_status status = pointers ? open_numbers(pointers, file, t, &t->parts[2], &unread) : TN_OK;
    if (is_fatal(status))
        return *why = unread, status;
    return check_columns(t, s, status ? NULL : pointers, why);
}

/* ---- all ---- */

/* Reserves the windows of indices and row pointers; false: not both can be had. */
static bool reserve_both(const tn_file *file, const tn_tensor *t, tn_numbers *s, tn_numbers *pointers)
{
    const tn_stream_wish both[] = { { &s->stream, file, t, &t->parts[1] },
                                    { &pointers->stream, file, t, &t->parts[2] } };
    return tn_stream_reserve(both, 2, NULL) == TN_OK;
}

tn_status tn_coo_check_data(const tn_file *file, const tn_tensor *t, const tn_part *p, tn_error *why)
{
    tn_numbers s = { 0 };
    tn_status status = open_numbers(&s, file, t, p, why);
    if (!status)
        status = check_coo(t, &s, why);
    tn_stream_free(&s.stream);
    return status;
}

tn_status tn_csr_check_data(const tn_file *file, const tn_tensor *t, const tn_part *p, tn_error *why)
{
    tn_numbers s = { 0 }, pointers = { 0 };
    bool columns = p == &t->parts[1], both = columns && reserve_both(file, t, &s, &pointers);
    tn_status status = open_numbers(&s, file, t, p, why);
    if (!status && columns)
        status = check_csr_indices(file, t, &s, both ? &pointers : NULL, why);
    else if (!status)
        status = check_pointers(t, &s, why);
    tn_stream_free(&s.stream);
    tn_stream_free(&pointers.stream);
    return status;
}

tn_status tn_sparse_check(const tn_file *file, const tn_tensor *t, const tn_part *p, tn_error *why)
{
    *why = (tn_error){ .offset = TN_NO_OFFSET };
    return tn_in_tensor(tn_form_get(t->form)->check_data(file, t, p, why), t->name, why);
}
