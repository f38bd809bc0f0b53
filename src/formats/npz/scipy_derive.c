/* formats/npz/scipy_derive.c - the entries of csc, bsr and dia matrices, made while they are read.
 *
 *     csc    entry k is in row indices[k], of the column whose range of indptr has k
 *     bsr    block k has its first column at indices[k] * columns, in the row of blocks whose range of indptr
 *            has k; its elements are entries, row by row
 *     dia    element j of row d of `data` is in column j, row j - offsets[d], if the matrix has that place
 *
 * The order is that of the file.  No number of the file is believed: what does not fit the shape or the
 * number of entries is an error. */
#include "formats/npz/npz.h"
#include "base/checked.h"
#include "base/error.h"
#include "store/numbers.h"
#include "tensor/code.h"
#include "tensor/indices.h"

#include <stdio.h>
#include <stdlib.h>

static const tn_scipy_derive *derive_of(const tn_part *part)
{
    return (const tn_scipy_derive *)tn_stored_more_of(part)->derive;
}

static tn_status in_tensor(const tn_tensor *t, tn_status status, tn_error *err)
{
    return t ? tn_in_tensor(status, t->name, err) : status;
}

/* Numbers that were counted when the file was opened are not the same now. */
static tn_status has_changed(const tn_part *part, tn_error *err)
{
    return tn_fail(err, TN_ERR_CORRUPT, "expected %lld entries but found others: it has changed",
                   (long long)part->array.shape[0]);
}

/* After the last byte of a part: its checksum, and that nothing follows. */
static tn_status check_stream(tn_stream *s, tn_error *err)
{
    const uint8_t *bytes;
    size_t n;
    char who[24];
    tn_digest digest;
    TN_TRY(tn_stream_next(s, &bytes, &n, err));
    TN_TRY(tn_stream_digest(s, &digest, err));
    if (tn_part_checksum(s->part) == TN_CHECKSUM_NONE)
        return TN_OK;
    snprintf(who, sizeof who, "%s: ", s->part->role);
    return tn_digest_check(s->part, &digest, who, err);
}

static tn_status open_part(tn_numbers *s, const tn_file *file, const tn_tensor *t, const tn_part *p,
                           tn_error *err)
{
    return tn_numbers_open(s, file, t, p, tn_part_checksum(p), err);
}

/* ---- csc, bsr ---- */

/* A line is a row of blocks, of csc a column. */
typedef struct blocks {
    const tn_scipy_derive *how;
    const tn_tensor *tensor;
    const tn_part   *part;
    tn_numbers       indices, pointers;
    tn_row_pointer   line;      /* where the present line ends */
    uint64_t         block;     /* number of the next one */
    uint64_t         index;     /* of the present block in its line */
    uint64_t         row, column;       /* of the next entry in its block */
    uint64_t         left;      /* entries */
    bool             ended;
} blocks;

static tn_status next_pointer(blocks *b, tn_error *err)
{
    bool any;
    TN_TRY(tn_numbers_next(&b->pointers, &b->line.found, &any, err));
    if (!any)
        return has_changed(b->part, err);
    if (!tn_row_pointer_is_right(&b->line))
        return tn_fail(err, TN_ERR_CORRUPT, "%s", tn_row_pointer_fault(&b->line).text);
    b->line.before = b->line.found;
    b->line.i++;
    return TN_OK;
}

static tn_status next_block(blocks *b, tn_error *err)
{
    bool any;
    unsigned dimension = b->how->by_column ? 0 : 1;
    int64_t extent = b->how->shape[dimension] / (int64_t)b->how->columns;
    TN_TRY(tn_numbers_next(&b->indices, &b->index, &any, err));
    if (!any)
        return has_changed(b->part, err);
    if (b->index >= (uint64_t)extent)
        return tn_fail(err, TN_ERR_CORRUPT, "%s",
                       tn_index_fault(b->indices.dtype, b->block, dimension, extent, b->index).text);
    while (b->line.before <= b->block)          /* the last one is the number of blocks */
        TN_TRY(next_pointer(b, err));
    b->block++;
    b->row = b->column = 0;
    return TN_OK;
}

/* The lines behind the last entry are empty. */
static tn_status end_blocks(blocks *b, tn_error *err)
{
    while (b->line.i <= b->line.rows)
        TN_TRY(next_pointer(b, err));
    TN_TRY(check_stream(&b->indices.stream, err));
    TN_TRY(check_stream(&b->pointers.stream, err));
    b->ended = true;
    return TN_OK;
}

