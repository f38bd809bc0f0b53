/* store/columns.c - reading a matrix whose columns are extents of their own. */
#include "store/columns.h"
#include "base/error.h"
#include "store/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct column {
    tn_stream      stream;
    const uint8_t *bytes;       /* of its window, not yet taken */
    size_t         left;
} column;

typedef struct woven {
    const tn_tensor *tensor;
    const tn_part   *part;
    size_t           width;     /* bytes of an element */
    uint64_t         rows;      /* still to come */
    bool             ended;
    uint32_t         count;
    column           columns[];
} woven;

void tn_copy_apart(uint8_t *to, size_t to_step, const uint8_t *from, size_t from_step, size_t size, size_t n)
{
    if (size == 8) {            /* sizes that the compiler knows make a copy one instruction */
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * to_step, from + i * from_step, 8);
    } else if (size == 4) {
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * to_step, from + i * from_step, 4);
    } else {
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * to_step, from + i * from_step, size);
    }
}

/* All columns are alike, one per index of the second dimension. */
static tn_status check(const tn_part *part, tn_error *err)
{
    const tn_array *a = &part->array;
    const tn_stored_more *all = tn_stored_more_of(part);
    uint64_t nbytes = 0;
    bool good = a->rank == 2 && a->shape[1] > 0 && a->shape[1] <= TN_MAX_RANK && a->shape[1] == all->nfrom &&
                a->dtype != TN_UNKNOWN && tn_dtype_get(a->dtype)->bits % 8 == 0;
    for (uint32_t i = 0; good && i < all->nfrom; i++) {
        const tn_part *p = &all->from[i];
        const tn_array *one = &p->array;
        const tn_stored *s = tn_stored_of(p);
        const tn_stored_more *more = tn_stored_more_of(p);
        good = one->dtype == a->dtype && one->rank == 1 && one->shape[0] == a->shape[0] &&
               !more->derive && !more->pitch && !more->stride && !tn_array_nbytes(one, &nbytes) &&
               p->nbytes == nbytes && (s->encoding != TN_ENCODING_RAW || s->size == nbytes);
    }
    return good ? TN_OK : tn_fail(err, TN_ERR_CORRUPT, "its columns are not all of its type and length");
}

static void close_columns(void *state)
{
    woven *c = state;
    for (uint32_t i = 0; i < c->count; i++)
        tn_stream_free(&c->columns[i].stream);
    free(c);
}

static tn_status open_columns(const tn_file *file, const tn_tensor *tensor, const tn_part *part, void **state,
                              tn_error *err)
{
    const tn_stored_more *more = tn_stored_more_of(part);
    woven *c = calloc(1, sizeof *c + more->nfrom * sizeof *c->columns);
    TN_NEED(c, err);
    *c = (woven){ .tensor = tensor, .part = part, .width = tn_dtype_get(part->array.dtype)->bits / 8,
                  .rows = (uint64_t)part->array.shape[0], .count = more->nfrom };
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < c->count && !status; i++) {
        const tn_part *p = &more->from[i];
        status =
            tn_stream_open(&c->columns[i].stream, file, tensor, p, 0, p->nbytes, tn_part_checksum(p), err);
    }
    if (status)
        close_columns(c);
    else
        *state = c;
    return status;
}

/* Reads on where a column has no bytes left; *rows becomes the rows that all columns have. */
static tn_status refill(woven *c, size_t *rows, tn_error *err)
{
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < c->count && !status; i++) {
        column *col = &c->columns[i];
        if (!col->left)
            status = tn_stream_next(&col->stream, &col->bytes, &col->left, err);
        if (col->left / c->width < *rows)
            *rows = col->left / c->width;
    }
    return status;
}

static tn_status check_digest(const woven *c, uint32_t i, const tn_digest *digest, tn_error *err)
{
    const tn_part *p = &tn_stored_more_of(c->part)->from[i];
    char who[24];
    if (tn_part_checksum(p) == TN_CHECKSUM_NONE)
        return TN_OK;
    snprintf(who, sizeof who, "column %u: ", i);
    tn_status status = tn_digest_check(p, digest, who, err);
    return c->tensor ? tn_in_tensor(status, c->tensor->name, err) : status;
}

/* Checks the checksum of each column, and that nothing follows the last row. */
static tn_status check_end(woven *c, tn_error *err)
{
    for (uint32_t i = 0; i < c->count; i++) {
        column *col = &c->columns[i];
        tn_digest digest;
        TN_TRY(tn_stream_next(&col->stream, &col->bytes, &col->left, err));
        TN_TRY(tn_stream_digest(&col->stream, &digest, err));
        TN_TRY(check_digest(c, i, &digest, err));
    }
    c->ended = true;
    return TN_OK;
}

static tn_status next_columns(void *state, uint8_t *out, size_t cap, size_t *n, tn_error *err)
{
    woven *c = state;
    size_t row = c->width * c->count, rows = cap / row;
    *n = 0;
    if (!c->rows)
        return c->ended ? TN_OK : check_end(c, err);
    TN_TRY(refill(c, &rows, err));
    for (uint32_t i = 0; i < c->count; i++) {
        column *col = &c->columns[i];
        tn_copy_apart(out + i * c->width, row, col->bytes, c->width, c->width, rows);
        col->bytes += rows * c->width;
        col->left -= rows * c->width;
    }
    c->rows -= rows;
    *n = rows * row;
    return TN_OK;
}

const tn_derive tn_derive_columns = {
    .check = check, .open = open_columns, .next = next_columns, .close = close_columns,
};