static tn_status make_places(blocks *b, uint8_t *out, size_t n, tn_error *err)
{
    const tn_scipy_derive *how = b->how;
    unsigned bits = tn_dtype_get(b->part->array.dtype)->bits;
    for (size_t i = 0; i < n; i++) {
        if (b->row == how->rows)
            TN_TRY(next_block(b, err));
        /* line.i is one behind the pointer that ends the line, which is one behind the line */
        uint64_t line = (b->line.i - 2) * how->rows + b->row, across = b->index * how->columns + b->column;
        tn_code_put(out, 2 * i, bits, how->by_column ? across : line);
        tn_code_put(out, 2 * i + 1, bits, how->by_column ? line : across);
        if (++b->column == how->columns) {
            b->column = 0;
            b->row++;
        }
    }
    return TN_OK;
}

static tn_status next_places(void *state, uint8_t *out, size_t cap, size_t *n, tn_error *err)
{
    blocks *b = state;
    size_t entry = 2 * (size_t)tn_dtype_get(b->part->array.dtype)->bits / 8;
    size_t count = (size_t)tn_min_u64(cap / entry, b->left);
    tn_status status = TN_OK;
    if (count)
        status = make_places(b, out, count, err);
    else if (!b->ended)
        status = end_blocks(b, err);
    b->left -= count;
    *n = count * entry;
    return in_tensor(b->tensor, status, err);
}

static void close_blocks(void *state)
{
    blocks *b = state;
    tn_stream_free(&b->indices.stream);
    tn_stream_free(&b->pointers.stream);
    free(b);
}

static tn_status open_blocks(const tn_file *file, const tn_tensor *t, const tn_part *part, void **state,
                             tn_error *err)
{
    const tn_part *from = tn_stored_more_of(part)->from;
    blocks *b = calloc(1, sizeof *b);
    TN_NEED(b, err);
    *b = (blocks){ .how = derive_of(part), .tensor = t, .part = part,
                   .left = (uint64_t)part->array.shape[0] };
    b->row = b->how->rows;
    b->line = (tn_row_pointer){ .dtype = from[1].array.dtype, .rows = (uint64_t)from[1].array.shape[0] - 1,
                                .entries = (uint64_t)from[0].array.shape[0] };
    tn_status status = open_part(&b->indices, file, t, &from[0], err);
    if (!status)
        status = open_part(&b->pointers, file, t, &from[1], err);
    if (!status)
        status = in_tensor(t, next_pointer(b, err), err);
    if (status)
        close_blocks(b);
    else
        *state = b;
    return status;
}

const tn_derive tn_derive_blocks = { .open = open_blocks, .next = next_places, .close = close_blocks };

/* ---- dia ---- */

tn_diagonal tn_scipy_diagonal(const int64_t shape[2], uint64_t length, int64_t offset)
{
    tn_diagonal d = { .offset = offset };
    if (offset >= shape[1] || offset <= -shape[0])
        return d;
    d.begin = offset > 0 ? (uint64_t)offset : 0;
    uint64_t last = (uint64_t)shape[0] + (uint64_t)offset;      /* may wrap twice: it is above 0 */
    d.end = tn_min_u64(tn_min_u64(length, (uint64_t)shape[1]), last);
    d.end = d.end > d.begin ? d.end : d.begin;
    return d;
}

/* The diagonals one after the other: their places, or their values. */
typedef struct diagonals {
    const tn_scipy_derive *how;
    const tn_tensor *tensor;
    const tn_part   *part;
    tn_numbers       offsets;
    tn_diagonal      now;       /* what is left of the present one */
    uint64_t         left;      /* entries */
    bool             ended;
    /* values only */
    tn_stream        data;
    const uint8_t   *bytes;     /* of its window, not yet taken */
    size_t           nbytes, width;
    uint64_t         at;        /* number of the next element in the data */
    uint64_t         next_row;  /* number of the first element behind the present diagonal's row */
} diagonals;

/* *any is false behind the last one. */
static tn_status next_diagonal(diagonals *d, bool *any, tn_error *err)
{
    uint64_t offset;
    TN_TRY(tn_numbers_next(&d->offsets, &offset, any, err));
    if (!*any)
        return TN_OK;
    d->now = tn_scipy_diagonal(d->how->shape, d->how->columns, (int64_t)offset);
    d->next_row += d->how->columns;
    return TN_OK;
}

/* Goes on to a diagonal that has entries left. */
static tn_status find_diagonal(diagonals *d, tn_error *err)
{
    bool any = true;
    while (d->now.begin == d->now.end && any)
        TN_TRY(next_diagonal(d, &any, err));
    return any ? TN_OK : has_changed(d->part, err);
}

/* The next bytes of the data: into `out`, or nowhere. */
static tn_status take_values(diagonals *d, uint64_t n, uint8_t *out, tn_error *err)
{
    for (uint64_t want = n * d->width; want;) {
        if (!d->nbytes)
            TN_TRY(tn_stream_next(&d->data, &d->bytes, &d->nbytes, err));
        size_t some = (size_t)tn_min_u64(d->nbytes, want);
        if (!some)
            return has_changed(d->part, err);
        if (out)
            out = (uint8_t *)memcpy(out, d->bytes, some) + some;
        d->bytes += some;
        d->nbytes -= some;
        want -= some;
    }
    d->at += n;
    return TN_OK;
}

static tn_status end_diagonals(diagonals *d, tn_error *err)
{
    bool any = true;
    while (any) {
        TN_TRY(next_diagonal(d, &any, err));
        if (any && d->now.begin < d->now.end)
            return has_changed(d->part, err);
    }
    TN_TRY(check_stream(&d->offsets.stream, err));
    d->ended = true;
    if (!d->width)
        return TN_OK;
    TN_TRY(take_values(d, d->next_row - d->at, NULL, err));
    return check_stream(&d->data, err);
}

static tn_status next_diagonal_places(void *state, uint8_t *out, size_t cap, size_t *n, tn_error *err)
{
    diagonals *d = state;
    unsigned bits = tn_dtype_get(d->part->array.dtype)->bits;
    size_t count = (size_t)tn_min_u64(cap / (2 * bits / 8), d->left);
    tn_status status = count || d->ended ? TN_OK : end_diagonals(d, err);
    for (size_t i = 0; i < count && !status; i++) {
        status = find_diagonal(d, err);
        uint64_t column = d->now.begin++;
        tn_code_put(out, 2 * i, bits, column - (uint64_t)d->now.offset);
        tn_code_put(out, 2 * i + 1, bits, column);
    }
    d->left -= count;
    *n = count * 2 * bits / 8;
    return in_tensor(d->tensor, status, err);
}

static tn_status next_diagonal_values(void *state, uint8_t *out, size_t cap, size_t *n, tn_error *err)
{
    diagonals *d = state;
    uint64_t room = tn_min_u64(cap / d->width, d->left);
    tn_status status = room || d->ended ? TN_OK : end_diagonals(d, err);
    for (*n = 0; room && !status;) {
        status = find_diagonal(d, err);
        uint64_t some = tn_min_u64(room, d->now.end - d->now.begin);
        uint64_t first = d->next_row - d->how->columns + d->now.begin;
        if (!status)
            status = take_values(d, first - d->at, NULL, err);
        if (!status)
            status = take_values(d, some, out + *n, err);
        d->now.begin += some;
        d->left -= some;
        room -= some;
        *n += (size_t)some * d->width;
    }
    return in_tensor(d->tensor, status, err);
}

static void close_diagonals(void *state)
{
    diagonals *d = state;
    tn_stream_free(&d->offsets.stream);
    tn_stream_free(&d->data);
    free(d);
}

/* Values are made of the data, too: the second part. */
static tn_status open_diagonals(const tn_file *file, const tn_tensor *t, const tn_part *part, void **state,
                                tn_error *err)
{
    const tn_stored_more *more = tn_stored_more_of(part);
    diagonals *d = calloc(1, sizeof *d);
    TN_NEED(d, err);
    *d = (diagonals){ .how = derive_of(part), .tensor = t, .part = part,
                      .left = (uint64_t)part->array.shape[0] };
    tn_status status = open_part(&d->offsets, file, t, &more->from[0], err);
    if (!status && more->nfrom > 1) {
        const tn_part *data = &more->from[1];
        d->width = tn_dtype_get(data->array.dtype)->bits / 8;
        status = tn_stream_open(&d->data, file, t, data, 0, data->nbytes, tn_part_checksum(data), err);
    }
    if (status)
        close_diagonals(d);
    else
        *state = d;
    return status;
}

const tn_derive tn_derive_diagonal_places = {
    .open = open_diagonals, .next = next_diagonal_places, .close = close_diagonals,
};
const tn_derive tn_derive_diagonal_values = {
    .open = open_diagonals, .next = next_diagonal_values, .close = close_diagonals,
};

/* ---- values of another shape ---- */

static tn_status open_flat(const tn_file *file, const tn_tensor *t, const tn_part *part, void **state,
                           tn_error *err)
{
    const tn_part *from = tn_stored_more_of(part)->from;
    tn_stream *s = calloc(1, sizeof *s);
    TN_NEED(s, err);
    tn_status status = tn_stream_open(s, file, t, from, 0, from->nbytes, tn_part_checksum(from), err);
    *state = s;
    if (status) {
        tn_stream_free(s);
        free(s);
    }
    return status;
}

/* At most a window, as `cap` is. */
static tn_status next_flat(void *state, uint8_t *out, size_t cap, size_t *n, tn_error *err)
{
    tn_stream *s = state;
    const uint8_t *bytes;
    (void)cap;
    TN_TRY(tn_stream_next(s, &bytes, n, err));
    if (*n)
        memcpy(out, bytes, *n);
    return *n ? TN_OK : tn_stream_check(s, s->tensor, s->part, err);
}

static void close_flat(void *state)
{
    tn_stream_free(state);
    free(state);
}

const tn_derive tn_derive_flat = { .open = open_flat, .next = next_flat, .close = close_flat };
